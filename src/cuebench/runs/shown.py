"""Which stimuli an observer is shown: those of the data root, or those of its own recording."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from cuebench.errors import UserError
from cuebench.labels import label_map
from cuebench.observers.base import ObserverBase
from cuebench.observers.recorded_names import StimulusIndex, meant_by, stimulus_key
from cuebench.observers.torch.features import suggested_layers
from cuebench.protocols.base import Protocol
from cuebench.registry import protocols
from cuebench.runs.experiments import Experiment
from cuebench.runs.loading import LoadedObservers
from cuebench.stimuli.identity import identified
from cuebench.types import Capability, StimulusSet


class NotApplicable(UserError):
    """An observer that by its nature cannot answer a protocol: people have no logits."""


def needed(protocol: Protocol, observer: ObserverBase) -> tuple[Capability, ...]:
    """Return the kinds of answer that an observer is asked for: the best that the protocol can use."""
    for needs in protocol.needs:
        if set(needs) <= observer.capabilities:
            return needs
    wanted = " or ".join(" and ".join(alternative) for alternative in protocol.needs)
    offered = ", ".join(sorted(observer.capabilities)) or "nothing"
    layers = suggested_layers(observer) if protocol.needs[0] == ("features",) else ""
    raise NotApplicable(f"{observer.name} gives {offered}; protocol {protocol.name!r} needs {wanted}{layers}")


def stimuli_for(
    experiment: Experiment, observer: ObserverBase, loaded: LoadedObservers, notices: list[str]
) -> StimulusSet:
    """Return what this observer is shown: its own recording where it has one, else the data root.

    A recording needs no images, and is scored whole even where the data root holds a part of the set. Where a table of
    the data root says what the pictures are, it counts more than their recorded names.
    """
    derive, names = experiment.protocol.stimuli_from_recordings, observer.stimulus_names()
    if derive is not None and names:
        needed(experiment.protocol, observer)  # names of another experiment would be refused as mistakes
        if experiment.table is not None:
            return _as_in_run(experiment, _of_table(experiment, names, notices))
        return _as_in_run(experiment, _recorded_stimuli(experiment, names))
    if experiment.stimuli is not None:
        if names:
            _match(experiment, names, notices)
        return experiment.stimuli
    if derive is not None and observer.preprocess is None and experiment.table is None:
        theirs = [o.observer for o in loaded.observers if not is_of_another(experiment, o.observer)]
        if recorded := dict.fromkeys(name for one in theirs for name in one.stimulus_names()):
            return experiment.limited(derive(list(recorded)))
    assert experiment.problem is not None
    raise experiment.problem


def is_of_another(experiment: Experiment, observer: ObserverBase) -> bool:
    """Tell whether an observer is a recording of other stimuli: not one of its names is of this experiment."""
    names = observer.stimulus_names()
    derive = protocols.get(experiment.protocol.name).stimuli_from_recordings  # of all classes
    if not names:
        return False
    if derive is not None and experiment.table is None:
        return not any(_is_understood(derive, name) for name in names)
    try:
        observer.check_shown(experiment.whole.stimuli if experiment.whole else ())
    except UserError:
        return True
    return False


def _is_understood(derive: Callable[[Sequence[str]], StimulusSet], name: str) -> bool:
    try:
        return len(derive([name])) > 0
    except UserError:
        return False


def _of_table(experiment: Experiment, names: Sequence[str], notices: list[str]) -> StimulusSet:
    """Return the stimuli of the data root's table that a recording names; others are left out, and counted."""
    if experiment.whole is None:
        assert experiment.problem is not None
        raise experiment.problem
    _match(experiment, names, notices)
    index = StimulusIndex(names, range(len(names)))
    rows = {stimulus.id: index.find(stimulus) for stimulus in experiment.whole}
    kept = [stimulus for stimulus in experiment.whole if rows[stimulus.id]]
    found = {row for of_one in rows.values() for row in of_one}
    left_out = [name for row, name in enumerate(names) if row not in found]
    if not kept:
        raise NotApplicable(
            f"none of the {len(names):,} recorded stimuli ({names[0]!r} …) is in {experiment.table}, which says shape "
            "and texture of the stimuli of this data root",
            "add them to that file; or, where their names say shape and texture, give another --data-root, or none",
        )
    listed = identified(experiment.whole.only(kept))
    if not left_out:
        return listed
    why = f"only the {len(names) - len(left_out):,} of {len(names):,} recorded stimuli that {experiment.protocol.table}"
    notice = f"{why} lists; left out: {left_out[0]!r}{' …' * (len(left_out) > 1)}"
    if notice not in notices:
        notices.append(notice)
    return listed.only(listed.stimuli, f"{why} lists")


def _match(experiment: Experiment, names: Sequence[str], notices: list[str]) -> None:
    """Refuse recorded names that can be those of several stimuli; say where names without folders are taken."""
    assert experiment.whole is not None
    try:
        short = meant_by(names, experiment.whole)
    except UserError as error:  # perhaps a recording of another experiment
        raise NotApplicable(error.message, error.hint) from None
    if not short:
        return
    name, meant = next(iter(short.items()))
    if experiment.values.get("classes"):  # the other classes may hold a stimulus of this name
        raise UserError(
            f"the recorded name {name!r} has no folder, and only some classes are shown", f"write it as {meant!r}"
        )
    rule = f"{experiment.protocol.name}: recorded names without folders are those of the only stimuli that end so"
    if not any(notice.startswith(rule) for notice in notices):
        notices.append(f"{rule} ({name!r}: {meant!r})")


def _recorded_stimuli(experiment: Experiment, names: Sequence[str]) -> StimulusSet:
    """Return the stimuli that a recording names: those of the data root where its classes are not published ones."""
    derive, shown = experiment.protocol.stimuli_from_recordings, experiment.stimuli
    assert derive is not None
    try:
        return derive(names)
    except UserError:
        wanted = {stimulus_key(name) for name in names}
        if shown is None or not wanted <= {s.id for s in shown}:
            raise
        return shown.only([s for s in shown if s.id in wanted], "")


def _as_in_run(experiment: Experiment, recording: StimulusSet) -> StimulusSet:
    """Return the stimuli of a recording with the label map and the limit of the run.

    Where models are shown a part, the recording is limited to that part: two draws from two sets would hardly share an
    image, and people and models could not be compared.
    """
    shown = experiment.stimuli
    if experiment.shown_to_others:
        kept = [s for s in recording if s.id in experiment.shown_to_others]
        why = f"only the {len(kept):,} of {len(recording):,} stimuli that the other observers are shown"
        return recording.only(kept, why if len(kept) < len(recording) else "")
    if shown is None:
        return experiment.limited(recording)
    classes = {c for s in recording for c in (s.label, s.shape, s.texture) if c}
    if shown.targets and classes <= set(label_map(shown.targets).names):
        recording = replace(recording, targets=shown.targets)
    ids = {s.id for s in shown}
    shared = [s for s in recording if s.id in ids] if experiment.limit else []
    if not shared:
        return experiment.limited(recording)
    return recording.only(shared, f"limited to {len(shared):,} stimuli of the run")
