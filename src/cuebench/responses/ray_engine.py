"""The engine on a Ray cluster: the same stages, on the nodes that there are.

    Ray Data: shards that are missing ──▶ tasks: decode ──▶ actors: answer, write ──▶ reports to this process

A row is a shard (``ray_worker.py``). Ray Data keeps the stages in step, so that pixels are decoded only as fast as they
are shown, and decodes again what was lost with a node. An actor that is lost is not waited for: its node may never come
back. The stream ends, and begins anew with what is still missing on the nodes that are left; what was stored stays.
There are as many actors as GPUs, one on each; without GPUs one for each node, several on a node with many cores.

Actors on the CPU ask Ray for no core: they share those of their node with decoding, as the local engine does, and a
cluster that shrinks to one core cannot be filled by actors that wait for pixels which nobody decodes.
"""

from __future__ import annotations

import inspect
import logging
import os
import pickle
import socket
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from cuebench.errors import MissingExtra, UserError
from cuebench.observers.origin import Origin
from cuebench.responses.job import Job, Progress
from cuebench.responses.ray_worker import Answering, Order, Report, Setup, Work, decoded, report_of, row
from cuebench.types import Failure, Stimulus

if TYPE_CHECKING:
    from cuebench.responses.collect import Stream

CORES_OF_AN_ACTOR = 8
"""Cores for each actor of observers that are no networks of torch."""
FRUITLESS = 3
"""How often the stream may break off in a row without anything stored."""
TIMEOUT = 10.0
"""Seconds for the head of a cluster to answer."""
ONE_ARENA = {"MALLOC_ARENA_MAX": "1"}
"""For actors on CPUs. glibc gives threads other than the first their memory in pieces of 64 MiB; a larger tensor would
be taken from the system and given back in every forward pass, a third of its time (``keep_freed_memory``)."""
_AT_ONCE = 2
"""Shards that an actor is at work with: one is shown, the one before is written."""


class Shape(NamedTuple):
    """How the actors are spread: nodes (one entry for each actor), and what each gets."""

    nodes: list[str]
    gpus: int
    threads: int


@dataclass(frozen=True)
class RayEngine:
    """Answers on a Ray cluster.

    Parameters
    ----------
    address : str
        ``HOST:PORT`` of its head, or ``auto``; empty: a cluster of this machine is started, and ended with the run. A
        process that is connected to a cluster already uses that one.
    origins : mapping of Job to Origin
        How the observers can be made again on the nodes; those that are not in here are sent as they are.
    device : str
        As the run says; ``cpu`` leaves GPUs alone.
    """

    address: str
    origins: Mapping[Job, Origin]
    device: str = "auto"

    def serve(self, streams: Sequence[Stream]) -> None:
        """Show everything that is missing, until nothing is."""
        missing = _Missing(streams)
        orders = {number: order for number, job in enumerate(missing.jobs) if (order := self._order(job, missing))}
        if not missing.work():
            return
        try:
            with connected(self.address) as ray:
                self._until_done(ray, missing, orders)
        finally:
            missing.record_failures()

    def _until_done(self, ray: Any, missing: _Missing, orders: Mapping[int, Order]) -> None:
        fruitless = 0
        while work := missing.work():
            before = missing.reported
            try:
                for report in self._stream(ray, work, orders):
                    missing.settle(report)
            except ray.exceptions.RayError as error:
                fruitless = 0 if missing.reported > before else fruitless + 1
                _lost(error, fruitless, missing.progress)

    def _stream(self, ray: Any, work: Sequence[Work], orders: Mapping[int, Order]) -> Iterator[Report]:
        """Yield what becomes of the shards, in whatever order they are done."""
        shape = _shape(ray, self.device, _threads_here())
        pool = ray.data.ActorPoolStrategy(
            size=min(len(shape.nodes), len(work)),
            max_tasks_in_flight_per_actor=2 * _AT_ONCE,
            max_concurrent_calls_per_actor=_AT_ONCE,
            enable_true_multi_threading=True,
        )
        rows = ray.data.from_items([row(shard) for shard in work], override_num_blocks=len(work))
        pixels = rows.map_batches(decoded, batch_size=None, batch_format="pyarrow", num_cpus=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            reports = pixels.map_batches(
                Answering,
                batch_size=None,
                batch_format="pyarrow",
                compute=pool,
                fn_constructor_args=(Setup(orders, os.getcwd(), shape.threads),),
                num_cpus=0,
                num_gpus=shape.gpus,
                **({} if shape.gpus else {"runtime_env": {"env_vars": ONE_ARENA}}),
                **_placed(rows, shape.nodes),
            )
        for answered in reports.iter_rows():
            yield report_of(answered)

    def _order(self, job: Job, missing: _Missing) -> Order | None:
        """Return a job as the nodes get it; one that cannot be sent is a failure of its observer."""
        origin, pickled = self.origins.get(job), b""
        if origin is not None and self.device.startswith("cuda"):  # an actor sees the one GPU that it was given
            origin = replace(origin, options=replace(origin.options, device="cuda"))
        if origin is None:
            try:
                pickled = _pickled(job)
            except UserError as error:
                missing.stream_of(job).drop(job, error)
                return None
        stream = missing.stream_of(job)
        return Order(
            protocol=job.protocol,
            view=job.view,
            observer=job.observer.name,
            needs=job.needs,
            preprocess=job.preprocess,
            reduce=job.reduce,
            shards=job.shards,
            record=job.record,
            batch_size=stream.shared.pieces.of(job.observer),
            fingerprint=job.shards.key.weights,
            origin=origin,
            pickled=pickled,
            cues_on=job.cues_on,
        )


class _Missing:
    """What is still to be shown, and what has been reported."""

    def __init__(self, streams: Sequence[Stream]) -> None:
        self.streams = streams
        self.jobs = [job for stream in streams for job in stream.jobs]
        self.numbers = {job: number for number, job in enumerate(self.jobs)}
        self.reported = 0
        self.progress = streams[0].shared.progress if streams else Progress(lambda event: None)
        self._failed: dict[int, tuple[int, Failure]] = {}
        self._shards: dict[tuple[int, int], Sequence[Stimulus]] = {}
        for number, stream in enumerate(streams):
            for start, stimuli in stream.shards():
                self._shards[number, start] = stimuli
                for job in stream.jobs:
                    if start not in stream.missing[job]:
                        stream.advance(job, len(stimuli))

    def stream_of(self, job: Job) -> Stream:
        """Return the stream of a job."""
        return next(stream for stream in self.streams if job in stream.missing)

    def work(self) -> list[Work]:
        """Return the shards that any job still waits for, in order."""
        waiting = []
        for (number, start), stimuli in self._shards.items():
            stream = self.streams[number]
            jobs = [job for job in stream.jobs if start in stream.missing[job]]
            if jobs:
                geometries = tuple(dict.fromkeys(g for job in jobs if (g := job.geometry)))
                numbers = tuple(self.numbers[job] for job in jobs)
                waiting.append(Work(start, stream.stimuli.root, tuple(stimuli), numbers, geometries, number))
        return waiting

    def settle(self, report: Report) -> None:
        """Take a report into account.

        Raises
        ------
        UserError
            Where the run must end: too much is unreadable, or a node does not see the files.
        """
        if report.fatal is not None:
            raise report.fatal
        stream = self.streams[report.stream]
        shown = self._shards[report.stream, report.start]
        stream.unreadable.add(shown, report.unreadable)
        stream.unreadable.check()
        self.reported += 1
        self.progress.decoded += report.files
        for number, note in report.notes.items():
            stream.note(self.jobs[number], note)
        for name, size in report.batch_sizes.items():
            stream.shared.pieces[name] = size
        for number in report.stored:
            job = self.jobs[number]
            stream.missing[job].discard(report.start)
            if job in stream.jobs:
                stream.advance(job, len(shown))
                self.progress.tell("batch", job.observer.name, observer=job.observer.name)
        for number, failure in report.failed.items():
            self._fail(stream, number, report.start, failure)

    def _fail(self, stream: Stream, number: int, start: int, failure: Failure) -> None:
        """Go on without a job; of several failures the one of the first shard is kept, whichever came first."""
        job = self.jobs[number]
        if job in stream.jobs:
            stream.leave(job)
            text = f"{failure.observer}: {failure.reason}"
            self.progress.tell("failed", text, observer=failure.observer, reason=failure.reason)
        if number not in self._failed or start < self._failed[number][0]:
            self._failed[number] = (start, failure)

    def record_failures(self) -> None:
        """Add the failures to what the run records."""
        self.progress.failures += [failure for _, (_, failure) in sorted(self._failed.items())]


# ------------------------------------------------------------------------------------------------ the cluster


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Give the module ``ray``, connected to a cluster; one that was started here ends with the block.

    Raises
    ------
    MissingExtra
        Ray is not installed.
    UserError
        There is no cluster at that address.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise MissingExtra("--engine ray", "ray", error.name or "ray") from None
    # Ray Data prints its own bars and plans; what users need to know comes as events.
    ray.data.DataContext.get_current().enable_progress_bars = False
    loggers = [logging.getLogger(name) for name in ("ray", "ray.data")]
    levels = [logger.level for logger in loggers]
    ours = not ray.is_initialized()
    try:
        if ours:
            _connect(ray, address)
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        yield ray
    finally:
        if ours:
            ray.shutdown()
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)


def _connect(ray: Any, address: str) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    host, _, port = address.rpartition(":")
    try:
        if port.isdigit():  # Ray itself tries for minutes
            socket.create_connection((host.strip("[]"), int(port)), TIMEOUT).close()
        if address:
            ray.init(address=address, **quiet)
        else:
            ray.init(address="local", include_dashboard=False, **quiet)
    except (OSError, OverflowError, ValueError, RuntimeError) as error:
        if not address:
            raise UserError(f"a Ray cluster cannot be started here: {error}", "ray start --head shows why") from None
        raise UserError(
            f"there is no Ray cluster at {address} that this machine belongs to: {error}",
            f"start one with: ray start --head; let this machine join it with: ray start --address={address}",
        ) from None


def _threads_here() -> int:
    """Return how many threads a network on the CPU uses in this process; 0 where there is none."""
    torch = sys.modules.get("torch")
    return int(torch.get_num_threads()) if torch is not None else 0


def _shape(ray: Any, device: str, threads: int) -> Shape:
    """Return how many actors there are to be, and where.

    Networks use as many threads there as they would here: the last bits of the answers to a batch that is not full
    depend on that.
    """
    alive = [(node["NodeID"], node["Resources"]) for node in ray.nodes() if node["Alive"]]
    if device != "cpu":
        nodes = [name for name, has in alive for _ in range(int(has.get("GPU", 0)))]
        if nodes:
            return Shape(nodes, 1, 0)
    cores = {name: int(has.get("CPU", 0)) for name, has in alive if has.get("CPU", 0) >= 1}
    if not cores:
        raise UserError("the Ray cluster has no node with a core", "look at: ray status")
    each = {name: max(1, count // (threads or CORES_OF_AN_ACTOR)) for name, count in cores.items()}
    return Shape([name for name, actors in each.items() for _ in range(actors)], 0, threads)


def _placed(dataset: Any, nodes: Sequence[str]) -> dict[str, Any]:
    """Return the option that puts one actor after the other on its node, and lets none be restarted by Ray.

    Ray Data has announced the end of this option; without it Ray spreads the actors and restarts those that it loses.
    """
    if "ray_remote_args_fn" not in inspect.signature(dataset.map_batches).parameters:
        return {}
    places = iter(nodes)

    def next_actor() -> dict[str, Any]:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        node = next(places, None)
        # Not soft: Ray then puts both on one node, if it pleases. A node that dies meanwhile is a lost worker.
        where = NodeAffinitySchedulingStrategy(node, soft=False) if node else "SPREAD"
        return {"scheduling_strategy": where, "max_restarts": 0, "max_task_retries": 0}

    return {"ray_remote_args_fn": next_actor}


def _lost(error: Exception, fruitless: int, progress: Progress) -> None:
    """Tell of an actor or a task that was lost; give up where nothing is gained any more."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    cause = next((line for line in lines if "died because" in line), lines[-1] if lines else type(error).__name__)
    if fruitless >= FRUITLESS:
        raise UserError(
            f"the cluster lost its workers {fruitless} times without an answer: {cause}",
            "look at: ray status, and at the logs of the nodes; the same version of cuebench must be installed on each",
        ) from error
    progress.notice(f"a worker of the cluster was lost ({cause}); what it had not stored is asked for again")


def _pickled(job: Job) -> bytes:
    """Return an observer that was passed as an object, packed for the nodes."""
    try:
        from ray import cloudpickle
    except ImportError:
        raise MissingExtra("--engine ray", "ray", "ray") from None
    try:
        packed: bytes = cloudpickle.dumps(job.observer)
        pickle.loads(packed)
    except Exception as error:  # noqa: BLE001 - an object of the user's may raise anything here
        raise UserError(
            f"{job.observer.name} cannot be sent to the nodes of a cluster: {type(error).__name__}: {error}",
            "give it as a spec instead, which every node can load: python:FILE.py:FACTORY",
        ) from None
    return packed
