"""One section for each protocol: question, definition, numbers, classes, exclusions, notes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cuebench.calibration.trust import nearest
from cuebench.protocols.headline import Column
from cuebench.registry import protocols
from cuebench.reports.html.material import Material, declared, headline, metric_of
from cuebench.reports.html.tables import Table, all_numbers, class_table, headline_table
from cuebench.reports.html.text import covers, has_interval, listed
from cuebench.types import Citation
from cuebench.words import Word, read_condition

SHORT = 32
"""Letters of a title in the list of sections, at most."""
MANY_CLASSES = 40
"""Classes from which on their table is folded away."""


@dataclass(frozen=True)
class Section:
    """What a report says of one protocol."""

    name: str
    title: str
    version: int
    question: str
    facts: list[tuple[str, str]] = field(default_factory=list)
    """Heading → text: definition, denominator, chance, and what else explains the number."""
    caveats: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    """What holds for the headline of every observer."""
    single_notes: list[tuple[str, str]] = field(default_factory=list)
    """A note of some observers → who they are."""
    skipped: list[str] = field(default_factory=list)
    """Observers that the protocol cannot be applied to, with the reason."""
    table: Table | None = None
    classes: Table | None = None
    numbers: dict[str, Any] = field(default_factory=dict)
    citation: Citation | None = None

    @property
    def short(self) -> str:
        """A title for the list of sections."""
        first = self.title.partition(":")[0]
        return first if len(first) <= SHORT else self.name.replace("_", " ").capitalize()

    @property
    def fold_classes(self) -> bool:
        """Whether the table of classes is folded away at first."""
        return self.classes is not None and len(self.classes.rows) > MANY_CLASSES


def section(material: Material, name: str) -> Section:
    """Return the section of a protocol."""
    part, column = declared(name), material.headline(name)
    rows = [s for s in material.numbers if s.protocol == name]
    notes = _shared_notes(column)
    return Section(
        name=name,
        title=part.title if part else name,
        version=rows[0].protocol_version,
        question=protocols.summary(name) if part else "This protocol is not installed here; its numbers were recorded.",
        facts=_facts(material, name, column),
        caveats=tuple(metric.caveats) if column and (metric := metric_of(column.metric)) else (),
        notes=notes,
        single_notes=_single_notes(column, notes),
        skipped=_skipped(material, name),
        table=headline_table(material, column) if column else None,
        classes=class_table(material, column) if column else None,
        numbers=all_numbers(material, name),
        citation=part.citation if part else None,
    )


def _facts(material: Material, name: str, column: Column | None) -> list[tuple[str, str]]:
    """Return the definition of the headline, and what its condition and its intervals mean."""
    axis = headline(name)
    metric = metric_of(column.metric) if column else None
    if column is None or metric is None:
        return []
    facts = [
        ("Number", f"{metric.title} = {metric.formula}"),
        ("Divided by", metric.denominator),
        ("Larger means", metric.higher_is),
        ("Chance", metric.chance),
        ("Condition", "; ".join(f"{text}: {meaning}" for text, meaning in conditions(name, column.condition))),
        ("Intervals", _intervals(column)),
    ]
    known = nearest(name, column.condition, column.metric)
    if known is not None:
        elsewhere = "" if known.condition == column.condition else f" (simulated: {known.condition})"
        facts.append(("In simulations", f"{known.summary}{elsewhere}"))
    if axis is not None and axis.human is not None and material.shows_published(name):
        facts.append(("People", f"{axis.human:.3f} ({axis.human_source})"))
    return [(heading, text) for heading, text in facts if text]


def conditions(protocol: str, condition: str) -> list[tuple[str, str]]:
    """Explain the parts of a condition that have a meaning of their own."""
    part = declared(protocol)
    patterns = part.conditions if part else {}
    declared_words = [Word(pattern, "condition", text, (protocol,)) for pattern, text in patterns.items()]
    return [(text, words[0].meaning) for text, words in read_condition(condition, protocol, declared_words) if words]


def _intervals(column: Column) -> str:
    kinds = list(dict.fromkeys(row.ci_kind for row in column.rows.values() if has_interval(row)))
    texts = [f"{kind.replace('_', ' ')} ({covers(kind)})" if covers(kind) else kind.replace("_", " ") for kind in kinds]
    return f"95 %, the widest of those computed: {', '.join(texts)}" if texts else ""


def _shared_notes(column: Column | None) -> list[str]:
    """Return the notes that stand beside the number of every observer."""
    if column is None or not column.rows:
        return []
    notes = [row.note.split("; ") for row in column.rows.values()]
    return [note for note in dict.fromkeys(notes[0]) if note and all(note in others for others in notes)]


def _single_notes(column: Column | None, shared: list[str]) -> list[tuple[str, str]]:
    """Return the other notes, each once, with the observers that it is about."""
    by_note: dict[str, list[str]] = {}
    for observer, row in column.rows.items() if column else ():
        for note in row.note.split("; "):
            if note and note not in shared:
                by_note.setdefault(note, []).append(observer)
    return [(note, listed(observers)) for note, observers in by_note.items()]


def _skipped(material: Material, name: str) -> list[str]:
    by_reason: dict[str, list[str]] = {}
    for run in material.runs:
        for failure in run.scores.record.skipped:
            if failure.protocol == name:
                observer = run.names.get(failure.observer, failure.observer)
                reason = failure.reason.replace(failure.observer, "it", 1)
                by_reason.setdefault(reason, []).append(observer)
    return [f"{', '.join(observers)}: {reason}" for reason, observers in by_reason.items()]
