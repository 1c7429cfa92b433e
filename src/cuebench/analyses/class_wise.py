"""How well people and models recognise each class by its shape and by its texture, read from run folders.

Six sources of class-wise accuracies: the two outcomes of cue conflict (how often the class of the shape, of the
texture, is answered), silhouettes and edges (``pure_shape``), and the shape and texture cues of REFINED-BIAS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cuebench.errors import UserError, did_you_mean
from cuebench.protocols.headline import measured, number_of_classes, one_row_each
from cuebench.runs.record import RunRecord
from cuebench.runs.results import read_scores, read_table_rows
from cuebench.statistics.estimates import mean
from cuebench.types import Estimate, ObserverKind, Score

PROTOCOLS = ("cue_conflict", "pure_shape", "refined_bias")
"""Whose runs a panel is read from."""
SOURCES: Mapping[str, str] = {
    "shape answers": "cue conflict: share of the conflict images of a shape class that are answered with it",
    "texture answers": "cue conflict: share of the conflict images of a texture class that are answered with it",
    "silhouettes": "share of the silhouettes of a class that are recognised",
    "edges": "share of the edge images of a class that are recognised",
    "shape cues": "REFINED-BIAS: share of the shape cues of a class whose first answer is right",
    "texture cues": "REFINED-BIAS: share of the texture cues of a class whose first answer is right",
}
OUTCOMES = ("shape answers", "texture answers")
PURE = tuple(source for source in SOURCES if source not in OUTCOMES)
FEW, FAITHFUL, NATIVE = "16-way", "faithful", "native"


class Cell(NamedTuple):
    """The accuracy of one observer for one class of one source, and the number of images behind it."""

    observer: str
    kind: str
    source: str
    label: str
    value: float
    n: int


class ClassRow(NamedTuple):
    """Mean accuracy of people and of models for one class, each with an interval over them; n is how many they are."""

    source: str
    label: str
    people: Estimate
    models: Estimate


@dataclass(frozen=True)
class Panel:
    """The scores of several runs and who their observers are."""

    scores: Sequence[Score]
    kinds: Mapping[str, str]
    cells: Sequence[Cell]
    space: str
    view: str

    def of(self, observer: str, source: str) -> dict[str, float]:
        """Return class → accuracy of one observer."""
        return {c.label: c.value for c in self.cells if (c.observer, c.source) == (observer, source)}

    @property
    def people(self) -> list[str]:
        """Single people; the pooled ones where no single one was recorded."""
        persons = [o for o, kind in self.kinds.items() if kind == "person"]
        return persons or [o for o, kind in self.kinds.items() if kind == "people"]

    @property
    def models(self) -> list[str]:
        """Everything that looks at pixels; ideal observers are not counted among models."""
        return [o for o, kind in self.kinds.items() if kind == "model"]


def read_panel(runs: Sequence[str | Path], *, space: str = FEW, view: str = FAITHFUL) -> Panel:
    """Read the class-wise accuracies of run folders; observers of the same name are the same.

    Parameters
    ----------
    runs : sequence of paths
        Run folders of ``cue_conflict``, ``pure_shape`` or ``refined_bias``.
    space : str
        Label space of the decisions about cue conflict, silhouettes and edges: ``16-way`` (the classes of the stimuli,
        also where those are others) or ``1000-way``. People have decided among the former, whatever is asked for.
    view : str
        View of REFINED-BIAS for models: ``faithful`` or ``native``. People see the images as they are.

    Raises
    ------
    UserError
        For a label space or a view that no run holds, and where there is nothing class-wise.
    """
    scores: list[Score] = []
    kinds: dict[str, str] = {}
    cells: dict[tuple[str, str, str], Cell] = {}
    for run in runs:
        folder = Path(run).expanduser()
        of_run = kinds_of(folder)
        rows = one_row_each(measured(read_scores(folder)))
        scores += rows
        kinds |= {s.observer: of_run.get(s.observer, "model") for s in rows}
        run_cells = [*_of_scores(rows, of_run, space, view)]
        if any(s.protocol == "cue_conflict" for s in rows):
            run_cells += _of_conflicts(folder, of_run, space)
        cells |= {(c.observer, c.source, c.label): c for c in run_cells}
    spaces, views = _held(scores, kinds)
    known = {"label space": (space, {FEW, *spaces}), "view": (view, {FAITHFUL, NATIVE, *views})}
    for what, (asked, names) in known.items():
        if asked not in names and (spaces or views):
            raise did_you_mean(f"{what} of these runs:", asked, sorted(names))
    if not cells:
        raise UserError(
            f"no class-wise accuracies in {', '.join(map(str, runs))} (label space {space}, view {view})",
            "run cue_conflict, pure_shape or refined_bias: cuebench run -p cue_conflict -p pure_shape …",
        )
    return Panel(scores, kinds, tuple(cells.values()), space, view)


def _held(scores: Iterable[Score], kinds: Mapping[str, str]) -> tuple[set[str], set[str]]:
    """Return the label spaces and the views of REFINED-BIAS that some model, or anybody, has class-wise numbers in."""
    spaces, views = set(), set()
    for s in scores:
        start, is_class, _ = s.condition.partition("/class=")
        if s.protocol == "cue_conflict":
            spaces.add(start.partition("/")[0])
        elif s.protocol == "pure_shape" and is_class:
            spaces.add(start.partition("/")[2])
        elif s.protocol == "refined_bias" and is_class and not _is_human(kinds[s.observer]):
            views.add(start)
    return spaces, views


def kinds_of(run: Path) -> dict[str, str]:
    """Return observer → model, person, people or ideal; empty for a folder that holds scores only."""
    if not (run / "run.json").is_file():
        return {}
    return {job.observer: job.kind for job in RunRecord.read(run).jobs if not job.baseline_of}


def by_class(panel: Panel) -> list[ClassRow]:
    """Return for every class of each source how well people and models recognise it (Kim et al. 2026, Fig. 4 and 7)."""
    rows = []
    for source in SOURCES:
        for label in sorted({c.label for c in panel.cells if c.source == source}):
            here = {c.observer: c.value for c in panel.cells if (c.source, c.label) == (source, label)}
            rows.append(
                ClassRow(source, label, _mean_of(panel.people, here, "subjects"), _mean_of(panel.models, here, ""))
            )
    return rows


def _mean_of(observers: Iterable[str], values: Mapping[str, float], kind: str) -> Estimate:
    of_group = np.array([values[o] for o in observers if o in values])
    return mean(of_group[np.isfinite(of_group)], "subjects" if kind == "subjects" else "")


def _of_scores(rows: Iterable[Score], kinds: Mapping[str, str], space: str, view: str) -> Iterable[Cell]:
    """Yield the class-wise accuracies that stand in the scores: silhouettes, edges and the cues of REFINED-BIAS."""
    for s in rows:
        start, is_class, label = s.condition.partition("/class=")
        kind = kinds.get(s.observer, "model")
        if not is_class:
            continue
        if s.protocol == "pure_shape" and start.partition("/")[2] == (space if kind == "model" else FEW):
            yield Cell(s.observer, kind, start.partition("/")[0], label, s.value, s.n)
        elif s.protocol == "refined_bias" and s.metric.endswith("_top1") and (_is_human(kind) or start == view):
            yield Cell(s.observer, kind, f"{s.metric.removesuffix('_top1')} cues", label, s.value, s.n)


def _of_conflicts(run: Path, kinds: Mapping[str, ObserverKind | str], space: str) -> Iterable[Cell]:
    """Yield the two outcomes of cue conflict by class, counted from the table of confusions in any label space."""
    counts: dict[tuple[str, str, str], list[int]] = {}
    rows = read_table_rows(run, "cue_conflict", "confusion")
    spaces: dict[str, dict[str, None]] = {}
    for row in rows:
        spaces.setdefault(str(row["observer"]), {})[str(row["condition"])] = None
    wanted = {
        o: _space(list(conditions), FEW if _is_human(kinds.get(o, "model")) else space)
        for o, conditions in spaces.items()
    }
    for row in rows:
        observer, shape, texture = str(row["observer"]), str(row["shape"]), str(row["texture"])
        if shape == texture or row["condition"] != wanted[observer]:
            continue
        for source, label in zip(OUTCOMES, (shape, texture)):
            total = counts.setdefault((observer, source, label), [0, 0])
            total[0] += row["count"] * (row["response"] == label)
            total[1] += row["count"]
    for (observer, source, label), (hits, n) in counts.items():
        if n:
            yield Cell(observer, kinds.get(observer, "model"), source, label, hits / n, n)


def _space(present: Sequence[str], asked: str) -> str:
    """Return the label space that was asked for; of a set with other classes, ``16-way`` means its own classes."""
    if asked in present or asked != FEW:
        return asked
    return min(present, key=number_of_classes)


def _is_human(kind: str) -> bool:
    return kind in ("person", "people")
