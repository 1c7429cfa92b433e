"""Reading what figures are drawn from: the tables and scores of one or several run folders."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from cuebench.errors import UserError, did_you_mean, printable
from cuebench.options import Option
from cuebench.protocols.captions import caption
from cuebench.protocols.headline import headline_column, headline_of, one_row_each
from cuebench.reports.observers import Observers
from cuebench.runs.record import RunRecord
from cuebench.runs.results import Row, read_scores, read_table_rows
from cuebench.types import Score

Made = TypeVar("Made")
Run = str | Path | Sequence[str | Path]
"""A run folder, or several."""
PROTOCOL = "texture_association"
OBSERVER = Option("", "whole name or a part of it; default: the first of the run")
"""The option of figures that show one observer; `choose_observer` reads it."""
PEOPLE = Option("pooled", "show the pooled answers of people, or each person too", choices=("pooled", "each"))
"""The option of figures that show all observers; `shown_observers` reads it."""


def folders(run: Run) -> list[Path]:
    """Return the run folder or folders that a figure is drawn from."""
    return [Path(r).expanduser() for r in ([run] if isinstance(run, str | Path) else run)]


_KEPT: ContextVar[dict[Any, Any] | None] = ContextVar("kept", default=None)


@contextmanager
def reading_once() -> Iterator[None]:
    """Read the scores and records of runs once for all that is drawn inside: one figure, or all of a report."""
    if _KEPT.get() is not None:
        yield
        return
    token = _KEPT.set({})
    try:
        yield
    finally:
        _KEPT.reset(token)


def _once(name: str, run: Run, make: Callable[[], Made]) -> Made:
    kept = _KEPT.get()
    if kept is None:
        return make()
    key = name, tuple(folders(run))
    if key not in kept:
        kept[key] = make()
    made: Made = kept[key]
    return made


def observers_of(run: Run) -> Observers:
    """Return everybody who took part, with names, colours and marks that are the same in all figures of the run."""
    return _once("observers", run, lambda: Observers.of(folders(run), all_scores(run)))


def all_scores(run: Run) -> list[Score]:
    """Return the scores of a run; of several runs, no observer may have the same protocol twice."""
    return _once("scores", run, lambda: _all_scores(run))


def _all_scores(run: Run) -> list[Score]:
    rows: list[Score] = []
    owner: dict[tuple[str, str], Path] = {}
    for folder in folders(run):
        for score in read_scores(folder):
            first = owner.setdefault((score.observer, score.protocol), folder)
            if first != folder:
                raise UserError(
                    f"{score.observer} has scores of {score.protocol} in {first} and in {folder}",
                    "draw the runs apart, or merge them: cuebench merge RUN RUN --out DIR",
                )
            rows.append(score)
    return rows


def rows(run: Run, table: str, protocol: str = PROTOCOL, *, hint: str = "") -> list[Row]:
    """Return a table of a run as records.

    Parameters
    ----------
    run : path or sequence of paths
        The run folder, or several.
    table, protocol : str
        ``tables/<protocol>.<table>.parquet``.
    hint : str
        What to do where the run has no such table; default: run the protocol.
    """
    name = f"{protocol}.{table}.parquet"
    having = [folder for folder in folders(run) if (folder / "tables" / name).is_file()]
    if not having:
        raise UserError(f"{_named(run)} has no table {name}", hint or how_to_get(run, protocol))
    records = [record for folder in having for record in read_table_rows(folder, protocol, table)]
    strangers = {str(r["observer"]) for r in records if "observer" in r} - set(observers_of(run).kinds)
    if strangers:
        raise UserError(
            f"table {name} names an observer that {_named(run)} has no scores of: {printable(min(strangers))[:80]!r}",
            f"score it again: cuebench score {having[0]}",
        )
    return records


def scores(run: Run, protocol: str, *metrics: str, kind: str = "widest", hint: str = "") -> list[Score]:
    """Return one row for each number of some metrics of a protocol.

    Parameters
    ----------
    run : path or sequence of paths
        The run folder, or several.
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
    matches = [s for s in all_scores(run) if s.protocol == protocol and s.metric in metrics]
    if not matches:
        raise UserError(
            f"{_named(run)} has no {' or '.join(metrics)} of protocol {protocol}", hint or how_to_get(run, protocol)
        )
    of_kind = [s for s in matches if s.ci_kind == kind]
    # Later rows of a number replace earlier ones: the row of the chosen kind, where there is one.
    numbers = {(s.observer, s.condition, s.metric): s for s in (*one_row_each(matches), *of_kind)}
    return list(numbers.values())


def footnote(run: Run, data: Sequence[Mapping[str, Any]], protocol: str = "") -> str:
    """Return where the numbers of a figure are from, for below its title.

    Parameters
    ----------
    run : path or sequence of paths
        The run folder, or several.
    data : sequence of mapping
        What the figure shows. Rows that name observer, condition and metric are looked up among the scores; of others,
        such as counts of answers, the headlines of the same protocols say which stimuli they rest on.
    protocol : str
        Whose results the figure shows, where it is one.
    """
    try:
        every = all_scores(run)
    except UserError:  # the figure has not read them either, or it would not be there
        return ""
    shown = {tuple(str(row.get(name)) for name in _IDENTITY) for row in data}
    kinds = {str(row["interval"]) for row in data if row.get("interval")}
    numbers = [s for s in every if tuple(getattr(s, name) for name in _IDENTITY) in shown]
    if numbers:
        return caption(one_row_each([s for s in numbers if s.ci_kind in kinds] or numbers), short=True)
    observers = {str(row["observer"]) for row in data if row.get("observer")}
    return headline_note(run, [protocol] if protocol else _protocols(every), observers)


def headline_note(run: Run, names: Iterable[str], observers: Collection[str] = ()) -> str:
    """Return the version, n and partial sets of some protocols, from their headlines.

    Parameters
    ----------
    run : path or sequence of paths
        The run folder, or several.
    names : iterable of str
        The protocols; those that the run does not have are left out.
    observers : collection of str
        Whose headlines; empty: everybody's.
    """
    among = [s for s in all_scores(run) if s.observer in observers] or all_scores(run)
    sentences = []
    for name in names:
        with suppress(UserError):  # a protocol that is not installed here, and whose run did not keep its headline
            if column := headline_column(among, name):
                sentences.append(caption(column.rows.values(), short=True, intervals=False))
    return " ".join(sentences)


_IDENTITY = ("protocol", "observer", "condition", "metric")


def _protocols(numbers: Iterable[Score]) -> list[str]:
    return list(dict.fromkeys(s.protocol for s in numbers if s.protocol))


def _named(run: Run) -> str:
    return ", ".join(map(str, [run] if isinstance(run, str | Path) else run))


def how_to_get(run: Run, protocol: str) -> str:
    """Say how a run gets the results of a protocol; the same options again would change nothing where it has them."""
    folder = folders(run)[0]
    if not (folder / "run.json").is_file():
        return f"make a run: cuebench run -p {protocol} … --out DIR"
    if protocol in RunRecord.read(folder).protocol_names():
        return f"score it again (cuebench score {folder}); its notes say what could not be measured"
    return f"add the protocol to the run: cuebench run -p {protocol} … --out {folder}"


def shape_protocols(numbers: Iterable[Score]) -> list[str]:
    """Return the protocols among some scores whose headline means more shape where it is larger."""
    return [name for name in _protocols(numbers) if _direction(name) == "shape"]


def _direction(protocol: str) -> str:
    try:
        return headline_of(protocol).direction
    except UserError:  # a protocol that is not installed here, and whose run did not keep its headline
        return ""


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


def of_observer(records: Sequence[Row], observer: str) -> tuple[str, list[Row]]:
    """Return an observer of a table (see `choose_observer`) and its records."""
    name = choose_observer((str(r["observer"]) for r in records), observer)
    return name, [r for r in records if r["observer"] == name]


def shown_observers(names: Iterable[str], observers: Observers, people: str = "pooled") -> list[str]:
    """Return the observers that a figure shows: no untrained networks, and single people only where they are asked for.

    Parameters
    ----------
    names : iterable of str
        Observers that have what the figure shows.
    observers : Observers
        All of the run.
    people : str
        ``pooled`` leaves out single people where their pooled answers are there; ``each`` keeps them.
    """
    known = [name for name in dict.fromkeys(names) if observers.kinds.get(name) != "random"]
    pooled = people == "pooled" and any(observers.kinds[name] == "people" for name in known)
    return [name for name in known if not (pooled and observers.kinds[name] == "person")]
