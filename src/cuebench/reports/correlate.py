"""Correlations over observers: between any two columns of runs, and between headlines, corrected for their errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np

from cuebench.arrays import Floats
from cuebench.errors import UserError, did_you_mean
from cuebench.observers.baselines import RANDOM
from cuebench.options import SEED, parse
from cuebench.protocols.base import Protocol
from cuebench.protocols.headline import Column, chosen_condition, headline_column, headline_of
from cuebench.registry import protocols as registered
from cuebench.reports.paired import answers_of, sums_of
from cuebench.runs.answers import StoredAnswers
from cuebench.runs.record import RunRecord
from cuebench.runs.results import read_scores
from cuebench.statistics.correlations import Correlation, Method, correlate
from cuebench.statistics.paired import TOO_FEW, Number, by_image
from cuebench.statistics.reliability import Influence, Structure, error_covariance, structure
from cuebench.types import ObserverKind

FEWEST = 4
"""Observers that two columns must share: three have six orders only."""


class Pair(NamedTuple):
    """Two columns and their correlation."""

    x: str
    y: str
    correlation: Correlation
    observers: tuple[str, ...]


def score_columns(runs: Sequence[str | Path], kinds: Sequence[str] = ("model",)) -> dict[str, dict[str, float]]:
    """Return ``protocol:metric@condition`` → observer → value of one or several run folders.

    Parameters
    ----------
    runs : sequence of path
        Run folders; an observer of the same name is the same in all of them.
    kinds : sequence of str
        Kinds of observers to keep: ``model``, ``person``, ``people``, ``ideal``; empty: all.
    """
    columns: dict[str, dict[str, float]] = {}
    folders = [Path(run).expanduser() for run in runs]
    kept_in = _observers(folders, kinds)
    for folder in folders:
        for row in read_scores(folder):
            if row.observer in kept_in[folder] and np.isfinite(row.value):
                columns.setdefault(f"{row.protocol}:{row.metric}@{row.condition}", {})[row.observer] = row.value
    return columns


def _observers(folders: Sequence[Path], kinds: Sequence[str]) -> dict[Path, set[str]]:
    """Return run folder → its observers of these kinds; a word that is no kind is a mistake."""
    jobs = {folder: RunRecord.read(folder).jobs for folder in folders}
    if unknown := [kind for kind in kinds if kind not in get_args(ObserverKind)]:
        held = {job.kind for of_run in jobs.values() for job in of_run}
        raise did_you_mean("kind of observer", unknown[0], held or get_args(ObserverKind))
    return {f: {job.observer for job in of_run if not kinds or job.kind in kinds} for f, of_run in jobs.items()}


def correlate_columns(
    runs: Sequence[str | Path],
    x: str = "",
    y: str = "",
    *,
    method: Method = "spearman",
    kinds: Sequence[str] = ("model",),
    headlines: bool = False,
) -> list[Pair]:
    """Correlate columns of scores tables.

    Parameters
    ----------
    runs : sequence of path
        Run folders.
    x, y : str
        ``metric@condition``, with ``protocol:`` before it where that is ambiguous; or the name of a protocol, for its
        headline. Empty: every column.
    method : str
        ``spearman``, ``pearson`` or ``kendall``.
    kinds : sequence of str
        As in ``score_columns``.
    headlines : bool
        Where no column is named, correlate the headlines of the protocols, not all columns.

    Returns
    -------
    list of Pair
        With interval, p-value and n. Pairs with fewer than four common observers are left out; where that leaves
        nothing, an error says so.
    """
    columns = score_columns(runs, kinds)
    names = [[_column(wanted, columns)] if wanted else list(columns) for wanted in (x, y)]
    usual = _headlines(columns) if headlines else columns
    candidates = combinations(usual, 2) if not (x or y) else ((a, b) for a in names[0] for b in names[1] if a != b)
    pairs = []
    for a, b in candidates:
        shared = [o for o in columns[a] if o in columns[b]]
        if len(shared) >= FEWEST:
            values = [[columns[c][o] for o in shared] for c in (a, b)]
            result = correlate(values[0], values[1], method)
            pairs.append(Pair(a, b, result, tuple(shared)))
    if not pairs:
        what = "headlines" if headlines and not (x or y) else "columns"
        raise UserError(
            f"no two {what} have {FEWEST} observers in common",
            "run more models, name several run folders, or count other kinds of observers too with --kind"
            + ("; --all correlates all columns" if what == "headlines" else ""),
        )
    return pairs


def _headlines(columns: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return the columns that are headlines, one for each protocol that has one."""
    headlines = []
    for protocol in dict.fromkeys(name.partition(":")[0] for name in columns):
        with suppress(UserError):
            headlines.append(_column(protocol, columns))
    return headlines


def _column(wanted: str, columns: Mapping[str, Mapping[str, float]]) -> str:
    """Return the column that is meant by ``metric@condition``, ``protocol:metric@condition`` or a protocol."""
    if wanted in registered:
        headline = headline_of(wanted)
        start = f"{wanted}:{headline.metric}@"
        condition = chosen_condition(headline, [c.removeprefix(start) for c in columns if c.startswith(start)])
        if condition is None:
            raise UserError(f"no observer has the headline of {wanted}", f"cuebench run -p {wanted} … measures it")
        return f"{start}{condition}"
    matches = [c for c in columns if wanted in {c, c.partition(":")[2]}]
    if not matches:
        raise did_you_mean("column", wanted, [c.partition(":")[2] for c in columns])
    if len(matches) > 1:
        raise UserError(f"column {wanted!r} is ambiguous", f"write one of {', '.join(matches)}")
    return matches[0]


# ----------------------------------------------------------------------------------- corrected for their errors


class Measured(NamedTuple):
    """Headlines of the same observers, with what other images would change.

    Parameters
    ----------
    observers : tuple of str
        Those that have all headlines.
    values : mapping of str to array
        Protocol → its headline of each observer.
    errors : mapping of pair of str to array observers × observers
        Covariance of the errors of two headlines, as in `structure`.
    notes : tuple of str
        Who has not all headlines, and whose errors are known from intervals only.
    """

    observers: tuple[str, ...]
    values: dict[str, Floats]
    errors: dict[tuple[str, str], Floats]
    notes: tuple[str, ...] = ()

    def averaged(self, groups: Mapping[str, str]) -> Measured:
        """Return the mean headlines of groups of observers, e.g. of all networks of a kind.

        Parameters
        ----------
        groups : mapping of str to str
            Observer → its group.
        """
        names = tuple(dict.fromkeys(groups[o] for o in self.observers))
        member = np.array([[groups[o] == name for o in self.observers] for name in names], float)
        weight = member / member.sum(axis=1, keepdims=True)
        values = {name: weight @ v for name, v in self.values.items()}
        return Measured(names, values, {pair: weight @ e @ weight.T for pair, e in self.errors.items()}, self.notes)

    def structure(self, *, seed: int = 0) -> Structure:
        """Return what the headlines have in common."""
        common = structure(self.values, self.errors, self.observers, seed=seed)
        return replace(common, notes=(*self.notes, *common.notes))


def headline_structure(
    runs: Sequence[str | Path],
    protocols: Sequence[str] = (),
    *,
    kinds: Sequence[str] = ("model",),
    same: Mapping[str, str] | None = None,
    seed: int = 0,
) -> Structure:
    """Return what the headlines of several protocols have in common, corrected for what other images would change.

    Parameters
    ----------
    runs, protocols, kinds, same
        As in `headline_errors`.
    seed : int
        Of the tables that eigenvalues are compared with.

    Returns
    -------
    Structure
        Over the observers that have all headlines; notes say who has not, and whose errors are known from intervals
        only.
    """
    seed = parse({"seed": SEED}, {"seed": seed}, "a structure")["seed"]
    return headline_errors(runs, protocols, kinds=kinds, same=same).structure(seed=seed)


def headline_errors(
    runs: Sequence[str | Path],
    protocols: Sequence[str] = (),
    *,
    kinds: Sequence[str] = ("model",),
    same: Mapping[str, str] | None = None,
) -> Measured:
    """Return the headlines of several protocols for the observers that have all of them, and their errors.

    Parameters
    ----------
    runs : sequence of path
        Run folders with their answers; an observer of the same name is the same in all of them.
    protocols : sequence of str
        Whose headlines; default: all in which a larger value means more shape.
    kinds : sequence of str
        As in `score_columns`.
    same : mapping of str to str
        Another name of an observer → the name that it goes by.
    """
    folders = list(dict.fromkeys(str(Path(run).expanduser()) for run in runs))
    answers = answers_of(folders)
    columns, origin = _headline_columns(folders, protocols, kinds, same or {})
    if len(columns) < 2:
        raise UserError(
            "there are no two headlines to compare", "name runs of several protocols, or the protocols with --protocol"
        )
    observers = [o for o in next(iter(columns.values())).rows if all(o in c.rows for c in columns.values())]
    others = sorted({o for c in columns.values() for o in c.rows} - set(observers))
    notes = [f"left out, not measured by all: {', '.join(others)}"] if others else []
    if len(observers) < FEWEST:
        advice = "measure more, or choose protocols with --protocol"
        advice += f", or say with --same which {'other ' if same else ''}names are one observer" if others else ""
        raise UserError(
            "; ".join([f"{len(observers)} observers have all of {', '.join(columns)}", *notes]),
            f"at least {FEWEST} are needed: {advice}",
        )
    influences: dict[str, Influence] = {}
    errors: dict[tuple[str, str], Floats] = {}
    for name, column in columns.items():
        influence, why = _influence(answers, column, [origin[name, o] for o in observers])
        if influence is None:
            notes.append(f"errors of {name} from its intervals, which count what all observers share: {why}")
            widths = np.array([column.rows[o].ci_high - column.rows[o].ci_low for o in observers])
            errors[name, name] = np.diag((widths / 2 / 1.96) ** 2)
        else:
            influences[name] = influence
            errors[name, name] = error_covariance(influence)
    for a, b in combinations(influences, 2):
        errors[a, b] = error_covariance(influences[a], influences[b])
    values = {name: np.array([c.rows[o].value for o in observers]) for name, c in columns.items()}
    return Measured(tuple(observers), values, errors, tuple(notes))


def _headline_columns(
    folders: Sequence[str], protocols: Sequence[str], kinds: Sequence[str], same: Mapping[str, str]
) -> tuple[dict[str, Column], dict[tuple[str, str], tuple[str, str]]]:
    """Return the headlines of several runs under the names of `same`, and where each number is from: run, own name."""
    columns: dict[str, Column] = {}
    origin: dict[tuple[str, str], tuple[str, str]] = {}
    kept_in = _observers([Path(folder) for folder in folders], kinds)
    for folder in folders:
        kept = kept_in[Path(folder)]
        rows = [s for s in read_scores(Path(folder)) if s.observer in kept and RANDOM not in s.observer]
        for name in dict.fromkeys(s.protocol for s in rows if s.protocol in registered):
            wanted = name in protocols if protocols else headline_of(name).direction == "shape"
            column = headline_column(rows, name) if wanted else None
            if column is not None:
                shown = {same.get(o, o): row for o, row in column.rows.items()}
                _add(columns, column._replace(rows=shown), folder)
                origin |= {(name, same.get(o, o)): (folder, o) for o in column.rows}
    measured = {observer for _, observer in origin.values()}
    if unknown := [name for name in same if name not in measured]:
        raise did_you_mean("observer of --same:", unknown[0], measured)
    return columns, origin


def _add(columns: dict[str, Column], column: Column, folder: str) -> None:
    """Join the headline of a further run to those that there are."""
    known = columns.get(column.protocol)
    if known is None:
        columns[column.protocol] = column
    elif (known.condition, known.metric) != (column.condition, column.metric):
        raise UserError(
            f"{folder} has the headline of {column.protocol} in {column.condition}, another run in {known.condition}",
            "leave one of the runs out: these are two numbers",
        )
    elif twice := sorted(known.rows.keys() & column.rows.keys()):
        raise UserError(f"{twice[0]} was measured with {column.protocol} twice", "leave one of the runs out")
    else:
        columns[column.protocol] = known._replace(rows={**known.rows, **column.rows})


def _influence(
    answers: Mapping[str, StoredAnswers | str], column: Column, origin: Sequence[tuple[str, str]]
) -> tuple[Influence | None, str]:
    """Return how each image moves the headline of each observer, on the images that all saw; or why it is not known."""
    protocol: Protocol = registered.get(column.protocol)
    if protocol.contributions is None:
        return None, "it does not say what single answers add to its headline"
    sums = []
    for run, observer in origin:
        observer_sums, why = sums_of(answers, run, observer, column, protocol)
        if observer_sums is None:
            return None, f"{observer}: {why}"
        if few := Number.of(observer_sums).too_few:
            return None, f"{observer}: {TOO_FEW} ({few}), which says nothing of its noise"
        sums.append(observer_sums)
    images = sums[0].images
    for s in sums[1:]:
        images = np.intersect1d(images, s.images)
    if len(images) < 2:
        return None, "the observers saw no images in common"
    images = np.unique(images)
    parts = [s.only(images) for s in sums]
    psi = np.column_stack([by_image(part, images) for part in parts])
    sources = {k: names for k, names in parts[0].sources_of(images).items() if all(k in p.sources for p in parts)}
    return Influence(psi, images, sources, parts[0].strata), ""
