"""What runs on the nodes of a Ray cluster: decoding in tasks, answering in actors. Started by ``ray_engine.py`` only.

A row is a shard: its stimuli, and the jobs that wait for them. Decoding adds the pixels, answering replaces them by a
report. Answers are written to the store by the actor that has them; they never travel.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import platform
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cuebench._version import __version__
from cuebench.arrays import Pixels
from cuebench.errors import UserError
from cuebench.observers.base import ObserverBase
from cuebench.observers.origin import Origin
from cuebench.observers.preprocess import Geometry, Preprocess
from cuebench.responses.again import first_asked_twice, note_of
from cuebench.responses.device import Device
from cuebench.responses.job import Job, JobRecord, Pieces, failure_of
from cuebench.responses.pictures import BatchPictures, Failed, Filling, files_of, fill, image_bytes
from cuebench.responses.store import Columns, ShardFolder
from cuebench.responses.table import Reduce
from cuebench.types import Capability, Failure, Stimulus, StimulusSet

_OF_A_MODEL = (Exception, SystemExit)
SHARED_FOLDER = (
    "every node must see the same files under the same path: use a shared folder, "
    "or --responses s3://BUCKET/FOLDER for the answers"
)


class NotHere(UserError):
    """A folder of the run that a node does not see: nothing can be stored from there."""


class Work(NamedTuple):
    """A shard that is to be shown to the jobs of these numbers."""

    start: int
    root: str
    stimuli: tuple[Stimulus, ...]
    jobs: tuple[int, ...]
    geometries: tuple[Geometry, ...]
    stream: int = 0


@dataclass(frozen=True)
class Order:
    """A job as the nodes get it.

    Parameters
    ----------
    origin, pickled : Origin or None, bytes
        How its observer is made here: from its spec, or from an object that was sent.
    fingerprint : str
        That of its observer where the run was started; another one here means other weights.
    """

    protocol: str
    view: str
    observer: str
    needs: tuple[Capability, ...]
    preprocess: Preprocess | None
    reduce: Reduce | None
    shards: ShardFolder
    record: JobRecord
    batch_size: int
    fingerprint: str
    origin: Origin | None = None
    pickled: bytes = b""
    cues_on: str = ""


@dataclass(frozen=True)
class Setup:
    """What every actor is told.

    Parameters
    ----------
    orders : mapping of int to Order
        The jobs, by their numbers.
    folder : str
        Current folder where the run was started: files of users may be named relative to it.
    threads : int
        How many threads a network on the CPU uses where the run was started; 0: there is none.
    version : str
        Of cuebench where the run was started.
    """

    orders: Mapping[int, Order]
    folder: str
    threads: int = 0
    version: str = __version__


@dataclass
class Report:
    """What became of a shard.

    Parameters
    ----------
    stream, start : int
        Which one.
    unreadable : mapping of int to str
        Position → reason for what cannot be shown.
    stored : list of int
        Numbers of the jobs whose answers are stored.
    failed : mapping of int to Failure
        Number of a job → why its observer failed.
    notes : mapping of int to str
        Number of a job → what asking twice has shown.
    batch_sizes : mapping of str to int
        Observer → how many stimuli it was shown at once.
    files : int
        How many were decoded.
    fatal : UserError or None
        What ends the run: a file that is not on this node.
    """

    stream: int
    start: int
    unreadable: dict[int, str] = field(default_factory=dict)
    stored: list[int] = field(default_factory=list)
    failed: dict[int, Failure] = field(default_factory=dict)
    notes: dict[int, str] = field(default_factory=dict)
    batch_sizes: dict[str, int] = field(default_factory=dict)
    files: int = 0
    fatal: UserError | None = None


def row(work: Work) -> dict[str, bytes]:
    """Return a row of the dataset that Ray streams."""
    return {"work": pickle.dumps(work, pickle.HIGHEST_PROTOCOL)}


def report_of(row: Mapping[str, Any]) -> Report:
    """Return what an actor said in a row."""
    report: Report = pickle.loads(row["report"])
    return report


# ------------------------------------------------------------------------------------------------ decoding


def decoded(table: pa.Table) -> pa.Table:
    """Add the pixels to a shard: all geometries, one after the other, in one piece of memory."""
    work: Work = pickle.loads(table.column("work")[0].as_py())
    sizes = [len(work.stimuli) * image_bytes(geometry) for geometry in work.geometries]
    memory = np.empty(sum(sizes), np.uint8)
    failed = {}
    if sizes:
        places = tuple(np.split(memory, np.cumsum(sizes)[:-1]))
        failed = fill(Filling(work.root, files_of(work.stimuli), work.geometries, places))
        here = platform.node()
        failed = {
            position: replace(failure, unreadable=f"{failure.unreadable} (on node {here})")
            if failure.transient
            else failure
            for position, failure in failed.items()
        }
    offsets = pa.py_buffer(np.array([0, len(memory)], np.int64))
    pixels = pa.LargeBinaryArray.from_buffers(pa.large_binary(), 1, [None, offsets, pa.py_buffer(memory)])
    columns = {"work": table.column("work"), "failed": [pickle.dumps(failed)], "pixels": pixels}
    return pa.table(columns)


def _places(table: pa.Table, work: Work) -> tuple[Pixels, ...]:
    """Return the memory of each geometry, without a copy; nobody writes to it, though numpy would allow it."""
    column = table.column("pixels")
    array = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    first, last = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + 2].tolist()
    if first == last:
        return tuple(np.empty(0, np.uint8) for _ in work.geometries)
    address = array.buffers()[2].address + first
    # Ray's memory is read-only for numpy, and torch warns of that for every batch.
    memory = np.frombuffer((ctypes.c_uint8 * (last - first)).from_address(address), np.uint8)
    sizes = [len(work.stimuli) * image_bytes(geometry) for geometry in work.geometries]
    return tuple(np.split(memory, np.cumsum(sizes)[:-1]))


# ------------------------------------------------------------------------------------------------ answering


class Answering:
    """An actor: makes each observer once, shows it the shards that come, and writes what it answers.

    Two calls may be at work at once: while the answers to one shard are checked and written, the next is shown.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._jobs: dict[int, Job] = {}
        self._loaded: dict[str, list[ObserverBase]] = {}
        self._failed: dict[int, int] = {}
        """Number of a job → start of the first shard that its observer failed at."""
        self._pieces = Pieces()
        self._device = Device()
        self._showing = threading.Lock()
        self._here = threading.local()
        with suppress(OSError):  # what is missing is said when it is needed
            os.chdir(setup.folder)

    def __call__(self, table: pa.Table) -> pa.Table:
        """Answer one shard."""
        work: Work = pickle.loads(table.column("work")[0].as_py())
        report = Report(work.stream, work.start)
        try:
            self._check_version()
            self._answer(work, table, report)
        except UserError as error:
            report.fatal = error
        return pa.table({"report": [pickle.dumps(report)]})

    def _answer(self, work: Work, table: pa.Table, report: Report) -> None:
        failed: dict[int, Failed] = pickle.loads(table.column("failed")[0].as_py())
        pictures = BatchPictures.made(work.stimuli, work.geometries, _places(table, work), failed)
        report.unreadable = pictures.unreadable()
        report.files = len(files_of(work.stimuli)) if work.geometries else 0
        waiting: list[tuple[int, Mapping[int, str], Callable[[], Columns]]] = []
        with self._showing:
            for number in work.jobs:
                if work.start >= self._failed.get(number, work.start + 1):
                    continue  # as where there is one process: an observer that failed is not asked on
                try:
                    hidden: Mapping[int, str] = report.unreadable if self._setup.orders[number].preprocess else {}
                    waiting.append((number, hidden, self._show(number, work, hidden, pictures, report)))
                except NotHere:
                    raise
                except _OF_A_MODEL as error:
                    self._fail(number, work.start, error, report)
        for number, not_shown, wait in waiting:
            try:
                columns = wait()
            except _OF_A_MODEL as error:
                self._fail(number, work.start, error, report)
                continue
            self._jobs[number].shards.write(work.stimuli, columns, not_shown)
            report.stored.append(number)

    def _show(
        self, number: int, work: Work, hidden: Mapping[int, str], pictures: BatchPictures, report: Report
    ) -> Callable[[], Columns]:
        job = self._job(number)
        images = pictures.shared(job.geometry) if job.geometry else None
        self._device.admit(job.observer)
        self._set_threads()
        wait = job.submit(work.stimuli, hidden, images, self._pieces)
        report.batch_sizes[job.observer.name] = self._pieces.of(job.observer)
        if work.start:
            return wait
        columns = wait()
        pixels = None if images is None else images.images
        twice = first_asked_twice(job, work.stimuli, hidden, pixels, columns, self._pieces)
        if twice.differing:
            report.notes[number] = note_of(twice)
        return lambda: columns

    def _fail(self, number: int, start: int, error: BaseException, report: Report) -> None:
        order = self._setup.orders[number]
        self._failed[number] = min(start, self._failed.get(number, start))
        report.failed[number] = failure_of(order.observer, error, order.protocol)

    def _job(self, number: int) -> Job:
        """Return a job whose observer is ready; made once."""
        if number not in self._jobs:
            order = self._setup.orders[number]
            if not (order.shards.folder / "key.json").is_file():
                raise NotHere(f"on node {platform.node()} there is no {order.shards.folder}", SHARED_FOLDER)
            observer = self._made(order)
            if order.cues_on and observer.makes_cues != order.cues_on:
                where = f"{observer.name} runs on {observer.device or 'the CPU'} of node {platform.node()}"
                raise UserError(f"{where}; its cues are to be made on {order.cues_on}", "run with --cues cpu")
            if order.batch_size:
                self._pieces.setdefault(observer.name, order.batch_size)
            self._jobs[number] = Job(
                protocol=order.protocol,
                view=order.view,
                observer=observer,
                stimuli=StimulusSet(order.protocol, ()),
                needs=order.needs,
                preprocess=order.preprocess,
                reduce=order.reduce,
                cues_on=order.cues_on,
                shards=order.shards,
                record=order.record,
            )
        return self._jobs[number]

    def _made(self, order: Order) -> ObserverBase:
        """Make an observer from its spec, or from the object that was sent, and check that it is the same one."""
        try:
            observer: ObserverBase = order.origin.make(self._loaded) if order.origin else pickle.loads(order.pickled)
        except UserError as error:
            raise UserError(f"on node {platform.node()}: {error.message}", f"{error.hint}; {SHARED_FOLDER}") from error
        # An object carries its fingerprint with it; a spec may find another file here.
        if order.origin is not None and observer.fingerprint != order.fingerprint:
            raise UserError(
                f"{order.observer} is another observer on node {platform.node()}: its weights or its code differ there",
                f"{SHARED_FOLDER}; a function without a fingerprint needs one: ?fingerprint=NAME",
            )
        return observer

    def _set_threads(self) -> None:
        """Use as many threads as where the run was started; Ray allows one, and every calling thread must be told."""
        torch = sys.modules.get("torch")
        if torch is not None and self._setup.threads and not hasattr(self._here, "threads_set"):
            torch.set_num_threads(self._setup.threads)
            self._here.threads_set = True

    def _check_version(self) -> None:
        if self._setup.version != __version__:
            raise UserError(
                f"node {platform.node()} has cuebench {__version__}; the run was started with {self._setup.version}",
                f"install the same version on every node: pip install 'cuebench[ray]=={self._setup.version}'",
            )
