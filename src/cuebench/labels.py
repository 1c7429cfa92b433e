"""Label spaces, and maps from many classes to few.

A ``LabelSpace`` is the ordered list of classes that an observer's logits stand for. A ``LabelMap`` says which of them
make up each *target* class of a stimulus set. Members are matched by id (WordNet id) first and by name second, so the
same 16-class map serves ImageNet-1k, ImageNet-21k and a user's own classes; what is not covered is reported, never
guessed. Built-in data: ``labels/*.json``.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cuebench.errors import UserError, all_problems, did_you_mean

FOLDER = Path(__file__).parent / "labels"
Aggregation = Literal["mean", "max"]


@dataclass(frozen=True)
class LabelSpace:
    """The ordered classes of an observer's answers.

    Parameters
    ----------
    name : str
        Public name (``imagenet1k``) or the file it was read from.
    names : tuple of str
        Human-readable class names, in the order of the logits.
    ids : tuple of str
        Stable ids such as WordNet ids, same order; empty where there are none.
    """

    name: str
    names: tuple[str, ...]
    ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.ids and len(self.ids) != len(self.names):
            raise UserError(f"label space {self.name!r}: {len(self.names)} names but {len(self.ids)} ids")

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def index(self) -> dict[str, int]:
        """Id or name (as given, and normalised) → position. Ids win over names; an ambiguous name is left out."""
        normal = [_normal(n) for n in self.names]
        once = {n for n, count in Counter(normal).items() if count == 1}
        found = {n: i for i, n in enumerate(normal) if n in once}
        found.update({n: i for i, n in enumerate(self.names) if _normal(n) in once})
        found.update({k: i for i, k in enumerate(self.ids)})
        return found

    def find(self, label: str | int) -> int | None:
        """Return the position of an id, a name or an index; None where the space has no such class."""
        if isinstance(label, int):
            return label if 0 <= label < len(self) else None
        return self.index.get(label, self.index.get(_normal(label)))


@dataclass(frozen=True)
class LabelMap:
    """Which classes of a big label space make up each target class.

    Parameters
    ----------
    name : str
        Public name (``in16``) or the file it was read from.
    targets : mapping of str to tuple
        Target class → members (ids, names, or indices into the observer's own space).
    """

    name: str
    targets: Mapping[str, tuple[str | int, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        """The target classes, in order."""
        return tuple(self.targets)

    def resolve(self, space: LabelSpace) -> ResolvedMap:
        """Find every member in ``space``. A space whose classes *are* the targets maps one to one."""
        own = [space.find(t) for t in self.targets]
        if len(space) == len(self.targets) and None not in own:
            members = [np.array([i]) for i in own]
            return ResolvedMap(self.names, tuple(members), {})
        found = {t: [space.find(m) for m in ms] for t, ms in self.targets.items()}
        missing = {t: tuple(m for m, i in zip(self.targets[t], f) if i is None) for t, f in found.items()}
        members = [np.array(sorted(i for i in f if i is not None), dtype=np.intp) for f in found.values()]
        return ResolvedMap(self.names, tuple(members), {t: m for t, m in missing.items() if m})


@dataclass(frozen=True)
class ResolvedMap:
    """A label map with its members as positions in one label space."""

    names: tuple[str, ...]
    members: tuple[np.ndarray[Any, np.dtype[np.intp]], ...]
    missing: Mapping[str, tuple[str | int, ...]]

    @property
    def uncovered(self) -> tuple[str, ...]:
        """Targets without a single member in the space: an observer can never answer them."""
        return tuple(n for n, m in zip(self.names, self.members) if not len(m))

    def target_of(self, size: int) -> np.ndarray[Any, np.dtype[np.intp]]:
        """Position in the space → position of its target, −1 where it belongs to none."""
        owner = np.full(size, -1, dtype=np.intp)
        for t, m in enumerate(self.members):
            owner[m] = t
        return owner

    def aggregate(self, values: np.ndarray[Any, Any], how: Aggregation = "mean") -> np.ndarray[Any, Any]:
        """Turn n × classes into n × targets by the mean or the maximum of each target's members.

        An uncovered target gives −inf, so that it is never the arg max.
        """
        out = np.full((len(values), len(self.names)), -np.inf)
        for t, m in enumerate(self.members):
            if len(m):
                own = values[:, m].astype(np.float64)
                out[:, t] = own.mean(axis=1) if how == "mean" else own.max(axis=1)
        return out


def coverage_problems(resolved: ResolvedMap, labels: Iterable[str]) -> list[str]:
    """Say which targets an observer cannot answer, and how many stimuli that touches."""
    counts = Counter(labels)
    return [
        f"target class {t!r} has no member in the observer's label space ({counts[t]} stimuli have it)"
        for t in resolved.uncovered
    ]


def softmax(logits: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return softmax over the last axis in float64: exp(z − max z) / Σ exp(z − max z)."""
    z = logits.astype(np.float64)
    z = np.exp(z - z.max(axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


def label_space(source: str | Path | Sequence[str] | LabelSpace) -> LabelSpace:
    """Return a label space from a built-in name, a JSON or CSV file, or a list of names.

    JSON: ``{"names": [...], "ids": [...]}`` or a plain list. CSV: a column ``name``, optionally ``id`` and ``index``.
    """
    if isinstance(source, LabelSpace):
        return source
    if not isinstance(source, (str, Path)):
        return LabelSpace("custom", tuple(str(n) for n in source))
    return _space_from_file(_locate(source, "label space"))


def label_map(source: str | Path | Mapping[str, Sequence[str | int]] | LabelMap) -> LabelMap:
    """Return a label map from a built-in name, a JSON file ``{target: [members]}``, a CSV (target, member), a dict."""
    if isinstance(source, LabelMap):
        return source
    if isinstance(source, Mapping):
        return LabelMap("custom", {str(t): tuple(m) for t, m in source.items()})
    return _map_from_file(_locate(source, "label map"))


def built_in() -> dict[str, str]:
    """Return name → kind (``space`` or ``map``) of the label files that ship with cuebench."""
    return {p.stem: "map" if "targets" in json.loads(p.read_text("utf-8")) else "space" for p in _files()}


@cache
def _space_from_file(path: Path) -> LabelSpace:
    if path.suffix == ".csv":
        rows = _csv_rows(path, {"name"})
        rows = sorted(rows, key=lambda r: int(r["index"])) if "index" in rows[0] else rows
        data: Any = {"names": [r["name"] for r in rows], "ids": [r["id"] for r in rows if r.get("id")]}
    else:
        data = _json(path)
    names, ids = (data, ()) if isinstance(data, list) else (data.get("names", ()), data.get("ids", ()))
    if not names:
        raise UserError(f"{path} holds no class names", 'expected {"names": [...]} or a list of names')
    return LabelSpace(path.stem, tuple(map(str, names)), tuple(map(str, ids)))


@cache
def _map_from_file(path: Path) -> LabelMap:
    targets: dict[str, list[str | int]] = {}
    if path.suffix == ".csv":
        for row in _csv_rows(path, {"target", "member"}):
            targets.setdefault(row["target"], []).append(row["member"])
    else:
        data = _json(path)
        targets = data.get("targets", data)
    bad = [f"target {t!r} has no list of members" for t, m in targets.items() if not isinstance(m, list) or not m]
    if bad or not targets:
        raise all_problems(f"label map {path}", bad or ["no targets"], 'expected {"target": ["member", ...], ...}')
    return LabelMap(path.stem, {t: tuple(m) for t, m in targets.items()})


def _locate(source: str | Path, kind: str) -> Path:
    path = Path(source).expanduser()
    if path.suffix in {".json", ".csv"}:
        if path.is_file():
            return path
        raise UserError(f"{kind} file {path} does not exist")
    built = {p.stem: p for p in _files()}
    if str(source) not in built:
        raise did_you_mean(kind, str(source), built)
    return built[str(source)]


def _files() -> list[Path]:
    return sorted(FOLDER.glob("*.json"))


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise UserError(f"{path} is not valid JSON: {error}") from None


def _csv_rows(path: Path, needed: set[str]) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    have = set(rows[0]) if rows else set()
    if needed - have:
        raise UserError(f"{path}: missing columns {sorted(needed - have)}; found {sorted(have)}")
    return rows


def _normal(name: str) -> str:
    return name.strip().lower().replace("_", " ").replace("-", " ")
