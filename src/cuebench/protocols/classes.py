"""The option ``classes``: some classes of a protocol only, for a model that knows no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

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
OF_MASKS = (
    "a picture shows several classes at once: make the set with the classes that the model knows, and the values of "
    'all others under "ignore": cuebench make cue_decomposition --source DIR --out DIR --set classes=FILE'
)
"""Why a segmentation set is not shown in part, and what to do."""
Field = Literal["label", "shape", "texture"]
ALL: tuple[Field, ...] = ("label", "shape", "texture")
"""Fields of a stimulus that hold classes which an observer may answer."""


def with_classes(protocol: Protocol, values: Mapping[str, Any], fields: Sequence[Field] = ALL) -> Protocol:
    """Return the protocol with the stimuli of the chosen classes only; as it is where none are chosen.

    Parameters
    ----------
    protocol : Protocol
        With all of its stimuli.
    values : mapping
        Its options, parsed.
    fields : sequence of str
        Fields of a stimulus that must be of these classes; one that is empty is of any.
    """
    chosen = values.get("classes")
    if not chosen:
        return protocol
    recordings, standalone = protocol.stimuli_from_recordings, protocol.standalone
    return replace(
        protocol,
        read=partial(_read, protocol.read, chosen, fields),
        stimuli_from_recordings=recordings and partial(_read, recordings, chosen, fields),
        standalone=standalone and partial(_read, standalone, chosen, fields),
    )


def _read(read: Any, classes: Sequence[str], fields: Sequence[Field], *source: Any) -> StimulusSet:
    return of_classes(read(*source), classes, fields)


def of_classes(stimuli: StimulusSet, classes: Sequence[str], fields: Sequence[Field] = ALL) -> StimulusSet:
    """Return the stimuli all of whose cues are of these classes, with a label map of these classes.

    Parameters
    ----------
    stimuli : StimulusSet
        All of them.
    classes : sequence of str
        Names of classes of the stimuli.
    fields : sequence of str
        As in `with_classes`.
    """
    if any(s.mask for s in stimuli):
        raise UserError(f"classes of {stimuli.name} cannot be chosen", OF_MASKS)
    present = {name for s in stimuli for name in _classes_of(s, fields)}
    if not present:
        raise UserError(
            f"no stimulus of {stimuli.name} has a class that an observer must know", "leave the option classes out"
        )
    if unknown := [name for name in classes if name not in present]:
        problems = [f"no stimulus is of the class {name!r}" for name in unknown]
        raise all_problems(f"classes of {stimuli.name}", problems, f"there are: {', '.join(sorted(present)[:40])}")
    kept = tuple(s for s in stimuli if _classes_of(s, fields) <= set(classes))
    if not kept:
        raise UserError(f"no stimulus of {stimuli.name} is of {', '.join(classes)} only", "name more classes")
    whole = stimuli.expected or len(stimuli)
    return replace(
        stimuli,
        stimuli=kept,
        expected=whole,
        partial=(
            *stimuli.partial,
            f"{len(kept):,} of {whole:,} stimuli: only the classes {', '.join(classes)}",
        ),
        targets=f"{stimuli.targets.partition(SUBSET)[0]}{SUBSET}{','.join(classes)}" if stimuli.targets else "",
    )


def _classes_of(stimulus: Stimulus, fields: Sequence[Field]) -> set[str]:
    return {getattr(stimulus, field) for field in fields} - {"", REMOVED}
