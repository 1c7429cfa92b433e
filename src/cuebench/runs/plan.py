"""What a run has to do, settled before anything is spent.

Stimuli are read, observers loaded, and every observer is checked with every protocol: does it give the kind of answer
that is needed, do its classes cover those of the stimuli? Planning writes nothing. Whatever does not fit, and whatever
cannot be loaded, is a failure row with its reason; the rest goes on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from cuebench.arrays import Array
from cuebench.cues.versions import recipe_versions
from cuebench.errors import UserError, all_problems
from cuebench.files import write_atomic
from cuebench.labels import LabelSpace, coverage_hint, label_map, map_file
from cuebench.observers.base import LoadOptions, Observer, ObserverBase
from cuebench.observers.input_size import accepts
from cuebench.observers.origin import Origin, Preparation
from cuebench.observers.preprocess import Preprocess
from cuebench.protocols.base import Protocol, View
from cuebench.responses.device import Device
from cuebench.responses.engines import LOCAL
from cuebench.responses.events import Event, OnEvent
from cuebench.responses.job import Job, JobRecord, Question, failure_of
from cuebench.responses.store import Key, ShardFolder
from cuebench.runs.expense import expense_notices
from cuebench.runs.experiments import Experiment, read_experiments
from cuebench.runs.joining import NOT_APPLICABLE
from cuebench.runs.loading import OBJECT, Loaded, LoadedObservers, load_observers, tell_failures
from cuebench.runs.people import people_for
from cuebench.runs.record import RunOptions, RunRecord
from cuebench.runs.shown import NotApplicable, is_of_another, needed, stimuli_for
from cuebench.runs.summary_code import summary_code
from cuebench.source_code import UNREADABLE, notices_of_code
from cuebench.stimuli.cue_files import read_labels
from cuebench.stimuli.manifest import duplicates, to_bytes
from cuebench.stimuli.on_device import marked
from cuebench.stimuli.overview import size_notice
from cuebench.types import Capability, Failure, Stimulus, StimulusSet

NOT_ASKED = "not asked"
"""How a notice begins of recordings of another experiment."""
OTHER_RECORDING = "other_recording"

# ----------------------------------------------------------------------------------------------------- the plan


@dataclass
class Plan:
    """The jobs of a run, and everything that could not become one."""

    jobs: list[Job] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    skipped: list[Failure] = field(default_factory=list)
    manifests: dict[str, StimulusSet] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    device: Device = field(default_factory=Device)
    recipe_versions: dict[str, dict[str, str]] = field(default_factory=dict)
    """Manifest → versions of the cues that make its pictures in the stream."""
    origins: dict[Job, Origin] = field(default_factory=dict)
    """Job → how its observer can be made again elsewhere; not for observers that were passed as objects."""
    experiments: list[Experiment] = field(default_factory=list)
    load_options: LoadOptions = field(default_factory=LoadOptions)

    @property
    def baselines(self) -> int:
        """Most random initialisations of a network that a protocol asks for."""
        return max((e.baselines for e in self.experiments), default=0)

    def write_manifests(self, folder: Path) -> None:
        """Write what is shown to a folder, with users' label maps: scoring never needs the data root again."""
        for name, stimuli in self.manifests.items():
            targets = stimuli.targets
            if file := map_file(targets):
                data = file.path.read_bytes()
                targets = f"labels-{hashlib.sha256(data).hexdigest()[:12]}{file.path.suffix}"
                write_atomic(folder / targets, data)
                targets += file.subset
            write_atomic(folder / name, to_bytes(replace(stimuli, targets=targets)))

    def describe_stimuli(self) -> dict[str, dict[str, Any]]:
        """Return manifest → what the record says of it."""
        return {
            name: {
                "set": stimuli.name,
                "count": len(stimuli),
                "expected": stimuli.expected,
                "partial": list(stimuli.partial),
                "fingerprint": stimuli.fingerprint,
                "root": stimuli.root,
            }
            for name, stimuli in self.manifests.items()
        }


def plan_run(
    wanted: Sequence[str | Observer],
    names: Sequence[str],
    data_root: str | Path | None,
    folder: Path,
    options: RunOptions,
    tell: OnEvent,
    before: RunRecord | None = None,
) -> Plan:
    """Settle what every observer is shown; all that does not fit is a failure with its reason.

    ``before`` is the record of what the folder holds.

    Raises
    ------
    UserError
        Where no observer is left to be measured, with every reason.
    """
    chosen = {name: getattr(options, name) for name in ("limit", "seed", "settings", "background")}
    experiments = read_experiments(names, data_root, **chosen)
    loaded = _load(wanted, experiments, folder, options, tell)
    plan = Plan(device=loaded.device, experiments=experiments, load_options=loaded.options)
    for experiment in experiments:
        _add_experiment(plan, experiment, loaded.observers, loaded, folder, options)
        if experiment.protocol.people is None:
            continue
        shown = frozenset(s.id for job in plan.jobs if job.protocol == experiment.protocol.name for s in job.stimuli)
        people = people_for(experiment.protocol, data_root, loaded, shown, plan.notices, before)
        _add_experiment(plan, replace(experiment, shown_to_others=shown), people, loaded, folder, options)
    _sort_out_skipped(plan, before)
    plan.notices += [size_notice(e.stimuli, e.protocol.name) for e in experiments if e.stimuli is not None]
    plan.notices = list(filter(None, [*plan.notices, *expense_notices(plan.jobs, options)]))
    if not plan.failures and not loaded.failures:
        plan.notices += _idle_notices(plan.jobs, options)
    if not plan.jobs and plan.failures:
        reasons = [f.reason for f in plan.failures] + [f"{f.observer}: {f.reason}" for f in loaded.failures]
        raise UserError("\n".join(dict.fromkeys(reasons)), str(plan.failures[0].details.get("hint", "")))
    return _told(plan, loaded, tell)


def _idle_notices(jobs: Sequence[Job], options: RunOptions) -> list[str]:
    """Return a line for what was chosen for networks and their pictures, where nobody looks at pixels."""
    if any(job.geometry for job in jobs):
        return []
    chosen = {
        f"device {options.device}": options.device not in ("auto", "cpu"),
        f"precision {options.precision}": options.precision != "float32",
        "compile": options.compile,
        f"cues on {options.cues_on}": options.cues_on != "cpu",
        f"cache {options.cache}": options.cache is not None,
        f"background {options.background}": options.background != RunOptions().background,
        f"batch size {options.batch_size}": options.batch_size != 0,
        f"allow unreadable {options.allow_unreadable:g}": options.allow_unreadable != RunOptions().allow_unreadable,
    }
    idle = [name for name, differs in chosen.items() if differs]
    return [f"no observer looks at pixels: no effect of {', '.join(idle)}"] if idle else []


def plan_more(plan: Plan, loaded: LoadedObservers, folder: Path, options: RunOptions, tell: OnEvent) -> Plan:
    """Settle what further networks are shown in a run that has begun; one that does not fit is a failure."""
    more = Plan(experiments=plan.experiments, load_options=plan.load_options)  # and with all of the device
    more.recipe_versions = plan.recipe_versions
    for experiment in plan.experiments:
        _add_experiment(more, experiment, loaded.observers, loaded, folder, options)
    _sort_out_skipped(more)
    more.notices += expense_notices(more.jobs, options)
    return _told(more, loaded, tell)


def _asked_anew(jobs: Sequence[Job]) -> list[str]:
    """Return a line for each observer that cannot be hashed: every run asks it for everything."""
    notes = (f"{job.record.observer}: {note}" for job in jobs for note in job.record.notes if UNREADABLE in note)
    return list(dict.fromkeys(notes))


def _told(plan: Plan, loaded: LoadedObservers, tell: OnEvent) -> Plan:
    tell_failures(plan.failures, tell)
    plan.notices += [*notices_of_code(), *_asked_anew(plan.jobs)]
    for notice in plan.notices:
        tell(Event("notice", notice))
    plan.failures = [*loaded.failures, *plan.failures]
    return plan


def _add_experiment(
    plan: Plan,
    experiment: Experiment,
    observers: Sequence[Loaded],
    loaded: LoadedObservers,
    folder: Path,
    options: RunOptions,
) -> None:
    """Add the jobs of some observers on one protocol; who does not fit is skipped or has failed."""
    name = experiment.protocol.name
    for entry in observers:
        if entry.baseline_of and entry.baseline >= experiment.baselines:
            continue
        try:
            _add_jobs(plan, experiment, entry, loaded, folder, options)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a broken model is a row of the result
            failure = failure_of(entry.observer.name, error, name)
            if isinstance(error, UserError) and is_of_another(experiment, entry.observer):
                what, *problems = failure.reason.split("\n  - ")  # one for each name
                number = len(entry.observer.stimulus_names())
                many = f"none of the {number:,} recorded names is of {name}: {''.join(problems[:1])}"
                reason = many if problems else what
                details = {**failure.details, OTHER_RECORDING: True}
                plan.skipped.append(replace(failure, reason=reason, details=details))
            elif isinstance(error, NotApplicable):
                plan.skipped.append(failure)
            else:
                plan.failures.append(failure)


def _load(
    wanted: Sequence[str | Observer],
    experiments: Sequence[Experiment],
    folder: Path,
    options: RunOptions,
    tell: OnEvent,
) -> LoadedObservers:
    """Load the observers; where none can be loaded there is nothing to go on with."""
    if not wanted:
        raise UserError("no observer was named", "for example: -o lite:efficientnet_lite0 -o ideal:shape")
    load_options = LoadOptions(
        device=options.device,
        precision=options.precision,
        offline=options.offline,
        seed=options.seed,
        targets=tuple(dict.fromkeys(name for experiment in experiments for name in experiment.classes)),
        journal=str(folder / "journal"),
    )
    loaded = load_observers(wanted, load_options, max(e.baselines for e in experiments), tell)
    if not loaded.observers and loaded.failures:
        problem = next((e.problem for e in experiments if e.problem is not None), None)
        if problem is not None and not load_options.targets:
            raise problem  # an ideal observer cannot choose where there is nothing to choose among
        reasons = "\n".join(f"{f.observer}: {f.reason}" for f in loaded.failures)
        raise UserError(reasons, str(loaded.failures[0].details["hint"]))
    return loaded


def _sort_out_skipped(plan: Plan, before: RunRecord | None = None) -> None:
    """An observer that cannot answer one protocol is skipped there; one that can answer none has failed."""
    asked = [(job.observer.name, job.protocol) for job in plan.jobs]
    if asked and before is not None:
        asked += [(job.observer, job.protocol) for job in before.jobs]
    measured: dict[str, dict[str, None]] = {}
    for observer, protocol in asked:
        measured.setdefault(observer, {})[protocol] = None
    never = [s for s in plan.skipped if s.observer not in measured]
    plan.failures += [replace(s, details={**s.details, NOT_APPLICABLE: True}) for s in never]
    plan.skipped = [s for s in plan.skipped if s.observer in measured]
    recordings: dict[str, list[Failure]] = {}
    others: dict[str, list[str]] = {}
    for one in plan.skipped:
        if one.details.get(OTHER_RECORDING):
            recordings.setdefault(", ".join(measured[one.observer]), []).append(one)
        else:
            others.setdefault(one.protocol, []).append(one.observer)
    for theirs, of_them in recordings.items():
        who, what = (list(dict.fromkeys(names)) for names in zip(*((s.observer, s.protocol) for s in of_them)))
        some = f"{', '.join(who[:3])}{' …' * (len(who) > 3)}"
        plan.notices.append(f"{NOT_ASKED}: recordings are of {theirs} ({some}), not of {', '.join(what)}")
    plan.notices += [f"not applicable to {protocol}: {', '.join(names)}" for protocol, names in others.items()]


# ----------------------------------------------------------------------------------------------------- jobs


def _add_jobs(
    plan: Plan, experiment: Experiment, entry: Loaded, loaded: LoadedObservers, folder: Path, options: RunOptions
) -> None:
    """Add the jobs of one observer on one protocol, one for each view."""
    protocol = experiment.protocol
    preparation = _preparation(experiment)
    origin = Origin(entry.spec, entry.observer.name, loaded.options, preparation)
    prepared, *others = (preparation.prepare(observer) for observer in (entry.observer, *entry.others))
    if prepared is not entry.observer:  # the weights of an observer that stays as it is are hashed once
        entry = replace(entry, observer=prepared, others=tuple(others))
    stimuli = stimuli_for(experiment, entry.observer, loaded, plan.notices)
    asked = questions(protocol, entry.observer, stimuli)
    if entry.observer.charges and options.engine != LOCAL:
        raise UserError(f"{entry.observer.name} is asked by one process", "leave --engine out: it would only wait")
    manifest = f"{protocol.name}-{stimuli.fingerprint[:12]}.parquet"
    if manifest not in plan.manifests:
        repeated = duplicates([s.id for s in stimuli])
        if repeated:
            raise all_problems(f"stimulus set {stimuli.name!r}", [f"duplicated id {i!r}" for i in repeated])
        plan.manifests[manifest] = stimuli
    if manifest not in plan.recipe_versions:
        plan.recipe_versions[manifest] = recipe_versions((s.recipe, not s.path) for s in stimuli if s.recipe)
    jobs = []
    for question in asked:
        recipes: Mapping[str, str] = plan.recipe_versions[manifest]
        if options.cues_on == "device" and recipes and question.preprocess:
            question, recipes = _with_cues_on_device(question, recipes, plan)
        key = _key(question, entry, protocol, options, recipes)
        shards = ShardFolder(options.responses_in(folder), entry.observer.name, key)
        record = _record(question, entry, manifest, shards)
        parts = {f.name: getattr(question, f.name) for f in fields(Question)}
        jobs.append(Job(**parts, shards=shards, record=record, others=entry.others))
    plan.jobs += jobs
    if not entry.spec.startswith(OBJECT):
        plan.origins |= dict.fromkeys(jobs, origin)


def _with_cues_on_device(
    question: Question, recipes: Mapping[str, str], plan: Plan
) -> tuple[Question, Mapping[str, str]]:
    """Let the observer's device make the end of recipes, and say so in the key; where it cannot, say why."""
    assert question.preprocess is not None
    kind = question.observer.makes_cues
    made = marked(recipes, question.stimuli, question.preprocess.geometry, kind) if kind else recipes
    if made != recipes:
        return replace(question, cues_on=kind), made
    why = "no cue of its recipes can be made there" if kind else "it is no torch network on a GPU"
    notice = f"cues of {question.protocol} for {question.observer.name} are made where files are decoded: {why}"
    if notice not in plan.notices:
        plan.notices.append(notice)
    return question, recipes


def questions(protocol: Protocol, observer: ObserverBase, stimuli: StimulusSet) -> list[Question]:
    """Return what an observer is asked: one question for each view of the protocol.

    Raises
    ------
    NotApplicable
        The observer gives none of the kinds of answer that the protocol can use, or knows none of the stimuli.
    UserError
        Its classes do not cover those of the stimuli, or it contradicts what is known of them.
    """
    needs = needed(protocol, observer)
    try:
        observer.check_shown(stimuli.stimuli)
    except UserError as error:  # a recording of another experiment
        raise NotApplicable(error.message, error.hint) from None
    observer.check_known(stimuli.stimuli)
    if observer.labels is not None:
        check_labels(protocol, observer.name, observer.labels, stimuli)
    reduce = protocol.reduce(stimuli, observer.labels) if protocol.reduce else None
    asked = []
    for view in protocol.views if observer.preprocess else protocol.views[:1]:
        preprocess, note = _prepared_images(view, observer, needs)
        question = Question(
            protocol=protocol.name,
            view=view.name,
            observer=observer,
            stimuli=stimuli,
            needs=needs,
            preprocess=preprocess,
            reduce=reduce,
            note=note,
        )
        hash(question.geometry)  # a preprocessing that makes no sense fails here, not in the middle of the run
        asked.append(question)
    return asked


def _prepared_images(view: View, observer: ObserverBase, needs: Sequence[Capability]) -> tuple[Preprocess | None, str]:
    """Return how a view prepares images for an observer, and what its rows must say about that."""
    preprocess = observer.preprocess
    if preprocess is None:
        return None, ""
    changed = view.prepared(preprocess)
    if view.fixed is None or accepts(observer, changed.hw, needs):
        return changed, ""
    (height, width), fixed = changed.hw, view.fixed(preprocess)
    accepted = f"{preprocess.hw[1]}×{preprocess.hw[0]} pixels"
    return fixed, f"accepts {accepted} only, not the {width}×{height} of the {view.name} view: {fixed}"


def check_labels(protocol: Protocol, observer: str, labels: LabelSpace, stimuli: StimulusSet) -> None:
    """Raise where the classes of an observer do not cover those of the stimuli."""
    problems = protocol.check(labels, stimuli) if protocol.check else []
    if problems:
        shown = "; ".join(problems[:5]) + (f"; and {len(problems) - 5} more" if len(problems) > 5 else "")
        hint = coverage_hint(protocol.name, stimuli.root)
        known = _known(labels, stimuli)
        unknown = _shown(stimuli) - set(known)
        left = any(unknown.isdisjoint((s.label, s.shape, s.texture)) for s in stimuli)
        if "classes" in protocol.options and left and 1 < len(known) <= MOST_LISTED:
            hint += f"; or show only the classes that it knows: --set {protocol.name}.classes={','.join(known)}"
        elif why := protocol.without.get("classes"):
            hint += f"; {why}"
        names = f"{', '.join(labels.names[:4])}{' …' * (len(labels) > 4)}"
        what = f"with its label space {labels.name!r} of {len(labels):,} classes ({names})"
        raise UserError(f"{observer} cannot answer {protocol.name!r} {what}: {shown}", hint)


MOST_LISTED = 100
"""Classes that a hint lists; with more of them the list is no help."""


def _known(labels: LabelSpace, stimuli: StimulusSet) -> list[str]:
    """Return the classes of the stimuli that an observer can answer."""
    if stimuli.targets:
        return sorted(_shown(stimuli).intersection(label_map(stimuli.targets).resolve(labels).covered))
    return sorted({s.label for s in stimuli if s.label and labels.find(s.label) is not None})


def _shown(stimuli: StimulusSet) -> set[str]:
    """Return the classes that stimuli show; other words of a field (a texture that was taken away) are none."""
    named = {c for s in stimuli for c in (s.label, s.shape, s.texture) if c}
    return named & set(label_map(stimuli.targets).targets) if stimuli.targets else named


def _preparation(experiment: Experiment) -> Preparation:
    """Return what observers are told of a protocol: the classes of its stimuli, their masks, the layers to read."""
    stimuli = experiment.stimuli
    masked = stimuli is not None and any(s.mask for s in stimuli)
    return Preparation(
        experiment.classes,
        stimuli.targets if stimuli else "",
        experiment.protocol.answers_in,
        experiment.layers,
        partial(_true_mask, stimuli.root) if stimuli is not None and masked else None,
    )


def _true_mask(root: str, stimulus: Stimulus) -> Array:
    return read_labels(Path(root) / stimulus.mask)


def _key(question: Question, entry: Loaded, protocol: Protocol, options: RunOptions, recipes: Mapping[str, str]) -> Key:
    """Return everything that decides the stored answers; ``recipes``: cue → version of its code."""
    needs: tuple[str, ...] = question.needs
    if protocol.reduce is not None:  # a summary is stored: its version, its code and the label map decide it too
        targets = question.stimuli.targets
        file = map_file(targets)
        content = targets.encode() if file is None else file.path.read_bytes() + file.subset.encode()
        made_with = f"{hashlib.sha256(content).hexdigest()[:16]} {summary_code(protocol.reduce)}"
        needs = (*needs, f"summary of {protocol.name}/{protocol.version} {made_with}")
    if protocol.stored:  # of which images depends on the whole set
        needs = (*needs, f"{protocol.stored} of {question.stimuli.fingerprint[:16]}")
    space, preprocess = entry.observer.labels, question.preprocess
    return Key(
        weights=entry.fingerprint,
        preprocess={**preprocess.describe(), **({"recipes": recipes} if recipes else {})} if preprocess else None,
        labels=hashlib.sha256(repr((space.names, space.ids)).encode()).hexdigest() if space else "",
        adapter=entry.adapter,
        precision=(entry.observer.precision or options.precision) if preprocess else "",
        needs=needs,
    )


def _record(question: Question, entry: Loaded, manifest: str, shards: ShardFolder) -> JobRecord:
    space = entry.observer.labels
    notes = (question.note, f"cues made on {question.cues_on}" if question.cues_on else "")
    return JobRecord(
        protocol=question.protocol,
        view=question.view,
        observer=entry.observer.name,
        kind=entry.observer.kind,
        spec=entry.spec,
        needs=question.needs,
        stimuli=manifest,
        folder=shards.folder.name,
        labels=None if space is None else {"name": space.name, "names": list(space.names), "ids": list(space.ids)},
        key=shards.key.parts(),
        preprocess=str(question.preprocess) if question.preprocess else "",
        notes=(*entry.observer.notes, *filter(None, notes)),
        baseline_of=entry.baseline_of,
        brought=entry.brought,
    )
