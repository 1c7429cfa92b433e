"""Responses of ideal observers to the stimuli of any protocol, in memory: what a protocol must give back is planted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.labels import label_map
from cuebench.observers.adapters.ideal import IdealObserver, generator, load
from cuebench.observers.base import Batch, LoadOptions, Spec
from cuebench.protocols.base import Protocol
from cuebench.responses.table import Responses
from cuebench.stimuli.cue_files import read_labels
from cuebench.types import REMOVED, Capability, ObserverKind, Stimulus, StimulusSet

IDEAL = ("ideal:shape", "ideal:texture", "ideal:mixture?shape=0.7", "ideal:random")
"""The ideal observers that `check_protocol` scores."""


def planted_responses(
    protocol: Protocol,
    stimuli: StimulusSet,
    observer: str,
    *,
    needs: Sequence[Capability] | None = None,
    seed: int = 0,
    name: str = "",
    kind: ObserverKind = "ideal",
) -> Responses:
    """Return what an ideal observer answers to the stimuli of a protocol.

    Only the kinds of answers that the protocol asks for are in it, and its ``reduce`` is applied, as in a run.

    Parameters
    ----------
    protocol : Protocol
        Whose experiment it is.
    stimuli : StimulusSet
        What is shown.
    observer : str
        ``ideal:shape``, ``ideal:texture``, ``ideal:random`` or ``ideal:mixture?shape=0.7``. An ideal observer that is
        asked for masks answers with the true mask, or with random classes where its cue was removed.
    needs : sequence of str, optional
        Kinds of answers to give; default: the first alternative of the protocol that an ideal observer can give.
    seed : int
        Of the observer.
    name, kind : str
        Another name, and another kind such as ``person``.
    """
    ideal = _ideal(protocol, stimuli, observer, seed)
    chosen = tuple(needs) if needs is not None else _first_possible(protocol, ideal, stimuli)
    if chosen == ("masks",):
        columns: dict[str, Array] = {"masks": _masks(ideal, stimuli)}
    else:
        answers = ideal.respond(Batch(stimuli.stimuli), chosen)
        columns = {column: np.asarray(answers[column]) for column in chosen}
    if protocol.reduce is not None:
        columns = protocol.reduce(stimuli, ideal.labels)(columns, [s.without_truth for s in stimuli])
    return Responses(
        observer=name or observer,
        kind=kind,
        stimuli=stimuli,
        stimulus=np.arange(len(stimuli), dtype=np.intp),
        columns=columns,
        labels=ideal.labels,
        view=protocol.views[0].name,
    )


def _ideal(protocol: Protocol, stimuli: StimulusSet, spec: str, seed: int) -> IdealObserver:
    members = label_map(stimuli.targets) if stimuli.targets else None
    cues = dict.fromkeys(c for s in stimuli for c in (s.label, s.shape, s.texture) if c not in ("", REMOVED))
    classes = members.names if members else tuple(cues) or protocol.targets
    if not classes:
        raise UserError(f"the stimuli of {protocol.name!r} have no classes", "give each a label, a shape or a texture")
    (observer,) = load(Spec.parse(spec), LoadOptions(seed=seed, targets=classes))
    assert isinstance(observer, IdealObserver)
    return observer.among(classes, members, protocol.answers_in)


def _first_possible(protocol: Protocol, ideal: IdealObserver, stimuli: StimulusSet) -> tuple[Capability, ...]:
    masked = {"masks"} if any(s.mask for s in stimuli) else set()
    for alternative in protocol.needs:
        # Stimuli with masks are answered with masks where the protocol takes them, as a segmentation model would.
        if set(alternative) <= {*ideal.capabilities, *masked}:
            return alternative
    needed = " or ".join(" and ".join(a) for a in protocol.needs)
    raise UserError(f"protocol {protocol.name!r} needs {needed}", "ideal observers give logits, features and decisions")


def _masks(ideal: IdealObserver, stimuli: StimulusSet) -> Array:
    """Return one mask of class numbers for each stimulus."""
    masks = np.empty(len(stimuli), dtype=object)
    for position, stimulus in enumerate(stimuli):
        masks[position] = _mask(ideal, stimulus, stimuli.root)
    return masks


def _mask(ideal: IdealObserver, stimulus: Stimulus, root: str) -> Array:
    truth = read_labels(Path(root) / stimulus.mask)
    rng = generator(ideal.seed, stimulus)
    by_shape, lapsed = rng.random() < ideal.shape, rng.random() < ideal.lapse
    cue = stimulus.shape if by_shape else stimulus.texture
    if lapsed or cue == REMOVED:
        return np.asarray(rng.integers(len(ideal.labels), size=truth.shape))
    return np.where(truth < len(ideal.labels), truth, 0)


def without_answers(responses: Responses, positions: Sequence[int]) -> Responses:
    """Return the responses as if some stimuli had been unreadable."""
    keep = ~np.isin(responses.stimulus, positions)
    stimuli = responses.stimuli.stimuli
    return replace(
        responses,
        stimulus=responses.stimulus[keep],
        columns={name: values[keep] for name, values in responses.columns.items()},
        excluded={stimuli[i].id: "unreadable" for i in positions},
    )
