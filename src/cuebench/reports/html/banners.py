"""Warnings that change how a report is read: what is missing, limited, unfinished or rests on little."""

from __future__ import annotations

import math
from typing import NamedTuple

from cuebench.protocols.base import PARTIAL
from cuebench.protocols.headline import measured
from cuebench.reports.html.material import Material, Run
from cuebench.reports.html.text import counted, listed
from cuebench.runs.results import unfinished
from cuebench.types import Score

FEW_DECIDED = 0.5
"""Share of decided trials below which a bias is said to rest on a part of the answers only."""
FEW_TRIALS = 30
"""Trials behind a headline below which that is said."""


class Banner(NamedTuple):
    """A warning: ``problem`` (something was not measured) or ``caution`` (how to read what was)."""

    kind: str
    text: str


def banners(material: Material) -> list[Banner]:
    """Return the warnings of a report, problems first, each once."""
    warnings = [banner for run in material.runs for banner in _of_run(run)]
    warnings += [banner for protocol in material.protocols for banner in _of_protocol(material, protocol)]
    return sorted(dict.fromkeys(warnings), key=lambda banner: banner.kind != "problem")


def _of_run(run: Run) -> list[Banner]:
    record = run.scores.record
    warnings = [Banner("problem", why)] if (why := unfinished(run.folder, record)) else []
    warnings += [
        Banner("problem", f"{f.observer} could not be measured{f' with {f.protocol}' * bool(f.protocol)}: {f.reason}")
        for f in record.failures
    ]
    if record.unreadable:
        text = f"{counted(len(record.unreadable), 'stimulus', 'stimuli')} could not be read."
        warnings.append(Banner("caution", text))
    told = [notice for notice in record.notices if not notice.startswith(("not applicable", "not asked"))]
    warnings += [Banner("caution", notice) for notice in told]
    return warnings


def _of_protocol(material: Material, protocol: str) -> list[Banner]:
    rows = [s for s in measured(material.rows) if s.protocol == protocol]
    warnings = [Banner("caution", f"{protocol}: {text}.")] if (text := _partial(rows)) else []
    column = material.headline(protocol)
    if column is None:
        return [*warnings, Banner("problem", f"{protocol}: no observer has a value of its headline.")]
    shown = set(material.of_kind(column.rows, "model", "people", "person"))
    few = [row for o, row in column.rows.items() if o in shown and row.n < FEW_TRIALS]
    if few:
        who = listed([f"{row.observer} ({row.n:,})" for row in few], 6)
        text = f"{protocol}: the headline rests on fewer than {FEW_TRIALS} trials of {who}."
        warnings.append(Banner("caution", text))
    undecided = {
        s.observer: s.value
        for s in rows
        if s.metric == "decided_fraction" and s.condition == column.condition and s.value < FEW_DECIDED
    }
    if names := [f"{o} ({share:.0%})" for o, share in undecided.items() if o in shown]:
        text = f"{protocol}: less than half of the answers go by either cue: {listed(names, 6)}."
        warnings.append(Banner("caution", text))
    undefined = {s.observer for s in rows if s.metric == column.metric and s.condition == column.condition}
    gone = [o for o in undefined if o not in column.rows and not math.isfinite(_value(rows, o, column.metric))]
    if gone:
        warnings.append(Banner("caution", f"{protocol}: the headline is undefined for {listed(sorted(gone), 6)}."))
    return warnings


def _partial(rows: list[Score]) -> str:
    """Return why the stimuli are incomplete, each reason once."""
    notes = dict.fromkeys(note for s in rows for note in s.note.split("; ") if note.startswith(PARTIAL))
    reasons = dict.fromkeys(reason for note in notes for reason in note.removeprefix(PARTIAL).split(", "))
    return f"{PARTIAL}{'; '.join(reasons)}" if reasons else ""


def _value(rows: list[Score], observer: str, metric: str) -> float:
    return next((s.value for s in rows if s.observer == observer and s.metric == metric), math.nan)
