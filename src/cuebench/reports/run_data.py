"""Reading what figures are drawn from: the tables and scores of a run folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cuebench.errors import UserError, did_you_mean
from cuebench.options import Option
from cuebench.protocols.headline import one_row_each
from cuebench.runs.record import RunRecord
from cuebench.runs.results import read_scores, read_table
from cuebench.types import Score

PROTOCOL = "texture_association"
OBSERVER = Option("", "whole name or a part of it; default: the first of the run")
"""The option of figures that show one observer; `choose_observer` reads it."""


def rows(run: str | Path, table: str, protocol: str = PROTOCOL) -> list[dict[str, Any]]:
    """Return a table of a run as records.

    Parameters
    ----------
    run : path
        The run folder.
    table, protocol : str
        ``tables/<protocol>.<table>.parquet``.
    """
    path = Path(run).expanduser() / "tables" / f"{protocol}.{table}.parquet"
    if not path.is_file():
        raise UserError(f"{run} has no table {path.name}", _how_to_get(run, protocol))
    records: list[dict[str, Any]] = read_table(run, protocol, table).to_pylist()
    return records


def scores(run: str | Path, protocol: str, *metrics: str, kind: str = "widest", hint: str = "") -> list[Score]:
    """Return one row for each number of some metrics of a protocol.

    Parameters
    ----------
    run : path
        The run folder.
    protocol : str
        Whose numbers.
    metrics : str
        Which metrics.
    kind : str
        Interval of each row: ``widest``, or a kind such as ``two_way`` for the numbers that have several.
    hint : str
        What to do where the run has no such number; default: run the protocol.

    Raises
    ------
    UserError
        Where the run has no such number.
    """
    matches = [s for s in read_scores(Path(run).expanduser()) if s.protocol == protocol and s.metric in metrics]
    if not matches:
        raise UserError(
            f"{run} has no {' or '.join(metrics)} of protocol {protocol}", hint or _how_to_get(run, protocol)
        )
    of_kind = [s for s in matches if s.ci_kind == kind]
    # Later rows of a number replace earlier ones: the row of the chosen kind, where there is one.
    numbers = {(s.observer, s.condition, s.metric): s for s in (*one_row_each(matches), *of_kind)}
    return list(numbers.values())


def _how_to_get(run: str | Path, protocol: str) -> str:
    """Say how a run gets the results of a protocol; the same options again would change nothing where it has them."""
    folder = Path(run).expanduser()
    if not (folder / "run.json").is_file():
        return f"make a run: cuebench run -p {protocol} … --out DIR"
    if protocol in RunRecord.read(folder).protocol_names():
        return (
            f"score it again (cuebench score {run}); its notes say what could not be measured (cuebench report {run})"
        )
    return f"add the protocol to the run: cuebench run -p {protocol} … --out {run}"


def choose_observer(names: Iterable[str], observer: str) -> str:
    """Return the name that was asked for, whole or in part; the first one where none was.

    Parameters
    ----------
    names : iterable of str
        Observers of the run.
    observer : str
        What the user wrote; empty: the first.
    """
    known = list(dict.fromkeys(names))
    if not known:
        raise UserError("the run has no observer to draw", "see the rows `failed` and `not_applicable` of its scores")
    if not observer:
        return known[0]
    matches = [name for name in known if name == observer] or [name for name in known if observer in name]
    if len(matches) != 1:
        raise did_you_mean("observer of this run", observer, known)
    return matches[0]


def of_observer(records: Sequence[dict[str, Any]], observer: str) -> tuple[str, list[dict[str, Any]]]:
    """Return an observer of a table (see `choose_observer`) and its records."""
    name = choose_observer((str(r["observer"]) for r in records), observer)
    return name, [r for r in records if r["observer"] == name]
