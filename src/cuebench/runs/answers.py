"""The stored answers of a run, observer by observer: what looks at single answers after scoring begins here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from cuebench.errors import UserError, did_you_mean
from cuebench.protocols.base import ByObserver, Protocol, ScoreOptions
from cuebench.registry import protocols
from cuebench.responses.job import JobRecord
from cuebench.responses.store import Memory, Shards, batches
from cuebench.responses.table import Responses
from cuebench.runs.measuring import (
    Manifests,
    Unreadable,
    Work,
    forget_manifests,
    labels_of,
    only_selected,
    read_responses,
    works_of,
)
from cuebench.runs.record import RunRecord, parse_settings
from cuebench.runs.results import unfinished
from cuebench.runs.score import find_protocols


class StoredAnswers:
    """The answers of one run folder.

    Parameters
    ----------
    run : path
        The run folder.
    """

    def __init__(self, run: str | Path) -> None:
        self.folder = Path(run).expanduser()
        self.record = RunRecord.read(self.folder)
        if why := unfinished(self.folder, self.record):
            raise UserError(why, "run the same command again: it goes on where it stopped")
        forget_manifests()  # of an earlier reading in this process
        find_protocols(self.record)
        self._manifests = Manifests.of(self.folder, self.record)
        # What a later scoring was told counts, where there was one.
        self._scored = {**vars(self.record.options), **(self.record.scored or {})}
        self._values = parse_settings(self.record.protocol_names(), self._scored["settings"])

    def jobs(self, chosen: Sequence[str] = (), observers: Sequence[str] = ()) -> list[JobRecord]:
        """Return who was asked what, of some protocols and observers; empty: of all.

        Raises
        ------
        UserError
            For a name that the run does not have.
        """
        jobs = self.record.jobs
        for what, wanted, known in (
            ("protocol", chosen, [job.protocol for job in jobs]),
            ("observer", observers, [job.observer for job in jobs]),
        ):
            for name in wanted:
                if name not in known:
                    raise did_you_mean(f"{what} of {self.folder}", name, known)
        return [
            job
            for job in jobs
            if (not chosen or job.protocol in chosen) and (not observers or job.observer in observers)
        ]

    def options(self, protocol: str) -> ScoreOptions:
        """Return how a protocol was scored."""
        return ScoreOptions(self._scored["seed"], self._scored["resamples"], self._values[protocol])

    def whole(self, job: JobRecord, *, condensed: bool) -> Responses:
        """Return all answers of an observer; condensed: as the protocol's ``measure`` sees them."""
        work, shards = self._work(job), self._shards(job)
        protocol: Protocol = protocols.get(job.protocol)
        condense = protocol.score.condense if condensed and isinstance(protocol.score, ByObserver) else None
        reduce = condense(self._manifests.read(job.stimuli), labels_of(job)) if condense else None
        try:
            return read_responses(work, shards, Memory(work.memory), reduce)
        except Unreadable as error:
            raise UserError(*error.args) from None

    def by_shard(self, job: JobRecord) -> Iterator[Responses]:
        """Yield the answers of an observer one stored file at a time; positions are those of the whole set."""
        work, shards = self._work(job), self._shards(job)
        stimuli = self._manifests.read(job.stimuli)
        for start, batch in batches(stimuli.stimuli, work.shard_size):
            columns, errors = shards.read_logits(batch)
            responses = Responses(
                observer=job.observer,
                kind=job.kind,  # type: ignore[arg-type]
                stimuli=stimuli,
                stimulus=columns.pop("stimulus").astype(np.intp) + start,
                columns=columns,
                labels=labels_of(job),
                view=job.view,
                excluded={batch[i].id: why for i, why in errors.items()},
                notes=job.notes,
                baseline_of=job.baseline_of,
            )
            yield only_selected(responses, work.selection)

    def _work(self, job: JobRecord) -> Work:
        jobs = [other for other in self.record.jobs if other.protocol == job.protocol]
        size, options = self.record.options.shard_size, self.options(job.protocol)
        return works_of(self._manifests, jobs, size, options, common=self._scored["common"])[jobs.index(job)]

    def _shards(self, job: JobRecord) -> Shards:
        return Shards.of_key(self._manifests.answers / job.folder, job.key)
