"""What a run has to do, settled before anything is spent: every observer checked against every protocol."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from cuebench import labels as label_files
from cuebench.errors import UserError, all_problems
from cuebench.files import write_atomic
from cuebench.labels import LabelSpace
from cuebench.observers.base import Choosing, Observer, Recorded
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.layers import could_serve
from cuebench.protocols.base import Protocol, View
from cuebench.responses.device import Device
from cuebench.responses.events import Event, OnEvent
from cuebench.responses.job import Job, failed
from cuebench.responses.store import Key, ShardFolder
from cuebench.runs.loading import Loaded, LoadedAll, tell_failures
from cuebench.runs.record import JobRecord
from cuebench.runs.sources import Source, classes_of, read_stimuli
from cuebench.stimuli.manifest import duplicates, write_manifest
from cuebench.types import Capability, Failure, StimulusSet

if TYPE_CHECKING:
    from cuebench.runs.options import RunOptions

__all__ = ["NotApplicable", "Plan", "Source", "plan_run", "read_stimuli"]


class NotApplicable(UserError):
    """An observer that by its nature cannot answer a protocol: people have no logits."""


@dataclass
class Plan:
    """Jobs for the engine and the record of them."""

    jobs: list[Job] = field(default_factory=list)
    records: list[JobRecord] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    skipped: list[Failure] = field(default_factory=list)
    manifests: dict[str, StimulusSet] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    device: Device = field(default_factory=Device)

    def write_manifests(self, place: Path) -> None:
        """Write what is shown to a folder, with users' label maps: scoring never needs the data root again."""
        for name, stimuli in self.manifests.items():
            write_manifest(replace(stimuli, targets=_keep_label_map(stimuli.targets, place)), place / name)

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


def plan_run(sources: Sequence[Source], loaded: LoadedAll, folder: Path, settings: RunOptions, tell: OnEvent) -> Plan:
    """Settle what every observer is shown; all that does not fit is a failure with its reason."""
    plan = Plan(device=loaded.device)
    for source in sources:
        for loaded_one in loaded.observers:
            if loaded_one.baseline_of and not source.protocol.baselines:
                continue
            try:
                _add_jobs(plan, source, _told(loaded_one, source), loaded, folder, settings)
            except NotApplicable as error:
                plan.skipped.append(failed(loaded_one.observer.name, error, source.protocol.name))
            except Exception as error:  # noqa: BLE001 - a broken model is a row of the result, the others go on
                plan.failures.append(failed(loaded_one.observer.name, error, source.protocol.name))
    _settle(plan)
    if not plan.jobs and plan.failures:
        reasons = dict.fromkeys(
            [f.reason for f in plan.failures] + [f"{f.observer}: {f.reason}" for f in loaded.failures]
        )
        raise UserError("\n".join(reasons), str(plan.failures[0].details.get("hint", "")))
    tell_failures(plan.failures, tell)
    for notice in plan.notices:
        tell(Event("notice", notice))
    plan.failures = [*loaded.failures, *plan.failures]
    return plan


def _settle(plan: Plan) -> None:
    """An observer that cannot answer one protocol is skipped there; one that can answer none has failed."""
    measured = {job.observer.name for job in plan.jobs}
    plan.failures += [s for s in plan.skipped if s.observer not in measured]
    plan.skipped = [s for s in plan.skipped if s.observer in measured]
    for protocol in dict.fromkeys(s.protocol for s in plan.skipped):
        names = [s.observer for s in plan.skipped if s.protocol == protocol]
        plan.notices.append(f"not applicable to {protocol}: {', '.join(names)}")


def _told(one: Loaded, source: Source) -> Loaded:
    """Tell an observer that chooses what this protocol's classes are."""
    if _chooses(one.observer) and classes_of(source):
        targets = source.stimuli.targets if source.stimuli else ""
        members = label_files.label_map(targets) if targets else None
        return replace(one, observer=one.observer.among(classes_of(source), members, source.protocol.answers_in))
    return one


def _add_jobs(plan: Plan, source: Source, one: Loaded, loaded: LoadedAll, folder: Path, settings: RunOptions) -> None:
    stimuli = _stimuli_for(source, one.observer, loaded)
    needs = _needs(source.protocol, one.observer)
    _check_shown(one.observer, stimuli)
    _check_labels(source.protocol, one.observer, stimuli)
    manifest = _manifest(plan, source.protocol, stimuli)
    jobs, records = [], []
    for view in source.protocol.views if one.observer.preprocess else source.protocol.views[:1]:
        preprocess = view.change(one.observer.preprocess) if one.observer.preprocess else None
        key = _key(one, (*needs, *_summary(source.protocol, stimuli)), preprocess, settings)
        shards = ShardFolder(folder / "responses", one.observer.name, key)
        reduce = source.protocol.reduce(stimuli, one.observer.labels) if source.protocol.reduce else None
        job = Job(source.protocol.name, one.observer, stimuli, needs, shards, preprocess, view.name, reduce)
        hash(job.geometry)  # a preprocessing that makes no sense fails here, not in the middle of the run
        jobs.append(job)
        records.append(_job_record(source.protocol, one, needs, manifest, shards, preprocess, view))
    plan.jobs += jobs
    plan.records += records


def _chooses(observer: Observer) -> TypeGuard[Choosing]:
    # Not isinstance: until Python 3.12 that reads every attribute of the contract, and one of them hashes the weights.
    return callable(getattr(observer, "among", None))


def _recorded(observer: Observer) -> TypeGuard[Recorded]:
    return callable(getattr(observer, "stimulus_names", None))


def _stimuli_for(source: Source, observer: Observer, loaded: LoadedAll) -> StimulusSet:
    """Return what this observer is shown: its own recording where it has one, else the data root.

    A recording needs no images, and is scored whole even where the data root holds a part of the set.
    """
    derive = source.protocol.stimuli_from_recordings
    if derive is not None and _recorded(observer):
        return _limited_alike(source, derive(observer.stimulus_names()))
    if source.stimuli is not None:
        return source.stimuli
    recorded = [one.observer for one in loaded.observers if _recorded(one.observer)]
    if derive is not None and recorded and observer.preprocess is None:
        names = dict.fromkeys(name for o in recorded for name in o.stimulus_names())
        return source.limited(derive(list(names)))
    assert source.problem is not None
    raise source.problem


def _limited_alike(source: Source, own: StimulusSet) -> StimulusSet:
    """Return a recording, limited as the run is: to what models are shown, else by a draw of its own.

    Two draws from two sets would hardly share an image, and people and models could not be compared.
    """
    if not source.limit or source.stimuli is None:
        return source.limited(own)
    shown = {s.id for s in source.stimuli}
    shared = [s for s in own if s.id in shown]
    return own.only(shared, f"limited to {len(shared):,} stimuli of the run") if shared else source.limited(own)


def _check_shown(observer: Observer, stimuli: StimulusSet) -> None:
    """A recording of another experiment is no failure of this one, unless it belongs to none of the run."""
    check = getattr(observer, "check_shown", None)
    if check is None:
        return
    try:
        check(stimuli.stimuli)
    except UserError as error:
        raise NotApplicable(error.message, error.hint) from None


def _needs(protocol: Protocol, observer: Observer) -> tuple[Capability, ...]:
    for alternative in protocol.needs:
        if set(alternative) <= observer.capabilities:
            return alternative
    wanted = " or ".join(" and ".join(a) for a in protocol.needs)
    have = ", ".join(sorted(observer.capabilities)) or "nothing"
    serve = could_serve(observer) if protocol.needs == (("features",),) else ""
    raise NotApplicable(f"{observer.name} gives {have}; protocol {protocol.name!r} needs {wanted}{serve}")


def _check_labels(protocol: Protocol, observer: Observer, stimuli: StimulusSet) -> None:
    if protocol.check is None or observer.labels is None:
        return
    problems = protocol.check(observer.labels, stimuli)
    if problems:
        shown = "; ".join(problems[:5]) + (f"; and {len(problems) - 5} more" if len(problems) > 5 else "")
        raise UserError(
            f"{observer.name} cannot answer {protocol.name!r} with its label space {observer.labels.name!r}: {shown}",
            "give the observer's own classes with labels=FILE, or the stimuli a label map (labels.json)",
        )


def _manifest(plan: Plan, protocol: Protocol, stimuli: StimulusSet) -> str:
    """Note a set for the record; return the name of its file."""
    name = f"{protocol.name}-{stimuli.fingerprint[:12]}.parquet"
    if name not in plan.manifests:
        _check_ids(stimuli)
        plan.manifests[name] = stimuli
    return name


def _check_ids(stimuli: StimulusSet) -> None:
    """Refuse a set in which two stimuli have the same id, before anybody is asked about it."""
    repeated = duplicates([s.id for s in stimuli])
    if repeated:
        raise all_problems(f"stimulus set {stimuli.name!r}", [f"duplicated id {i!r}" for i in repeated])


def _keep_label_map(targets: str, place: Path) -> str:
    """Copy a user's label map into the run folder, so that scoring never needs the data root again."""
    if not Path(targets).suffix:
        return targets
    data = Path(targets).read_bytes()
    kept = place / f"labels-{hashlib.sha256(data).hexdigest()[:12]}{Path(targets).suffix}"
    write_atomic(kept, data)
    return kept.name


def _summary(protocol: Protocol, stimuli: StimulusSet) -> tuple[str, ...]:
    """Return what else decides the stored columns where a protocol keeps a summary: its version and the label map."""
    if protocol.reduce is None:
        return ()
    targets = Path(stimuli.targets).read_bytes() if Path(stimuli.targets).suffix else stimuli.targets.encode()
    return (f"summary of {protocol.name}/{protocol.version} {hashlib.sha256(targets).hexdigest()[:16]}",)


def _key(one: Loaded, needs: tuple[str, ...], preprocess: Preprocess | None, settings: RunOptions) -> Key:
    return Key(
        weights=one.fingerprint,
        preprocess=preprocess.describe() if preprocess else None,
        labels=_labels_digest(one.observer.labels),
        adapter=one.adapter,
        precision=str(getattr(one.observer, "precision", settings.precision)) if preprocess else "",
        needs=needs,
    )


def _labels_digest(space: LabelSpace | None) -> str:
    return hashlib.sha256(repr((space.names, space.ids)).encode()).hexdigest() if space else ""


def _job_record(
    protocol: Protocol,
    one: Loaded,
    needs: tuple[Capability, ...],
    manifest: str,
    shards: ShardFolder,
    preprocess: Preprocess | None,
    view: View,
) -> JobRecord:
    space = one.observer.labels
    return JobRecord(
        protocol=protocol.name,
        view=view.name,
        observer=one.observer.name,
        kind=one.observer.kind,
        spec=one.spec,
        needs=needs,
        stimuli=manifest,
        folder=shards.folder.name,
        labels=None if space is None else {"name": space.name, "names": list(space.names), "ids": list(space.ids)},
        key=shards.key.parts(),
        preprocess=str(preprocess) if preprocess else "",
        notes=tuple(getattr(one.observer, "notes", ())),
        baseline_of=one.baseline_of,
    )
