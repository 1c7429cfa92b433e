"""The option ``classes``: some classes of a protocol only, for a model that knows no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from cuebench.errors import UserError, all_problems
from cuebench.labels import SUBSET
from cuebench.options import Option
from cuebench.protocols.base import Protocol
from cuebench.types import REMOVED, Stimulus, StimulusSet

CLASSES: Mapping[str, Option] = {
    "classes": Option(
        (),
        "only stimuli of these classes, for a model that knows no others: cat,dog,car. A decision among the classes of "
        "the stimuli is one among these",
    )
}


def with_classes(protocol: Protocol, values: Mapping[str, Any]) -> Protocol:
    """Return the protocol with the stimuli of the chosen classes only; as it is where none are chosen."""
    if not values["classes"]:
        return protocol
    recordings = protocol.stimuli_from_recordings
    return replace(
        protocol,
        read=partial(_read, protocol.read, values["classes"]),
        stimuli_from_recordings=recordings and partial(_read, recordings, values["classes"]),
    )


def _read(read: Any, classes: Sequence[str], source: Any) -> StimulusSet:
    return of_classes(read(source), classes)


def of_classes(stimuli: StimulusSet, classes: Sequence[str]) -> StimulusSet:
    """Return the stimuli all of whose cues are of these classes, with a label map of these classes.

    Parameters
    ----------
    stimuli : StimulusSet
        All of them.
    classes : sequence of str
        Names of classes of the stimuli.
    """
    present = {name for s in stimuli for name in _classes_of(s)}
    if unknown := [name for name in classes if name not in present]:
        problems = [f"no stimulus is of the class {name!r}" for name in unknown]
        raise all_problems(f"classes of {stimuli.name}", problems, f"there are: {', '.join(sorted(present)[:40])}")
    kept = tuple(s for s in stimuli if _classes_of(s) <= set(classes))
    if not kept:
        raise UserError(f"no stimulus of {stimuli.name} is of {', '.join(classes)} only", "name more classes")
    whole = stimuli.expected or len(stimuli)
    return replace(
        stimuli,
        stimuli=kept,
        expected=whole,
        partial=(f"{len(kept):,} of {whole:,} stimuli: only the classes {', '.join(classes)}",),
        targets=f"{stimuli.targets}{SUBSET}{','.join(classes)}" if stimuli.targets else "",
    )


def _classes_of(stimulus: Stimulus) -> set[str]:
    return {stimulus.label, stimulus.shape, stimulus.texture} - {"", REMOVED}
