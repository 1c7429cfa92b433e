"""What one observer is asked, asking it, and what the record says about it.

A `Question` is an observer, a stimulus set and a view; it answers batches in pieces that fit the memory, checks the
answers and reduces them to what is kept. A `Job` is a question whose answers are stored in a run folder; it carries its
row of ``run.json``.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from cuebench.arrays import Array, Pixels
from cuebench.cues.versions import recipe_versions
from cuebench.errors import UserError
from cuebench.observers.base import Answers, Batch, ObserverBase, SharedImages
from cuebench.observers.preprocess import Geometry, Preprocess
from cuebench.responses.events import Event, EventKind, OnEvent
from cuebench.responses.store import Columns, ShardFolder
from cuebench.responses.table import Reduce
from cuebench.stimuli.on_device import BeforeDevice, before_device, render_on_device
from cuebench.types import Capability, Failure, Stimulus, StimulusSet

OUT_OF_MEMORY = ("out of memory", "allocate memory", "alloc_failed")
"""What torch, CUDA's libraries and onnxruntime say, in small letters."""


ON_THE_CPU = 32
"""Stimuli that an observer in the main memory is shown at once, where nobody says otherwise: more is not faster."""


class Pieces(dict[str, int]):
    """Observer → how many stimuli it is shown at once: the batch size, or less after it ran out of memory.

    Parameters
    ----------
    batch_size : int
        For all observers; 0: as suits each (`ON_THE_CPU`; see ``device.fitting_batch`` for those on a GPU).
    """

    def __init__(self, batch_size: int = 0) -> None:
        super().__init__()
        self.batch_size = batch_size

    def of(self, observer: ObserverBase) -> int:
        """Return how many stimuli this observer is shown at once."""
        return self.get(observer.name) or self.batch_size or ON_THE_CPU


@dataclass(frozen=True, eq=False, kw_only=True)
class Question:
    """One observer, one stimulus set, one way of showing it.

    Parameters
    ----------
    protocol, view : str
        Names of the protocol and of its view.
    observer : ObserverBase
        Who is asked.
    stimuli : StimulusSet
        What is shown.
    needs : tuple of Capability
        Kinds of answer.
    preprocess : Preprocess or None
        How the images are prepared for this observer in this view; None where it looks at no pixels.
    reduce : callable, optional
        Replaces the answers to a batch by the summary that the protocol keeps of them.
    note : str
        What the rows must say about the way the stimuli are shown to this observer.
    cues_on : str
        Kind of device on which the end of recipes is made (``ObserverBase.makes_cues``); empty: none, all is decoded.
    """

    protocol: str
    view: str = ""
    observer: ObserverBase
    stimuli: StimulusSet
    needs: tuple[Capability, ...]
    preprocess: Preprocess | None = None
    reduce: Reduce | None = None
    note: str = ""
    cues_on: str = ""

    @cached_property
    def geometry(self) -> Geometry | None:
        """What must be decoded for this observer; None where it looks at no pixels."""
        geometry = self.preprocess.geometry if self.preprocess else None
        return BeforeDevice.of(geometry) if geometry and self.cues_on else geometry

    def probe(self, stimulus: Stimulus, image: Pixels, count: int = 1) -> None:
        """Ask for the answer to one stimulus, shown so many times at once, and check it, before anything is spent."""
        stimuli, images = [stimulus] * count, np.repeat(image, count, axis=0)
        batch = Batch(stimuli, images, self._unfinished(images, stimuli))
        self._kept(self.observer.respond(batch, self.needs), stimuli)

    def answer(
        self,
        batch: Sequence[Stimulus],
        hidden: Collection[int],
        images: Pixels | SharedImages | None,
        pieces: Pieces,
    ) -> Columns:
        """Return the columns of the answers to a batch; see ``submit``."""
        return self.submit(batch, hidden, images, pieces)()

    def submit(
        self,
        batch: Sequence[Stimulus],
        hidden: Collection[int],
        images: Pixels | SharedImages | None,
        pieces: Pieces,
        on_piece: Callable[[int], None] | None = None,
    ) -> Callable[[], Columns]:
        """Begin to answer a batch; what is returned waits for the answers, checks them and returns their columns.

        Parameters
        ----------
        batch : sequence of Stimulus
            What is asked.
        hidden : collection of int
            Positions of what cannot be shown.
        images : array, SharedImages or None
            Those that can, in order; None for an observer that looks at no pixels.
        pieces : Pieces
            How much each observer can take at once; updated where it runs out of memory.
        on_piece : callable, optional
            Told how many stimuli have been handed to the observer.

        Returns
        -------
        callable
            ``wait() -> columns``, with the column ``stimulus`` = position in the batch. It may be called in another
            thread.
        """
        shown = [i for i in range(len(batch)) if i not in hidden]
        stimuli = [batch[i] for i in shown]
        parts = list(self._in_pieces(stimuli, images, pieces, on_piece))

        def wait() -> Columns:
            answered = []
            for start, piece, answers in parts:
                columns = self._kept(answers(), piece)
                columns["stimulus"] = columns["stimulus"] + start
                answered.append(columns)
            columns = {name: np.concatenate([part[name] for part in answered]) for name in answered[0]}
            rows = columns.pop("stimulus")
            return {"stimulus": np.array(shown, dtype=np.int32)[rows.astype(np.intp)], **columns}

        return wait

    def _in_pieces(
        self,
        stimuli: list[Stimulus],
        images: Pixels | SharedImages | None,
        pieces: Pieces,
        on_piece: Callable[[int], None] | None,
    ) -> Iterator[tuple[int, list[Stimulus], Callable[[], Answers]]]:
        """Ask in pieces that fit the memory: halve on out-of-memory, and remember for the next batch."""
        shared = self._unfinished(images, stimuli)
        pixels = images.images if isinstance(images, SharedImages) else images
        start = 0
        while start < len(stimuli) or not start:
            size = pieces.of(self.observer)
            piece = stimuli[start : start + size]
            shown = None if pixels is None else pixels[start : start + size]
            try:
                batch = Batch(piece, shown, shared, start)
                answers = self.observer.submit(batch, self.needs) if piece else dict
            except Exception as error:
                if len(piece) == 1 or not out_of_memory(error):
                    raise
                pieces[self.observer.name] = len(piece) // 2
                torch = sys.modules.get("torch")
                if torch is not None and torch.cuda.is_available():
                    torch.cuda.empty_cache()
                continue
            if shared is not None and shared.render is not None and piece and not shared.copies:
                raise RuntimeError(f"{self.observer.name} was shown pictures without their cues")  # never store that
            yield start, piece, answers
            if on_piece is not None:
                on_piece(len(piece))
            start += max(len(piece), 1)

    def _unfinished(self, images: Pixels | SharedImages | None, stimuli: Sequence[Stimulus]) -> SharedImages | None:
        """Return images that others look at too, or that the device is to finish, as shared ones."""
        shared = images if isinstance(images, SharedImages) else None
        if not self.cues_on or images is None or self.geometry is None:
            return shared
        if not isinstance(images, SharedImages):
            shared = SharedImages(images if images.flags.writeable else images.copy())
        assert shared is not None
        if shared.render is None:
            shared.render = partial(render_on_device, stimuli=tuple(stimuli), geometry=self.geometry)
        return shared

    def _kept(self, answers: Answers, piece: Sequence[Stimulus]) -> Columns:
        """Check the answers to a piece; return what is stored of them, with the position of each row in the piece."""
        columns = self._checked(answers, len(piece))
        if self.reduce is None or not piece:
            return columns
        rows = columns.pop("stimulus")
        # The summary is stored under the key of the images, so it is not shown the truth: a corrected label must not
        # leave a summary of the old one behind.
        return {**self.reduce(columns, [piece[i].without_truth for i in rows]), "stimulus": rows}

    def _checked(self, answers: Answers, count: int) -> Columns:
        """Refuse answers that are not what was asked for; add the column ``stimulus`` where rows are stimuli."""
        columns = {name: np.asarray(values) for name, values in answers.items()}
        missing = [n for n in self.needs if n not in columns] if count else []
        if missing:
            raise UserError(f"{self.observer.name} answered without {', '.join(missing)}; it gave {', '.join(columns)}")
        columns.setdefault("stimulus", np.arange(count, dtype=np.int32))
        lengths = {name: len(values) for name, values in columns.items()}
        if len(set(lengths.values())) > 1:
            raise UserError(
                f"{self.observer.name} answered with columns of different length: {lengths}, for {count} stimuli"
            )
        for name, values in columns.items():
            if not _usable(name.partition(":")[0], values):
                raise UserError(
                    f"{self.observer.name} answered with NaN or infinite {name}",
                    "check its preprocessing and precision (--precision float32)",
                )
        return columns


def out_of_memory(error: Exception) -> bool:
    """Tell whether a smaller piece could help; onnxruntime's exceptions are no RuntimeError, so the module is asked."""
    if isinstance(error, MemoryError):
        return True
    of_a_library = isinstance(error, RuntimeError) or type(error).__module__.startswith("onnxruntime")
    return of_a_library and any(words in str(error).lower() for words in OUT_OF_MEMORY)


def _usable(kind: str, values: Array) -> bool:
    """Tell whether numbers are numbers; a logit may be −∞ (a class that was masked out) if another class is not."""
    if kind not in ("logits", "features") or np.isfinite(values).all():
        return True
    finite = np.isfinite(values)
    return kind == "logits" and bool((finite | np.isneginf(values)).all() and finite.any(axis=-1).all())


# --------------------------------------------------------------------------------------------- jobs of a run


@dataclass
class JobRecord:
    """A job in ``run.json``: enough to find and score its answers without the observer.

    ``notes`` and ``asked_again`` are completed while the answers are collected: what asking twice has shown, and which
    stored answers were set aside because of it (``responses/again.py``). So is ``batch_size``, how many stimuli the
    observer was shown at once: the last bits of an answer depend on it, so the same run uses it again.
    ``brought``: these are people whom nobody named and the protocol brought along (``runs/people.py``).
    """

    protocol: str
    view: str
    observer: str
    kind: str
    spec: str
    needs: tuple[str, ...]
    stimuli: str
    folder: str
    labels: Mapping[str, Any] | None
    key: Mapping[str, Any]
    preprocess: str = ""
    notes: tuple[str, ...] = ()
    baseline_of: str = ""
    asked_again: Mapping[str, Any] = field(default_factory=dict)
    batch_size: int = 0
    brought: bool = False

    @classmethod
    def parse(cls, row: Mapping[str, Any]) -> JobRecord:
        """Rebuild a record from JSON, where tuples have become lists."""
        return cls(**{**row, "needs": tuple(row["needs"]), "notes": tuple(row["notes"])})


@dataclass(frozen=True, eq=False, kw_only=True)
class Job(Question):
    """A question whose answers are stored.

    Parameters
    ----------
    shards : ShardFolder
        Where.
    record : JobRecord
        Its row of ``run.json``.
    others : tuple of ObserverBase
        The same observer on other devices: shards are shared out among them.
    """

    shards: ShardFolder
    record: JobRecord
    others: tuple[ObserverBase, ...] = ()

    def decides_pixels(self, stimuli: Sequence[Stimulus]) -> tuple[Sequence[Stimulus], Geometry, Mapping[str, str]]:
        """Return what decides decoded pixels: stimuli with what is done to files, geometry, versions of the cues."""
        geometry = self.geometry
        assert geometry is not None
        if isinstance(geometry, BeforeDevice):
            begun = [before_device(stimulus, geometry) for stimulus in stimuli]
            return begun, geometry, recipe_versions({(s.recipe, not s.path) for s in begun if s.recipe})
        return stimuli, geometry, (self.shards.key.preprocess or {}).get("recipes", {})

    def on_device(self, number: int) -> Job:
        """Return the same job for the observer on one of its devices, counted round and round."""
        observer = (self.observer, *self.others)[number % (1 + len(self.others))]
        return self if observer is self.observer else replace(self, observer=observer)


@dataclass
class Progress:
    """What the engine has done so far, and who is told about it."""

    on_event: OnEvent
    total: int = 0
    done: int = 0
    to_come: int = 0
    """Answers of observers that are not loaded yet, about so many."""
    failures: list[Failure] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    decoded: int = 0
    """Files that were opened."""
    notices: list[str] = field(default_factory=list)
    """What the record of the run says besides: answers that were set aside, damaged files."""

    def notice(self, text: str, **fields: Any) -> None:
        """Say something that the record of the run keeps."""
        self.notices.append(text)
        self.tell("notice", text, **fields)

    def tell(self, kind: EventKind, message: str = "", **fields: Any) -> None:
        """Send an event."""
        self.on_event(Event(kind, message, self.done, self.total, fields))

    def fail(self, job: Job, error: BaseException) -> None:
        """Record a failed observer: the others go on."""
        failure = failure_of(job.observer.name, error, job.protocol)
        self.failures.append(failure)
        self.tell("failed", f"{failure.observer}: {failure.reason}", observer=failure.observer, reason=failure.reason)


def failure_of(observer: str, error: BaseException, protocol: str = "") -> Failure:
    """Return the row of an observer that raised ``error``; what is no mistake of the user keeps its traceback."""
    if isinstance(error, UserError):
        return Failure(observer, error.message, protocol, {"traceback": "", "hint": error.hint})
    frames = traceback.extract_tb(error.__traceback__)
    place = f"raised in {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
    details = {"traceback": "".join(traceback.format_exception(error)), "hint": place}
    return Failure(observer, f"{type(error).__name__}: {error}", protocol, details)
