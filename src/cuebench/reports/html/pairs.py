"""Observers against each other on the same stimuli: which differences are certain, and what it would take."""

from __future__ import annotations

from typing import NamedTuple

from cuebench.errors import UserError
from cuebench.protocols.headline import Column
from cuebench.reports.comparison import pairs_caption
from cuebench.reports.html.material import Material
from cuebench.reports.html.tables import Cell, Table, count, words
from cuebench.reports.paired import Pair, answers_of, compare_pairs, p_is, p_text

MOST = 8
"""Observers of a protocol that are compared in a report: all pairs of many take minutes, and nobody reads them."""


class Pairs(NamedTuple):
    """The pairs of one protocol: a table, one sentence, and what a reader must know."""

    table: Table | None = None
    sentence: str = ""
    notes: tuple[str, ...] = ()


def all_pairs(material: Material) -> dict[str, Pairs]:
    """Compare models, and people as one observer, in the headline of each protocol."""
    places = {(job.protocol, run.named(job)): (str(run.folder), job.observer) for run in material.runs
              for job in run.scores.record.jobs}  # fmt: skip
    try:
        answers = answers_of(str(run.folder) for run in material.runs)
    except UserError as error:
        return {name: Pairs(notes=(f"No paired comparison: {error.message}.",)) for name in material.protocols}
    by_protocol = {}
    for name in material.protocols:
        column = material.headline(name)
        shown = material.of_kind(column.rows, "model", "people") if column else []
        if column is None or len(shown) < 2:
            continue
        if len(shown) > MOST:
            folders = " ".join(run.folder.name for run in material.runs)
            note = f"{len(shown)} observers make too many pairs for a page: cuebench compare {folders} shows them."
            by_protocol[name] = Pairs(notes=(note,))
            continue
        rows = {o: column.rows[o] for o in shown}
        paired = compare_pairs(answers, column._replace(rows=rows), {o: places[name, o] for o in shown})
        notes = tuple(f"{note[0].upper()}{note[1:]}." for note in paired.notes)
        by_protocol[name] = Pairs(_table(column, paired.pairs), _sentence(paired.pairs), notes)
    return by_protocol


def _sentence(pairs: tuple[Pair, ...]) -> str:
    compared = [p for p in pairs if p.p_holm == p.p_holm]
    if not compared:
        return ""
    different = [p for p in compared if p.separable]
    if len(compared) == 1:
        (pair,) = compared
        verb = "differ" if different else "cannot be told apart"
        return f"On the same stimuli {pair.first} and {pair.second} {verb} (paired, {p_is(pair.p_holm)})."
    share = f"{len(different)} of {len(compared)} pairs"
    return f"On the same stimuli {share} differ (paired, p ≤ 0.05 after Holm's correction)."


def _table(column: Column, pairs: tuple[Pair, ...]) -> Table | None:
    if not pairs:
        return None
    rows = []
    for pair in pairs:
        row = pair.row()
        known = row["difference"] is not None and row["low"] is not None
        text = f"{row['difference']:+.3f} [{row['low']:+.2f}, {row['high']:+.2f}]".replace("-", "−") if known else "–"
        p = Cell("–", None) if row["p_holm"] is None else Cell(p_text(row["p_holm"]), row["p_holm"])
        cells = [words(pair.first), words(pair.second), Cell(text, row["difference"], row["low"], row["high"]), p]
        rows.append([*cells, count(row["n"]), words(pair.verdict, "note")])
    columns = ["higher", "lower", "difference", "p (Holm)", "n", "to tell them apart"]
    heading = "Pairs of observers on the same stimuli, 95 % intervals of the difference"
    return Table(f"pairs-{column.protocol}", heading, columns, rows, about=pairs_caption([column], pairs))
