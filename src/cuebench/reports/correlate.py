"""Rank correlations between any two columns of one or several runs, over the observers that have both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cuebench.errors import UserError, did_you_mean
from cuebench.protocols.headline import chosen_condition, headline_of
from cuebench.registry import protocols
from cuebench.runs.record import RunRecord
from cuebench.runs.results import read_scores
from cuebench.statistics.correlations import Correlation, Method, correlate

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
    for run in runs:
        folder = Path(run).expanduser()
        kept = {job.observer for job in RunRecord.read(folder).jobs if not kinds or job.kind in kinds}
        for row in read_scores(folder):
            if row.observer in kept and np.isfinite(row.value):
                columns.setdefault(f"{row.protocol}:{row.metric}@{row.condition}", {})[row.observer] = row.value
    return columns


def correlate_columns(
    runs: Sequence[str | Path],
    x: str = "",
    y: str = "",
    *,
    method: Method = "spearman",
    kinds: Sequence[str] = ("model",),
    headlines: bool = False,
    seed: int = 0,
    resamples: int = 10_000,
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
    seed, resamples : int
        Of the bootstrap over observers.

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
            result = correlate(values[0], values[1], method, seed=seed, resamples=resamples)
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
    found = []
    for protocol in dict.fromkeys(name.partition(":")[0] for name in columns):
        with suppress(UserError):
            found.append(_column(protocol, columns))
    return found


def _column(wanted: str, columns: Mapping[str, Mapping[str, float]]) -> str:
    """Return the column that is meant by ``metric@condition``, ``protocol:metric@condition`` or a protocol."""
    if wanted in protocols:
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
