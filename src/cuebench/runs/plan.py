"""What a run has to do, settled before anything is spent: stimuli read, observers loaded, jobs checked."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cuebench import labels as label_files
from cuebench.errors import UserError
from cuebench.files import write_atomic
from cuebench.labels import LabelSpace
from cuebench.observers.base import Choosing, LoadOptions, Observer, Recorded, Spec
from cuebench.observers.baselines import random_initialisations
from cuebench.observers.layers import could_serve, reading_layers
from cuebench.observers.preprocess import Preprocess
from cuebench.protocols.base import Protocol, View
from cuebench.registry import adapters, protocols
from cuebench.responses.collect import Job
from cuebench.responses.events import Event, OnEvent
from cuebench.responses.store import Key, ShardFolder
from cuebench.runs.record import JobRecord
from cuebench.stimuli.manifest import write_manifest
from cuebench.types import Capability, Failure, StimulusSet

if TYPE_CHECKING:
    from cuebench.runs.evaluate import RunOptions


class NotApplicable(UserError):
    """An observer that by its nature cannot answer a protocol: people have no logits."""


@dataclass(frozen=True)
class Source:
    """A protocol and its stimuli, or why there are none."""

    protocol: Protocol
    stimuli: StimulusSet | None
    problem: UserError | None
    limit: int
    seed: int

    def limited(self, stimuli: StimulusSet) -> StimulusSet:
        """Draw images by the seed until there are ``limit`` stimuli; the set then says that it is partial.

        All pictures of an image are drawn together: a corrupted one is worth nothing without the clean one.
        """
        if not self.limit or self.limit >= len(stimuli):
            return stimuli
        pictures = Counter(s.image for s in stimuli)
        order = np.random.default_rng(self.seed).permutation(list(pictures))
        enough = int(np.searchsorted(np.cumsum([pictures[name] for name in order]), self.limit)) + 1
        chosen = set(order[:enough].tolist())
        kept = [s for s in stimuli if s.image in chosen]
        whole = f" ({enough:,} of {len(pictures):,} images)" if len(pictures) < len(stimuli) else ""
        return stimuli.only(kept, f"limited to {len(kept):,} of {len(stimuli):,} stimuli{whole}")


@dataclass(frozen=True)
class Loaded:
    """An observer and how it was asked for."""

    observer: Observer
    spec: str
    adapter: str
    baseline_of: str = ""


@dataclass(frozen=True)
class LoadedAll:
    """Observers that could be loaded, and those that could not."""

    observers: list[Loaded]
    failures: list[Failure]


@dataclass
class Plan:
    """Jobs for the engine and the record of them."""

    jobs: list[Job] = field(default_factory=list)
    records: list[JobRecord] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    skipped: list[Failure] = field(default_factory=list)
    stimuli: dict[str, dict[str, Any]] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)


def read_stimuli(
    names: Sequence[str],
    data_root: str | Path | None,
    *,
    limit: int,
    seed: int,
    settings: Mapping[str, str] | None = None,
) -> list[Source]:
    """Read the stimuli of every protocol. Missing data is an error only if an observer turns out to need it."""
    if not names:
        raise UserError("no protocol was named", f"known: {', '.join(protocols)}")
    root = data_root or os.environ.get("CUEBENCH_DATA")
    _check_settings(names, settings or {})
    chosen = [_configured(protocols.get(name), settings or {}) for name in dict.fromkeys(names)]
    return [_source(protocol, root, limit, seed) for protocol in chosen]


def _check_settings(names: Sequence[str], settings: Mapping[str, str]) -> None:
    """Refuse an option of a protocol that is not run: it would be silently without effect."""
    for key in settings:
        if key.partition(".")[0] not in names:
            raise UserError(
                f"--set {key}: no protocol of this run is called {key.partition('.')[0]!r}", "PROTOCOL.OPTION"
            )


def _configured(protocol: Protocol, settings: Mapping[str, str]) -> Protocol:
    return protocol.configure(settings) if protocol.configure else protocol


def _source(protocol: Protocol, root: str | Path | None, limit: int, seed: int) -> Source:
    if root is None and protocol.standalone is not None:
        source = Source(protocol, None, None, limit, seed)
        try:
            return replace(source, stimuli=source.limited(protocol.standalone()))
        except UserError as error:
            return replace(source, problem=error)
    if root is None:
        problem = UserError(
            f"protocol {protocol.name!r} needs its stimuli",
            f"say where they are with --data-root DIR, or get them: cuebench fetch {protocol.name} --data-root DIR",
        )
        return Source(protocol, None, problem, limit, seed)
    try:
        source = Source(protocol, None, None, limit, seed)
        stimuli = source.limited(protocol.read(Path(root).expanduser()))
    except UserError as error:
        return Source(protocol, None, error, limit, seed)
    return Source(protocol, stimuli, None, limit, seed)


def load_observers(
    wanted: Sequence[str | Observer], sources: Sequence[Source], settings: RunOptions, tell: OnEvent
) -> LoadedAll:
    """Load every observer; one that cannot be loaded is a failure of the run's result, not its end."""
    if not wanted:
        raise UserError("no observer was named", "for example: -o lite:efficientnet_lite0 -o ideal:shape")
    options = LoadOptions(
        device=settings.device,
        precision=settings.precision,
        offline=settings.offline,
        seed=settings.seed,
        targets=tuple(dict.fromkeys(name for source in sources for name in _classes(source))),
    )
    found: list[Loaded] = []
    failures: list[Failure] = []
    for one in wanted:
        try:
            found.extend(_with_layers(_load(one, options), settings.features))
        except UserError as error:
            name = one if isinstance(one, str) else one.name
            failures.append(Failure(name, error.message, "", {"hint": error.hint}))
    if not found and failures:
        # With a single mistyped observer there is nothing to go on with: say so at once, as an error.
        first = failures[0]
        raise UserError("\n".join(f"{f.observer}: {f.reason}" for f in failures), str(first.details.get("hint", "")))
    _tell_failures(failures, tell)
    if any(source.protocol.baselines for source in sources):
        found += _baselines(found, options, settings.baselines, tell)
    return LoadedAll(_unique(found), failures)


def _with_layers(found: list[Loaded], layers: str) -> list[Loaded]:
    """Ask the observers for further layers; one that has none to offer says so in its own error."""
    wanted = [name.strip() for name in layers.split(",") if name.strip()]
    return [replace(one, observer=reading_layers(one.observer, wanted)) for one in found] if wanted else found


def _baselines(found: list[Loaded], options: LoadOptions, number: int, tell: OnEvent) -> list[Loaded]:
    """Load random initialisations of every network; what has none is named in a notice."""
    made: list[Loaded] = []
    for one in found if number else []:
        if one.observer.kind != "model":
            continue
        try:
            specs = random_initialisations(one.spec, one.observer.name, number)
            made += [replace(b, baseline_of=one.observer.name) for spec in specs for b in _load(spec, options)]
        except UserError as error:
            tell(Event("notice", f"no baselines of {one.observer.name}: {error.message}"))
    return made


def _load(one: str | Observer, options: LoadOptions) -> list[Loaded]:
    if not isinstance(one, str):
        return [Loaded(one, f"object:{one.name}", "wrap/1")]
    from cuebench.observers.load import load

    scheme = Spec.parse(one).scheme
    observers = load(one, options)
    version = f"{scheme}/{adapters.get(scheme).version}"
    return [Loaded(observer, one, version) for observer in observers]


def _unique(found: list[Loaded]) -> list[Loaded]:
    seen: dict[str, str] = {}
    for one in found:
        if one.observer.name in seen:
            raise UserError(
                f"two observers are called {one.observer.name!r} (from {seen[one.observer.name]} and {one.spec})",
                "name one of them once, or give a wrapped model another name=",
            )
        seen[one.observer.name] = one.spec
    return found


def _classes(source: Source) -> tuple[str, ...]:
    """Return the classes that the stimuli of one protocol can be answered with, in a fixed order."""
    if source.stimuli is None:
        return source.protocol.targets
    if source.stimuli.targets:
        return label_files.label_map(source.stimuli.targets).names
    return tuple(dict.fromkeys(c for s in source.stimuli for c in (s.label, s.shape, s.texture) if c))


def plan_run(sources: Sequence[Source], loaded: LoadedAll, folder: Path, settings: RunOptions, tell: OnEvent) -> Plan:
    """Settle what every observer is shown; all that does not fit is a failure with its reason."""
    plan = Plan()
    for source in sources:
        for loaded_one in loaded.observers:
            if loaded_one.baseline_of and not source.protocol.baselines:
                continue
            one = _told(loaded_one, source)
            try:
                _add_jobs(plan, source, one, loaded, folder, settings)
            except UserError as error:
                failure = Failure(one.observer.name, error.message, source.protocol.name, {"hint": error.hint})
                (plan.skipped if isinstance(error, NotApplicable) else plan.failures).append(failure)
    _settle(plan)
    if not plan.jobs and plan.failures:
        first = plan.failures[0]
        raise UserError(first.reason, str(first.details.get("hint", "")))
    _tell_failures(plan.failures, tell)
    for notice in plan.notices:
        tell(Event("notice", notice))
    plan.failures = [*loaded.failures, *plan.failures]
    return plan


def _tell_failures(failures: Sequence[Failure], tell: OnEvent) -> None:
    for f in failures:
        fields = {"observer": f.observer, "hint": f.details.get("hint", "")}
        tell(Event("failed", f"{f.observer}: {f.reason}", fields=fields))


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
    if isinstance(one.observer, Choosing) and _classes(source):
        targets = source.stimuli.targets if source.stimuli else ""
        members = label_files.label_map(targets) if targets else None
        return replace(one, observer=one.observer.among(_classes(source), members, source.protocol.answers_in))
    return one


def _add_jobs(plan: Plan, source: Source, one: Loaded, loaded: LoadedAll, folder: Path, settings: RunOptions) -> None:
    stimuli = _stimuli_for(source, one.observer, loaded)
    needs = _needs(source.protocol, one.observer)
    _check_labels(source.protocol, one.observer, stimuli)
    manifest = _write_manifest(plan, source.protocol, stimuli, folder)
    views = source.protocol.views if one.observer.preprocess else source.protocol.views[:1]
    for view in views:
        preprocess = view.change(one.observer.preprocess) if one.observer.preprocess else None
        key = _key(one, (*needs, *_summary(source.protocol, stimuli)), preprocess, settings)
        shards = ShardFolder(folder / "responses", one.observer.name, key)
        reduce = source.protocol.reduce(stimuli, one.observer.labels) if source.protocol.reduce else None
        plan.jobs.append(Job(source.protocol.name, one.observer, stimuli, needs, shards, preprocess, view.name, reduce))
        plan.records.append(_job_record(source.protocol, one, needs, manifest, shards, preprocess, view))


def _stimuli_for(source: Source, observer: Observer, loaded: LoadedAll) -> StimulusSet:
    """Return what this observer is shown: its own recording where it has one, else the data root.

    A recording needs no images, and is scored whole even where the data root holds a part of the set.
    """
    derive = source.protocol.stimuli_from_recordings
    if derive is not None and isinstance(observer, Recorded):
        return source.limited(derive(observer.stimulus_names()))
    if source.stimuli is not None:
        return source.stimuli
    recorded = [one.observer for one in loaded.observers if isinstance(one.observer, Recorded)]
    if derive is not None and recorded and observer.preprocess is None:
        names = dict.fromkeys(name for o in recorded for name in o.stimulus_names())
        return source.limited(derive(list(names)))
    assert source.problem is not None
    raise source.problem


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


def _write_manifest(plan: Plan, protocol: Protocol, stimuli: StimulusSet, folder: Path) -> str:
    name = f"{protocol.name}-{stimuli.fingerprint[:12]}.parquet"
    if name not in plan.stimuli:
        place = folder / "stimuli"
        write_manifest(replace(stimuli, targets=_keep_label_map(stimuli.targets, place)), place / name)
        plan.stimuli[name] = {
            "set": stimuli.name,
            "count": len(stimuli),
            "expected": stimuli.expected,
            "partial": list(stimuli.partial),
            "fingerprint": stimuli.fingerprint,
            "root": stimuli.root,
        }
    return name


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
        weights=one.observer.fingerprint,
        preprocess=preprocess.describe() if preprocess else None,
        labels=_labels_digest(one.observer.labels),
        adapter=one.adapter,
        precision=settings.precision if preprocess else "",
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
