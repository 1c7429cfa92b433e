"""What was found, in sentences: the headline of each protocol, with its uncertainty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cuebench.protocols.headline import Column
from cuebench.reports.comparison import LARGER
from cuebench.reports.html.material import PEOPLE, Material, declared, direction, headline, metric_of
from cuebench.reports.html.text import counted, covers, has_interval, listed, number
from cuebench.types import Score

MOST = 6
"""Observers that a sentence names; of more, it gives the range."""


class Statement(NamedTuple):
    """A sentence: how it begins, observers with their numbers, and how it ends.

    ``verdict`` is what it says in two words: ``more shape``, ``more texture``, ``not clear``; ``style`` is a CSS class.
    """

    verdict: str
    style: str = "plain"
    begin: str = ""
    entries: Sequence[tuple[str, str]] = ()
    end: str = ""

    @property
    def text(self) -> str:
        """The whole sentence."""
        return self.begin + listed([f"{name} {value}".strip() for name, value in self.entries]) + self.end


class Finding(NamedTuple):
    """What one protocol says.

    ``statements`` are about models and people, ``uncertainty`` says what the intervals cover and what n is.
    """

    protocol: str
    title: str
    measure: str
    statements: list[Statement]
    uncertainty: str


def findings(material: Material, paired: Mapping[str, str] | None = None) -> list[Finding]:
    """Return what each protocol says, for all that have a headline.

    Parameters
    ----------
    material : Material
        The runs.
    paired : mapping of str to str, optional
        Protocol → what comparing observers on the same stimuli has shown, in a sentence.
    """
    protocol_findings = []
    for name in material.protocols:
        column = material.headline(name)
        if column is None:
            continue
        part, metric = declared(name), metric_of(column.metric)
        title = part.title if part else name
        measure = f"{metric.title if metric else column.metric}, {column.condition}" if column.condition else ""
        statements = _statements(material, column)
        if statements and (sentence := (paired or {}).get(name)):
            statements.append(Statement("pairs", end=sentence))
        if statements:
            protocol_findings.append(Finding(name, title, measure, statements, _uncertainty(material, column)))
    return protocol_findings


def _statements(material: Material, column: Column) -> list[Statement]:
    shown = material.of_kind(column.rows, "model", "people")
    if not material.of_kind(shown, "people"):
        shown = material.of_kind(column.rows, "model", *PEOPLE)
    rows = sorted((column.rows[o] for o in shown), key=lambda row: row.value)
    axis = headline(column.protocol)
    if not rows:
        ideal = sorted((column.rows[o] for o in material.of_kind(column.rows, "ideal")), key=lambda row: row.value)
        begin = "Only ideal observers, whose answer is known, were measured: "
        return [Statement("calibration", begin=begin, entries=_named(ideal), end=".")] if ideal else []
    middle = axis.neutral if axis is not None else None
    statements = _by_side(rows, middle, direction(column.protocol)) if middle is not None else [_in_order(rows)]
    return [*statements, *_people(material, column, rows)]


def _by_side(rows: Sequence[Score], middle: float, above_is: str) -> list[Statement]:
    """Sort observers by the side of the neutral value that their whole interval lies on."""
    below = [r for r in rows if _high(r) < middle]
    above = [r for r in rows if _low(r) > middle]
    unclear = [r for r in rows if r not in below and r not in above]
    statements = []
    cues = ("texture", "shape") if above_is == "texture" else ("shape", "texture")
    for group, side, cue in zip((above, below), ("above", "below"), cues):
        if group:
            whole = "the whole interval lies" if all(map(has_interval, group)) else "the value lies"
            end = f": {whole} {side} {middle:g}, where neither cue would win."
            statements.append(Statement(LARGER[cue], cue, entries=_named(group), end=end))
    if unclear:
        end = f": the interval includes {middle:g}, so neither cue can be said to win."
        statements.append(Statement("not clear", entries=_named(unclear), end=end))
    return statements


def _in_order(rows: Sequence[Score]) -> Statement:
    """Give values in order; whether two differ is said of pairs."""
    ranked = list(reversed(rows))
    if len(ranked) == 1:
        return Statement("value", entries=_named(ranked), end=".")
    return Statement("in order", begin="From the highest to the lowest: ", entries=_named(ranked), end=".")


def _people(material: Material, column: Column, rows: Sequence[Score]) -> list[Statement]:
    """Compare the models with people: those of the run, or the published value."""
    models = [r for r in rows if material.kinds.get(r.observer, "model") == "model"]
    humans = [r for r in rows if material.kinds.get(r.observer) in PEOPLE]
    axis = headline(column.protocol)
    published = axis is not None and axis.human is not None and material.shows_published(column.protocol)
    if not models or axis is None or not (humans or published):
        return []
    if humans:
        low, high = min(map(_low, humans)), max(map(_high, humans))
        entries = [("people", number(humans[0]))] if len(humans) == 1 else _named(humans)
        begin, source = "In this run: ", _single_people(material, column)
    else:
        assert axis.human is not None
        low = high = axis.human
        entries = [("people", f"{axis.human:.3f}")]
        begin, source = "", f" ({axis.human_source}; published, not measured in this run)"
    sides = {
        "lies below people with its whole interval": [r for r in models if _high(r) < low],
        "lies above people with its whole interval": [r for r in models if _low(r) > high],
    }
    sides["has an interval that reaches people"] = [r for r in models if not any(r in side for side in sides.values())]
    parts = [f"{_every(len(side), len(models))} {what}" for what, side in sides.items() if side]
    sentence = listed(parts)
    return [Statement("people", "people", begin, entries, f"{source}. {sentence[0].upper()}{sentence[1:]}.")]


def _single_people(material: Material, column: Column) -> str:
    """Give the range of single people where they are also pooled."""
    single = [column.rows[o].value for o in material.of_kind(column.rows, "person")]
    if not single or not material.of_kind(column.rows, "people"):
        return ""
    return f" ({counted(len(single), 'person', 'people')} one by one: {min(single):.3f} to {max(single):.3f})"


def _uncertainty(material: Material, column: Column) -> str:
    rows = [column.rows[o] for o in material.of_kind(column.rows, "model", "people")] or list(column.rows.values())
    kinds = list(dict.fromkeys(r.ci_kind for r in rows if has_interval(r)))
    meanings = [covers(kind) or kind.replace("_", " ") for kind in kinds]
    intervals = f"In brackets: 95 % intervals for {listed(meanings)}. " if kinds else "No interval is defined. "
    low, high = min(r.n for r in rows), max(r.n for r in rows)
    return f"{intervals}n = {low:,}." if low == high else f"{intervals}n = {low:,} to {high:,}."


def _named(rows: Sequence[Score]) -> list[tuple[str, str]]:
    """Return observers with their numbers; of many, the first few and the range of the others."""
    if len(rows) <= MOST:
        return [(r.observer, number(r)) for r in rows]
    rest = [r.value for r in rows[MOST - 1 :]]
    more = (f"{len(rest)} more", f"({min(rest):.3f} to {max(rest):.3f})")
    return [*((r.observer, number(r)) for r in rows[: MOST - 1]), more]


def _every(number: int, total: int) -> str:
    if number == total:
        return "the model" if total == 1 else f"each of the {total} models"
    return f"{number} of {total} models" if number != 1 else f"one of {total} models"


def _low(row: Score) -> float:
    return row.ci_low if has_interval(row) else row.value


def _high(row: Score) -> float:
    return row.ci_high if has_interval(row) else row.value
