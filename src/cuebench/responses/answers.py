"""One observer answers one batch: in pieces that fit its memory, checked, and reduced to what is kept."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from cuebench.errors import UserError
from cuebench.observers.base import Answers, Batch
from cuebench.responses.job import Job
from cuebench.responses.workers import Pixels
from cuebench.types import Stimulus

Columns = dict[str, np.ndarray[Any, Any]]
_NO_MEMORY = ("out of memory", "allocate memory", "alloc_failed")
"""What torch, CUDA's libraries and onnxruntime say, in small letters."""


class Pieces(dict[str, int]):
    """Observer → how many stimuli it is shown at once: the batch size until it runs out of memory."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __missing__(self, observer: str) -> int:
        return self._most


def answer(
    job: Job, batch: Sequence[Stimulus], hidden: Collection[int], images: Pixels | None, pieces: Pieces
) -> Columns:
    """Return the columns of a shard, with the column ``stimulus`` = position in the batch.

    Parameters
    ----------
    job : Job
        Who answers.
    batch : sequence of Stimulus
        What is asked.
    hidden : collection of int
        Positions of what cannot be shown.
    images : array or None
        Those that can, in order; None for an observer that looks at no pixels.
    pieces : Pieces
        How much each observer can take at once; learnt on the way.
    """
    shown = [i for i in range(len(batch)) if i not in hidden]
    parts = list(_in_pieces(job, [batch[i] for i in shown], images, pieces))
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    rows = joined.pop("stimulus")
    return {"stimulus": np.array(shown, dtype=np.int32)[rows.astype(np.intp)], **joined}


def answer_one(job: Job, stimulus: Stimulus, image: Pixels) -> None:
    """Ask for one answer and check it, before anything is spent."""
    _reduced(job, _checked(job, job.observer.respond(Batch([stimulus], image), job.needs), 1), [stimulus])


def _in_pieces(job: Job, stimuli: list[Stimulus], images: Pixels | None, pieces: Pieces) -> Iterator[Columns]:
    """Answer in pieces that fit the memory: halve on out-of-memory, and remember for the next batch."""
    start = 0
    while start < len(stimuli) or not start:
        size = pieces[job.observer.name]
        piece = stimuli[start : start + size]
        pixels = None if images is None else images[start : start + size]
        try:
            answers = job.observer.respond(Batch(piece, pixels), job.needs) if piece else {}
        except Exception as error:
            if len(piece) == 1 or not out_of_memory(error):
                raise
            pieces[job.observer.name] = len(piece) // 2
            _release_memory()
            continue
        yield _reduced(job, _checked(job, answers, len(piece), offset=start), piece, offset=start)
        start += max(len(piece), 1)


def out_of_memory(error: Exception) -> bool:
    """Tell whether a smaller piece could help; onnxruntime's exceptions are no RuntimeError, so the module is asked."""
    if isinstance(error, MemoryError):
        return True
    of_a_library = isinstance(error, RuntimeError) or type(error).__module__.startswith("onnxruntime")
    return of_a_library and any(words in str(error).lower() for words in _NO_MEMORY)


def _release_memory() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def _checked(job: Job, answers: Answers, count: int, offset: int = 0) -> Columns:
    """Refuse answers that are not what was asked for; add the column ``stimulus`` where each row is one stimulus."""
    columns = {name: np.asarray(values) for name, values in answers.items()}
    missing = [n for n in job.needs if n not in columns] if count else []
    if missing:
        raise UserError(f"{job.observer.name} answered without {', '.join(missing)}; it gave {', '.join(columns)}")
    columns.setdefault("stimulus", np.arange(count, dtype=np.int32))
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise UserError(
            f"{job.observer.name} answered with columns of different length: {lengths}, for {count} stimuli"
        )
    for name, values in columns.items():
        if not _usable(name.partition(":")[0], values):
            raise UserError(
                f"{job.observer.name} answered with NaN or infinite {name}",
                "check its preprocessing and precision (--precision float32)",
            )
    columns["stimulus"] = columns["stimulus"] + offset
    return columns


def _usable(kind: str, values: np.ndarray[Any, Any]) -> bool:
    """Tell whether numbers are numbers; a logit may be −∞ (a class that was masked out) if another class is not."""
    if kind not in ("logits", "features") or np.isfinite(values).all():
        return True
    return kind == "logits" and bool((np.isfinite(values) | np.isneginf(values)).all() and _one_left(values))


def _one_left(logits: np.ndarray[Any, Any]) -> bool:
    return bool(np.isfinite(logits).any(axis=-1).all())


def _reduced(job: Job, columns: Columns, piece: Sequence[Stimulus], offset: int = 0) -> Columns:
    """Replace answers by the summary that the protocol keeps of them.

    The summary is stored under the key of the pictures, so it is not shown the truth: a corrected label must not leave
    a summary of the old one behind.
    """
    if job.reduce is None or not piece:
        return columns
    rows = columns.pop("stimulus")
    shown = [piece[i].without_truth for i in rows - offset]
    return {**job.reduce(columns, shown), "stimulus": rows}
