"""What a run can cost on somebody else's machine: said before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence

from cuebench.observers.base import Expense
from cuebench.responses.job import Job
from cuebench.responses.store import SHARD, batches
from cuebench.runs.record import RunOptions


def expense_notices(jobs: Sequence[Job], options: RunOptions) -> list[str]:
    """Return a line for each job whose answers may cost money."""
    charging = [job for job in jobs if job.observer.charges]
    return [f"{job.observer.name} · {job.protocol}: {expense_of(job, options)}" for job in charging]


def expense_of(job: Job, options: RunOptions) -> Expense:
    """Return the most that a job can take; answers that are stored take nothing."""
    shards = [shard for _, shard in batches(job.stimuli.stimuli, options.shard_size or SHARD)]
    left = shards if options.fresh else [shard for shard in shards if job.shards.stored(shard) is None]
    return job.observer.expense(sum(map(len, left)))
