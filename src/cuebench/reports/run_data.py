"""Reading what figures are drawn from: the tables and scores of a run folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cuebench.errors import UserError, did_you_mean
from cuebench.runs.results import read_scores
from cuebench.types import Score

PROTOCOL = "texture_association"


def rows(run: str | Path, table: str, protocol: str = PROTOCOL) -> list[dict[str, Any]]:
    """Return a table of a run as records; a run that has none says how to make it."""
    import pyarrow.parquet as pq

    path = Path(run).expanduser() / "tables" / f"{protocol}.{table}.parquet"
    if not path.is_file():
        raise UserError(f"{run} has no table {path.name}", f"make it with: cuebench run -p {protocol} … --out {run}")
    found: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return found


def of_observer(records: Sequence[dict[str, Any]], observer: str) -> tuple[str, list[dict[str, Any]]]:
    """Return one observer's records: the one that is named (whole or in part), else the first."""
    known = list(dict.fromkeys(str(r["observer"]) for r in records))
    if not known:
        raise UserError("the run has no observer to draw")
    exact = [o for o in known if o == observer] or [o for o in known if observer and observer in o]
    if observer and len(exact) != 1:
        raise did_you_mean("observer of this run", observer, known)
    name = exact[0] if observer else known[0]
    return name, [r for r in records if r["observer"] == name]


def scores(run: str | Path, metric: str, protocol: str = PROTOCOL) -> list[Score]:
    """Return the scores of one metric of a run."""
    return [s for s in read_scores(Path(run).expanduser()) if (s.protocol, s.metric) == (protocol, metric)]
