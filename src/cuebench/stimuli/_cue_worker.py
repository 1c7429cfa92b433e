"""Make the files of a plan, in this process or in several."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context, parent_process
from typing import Any

from cuebench.errors import UserError
from cuebench.registry import cues
from cuebench.stimuli._cue_files import Job, read_image, read_labels, read_mask, write_image

AHEAD = 4
"""Jobs handed out for each worker before the first of them is back."""


def run_jobs(jobs: list[Job], workers: int = 0) -> Iterator[tuple[Job, str]]:
    """Yield each job as it ends, with the reason why it failed or an empty string."""
    count = min(workers or os.cpu_count() or 1, len(jobs))
    if count <= 1:
        for job in jobs:
            yield job, make(job)
        return
    # Fresh processes: forking one that has started threads (OpenCV, Numba) can hang.
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_prepare)
    try:
        yield from _in_pool(pool, jobs, count * AHEAD)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _in_pool(pool: ProcessPoolExecutor, jobs: list[Job], ahead: int) -> Iterator[tuple[Job, str]]:
    waiting: dict[Future[str], Job] = {}
    rest = iter(jobs)
    while True:
        for job in rest:
            waiting[pool.submit(make, job)] = job
            if len(waiting) >= ahead:
                break
        if not waiting:
            return
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            yield waiting.pop(future), future.result()


def _prepare() -> None:
    """Let each process use one thread, as the parallelism is over files; and end with its parent."""
    # Ctrl-C reaches all processes at once; the parent ends the work, and files in the making are finished.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"
    try:
        import cv2
    except ImportError:
        return
    cv2.setNumThreads(1)


def _end_with_parent() -> None:
    """A parent that is killed cannot stop its workers, and they would wait for the next job for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def make(job: Job) -> str:
    """Make one file; return the reason if that is not possible."""
    try:
        _make(job)
    except UserError as error:
        return f"{error.message} ({error.hint})" if error.hint else error.message
    return ""


def _make(job: Job) -> None:
    info = cues.get(job.cue)
    function = getattr(cues.module(job.cue), job.cue)
    image = read_image(job.source)
    given: dict[str, Any] = dict(job.options)
    if info.random:
        given["rng"] = job.seed
    if job.mask is not None:
        given["mask"] = read_labels(job.mask) if job.moved_mask else read_mask(job.mask, invert=job.invert_mask)
    others = () if job.other is None else (read_image(job.other),)
    result = function(image, *others, **given)
    if job.moved_mask is not None:
        result, moved = result
        write_image(job.moved_mask, moved)
    write_image(job.target, result)
