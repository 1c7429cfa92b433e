"""Make the files of a plan, in this process or in several."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any

from cuebench.cues.by_name import call, name_in_workers
from cuebench.errors import UserError
from cuebench.processes import ProcessPool
from cuebench.registry import cues
from cuebench.stimuli.cue_files import Job, read_image, read_labels, read_mask, write_image

AHEAD = 4
"""Jobs handed out for each worker before the first of them is back."""


def run_jobs(jobs: list[Job], workers: int = 0) -> Iterator[tuple[Job, str]]:
    """Yield each job as it ends, with the reason why it failed or an empty string."""
    count = min(workers or os.cpu_count() or 1, len(jobs))
    if count <= 1 or not name_in_workers(jobs[0].cue):
        for job in jobs:
            yield job, make(job)
        return
    rest = iter([job._replace(cue=name_in_workers(job.cue)) for job in jobs])
    waiting: dict[Future[str], Job] = {}
    with ProcessPool(count) as pool:
        while True:
            for job in rest:
                waiting[pool.submit(make_alone, job)] = job
                if len(waiting) >= count * AHEAD:
                    break
            if not waiting:
                return
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield waiting.pop(future), future.result()


def make_alone(job: Job) -> str:
    """Make one file in a worker process: OpenCV, too, uses one thread, as the parallelism is over files."""
    if importlib.util.find_spec("cv2") is not None:
        import cv2

        cv2.setNumThreads(1)
    return make(job)


def make(job: Job) -> str:
    """Make one file; return the reason if that is not possible."""
    try:
        _make(job)
    except UserError as error:
        return f"{error.message} ({error.hint})" if error.hint else error.message
    return ""


def _make(job: Job) -> None:
    keywords: dict[str, Any] = dict(job.options)
    if cues.get(job.cue).info.random:
        keywords["rng"] = job.seed
    if job.mask is not None:
        keywords["mask"] = read_labels(job.mask) if job.moved_mask else read_mask(job.mask, invert=job.invert_mask)
    images = [read_image(path) for path in (job.source, job.other) if path is not None]
    result = call(job.cue, *images, **keywords)
    if job.moved_mask is not None:
        result, moved = result
        write_image(job.moved_mask, moved)
    write_image(job.target, result)
