"""The published tables: one tidy CSV for each in ``tables/``, values kept as printed so that their digits count.

Columns: paper, table, model, weights (where the paper names them), group (family of models), condition, metric, value,
note (what is damaged or doubtful). Numbers are facts; no sentence of a paper is stored.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path

from cuebench.csv_text import csv_text
from cuebench.errors import UserError, did_you_mean
from cuebench.files import ending_of, write_atomic

FOLDER = Path(__file__).parent / "tables"
COLUMNS = ("paper", "table", "model", "weights", "group", "condition", "metric", "value", "note")
EXPORTED = ("paper", "table", "model", "weights", "metric", "value", "note")

PAPERS = {
    "refined_bias": "Kim et al. 2026, On the Reliability of Cue Conflict and Beyond, arXiv:2603.10834",
    "cue_decomposition": "Heinert et al. 2025, Shape Bias and Robustness Evaluation via Cue Decomposition",
    "texture_association": "Hoak, Sheatsley & McDaniel 2025, Err on the Side of Texture: Texture Bias on Real Data",
    "triplets": "Tartaglini, Vong & Lake 2022, A Developmentally-Inspired Examination of Shape versus Texture Bias",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One printed number."""

    paper: str
    table: str
    model: str
    weights: str
    group: str
    condition: str
    metric: str
    printed: str
    note: str

    @property
    def value(self) -> float:
        """The number."""
        return float(self.printed)

    @property
    def half(self) -> float:
        """Half a unit of the last printed digit: how far the unrounded number can be from the printed one."""
        return half_unit(self.printed)

    @property
    def quantity(self) -> str:
        """Condition and metric in one name, as exported."""
        return f"{self.condition}/{self.metric}".strip("/")

    def exported(self) -> dict[str, str]:
        """Return the row of ``cuebench published export``."""
        cells = (self.paper, self.table, self.model, self.weights, self.quantity, self.printed, self.note)
        return dict(zip(EXPORTED, cells))


def half_unit(printed: str) -> float:
    """Return half a unit of the last digit.

    >>> half_unit("0.840"), half_unit("2.72e-04"), half_unit("46")
    (0.0005, 5e-07, 0.5)
    """
    exponent = Decimal(printed).as_tuple().exponent
    return float(Decimal(5).scaleb(int(exponent) - 1))


def entries(paper: str = "", table: str = "", *, model: str = "", metric: str = "") -> list[Entry]:
    """Return the printed numbers, filtered.

    Parameters
    ----------
    paper, table : str
        Exact names; empty: all. An unknown one is an error that names the nearest.
    model, metric : str
        Parts of the model's or weights' name and of the quantity, in any case; empty: all.
    """
    chosen = [e for name in _chosen(paper, table) for e in _read(FOLDER / f"{name}.csv")]
    wanted, what = model.lower(), metric.lower()
    matches = [e for e in chosen if wanted in f"{e.model} {e.weights}".lower() and what in e.quantity.lower()]
    if not matches:
        filters = {"paper": paper, "table": table, "model": model, "metric": metric}
        described = ", ".join(f"{k} {v!r}" for k, v in filters.items() if v)
        raise UserError(f"no published number with {described}", "see what there is: cuebench published list")
    return matches


def column(paper: str, table: str, condition: str, metric: str) -> dict[str, Entry]:
    """Return model → entry of one column of one table, in the order of the table."""
    by_model = {
        e.model: e for e in _read(FOLDER / f"{paper}.{table}.csv") if (e.condition, e.metric) == (condition, metric)
    }
    if not by_model:
        raise KeyError(f"{paper} table {table} has no column {condition!r} {metric!r}")
    return by_model


def names() -> list[tuple[str, str]]:
    """Return (paper, table) of everything that is stored."""
    return [_split(path) for path in sorted(FOLDER.glob("*.csv"))]


def listing(paper: str = "", table: str = "") -> list[dict[str, str]]:
    """Return one row for each table: what it holds."""
    rows = []
    for name in _chosen(paper, table):
        numbers = _read(FOLDER / f"{name}.csv")
        metrics = list(dict.fromkeys(e.metric.partition("/")[0].partition(":")[0] for e in numbers))
        shown = ", ".join(metrics[:6]) + (f" … {len(metrics)} in all" if len(metrics) > 6 else "")
        counts = {"models": len({e.model for e in numbers}), "numbers": len(numbers)}
        counts["notes"] = sum(bool(e.note) for e in numbers)
        row = {"paper": numbers[0].paper, "table": numbers[0].table, **{k: str(n) for k, n in counts.items()}}
        rows.append({**row, "metrics": shown})
    return rows


def export(path: str | Path, numbers: Sequence[Entry]) -> Path:
    """Write entries as CSV with the columns of ``EXPORTED``; values stay as printed."""
    target = Path(path).expanduser()
    if ending_of(target, ".csv") != ".csv":
        raise UserError(f"cannot export to {target}", "name a file that ends in .csv")
    rows = (e.exported() for e in numbers)
    write_atomic(target, csv_text(EXPORTED, ([row[name] for name in EXPORTED] for row in rows)).encode())
    return target


def _chosen(paper: str, table: str) -> list[str]:
    all_names = names()
    papers = dict.fromkeys(p for p, _ in all_names)
    if paper and paper not in papers:
        raise did_you_mean("paper", paper, papers)
    here = [(p, t) for p, t in all_names if p == paper or not paper]
    if table and table not in {t for _, t in here}:
        raise did_you_mean(f"table of {paper}" if paper else "table", table, {t for _, t in here})
    return [f"{p}.{t}" for p, t in here if t == table or not table]


def _split(path: Path) -> tuple[str, str]:
    paper, _, table = path.stem.partition(".")
    return paper, table


@cache
def _read(path: Path) -> tuple[Entry, ...]:
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise ValueError(f"{path} has columns {reader.fieldnames}, not {COLUMNS}")
        numbers = tuple(Entry(*(row[c] for c in COLUMNS)) for row in reader)
    for e in numbers:
        try:
            Decimal(e.printed)
        except InvalidOperation:
            raise ValueError(f"{path}: {e.model} {e.quantity}: {e.printed!r} is not a number") from None
    return numbers
