"""Observers and protocols side by side: headlines, paired differences, rank correlations, training families."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from cuebench import registry
from cuebench.analyses.families import Families, FamilyTest, family_tests, read_families
from cuebench.csv_text import csv_text
from cuebench.errors import UserError, did_you_mean
from cuebench.files import ending_of, write_atomic
from cuebench.observers.baselines import RANDOM
from cuebench.protocols.captions import caption, partial_sets
from cuebench.protocols.headline import Column, headline_column, headline_of
from cuebench.reports.paired import Pair, Paired, answers_of, compare_pairs, p_text
from cuebench.runs.answers import StoredAnswers
from cuebench.runs.results import read_scores
from cuebench.runs.table_text import latex_table, markdown_table
from cuebench.statistics.correlations import Correlation, correlate
from cuebench.types import Score

LARGER = {
    "shape": "more shape",
    "texture": "more texture",
    "correct": "more correct answers",
    "human": "more like people",
}
"""Direction of a headline → what a larger value means."""
FEWEST = 3
"""Observers that two protocols must share for a rank correlation."""


@dataclass(frozen=True, repr=False)
class Comparison:
    """The headlines of observers in protocols, the pairs that differ, and families where they were given.

    Parameters
    ----------
    columns : tuple of Column
        The headline of each protocol: metric, condition, and the row of every observer that has it.
    observers : tuple of str
        In the order in which they occur.
    tests : mapping of str to sequence of FamilyTest
        Protocol → what it says about each family.
    omitted : mapping of str to str
        Protocol with scores that are not shown → why.
    paired : mapping of str to Paired
        Protocol → every pair of observers on the same stimuli, and tie groups.
    """

    columns: tuple[Column, ...]
    observers: tuple[str, ...]
    tests: Mapping[str, Sequence[FamilyTest]] = field(default_factory=dict)
    omitted: Mapping[str, str] = field(default_factory=dict)
    paired: Mapping[str, Paired] = field(default_factory=dict)

    def __repr__(self) -> str:
        headlines = ", ".join(f"{c.protocol} ({c.metric}, {c.condition})" for c in self.columns)
        return f"<Comparison: {len(self.observers)} observers on {headlines}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the observers of each protocol in order, and which of them differ."""
        from cuebench.reports.comparison_html import comparison_html

        return comparison_html(self)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each observer; None where a protocol has no number for it."""
        return [
            {"model": o, **{c.protocol: c.rows[o].value if o in c.rows else None for c in self.columns}}
            for o in self.observers
        ]

    def intervals(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Return protocol → observer → the widest interval of its number, and its kind."""
        return {
            c.protocol: {o: {"low": s.ci_low, "high": s.ci_high, "kind": s.ci_kind} for o, s in c.rows.items()}
            for c in self.columns
        }

    def pair_rows(self) -> list[dict[str, Any]]:
        """Return a row for each pair of observers in each protocol."""
        measures = {
            c.protocol: {
                "protocol": c.protocol,
                "protocol_version": max((row.protocol_version for row in c.rows.values()), default=0),
                "metric": c.metric,
                "condition": c.condition,
                "partial": "; ".join(partial_sets(c.rows.values())),
            }
            for c in self.columns
        }
        return [{**measures[name], **pair.row()} for name, paired in self.paired.items() for pair in paired.pairs]

    def family_rows(self) -> list[dict[str, Any]]:
        """Return a row for each family: what is expected, and what each protocol says, with its p-value."""
        if not self.tests:
            return []
        first = next(iter(self.tests.values()))
        return [
            {
                "family": test.family,
                "expected": test.expected,
                **{p: {"says": t[i].says, "p": t[i].p, "n": t[i].n, "note": t[i].note} for p, t in self.tests.items()},
            }
            for i, test in enumerate(first)
        ]

    def agreement(self) -> dict[str, Correlation]:
        """Return Kendall's rank correlation of every pair of protocols that share at least three observers."""
        correlations = {}
        for a, b in combinations(self.columns, 2):
            shared = [o for o in self.observers if o in a.rows and o in b.rows]
            if len(shared) >= FEWEST:
                x, y = ([column.rows[o].value for o in shared] for column in (a, b))
                correlations[f"{a.protocol} ~ {b.protocol}"] = correlate(x, y, method="kendall", how="fisher")
        return correlations


def compare(
    scores: Iterable[Score],
    families: Families | None = None,
    protocols: Sequence[str] | None = None,
    observers: Sequence[str] = (),
) -> Comparison:
    """Put the headlines of several protocols side by side.

    Parameters
    ----------
    scores : iterable of Score
        Rows of one run or of several.
    families : Families, optional
        Adds what each protocol says about each family, where it has a value for the baseline.
    protocols : sequence of str, optional
        Whose headlines to show; default: all that there are, those in which a larger value means more shape first.
    observers : sequence of str
        Whom to compare; default: everyone but untrained networks.
    """
    rows = [s for s in scores if s.observer in observers or (not observers and RANDOM not in s.observer)]
    present = sorted({s.protocol for s in rows if s.protocol}, key=_order)
    columns, omitted = [], {}
    for name in protocols or present:
        try:
            column = headline_column(rows, name if name in present else registry.protocols.resolve(name))
        except UserError as error:
            if protocols:
                raise
            omitted[name] = error.message
            continue
        if column is not None:
            columns.append(column)
        elif protocols:
            raise UserError(f"no observer has the headline of {name}", f"cuebench run -p {name} … measures it")
        else:
            omitted[name] = "no observer has its headline"
    if not columns:
        raise UserError("there is no headline to compare", "run at least one protocol: cuebench list protocols")
    shown = tuple(dict.fromkeys(o for c in columns for o in c.rows))
    return Comparison(tuple(columns), shown, _tests(columns, families), omitted)


def compare_runs(
    runs: Sequence[str | Path],
    families: str | Path | None = None,
    protocols: Sequence[str] | None = None,
    observers: Sequence[str] = (),
) -> Comparison:
    """Compare the observers of several run folders with each other, on the same stimuli.

    An observer that several runs measured with the same protocol appears once for each, as ``NAME (RUN)``.

    Parameters
    ----------
    runs : sequence of path
        Run folders.
    families, protocols, observers
        As in `compare`; observers are named as their runs name them.
    """
    folders = list(dict.fromkeys(str(Path(run).expanduser()) for run in runs))
    rows, origin = _named_apart({folder: read_scores(Path(folder)) for folder in folders})
    answers = answers_of(folders)
    single = set() if observers else _single_people(answers, origin)
    rows = [s for s in rows if (s.protocol, s.observer) not in single]
    chosen = _chosen(observers, origin)
    comparison = compare(rows, read_families(families) if families else None, protocols, chosen)
    paired = {}
    for c in comparison.columns:
        compared = compare_pairs(answers, c, {o: origin[c.protocol, o] for o in c.rows})
        left_out = sorted(observer for protocol, observer in single if protocol == c.protocol)
        if left_out:
            note = f"left out: {len(left_out)} single people, who are pooled as one observer; -o NAME compares them"
            compared = replace(compared, notes=(*compared.notes, note))
        paired[c.protocol] = compared
    return replace(comparison, paired=paired)


DIFFERENCE = "difference [95 %]"
_RIGHT = (DIFFERENCE, "p", "p (Holm)", "n")


def write_pairs(comparison: Comparison, path: str | Path) -> Path:
    """Write all pairs to a CSV, Markdown or LaTeX file.

    Raises
    ------
    UserError
        For another ending, and where there is no pair.
    """
    target = pairs_file(path)
    rows = comparison.pair_rows()
    if not rows:
        reasons = [note for paired in comparison.paired.values() for note in paired.notes]
        raise UserError("there is no pair to write", "; ".join(reasons[:3]))
    ending = ending_of(target, ".csv")
    if ending == ".csv":
        names = list(dict.fromkeys(k for row in rows for k in row))
        write_atomic(target, csv_text(names, ([row.get(k) for k in names] for row in rows)).encode())
        return target
    make = markdown_table if ending == ".md" else latex_table
    cells = list(map(_cells, rows))
    protocols = {row["protocol"] for row in rows}
    columns = [column for column in cells[0] if column != "protocol" or len(protocols) > 1]
    title = f"{protocols.pop()}: pairs of observers" if len(protocols) == 1 else ""
    note = pairs_caption(
        comparison.columns, [pair for compared in comparison.paired.values() for pair in compared.pairs]
    )
    lines = make(title, columns, [[row[column] for column in columns] for row in cells], _RIGHT, note)
    write_atomic(target, ("\n".join(lines) + "\n").encode())
    return target


def pairs_caption(columns: Sequence[Column], pairs: Sequence[Pair]) -> str:
    """Return what must stand below differences: what their intervals are over, and the caption of the values."""
    intervals = [pair.difference.interval for pair in pairs if pair.difference.interval]
    kinds = dict.fromkeys(i.kind.replace("_", " ") + (f" ({i.method})" if i.method else "") for i in intervals)
    over = f", 95 % intervals over {', '.join(kinds)}" if kinds else ""
    return f"Differences on the same stimuli{over}. Values: {caption(row for c in columns for row in c.rows.values())}"


def pairs_file(path: str | Path) -> Path:
    """Return the file that pairs are written to; one of another ending is a mistake."""
    target = Path(path).expanduser()
    if ending_of(target, ".csv") not in (".csv", ".md", ".tex"):
        raise UserError(f"the format of {target} is not known", "end it in .csv, .md or .tex")
    return target


def _cells(row: Mapping[str, Any]) -> dict[str, str]:
    """Return a pair as the words of a table for readers; a CSV has every number as it is."""
    low, high = row["low"], row["high"]
    interval = "" if low is None or high is None else f" [{low:+.3f}, {high:+.3f}]"
    return {
        "protocol": str(row["protocol"]),
        "first": str(row["first"]),
        "second": str(row["second"]),
        DIFFERENCE: _signed(row["difference"]) + interval,
        "p": "–" if row["p"] is None else p_text(row["p"]),
        "p (Holm)": "–" if row["p_holm"] is None else p_text(row["p_holm"]),
        "n": f"{row['n']:,}",
        "verdict": str(row["verdict"]),
    }


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}"


Origin = dict[tuple[str, str], tuple[str, str]]
"""Protocol and observer, as they are shown → run folder, and the observer's name there."""


def _named_apart(runs: Mapping[str, Sequence[Score]]) -> tuple[list[Score], Origin]:
    """Join the rows of several runs; observers that occur twice in a protocol are named with their run."""
    seen: dict[tuple[str, str], list[str]] = {}
    for folder, scores in runs.items():
        for s in scores:
            where = seen.setdefault((s.protocol, s.observer), [])
            if folder not in where:
                where.append(folder)
    rows: list[Score] = []
    origin: Origin = {}
    for folder, scores in runs.items():
        for s in scores:
            twice = len(seen[s.protocol, s.observer]) > 1
            name = f"{s.observer} ({Path(folder).name})" if twice else s.observer
            origin[s.protocol, name] = (folder, s.observer)
            rows.append(replace(s, observer=name) if twice else s)
    return rows, origin


def _single_people(answers: Mapping[str, StoredAnswers | str], origin: Origin) -> set[tuple[str, str]]:
    """Return (protocol, observer) of single people whose answers are also pooled."""
    kinds = {
        (folder, job.protocol, job.observer): job.kind
        for folder, stored in answers.items()
        if isinstance(stored, StoredAnswers)
        for job in stored.record.jobs
    }
    of = {(p, o): kinds.get((folder, p, original), "") for (p, o), (folder, original) in origin.items()}
    pooled = {p for (p, _), kind in of.items() if kind == "people"}
    return {(p, o) for (p, o), kind in of.items() if kind == "person" and p in pooled}


def _chosen(wanted: Sequence[str], origin: Origin) -> list[str]:
    """Return the observers that are meant, as they are shown."""
    chosen = []
    for name in wanted:
        meant = [shown for (_, shown), (_, original) in origin.items() if name in (shown, original)]
        if not meant:
            raise did_you_mean("observer", name, {shown for _, shown in origin})
        chosen += meant
    return list(dict.fromkeys(chosen))


def _order(protocol: str) -> tuple[bool, str]:
    """Protocols in which a larger value means more shape come first."""
    try:
        return headline_of(protocol).direction != "shape", protocol
    except UserError:
        return True, protocol


def _tests(columns: Sequence[Column], families: Families | None) -> dict[str, list[FamilyTest]]:
    """Test the families with every protocol in which larger means more shape and the baseline has a value."""
    if families is None:
        return {}
    tested = [c for c in columns if families.baseline in c.rows and headline_of(c.protocol).direction == "shape"]
    if not tested:
        raise UserError(f"no protocol has the baseline {families.baseline!r}", "name an observer as the run does")
    return {c.protocol: family_tests({o: s.value for o, s in c.rows.items()}, families) for c in tested}
