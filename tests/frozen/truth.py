"""Everything that is frozen of a run folder: taken from the folder, written to files, and read back.

This is the one file to change when a public name that it calls is renamed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import cuebench as cb
from cuebench.protocols.headline import headline_column
from cuebench.registry import protocols
from cuebench.reports.comparison import compare_runs
from cuebench.reports.paired import answers_of, sums_of

Row = dict[str, Any]
HOME = "/HOME"
"""What stands in texts for the folder that a run lies in."""


class Truth(NamedTuple):
    """What is frozen of a run folder.

    Parameters
    ----------
    scores : list of rows
        Every row of ``scores.parquet``.
    headlines : list of rows
        Protocol, observer, condition: what its contributions give, or why there are none.
    contributions : mapping of (protocol, observer) to mapping of str to array
        What each answer adds to the headline: ``images``, ``values``, ``sources/KIND``, ``shared/KIND``.
    pairs, groups : lists of rows
        The paired comparison, and each protocol's letters and notes.
    counts : list of rows
        ``cuebench trials``: rows by protocol, observer, condition, outcome and correct.
    trials : list of rows
        All of these; empty where they are too many.
    tables : mapping of str to list of rows
        The files in ``tables/``.
    """

    scores: list[Row]
    headlines: list[Row]
    contributions: dict[tuple[str, str], dict[str, Any]]
    pairs: list[Row]
    groups: list[Row]
    counts: list[Row]
    trials: list[Row]
    tables: dict[str, list[Row]]


def truth_of(run: Path, home: Path | None = None, *, single_answers: bool = True) -> Truth:
    """Take the truth from a scored run folder; without single answers it holds none of a data set's own data."""
    scores = cb.load(run)
    headlines, contributions = _contributions(run, scores) if single_answers else ([], {})
    comparison = compare_runs([run])
    groups = [
        {"protocol": name, "groups": dict(p.groups), "notes": list(p.notes), "too_few": dict(p.too_few)}
        for name, p in comparison.paired.items()
    ]
    trials = scores.trials().table()
    tables = {path.stem: pq.read_table(path).to_pylist() for path in sorted((run / "tables").glob("*.parquet"))}
    truth = Truth(
        scores=scores.table(all_intervals=True).to_pylist(),
        headlines=headlines,
        contributions=contributions,
        pairs=comparison.pair_rows(),
        groups=groups,
        counts=_counts(trials),
        trials=trials.to_pylist() if single_answers else [],
        tables=tables if single_answers else {},
    )
    return _without_home(truth, str(home or run))


def _contributions(run: Path, scores: cb.Scores) -> tuple[list[Row], dict[tuple[str, str], dict[str, Any]]]:
    """Return what each answer adds to the headline of each observer that has one."""
    answers, headlines, contributions = answers_of([str(run)]), [], {}
    for name in scores.protocols:
        column = headline_column(scores.rows, name)
        if column is None or protocols.get(name).contributions is None:
            continue
        for observer in column.rows:
            sums, why = sums_of(answers, str(run), observer, column, protocols.get(name))
            row = {"protocol": name, "observer": observer, "condition": column.condition, "why": why}
            if sums is not None:
                low, high = sums.bounds
                row |= {"value": sums.value, "strata": sums.strata, "is_ratio": sums.is_ratio}
                row |= {"low": float(low), "high": float(high)}
                contributions[name, observer] = {
                    "images": np.asarray(sums.images, np.str_),
                    "values": np.asarray(sums.values, np.float64),
                    **{f"sources/{kind}": np.asarray(names, np.str_) for kind, names in sums.sources.items()},
                    **{f"shared/{kind}": np.asarray(rows, np.float64) for kind, rows in sums.shared.items()},
                }
            headlines.append(row)
    return headlines, contributions


def _counts(trials: pa.Table) -> list[Row]:
    columns = ["protocol", "observer", "condition", "outcome", "correct"]
    counted = trials.select(columns).group_by(columns, use_threads=False).aggregate([([], "count_all")])
    return [{**row, "rows": row.pop("count_all")} for row in counted.to_pylist()]


def _without_home(thing: Any, home: str) -> Any:
    """Replace the folder of the run in all texts."""
    if isinstance(thing, str):
        return thing.replace(home, HOME)
    if isinstance(thing, Truth):
        return Truth(*(_without_home(part, home) for part in thing))
    if isinstance(thing, list):
        return [_without_home(part, home) for part in thing]
    if isinstance(thing, dict):
        return {key: _without_home(part, home) for key, part in thing.items()}
    return thing


# ------------------------------------------------------------------------------------------------- files

TABLES = ("scores", "headlines", "pairs", "counts", "trials")


def write_truth(truth: Truth, folder: Path) -> None:
    """Write a truth as Parquet and JSON files."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "tables").mkdir(parents=True)
    for name in TABLES:
        _write_rows(getattr(truth, name), folder / f"{name}.parquet")
    for name, rows in truth.tables.items():
        _write_rows(rows, folder / "tables" / f"{name}.parquet")
    (folder / "groups.json").write_text(json.dumps(truth.groups, indent=1), "utf-8")
    arrays = {"|".join((*key, name)): a for key, parts in truth.contributions.items() for name, a in parts.items()}
    np.savez(folder / "contributions.npz", **arrays)  # packed by xz


def read_truth(folder: Path) -> Truth:
    """Read what `write_truth` wrote."""
    rows = {name: pq.read_table(folder / f"{name}.parquet").to_pylist() for name in TABLES}
    contributions: dict[tuple[str, str], dict[str, Any]] = {}
    with np.load(folder / "contributions.npz") as file:
        for key in file.files:
            protocol, observer, name = key.split("|")
            contributions.setdefault((protocol, observer), {})[name] = file[key]
    return Truth(
        contributions=contributions,
        groups=json.loads((folder / "groups.json").read_text("utf-8")),
        tables={path.stem: pq.read_table(path).to_pylist() for path in (folder / "tables").glob("*.parquet")},
        **rows,
    )


def _write_rows(rows: list[Row], path: Path) -> None:
    """Write rows as they are: xz packs them smaller than Parquet would."""
    columns: Mapping[str, Any] = {name: None for row in rows for name in row}
    table = pa.table({name: [row.get(name) for row in rows] for name in columns})
    pq.write_table(table, path, compression="none")
