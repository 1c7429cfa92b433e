"""What a run would cost: time, memory and disk from a short probe, for one machine and for several.

The run is planned as ``evaluate`` plans it; answers that are stored already cost nothing. Then some files are decoded
by as many processes as the run would start, every observer answers batches of the size that it would be shown, and what
it answered is written to a temporary folder and scored. Nothing is written to the run folder.

The model of the run is plain. On a GPU, decoding and answering go on at the same time: the slower one counts. In the
main memory both need the same cores: their times add up. Writing goes on beside both. Several machines divide the
stored files among them (``cuebench run --shard i/n``); each of them starts by itself, one of them scores.
"""

from __future__ import annotations

import mmap
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle, groupby, islice
from pathlib import Path
from typing import Any, cast

import numpy as np

from cuebench.arrays import Pixels
from cuebench.errors import UserError
from cuebench.observers.base import Observer
from cuebench.observers.preprocess import Geometry
from cuebench.options import Option, parse
from cuebench.processes import ProcessPool
from cuebench.protocols.base import Protocol, ScoreOptions
from cuebench.reading import user_path
from cuebench.registry import protocols as registered
from cuebench.responses.collect import MOST_SHARDS, PIXELS_IN_MEMORY, WRITERS
from cuebench.responses.device import fitting_batch
from cuebench.responses.events import Event, OnEvent, ignore
from cuebench.responses.job import Job, Pieces, failure_of
from cuebench.responses.pictures import (
    DecodePool,
    Picture,
    Task,
    available_cores,
    image_bytes,
    pictures,
)
from cuebench.responses.pixel_cache import PixelCache
from cuebench.responses.store import SHARD, Columns, ShardFolder, batches
from cuebench.responses.table import Responses
from cuebench.runs.cost import ObserverCost, RunCost, advice, on_nodes
from cuebench.runs.evaluate import protocol_names
from cuebench.runs.expense import expense_of
from cuebench.runs.joining import OTHER_FOLDER, check_conditions, settings_of
from cuebench.runs.loading import listed_observers
from cuebench.runs.plan import Plan, plan_run
from cuebench.runs.record import DamagedRecord, RunOptions, RunRecord
from cuebench.runs.starting import start_decoders
from cuebench.stimuli.hashing import hashing_in
from cuebench.types import Failure, Stimulus, StimulusSet

_HOUR, _MACHINES = "price of a machine for an hour", "numbers of machines"
NUMBERS = {"price": Option(0.0, _HOUR, low=0), "nodes": Option((1,), _MACHINES, item=int, low=1, high=1_000_000)}
"""What a plan is asked about."""
FILES = 64
"""Files that are decoded at least, where there are so many."""
FILES_OF_WORKER = 16
"""Files that every worker decodes at least: fewer would show how it starts, not how fast it is."""
SECONDS, SECONDS_IN_ALL = 1.0, 30.0
"""How long one observer is asked, and all of them together."""
SECONDS_OF_REQUEST, BYTES_OF_ANSWER = 2.0, 300
"""What a request to a chat model is taken to last, and its answer to take on disk: it is not asked to find out."""
SCORED = 2000
"""Stimuli whose scoring is timed; beyond that the time is continued in a straight line."""


def estimate_cost(
    observers: str | Observer | Iterable[str | Observer],
    protocols: str | Protocol | Iterable[str | Protocol],
    *,
    data_root: str | Path | None = None,
    out: str | Path | None = None,
    nodes: Sequence[int] = (1,),
    price: float | None = None,
    on_event: OnEvent | None = None,
    **options: Any,
) -> RunCost:
    """Say what ``evaluate`` with the same arguments would cost, from a probe of some seconds; nothing is measured.

    Parameters
    ----------
    observers, protocols, data_root
        As in ``evaluate``.
    out : path, optional
        The run folder: answers that it holds cost nothing. It is not written to.
    nodes : sequence of int
        Numbers of machines like this one.
    price : float, optional
        Of one machine for an hour, in any currency.
    on_event : callable, optional
        Told of progress.
    **options
        Fields of ``RunOptions``: ``device``, ``precision``, ``batch_size``, ``workers``, ``limit``, ``settings`` …

    Returns
    -------
    RunCost
        Times, memory and disk.

    Raises
    ------
    UserError
        Where the run could not begin.
    """
    if options.get("cache"):
        options["cache"] = str(user_path(options["cache"]).absolute())
    numbers = parse(NUMBERS, {"price": 0 if price is None else price, "nodes": nodes}, "a plan")
    price, nodes = price and numbers["price"], numbers["nodes"]
    if not nodes:
        raise UserError("no numbers of machines", "for example: --nodes 1,4,16")
    tell, names = on_event or ignore, protocol_names(protocols)
    root = user_path(given).absolute() if (given := data_root or os.environ.get("CUEBENCH_DATA")) else None
    with tempfile.TemporaryDirectory(prefix="cuebench-plan-") as temporary:
        folder = user_path(out).absolute() if out else Path(temporary, "run")
        wanted = listed_observers(observers, None if options.get("fresh") else folder)
        chosen = _as_in_folder(RunOptions(**options), folder, names)
        start = time.perf_counter()
        with start_decoders(wanted, chosen, lambda text: tell(Event("notice", text))) as pool:
            with hashing_in(pool if pool.workers else None):
                plan = plan_run(wanted, names, root, folder, chosen, tell)
            probe = _Probe(plan, chosen, Path(temporary, "answers"), tell, pool.workers)
            probe.decode(pool)
        probe.ask()
        return probe.cost(probe.started - start, nodes, price)


def _as_in_folder(options: RunOptions, folder: Path, names: Sequence[str]) -> RunOptions:
    """Return the options with the size of shards that a run in this folder would have; refuse what it would refuse."""
    before = None
    if (folder / "run.json").is_file() and not options.fresh:
        with suppress(DamagedRecord):  # a run writes it anew
            before = RunRecord.read(folder)
    options = replace(options, shard_size=options.shard_size or (before.options.shard_size if before else SHARD))
    if before is not None:
        check_conditions(before, options, names, str(folder), OTHER_FOLDER)
    return options


@dataclass
class _Set:
    """The jobs of one stimulus set, what each has to answer, and what was found by decoding some of it."""

    stimuli: StimulusSet
    jobs: list[Job]
    missing: dict[Job, list[Sequence[Stimulus]]]
    decode_each: float = 0.0
    """Seconds for a picture, with all workers at work."""
    shown: list[Stimulus] = field(default_factory=list)
    pixels: dict[Geometry, Pixels] = field(default_factory=dict)


@dataclass
class _Probe:
    """The measurements, and what follows from them."""

    plan: Plan
    options: RunOptions
    folder: Path
    tell: OnEvent
    workers: int
    """Processes that decode."""
    started: float = 0.0
    """When everything that comes before the first answer was done."""
    sets: list[_Set] = field(default_factory=list)
    costs: dict[Job, ObserverCost] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    write_seconds: float = 0.0
    score_seconds: float | None = 0.0
    worker_bytes: int = 0
    own_bytes: int = 0

    def decode(self, pool: DecodePool) -> None:
        """Look what is stored, and decode a little of the rest."""
        self.failures = list(self.plan.failures)
        for _, group in groupby(sorted(self.plan.jobs, key=_set_of), key=_set_of):
            jobs = list(group)
            shards = [s for _, s in batches(jobs[0].stimuli.stimuli, self.options.shard_size)]
            missing = {job: [s for s in shards if not self._is_stored(job, s)] for job in jobs}
            self.sets.append(_Set(jobs[0].stimuli, jobs, missing))
        for of_set in self.sets:
            self._decode(of_set, pool)
        self.started = self.started or time.perf_counter()
        self.worker_bytes = _worker_memory(pool) if self.workers else 0

    def _is_stored(self, job: Job, shard: Sequence[Stimulus]) -> bool:
        return not self.options.fresh and job.shards.stored(shard) is not None

    # ------------------------------------------------------------------------------------------ decoding

    def _decode(self, of_set: _Set, pool: DecodePool) -> None:
        """Decode some of the files that have to be shown, spread over the set."""
        jobs = [job for job in of_set.jobs if job.geometry is not None and of_set.missing[job]]
        geometries = tuple(dict.fromkeys(job.geometry for job in jobs if job.geometry is not None))
        if not geometries:
            return
        root = of_set.stimuli.root
        files = _by_file(_union(of_set.missing[job] for job in jobs))
        count = max(FILES, FILES_OF_WORKER * pool.workers, min(self.options.shard_size, len(files)))
        chosen = [files[i] for i in np.unique(np.linspace(0, len(files) - 1, count).astype(int))]
        tasks = [Task(root, tuple(stimuli), geometries) for stimuli in chosen]
        _decoded(pool, tasks[:1] * max(1, pool.workers))  # every worker imports what it needs
        self.started = self.started or time.perf_counter()
        start = time.perf_counter()
        made = _decoded(pool, tasks)
        seconds = time.perf_counter() - start
        busy = min(pool.workers, len(tasks)) / pool.workers if pool.workers else 1
        of_set.decode_each = busy * seconds / sum(len(task.stimuli) for task in tasks)
        pairs = [pair for task, made_of in zip(tasks, made) for pair in zip(task.stimuli, made_of)]
        usable = [(s, p) for s, p in pairs if not p.unreadable and not any(isinstance(x, str) for x in p.by_geometry)]
        of_set.shown = [stimulus for stimulus, _ in usable]
        for number, geometry in enumerate(geometries):
            images = [cast(Pixels, picture.by_geometry[number]) for _, picture in usable]
            of_set.pixels[geometry] = np.stack(images) if images else np.zeros((0, *geometry.size, 3), np.uint8)

    def _to_decode(self) -> tuple[int, float, int]:
        """Return how many pictures are decoded, in how many seconds, and how many bytes the cache gets."""
        pictures, seconds, new_bytes = 0, 0.0, 0
        for of_set in self.sets:
            for group in self.plan.device.groups(of_set.jobs):
                waiting = [job for job in group if job.geometry is not None and of_set.missing[job]]
                for shard in _union([shard] for job in waiting for shard in of_set.missing[job]):
                    wanted = {g: job for job in waiting if (g := job.geometry) is not None}
                    fresh = {g for g, job in wanted.items() if not self._is_kept(shard, job)}
                    if fresh:
                        pictures += len(shard)
                        seconds += len(shard) * of_set.decode_each * len(fresh) / len(wanted)
                        new_bytes += len(shard) * sum(map(image_bytes, fresh)) if self.options.cache else 0
        return pictures, seconds, min(new_bytes, int(self.options.cache_size * 2**30))

    def _is_kept(self, shard: Sequence[Stimulus], job: Job) -> bool:
        """Tell whether the cache holds these pixels."""
        if not self.options.cache or not Path(self.options.cache).is_dir():
            return False
        cache = PixelCache(Path(self.options.cache), int(self.options.cache_size * 2**30))
        return cache.path(*job.decides_pixels(shard)).is_file()

    # ------------------------------------------------------------------------------------------ answering

    def ask(self) -> None:
        """Let every observer answer a little, write what it answered, and score it."""
        waiting = [(of_set, job) for of_set in self.sets for job in of_set.jobs if of_set.missing[job]]
        seconds = min(SECONDS, SECONDS_IN_ALL / max(1, len(waiting)))
        pieces = Pieces(self.options.batch_size)
        scored: set[tuple[str, str]] = set()
        for of_set in self.sets:
            for job in of_set.jobs:
                if not of_set.missing[job]:
                    self.costs[job] = _stored_cost(job)
                    continue
                if job.observer.charges:  # not even a probe: planning spends nothing
                    self.costs[job] = _charged_cost(job, self.options, sum(map(len, of_set.missing[job])))
                    continue
                try:
                    self._ask(of_set, job, pieces, seconds, scored)
                except (Exception, SystemExit) as error:  # noqa: BLE001 - a broken model is a row of the result
                    self.failures.append(failure_of(job.observer.name, error, job.protocol))
                    continue
                self.tell(Event("probe", f"{job.observer.name} answers", fields={"observer": job.observer.name}))
        self.own_bytes = _most_memory()

    def _ask(self, of_set: _Set, job: Job, pieces: Pieces, seconds: float, scored: set[tuple[str, str]]) -> None:
        stimuli = of_set.shown if job.geometry else [s for shard in of_set.missing[job] for s in shard]
        if not stimuli:
            raise UserError(f"none of the stimuli of {of_set.stimuli.name} that were tried could be shown")
        pixels = of_set.pixels[job.geometry] if job.geometry else None
        self.plan.device.admit(job.observer)
        if pixels is not None and not pieces.batch_size and job.observer.name not in pieces:
            pieces[job.observer.name] = fitting_batch(job.observer, partial(job.probe, stimuli[0], pixels[:1]))
        answers = sum(map(len, of_set.missing[job]))
        count = min(pieces.of(job.observer), self.options.shard_size, answers)
        rows = list(islice(cycle(range(len(stimuli))), count))
        batch = [stimuli[i] for i in rows]
        images = None if pixels is None else pixels[rows]
        each, columns = _seconds_each(lambda: job.submit(batch, {}, images, pieces), count, seconds)
        self._write(job, batch, columns, len(of_set.missing[job]))
        stored = len(ShardFolder(self.folder, job.observer.name, job.shards.key).path(batch).read_bytes())
        self.costs[job] = ObserverCost(
            observer=job.observer.name,
            protocol=job.protocol,
            view=job.view,
            answers=answers,
            stored=len(job.stimuli) - answers,
            per_second=1 / each,
            seconds=answers * each,
            batch_size=pieces.of(job.observer) if job.geometry else count,
            disk_bytes=int(stored / count * answers),
        )
        if self.score_seconds is not None:
            self._score(job, columns)

    def _write(self, job: Job, batch: Sequence[Stimulus], columns: Columns, shards: int) -> None:
        """Write the answers to a temporary folder; add the time of all shards of the run."""
        folder = ShardFolder(self.folder, job.observer.name, job.shards.key)
        folder.open()
        start = time.perf_counter()
        folder.write(batch, columns, {})
        self.write_seconds += (time.perf_counter() - start) * shards / WRITERS

    def _score(self, job: Job, columns: Columns) -> None:
        """Time the scoring of so many answers as the observer will have given; these are a few, over and over."""
        protocol: Protocol = registered.get(job.protocol)
        values = settings_of(job.protocol, self.options.settings)
        options = ScoreOptions(self.options.seed, self.options.resamples, values)
        total, times = len(job.stimuli), []
        for size in (min(total, SCORED),) if total <= SCORED else (SCORED // 4, SCORED):
            responses = _repeated(job, columns, size)
            start = time.perf_counter()
            try:
                protocol.score([responses], options)
            except Exception:  # noqa: BLE001 - some protocols need more than a part of the stimuli
                self.score_seconds = None
                return
            times.append((len(responses.stimuli), time.perf_counter() - start))
        (first, early), (last, late) = times[0], times[-1]
        slope = max(0.0, late - early) / (last - first) if last > first else 0.0
        self.score_seconds = (self.score_seconds or 0.0) + late + slope * (total - last)

    # ------------------------------------------------------------------------------------------ the result

    def cost(self, start_seconds: float, nodes: Sequence[int], price: float | None) -> RunCost:
        """Put everything together."""
        observer_costs = [self.costs[job] for of_set in self.sets for job in of_set.jobs if job in self.costs]
        answers = sum(c.answers for c in observer_costs)
        pictures, decode, cache_bytes = self._to_decode()
        forward = sum(c.seconds for c in observer_costs)
        score = 0.0 if not answers else self.score_seconds
        on_gpu = any(job.observer.memory for job in self.plan.jobs)
        # In the main memory networks and decoders need the same cores.
        collecting = max(forward + (0 if on_gpu else decode * self._share_of_cores()), decode, self.write_seconds)
        shards = max([1, *(len(of_set.missing[job]) for of_set in self.sets for job in of_set.jobs)])
        stages = {"start": start_seconds, "decode": decode, "forward": forward, "write": self.write_seconds}
        stages["score"] = score or 0.0
        longest = max(stages, key=lambda stage: stages[stage]) if answers else ""
        return RunCost(
            answers=answers,
            stored=sum(c.stored for c in observer_costs),
            stimuli_to_decode=pictures,
            workers=self.workers,
            decode_per_second=pictures / decode if decode else 0.0,
            start_seconds=start_seconds,
            decode_seconds=decode,
            forward_seconds=forward,
            write_seconds=self.write_seconds,
            score_seconds=score,
            seconds=start_seconds + collecting + (score or 0.0),
            disk_bytes=sum(c.disk_bytes for c in observer_costs),
            cache_bytes=cache_bytes,
            memory_bytes=self._memory() if answers else self.own_bytes,
            device_bytes=_device_memory(),
            observers=tuple(observer_costs),
            nodes=tuple(on_nodes(n, start_seconds, collecting, score or 0.0, shards, price) for n in nodes),
            dominated_by=longest,
            advice=self._advice(longest, on_gpu),
            failures=tuple(self.failures),
        )

    def _advice(self, longest: str, on_gpu: bool) -> str:
        """Say what would help; nothing on this machine helps where answers come from elsewhere."""
        slowest = max(self.costs, key=lambda job: self.costs[job].seconds, default=None)
        if longest == "forward" and slowest is not None and slowest.observer.charges:
            return (
                f"more requests at once: &concurrency={4 * slowest.observer.concurrency}, as far as the endpoint allows"
            )
        return advice(longest, self.options, self.workers, on_gpu)

    def _share_of_cores(self) -> float:
        cores = available_cores()
        return min(1.0, max(1, self.workers) / cores)

    def _memory(self) -> int:
        """Return the most main memory: this process, the decoders, and the pixels between them."""
        pixels = 0
        for of_set in self.sets:
            shard = sum(map(image_bytes, of_set.pixels)) * self.options.shard_size
            kept = max(2, min(MOST_SHARDS, PIXELS_IN_MEMORY // max(shard, 1)))
            most = max((len(shards) for shards in of_set.missing.values()), default=0)
            pixels = max(pixels, min(kept, most) * shard)
        return self.own_bytes + self.workers * self.worker_bytes + pixels


# ------------------------------------------------------------------------------------------------- small pieces


def _set_of(job: Job) -> tuple[str, str]:
    return job.stimuli.root, job.stimuli.fingerprint


def _union(of_jobs: Iterable[Iterable[Sequence[Stimulus]]]) -> list[Sequence[Stimulus]]:
    """Return the shards that any job misses, each once, in order."""
    return list({shard[0].id: shard for shards in of_jobs for shard in shards}.values())


def _by_file(shards: Iterable[Sequence[Stimulus]]) -> list[list[Stimulus]]:
    """Return neighbours that are made from one file together: it is decoded once for them."""
    stimuli = (stimulus for shard in shards for stimulus in shard)
    return [list(group) for _, group in groupby(stimuli, key=lambda s: (s.path or s.id, s.sha256))]


def _decoded(pool: ProcessPool, tasks: Sequence[Task]) -> list[list[Picture]]:
    futures = [pool.submit(pictures, task) for task in tasks]
    return [future.result() for future in futures]


def _seconds_each(submit: Callable[[], Callable[[], Columns]], count: int, seconds: float) -> tuple[float, Columns]:
    """Return the seconds of one answer, two batches being under way at once as in a run, and some answers."""
    start = time.perf_counter()
    columns = submit()()
    first = time.perf_counter() - start
    if first > 5 * seconds:  # warming up is little of that
        return first / count, columns
    times: list[float] = []
    while sum(times) < seconds and len(times) < 100:
        start = time.perf_counter()
        for wait in [submit(), submit()]:
            wait()
        times.append(time.perf_counter() - start)
    return statistics.median(times) / (2 * count), columns


def _repeated(job: Job, columns: Columns, size: int) -> Responses:
    """Return answers to about so many stimuli, all versions of an image together: the given ones over and over."""
    stimuli = job.stimuli
    if size < len(stimuli):
        images = list(dict.fromkeys(s.image for s in stimuli))
        step = max(1, round(len(stimuli) / size))
        chosen = set(images[::step])
        stimuli = stimuli.only([s for s in stimuli if s.image in chosen])
    rows = np.arange(len(stimuli)) % len(columns["stimulus"])
    return Responses(
        observer=job.observer.name,
        kind=job.observer.kind,
        stimuli=stimuli,
        stimulus=np.arange(len(stimuli), dtype=np.intp),
        columns={name: values[rows] for name, values in columns.items() if name != "stimulus"},
        labels=job.observer.labels,
        view=job.view,
    )


def _stored_cost(job: Job) -> ObserverCost:
    return ObserverCost(job.observer.name, job.protocol, job.view, 0, len(job.stimuli), 0.0, 0.0, 0, 0)


def _charged_cost(job: Job, options: RunOptions, answers: int) -> ObserverCost:
    """Return the cost of an observer that is asked elsewhere, from what requests usually take."""
    expense = expense_of(job, options)
    seconds = expense.requests * SECONDS_OF_REQUEST / max(1, job.observer.concurrency)
    return ObserverCost(
        observer=job.observer.name,
        protocol=job.protocol,
        view=job.view,
        answers=answers,
        stored=len(job.stimuli) - answers,
        per_second=answers / seconds if seconds else 0.0,
        seconds=seconds,
        batch_size=job.observer.concurrency,
        disk_bytes=BYTES_OF_ANSWER * answers,
        requests=expense.requests,
        cost=expense.cost,
    )


def _most_memory() -> int:
    """Return the most bytes that this process had in memory."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else 1024 * used


def _worker_memory(pool: ProcessPool) -> int:
    """Return the bytes that a worker has for itself; 0 where the system does not tell."""
    try:
        pages = pool.submit(Path.read_text, Path("/proc/self/statm")).result().split()
    except OSError:
        return 0
    return (int(pages[1]) - int(pages[2])) * mmap.PAGESIZE


def _device_memory() -> int:
    """Return the most bytes that torch has taken of all GPUs."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return 0
    return sum(int(torch.cuda.max_memory_reserved(i)) for i in range(torch.cuda.device_count()))
