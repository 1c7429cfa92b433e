"""Many networks in one run: some are loaded at once, and the next ones while these answer.

A run of a hundred checkpoints neither waits until the last one is loaded and hashed nor holds all of them in memory.
Networks of one *wave* share the decoded pictures. With an observer that is a user's own code everything is loaded
first: what such code does to the process (a default type, a generator, a hook) could meet a network being loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event as Flag

from cuebench.errors import UserError
from cuebench.observers.base import LoadOptions, Observer
from cuebench.observers.torch.placement import loaded_aside
from cuebench.registry import BUILT_IN, adapters
from cuebench.responses.engines import LOCAL
from cuebench.responses.events import Event, OnEvent
from cuebench.responses.job import JobRecord, failure_of
from cuebench.runs.joining import NOT_APPLICABLE, OTHER_FOLDER, check_observers, in_order, on_each, sort_out_failures
from cuebench.runs.loading import LoadedObservers, load_observers, tell_failures
from cuebench.runs.plan import Plan, plan_more
from cuebench.runs.record import RunOptions, RunRecord

NETWORKS = 8
"""Networks of a wave: so many share the decoding of a picture that more would gain little."""
AHEAD = frozenset({"timm", "torchvision", "lite", "checkpoint", "smp"})
"""Sources of networks that can be loaded while others answer. Those of the other sources are in the first wave."""


def cut(wanted: Sequence[str | Observer], options: RunOptions) -> list[list[str | Observer]]:
    """Return the observers that a run names in waves, each in the order of the run."""
    networks = [o for o in wanted if isinstance(o, str) and o.partition(":")[0] in AHEAD]
    repeated = len(set(networks)) < len(networks)  # is refused when it has been loaded
    if len(networks) <= NETWORKS or options.engine != LOCAL or repeated or any(map(_is_foreign, wanted)):
        return [list(wanted)]
    later = [list[str | Observer](networks[i : i + NETWORKS]) for i in range(NETWORKS, len(networks), NETWORKS)]
    in_later = {o for wave in later for o in wave}
    return [[o for o in wanted if o not in in_later], *later]


def _is_foreign(observer: str | Observer) -> bool:
    """Tell whether an observer is a user's own code."""
    if not isinstance(observer, str) or "python:" in observer:
        return True
    source = observer.partition(":")[0]
    return source in adapters.names() and adapters.origin(source) != BUILT_IN


@dataclass
class Wave:
    """Networks that were loaded while others answered, and what there was to say about it."""

    size: int
    loaded: LoadedObservers
    events: list[Event]


@contextmanager
def loading_ahead(
    waves: Sequence[Sequence[str | Observer]], options: LoadOptions, baselines: int, taken: Mapping[str, str]
) -> Iterator[Callable[[], Wave | None]]:
    """Load waves of networks one ahead of the caller, in a thread.

    Parameters
    ----------
    waves : sequence of sequences of observers
        Those after the first.
    options : LoadOptions
        As for the first.
    baselines : int
        Random initialisations of every network.
    taken : mapping of str to str
        Names that observers of the run have already, and their specs.

    Yields
    ------
    callable
        Returns the next wave, None where there is none left, and begins to load the one after it. A network goes to its
        device when it is first asked.
    """
    stopped = Flag()
    left, names = list(waves), dict(taken)

    def load(wave: Sequence[str | Observer]) -> Wave:
        events: list[Event] = []
        with loaded_aside():
            loaded = load_observers(wave, options, baselines, events.append, names, stopped.is_set)
            for entry in loaded.observers:
                names[entry.observer.name] = entry.spec
                _ = entry.fingerprint  # hashes the weights
        return Wave(len(wave), loaded, events)

    with ThreadPoolExecutor(1, "cuebench-loader") as thread:
        coming: list[Future[Wave]] = []

        def begin() -> None:
            if left:
                coming.append(thread.submit(load, left.pop(0)))

        def next_wave() -> Wave | None:
            if not coming:
                return None
            wave = coming.pop(0).result()
            begin()
            return wave

        begin()
        try:
            yield next_wave
        finally:
            stopped.set()  # after an error no more than the network that is being loaded is waited for


def add_wave(
    plan: Plan,
    wave: Wave,
    record: RunRecord,
    before: Sequence[JobRecord],
    folder: Path,
    tell: OnEvent,
) -> Plan:
    """Plan what the next networks are asked, and add it to the record.

    Parameters
    ----------
    plan : Plan
        Of the networks that have answered.
    wave : Wave
        The next ones.
    record : RunRecord
        Of the run; changed.
    before : sequence of JobRecord
        What the folder held before the run.
    folder : path
        Of the run.
    tell : callable
        Told what cannot be measured.
    """
    for event in wave.events:
        tell(event)
    more = plan_more(plan, wave.loaded, folder, record.options, tell)
    kept = list(record.jobs)
    for name in dict.fromkeys(job.observer.name for job in more.jobs):
        added = [job.record for job in more.jobs if job.observer.name == name]
        try:
            check_observers(before, kept, added, str(folder), OTHER_FOLDER)
        except UserError as error:
            more.failures.append(failure_of(name, error))
            tell_failures(more.failures[-1:], tell)
            more.jobs = [job for job in more.jobs if job.observer.name != name]
    record.status = "running"
    found = on_each(more.failures, [experiment.protocol.name for experiment in plan.experiments])
    record.failures += [f for f in found if f.details.get(NOT_APPLICABLE)]
    record.skipped = [*record.skipped, *more.skipped]
    record.notices = list(dict.fromkeys([*record.notices, *more.notices]))
    record.stimuli |= more.describe_stimuli()
    arguments = record.arguments
    record.jobs = in_order([*kept, *(j.record for j in more.jobs)], arguments["observers"], arguments["protocols"])
    sort_out_failures(record)  # those of earlier commands, too
    record.failures += [f for f in found if not f.details.get(NOT_APPLICABLE)]
    return more


def answers_each(plan: Plan) -> int:
    """Return how many answers a network of the run gives, about."""
    answers = [len(job.stimuli) for job in plan.jobs if job.geometry is not None]
    observers = {job.observer.name for job in plan.jobs if job.geometry is not None}
    return sum(answers) // max(1, len(observers))
