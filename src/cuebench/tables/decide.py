"""Stored answers → trials: the one place where logits, label maps and names of classes are read.

What is costly goes file by file (`condense`: decisions and ranks instead of a thousand logits); the rest is done once
for an observer (`decide`). Truth and answers are compared by position among the classes, never by name, and an unknown
answer never equals an unknown truth.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.labels import LabelMap, LabelSpace, label_map
from cuebench.labels.decisions import NONE, Codes, full_space, named, named_full, partial_space
from cuebench.labels.decisions import decided as positions_of
from cuebench.metrics.accuracy import rank
from cuebench.responses.table import Reduce, Responses
from cuebench.tables.trials import BOTH, NO_ANSWER, OTHER, OUTCOMES, SHAPE, TEXTURE, Trials, Words
from cuebench.types import REMOVED, Stimulus, StimulusSet

RANK = "rank"
"""What a protocol can need of logits besides decisions: the rank of the right class, 1 = largest."""
AMONG_ALL, AMONG_TARGETS = "decision_among_all", "decision_among_targets"
"""What is kept of logits: the position of the class that was decided for; `NONE`: none of those of the stimuli."""
FULL = 1000
"""Classes of the label space that the published networks answer in."""


def way(classes: int) -> str:
    """Name a set of classes by how many they are: ``16-way``."""
    return f"{classes}-way"


def targets_of(stimuli: StimulusSet) -> LabelMap | None:
    """Return the classes of the stimuli; None where they are those of the observer."""
    return label_map(stimuli.targets) if stimuli.targets else None


def condense(stimuli: StimulusSet, labels: LabelSpace | None, needs: Collection[str] = ()) -> Reduce:
    """Return the function that keeps of logits the decisions in each set of classes, and what else is needed."""
    targets = targets_of(stimuli)
    resolved = None if labels is None or targets is None else targets.resolve(labels)

    def decided(columns: Mapping[str, Array], shown: Sequence[Stimulus]) -> dict[str, Array]:
        kept = {name: values for name, values in columns.items() if name not in ("logits", "text")}
        if "logits" not in columns or labels is None:
            return kept
        logits = columns["logits"]
        if resolved is not None:
            kept[AMONG_ALL] = full_space(logits, resolved).astype(np.int32)
            kept[AMONG_TARGETS] = partial_space(logits, resolved).astype(np.int32)
        else:
            kept[AMONG_ALL] = logits.argmax(axis=1).astype(np.int32)
        if RANK in needs:
            right = np.array([labels.find(s.label) for s in shown], np.intp)
            kept[RANK] = rank(logits, right).astype(np.int32)
        return kept

    return decided


def decide(responses: Responses, needs: Collection[str] = ()) -> Trials:
    """Return the trials of one observer, from answers that `condense` has seen.

    Parameters
    ----------
    responses : Responses
        Of one observer.
    needs : collection of str
        Columns that are kept besides: `RANK`.
    """
    stimuli, labels = responses.stimuli, responses.labels
    targets = targets_of(stimuli)
    names = targets.names if targets else labels.names if labels else ()
    spaces, absent = _spaces(responses, targets, labels)
    rows, count = np.arange(len(responses)), len(spaces)
    unread = _unread(responses)
    truth = [_positions(responses, cue, names, labels, stimuli, targets) for cue in ("label", "shape", "texture")]
    codes = np.concatenate([*spaces.values(), np.zeros(0, np.intp)])
    right, of_shape, of_texture = (np.tile(t, count) for t in truth)
    right = np.where(right == NONE, of_shape, right)
    two_cues = np.tile((truth[1] != NONE) & (truth[2] != NONE), count)
    is_shape, is_texture = (two_cues & (codes == cue) for cue in (of_shape, of_texture))
    nothing = np.tile(unread, count)
    cases = [~two_cues, nothing, is_shape & is_texture, is_shape, is_texture]
    order = [OUTCOMES.index(word) for word in ("", NO_ANSWER, BOTH, SHAPE, TEXTURE)]
    subjects = responses.subjects
    return Trials(
        asked=responses,
        stimulus=np.tile(responses.stimulus, count),
        space=Words(np.repeat(np.arange(count, dtype=np.int32), len(rows)), tuple(spaces)),
        among_targets=np.repeat([name == way(len(names)) for name in spaces], len(rows)).astype(bool),
        answer=Words(np.where(codes == NONE, len(names), codes).astype(np.int32), (*names, "")),
        outcome=Words(np.select(cases, order, OUTCOMES.index(OTHER)).astype(np.int32), OUTCOMES),
        correct=(codes == right) & (codes != NONE),
        row=np.tile(rows, count),
        subject=None if subjects is None else Words.of(np.tile(subjects, count)),
        extra={name: np.tile(responses.columns[name], count) for name in needs if name in responses.columns},
        absent=absent,
    )


def _spaces(
    responses: Responses, targets: LabelMap | None, labels: LabelSpace | None
) -> tuple[dict[str, Codes], dict[str, str]]:
    """Return the decisions in each set of classes that the answers allow, that of the stimuli first, and why not more.

    An observer with as many classes of its own as the stimuli have is read among those of the stimuli.
    """
    columns = responses.columns
    if targets is None:
        if labels is None:
            raise UserError(f"{responses.observer} has no label space")
        return ({way(len(labels)): columns[AMONG_ALL].astype(np.intp)} if AMONG_ALL in columns else {}), {}
    few, many = way(len(targets.names)), way(len(labels) if labels else FULL)
    if AMONG_TARGETS in columns:
        spaces = {few: columns[AMONG_TARGETS].astype(np.intp)}
        return (spaces if few == many else spaces | {many: columns[AMONG_ALL].astype(np.intp)}), {}
    recorded = columns.get("decisions", np.zeros(len(responses), np.str_))
    if labels is None:
        why = f"decisions among the {len(targets.names)} classes were given: the whole label space needs logits"
        return {few: named(recorded, targets.names)}, {many: why}
    decisions = named_full(recorded, labels, targets.resolve(labels))
    if few == many:
        return {few: decisions}, {}
    return {many: decisions}, {few: f"top-1 decisions in {labels.name} were given: {few} needs logits"}


def _unread(responses: Responses) -> Array:
    """Tell which answers say nothing: a missing answer, or a word that is no class at all."""
    decisions = responses.columns.get("decisions")
    if decisions is None:
        chosen = responses.columns.get(AMONG_TARGETS)
        return np.zeros(len(responses), bool) if chosen is None else np.asarray(chosen == NONE)
    targets = targets_of(responses.stimuli)
    space = responses.labels or LabelSpace("targets", targets.names if targets else ())
    return np.asarray(positions_of(decisions, None, space) == NONE)


def _positions(
    responses: Responses,
    cue: str,
    names: Sequence[str],
    labels: LabelSpace | None,
    stimuli: StimulusSet,
    targets: LabelMap | None,
) -> Codes:
    """Return the position of a class of each answer's stimulus; `NONE`: it has none."""
    texts = np.array([getattr(s, cue) for s in stimuli], np.str_)
    space = LabelSpace("targets", tuple(names)) if targets or labels is None else labels
    positions = positions_of(texts, None, space)
    if targets and any(word not in ("", REMOVED) for word in texts[positions == NONE].tolist()):
        raise UserError(f"{responses.observer}: stimuli have classes that are no target of {targets.name!r}")
    return positions[responses.stimulus] if len(positions) else np.zeros(0, np.intp)
