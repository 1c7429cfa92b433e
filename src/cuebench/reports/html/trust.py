"""How far each number can be trusted: observers whose answer is known, and what each interval covers."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from cuebench.calibration import trust as calibrated
from cuebench.protocols.base import NOT_MEASURED
from cuebench.reports.html.material import Material, direction
from cuebench.reports.html.tables import Cell, Table, count, of_score, words
from cuebench.reports.html.text import MEANINGS
from cuebench.runs.results import read_table
from cuebench.types import Score

CALIBRATION = "calibration"
"""Table of a run, ``tables/PROTOCOL.calibration.parquet``, that a report shows as it is: planted against measured."""
ANSWERS = {
    "shape": "by shape, always",
    "texture": "by texture, always",
    "random": "at random",
    "mixture": "by shape or by texture, in the proportion that its name gives",
}
"""Ideal observer → how it answers."""


class Trust(NamedTuple):
    """Tables of calibration, of ideal observers and of all intervals, and the words of the latter.

    ``known`` is what cuebench's own simulated studies found of the numbers of these protocols, ``made`` how.
    """

    calibration: list[Table]
    known: Table | None
    made: list[str]
    ideal: Table | None
    intervals: Table | None
    meanings: list[tuple[str, str]]


def trust(material: Material) -> Trust:
    """Return what is known of how far the numbers can be trusted."""
    headlines = [c for name in material.protocols if (c := material.headline(name)) is not None]
    rows = [
        s
        for c in headlines
        for s in material.rows
        if (s.protocol, s.metric, s.condition) == (c.protocol, c.metric, c.condition)
        and s.metric not in NOT_MEASURED
        and math.isfinite(s.value)
    ]
    kinds = [kind for kind in MEANINGS if any(s.ci_kind == kind and math.isfinite(s.ci_low) for s in rows)]
    return Trust(
        calibration=_calibration(material),
        known=_known([(c.protocol, c.condition) for c in headlines]),
        made=[text for name in material.protocols if (text := calibrated.made(name))],
        ideal=_ideal(material, [c.rows for c in headlines if direction(c.protocol) == "shape"]),
        intervals=_intervals(material, rows, kinds),
        meanings=[(kind.replace("_", " "), MEANINGS[kind].partition(": ")[2]) for kind in kinds],
    )


def _ideal(material: Material, headlines: list[dict[str, Score]]) -> Table | None:
    """Return what ideal observers came out as, for the protocols in which shape and texture are weighed."""
    rows = []
    for column in headlines:
        for observer in material.of_kind(column, "ideal"):
            spec = observer.partition(":")[2].partition("?")[0].partition(" ")[0]
            measured = column[observer]
            answers = ANSWERS.get(spec, "from the truth")
            cells = [words(observer), words(measured.protocol), words(answers)]
            rows.append([*cells, of_score(measured, bar=True), count(measured.n)])
    if not rows:
        return None
    columns = ["observer", "protocol", "answers", "headline", "n"]
    return Table("trust-ideal", "Observers whose answer is known", columns, rows)


def _intervals(material: Material, rows: list[Score], kinds: list[str]) -> Table | None:
    """Return every kind of interval of every headline."""
    by_number: dict[tuple[str, str], dict[str, Score]] = {}
    for row in rows:
        by_number.setdefault((row.protocol, row.observer), {})[row.ci_kind] = row
    if not kinds:
        return None
    lines = []
    for name in material.protocols:
        for observer in material.observers:
            by_kind = by_number.get((name, observer))
            if by_kind is None:
                continue
            any_row = next(iter(by_kind.values()))
            cells = [words(observer), words(name), Cell(f"{any_row.value:.3f}", any_row.value)]
            lines.append([*cells, *(_interval(by_kind.get(kind)) for kind in kinds)])
    columns = ["observer", "protocol", "value", *(kind.replace("_", " ") for kind in kinds)]
    caption = "All 95 % intervals of each headline; a column is sorted by their width"
    return Table("trust-intervals", caption, columns, lines)


def _interval(row: Score | None) -> Cell:
    """Return the cell of an interval; it is sorted by its width."""
    if row is None or not math.isfinite(row.ci_low) or not math.isfinite(row.ci_high):
        return Cell("–", None)
    text = f"[{row.ci_low:.3f}, {row.ci_high:.3f}]"
    return Cell(text, row.ci_high - row.ci_low, row.ci_low, row.ci_high, score=row)


def _known(headlines: list[tuple[str, str]]) -> Table | None:
    """Return what simulated studies found of the numbers in the condition of each headline."""
    weights, rows = (0.2, 0.5, 0.8), []
    for protocol, condition in headlines:
        trusts = calibrated.of_protocol(protocol)
        # Stimuli of your own have conditions of their own; the headline's metric is then the nearest that is known.
        for known in [t for t in trusts if t.condition == condition] or trusts[:1]:
            cells = [words(protocol), words(known.metric)]
            cells += [_measured(known.recovered.get(w, math.nan)) for w in weights]
            rows.append([*cells, _measured(known.weak), words(_held(known)), words(known.verdict)])
    if not rows:
        return None
    columns = ["protocol", "metric", *(f"at {w:g}" for w in weights), "8 %/2 %", "interval", "beware"]
    helps = {
        "8 %/2 %": "mean for an observer that answers 8 % by shape and 2 % by texture; 80 % and 20 %: see at 0.8",
        **{f"at {w:g}": f"mean over studies for a planted weight of {w:g}, all pictures recognised" for w in weights},
        "interval": "share of simulated studies whose 95 % interval holds the value for new shapes, textures, classes; "
        "of the kind that claims to, and comes nearest to 95 %",
        "beware": "what the number mixes in, and whether its best interval is too narrow or too wide",
    }
    return Table("trust-known", "What comes back of a planted weight, in simulated studies", columns, rows, helps)


def _measured(value: float) -> Cell:
    return Cell(f"{value:.2f}", value) if math.isfinite(value) else Cell("–", None)


def _held(known: calibrated.Trust) -> str:
    """Return the kind of interval that comes nearest to what it promises, with what it holds."""
    held = known.coverage.get(known.best_kind, {}).get(calibrated.VARY)
    return "–" if held is None else f"{known.best_kind.replace('_', ' ')}: {held:.0%}"


def _calibration(material: Material) -> list[Table]:
    tables: list[Table] = []
    for run in material.runs:
        for name in material.protocols:
            if not (run.folder / "tables" / f"{name}.{CALIBRATION}.parquet").is_file():
                continue
            table = read_table(run.folder, name, CALIBRATION)
            rows = [[_cell(row[column]) for column in table.column_names] for row in table.to_pylist()]
            caption = f"Calibration of {name}"
            tables.append(Table(f"calibration-{len(tables)}", caption, list(table.column_names), rows))
    return tables


def _cell(value: Any) -> Cell:
    if value is None:
        return Cell("–", None)
    if isinstance(value, int) and not isinstance(value, bool):
        return count(value)
    return Cell(f"{value:.3f}", value) if isinstance(value, float) else words(str(value))
