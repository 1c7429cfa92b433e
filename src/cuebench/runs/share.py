"""One run, several processes: each answers its part of the shards, and the last one to finish scores.

For job queues, without a cluster: ``cuebench run … --shard i/n`` on n machines with one run folder. The
processes plan the same and need nothing of each other but the store. What one of them has to say besides its answers
lies in ``parts/i-of-n.json``. The folder is locked for moments only: when a process begins, and when it has finished.

A process that was killed is repeated by its own command. With another n everything that is stored is found again, and
the records of the former parts are forgotten: what they said is said anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from cuebench.errors import UserError
from cuebench.files import disk_errors, write_json
from cuebench.options import check_types
from cuebench.reading import read_json
from cuebench.responses.job import Job, JobRecord, Progress
from cuebench.responses.part import Part
from cuebench.responses.store import batches
from cuebench.runs.joining import once, with_unreadable
from cuebench.runs.record import PARTS, RunRecord
from cuebench.types import Failure

SHARED = "shared"
"""Status of a run whose parts are not all there yet."""
PATIENCE = 600.0
"""Seconds that a process waits for the folder while another one scores."""
_COMPLETED = ("protocol", "view", "observer", "notes", "asked_again", "batch_size")
"""What a part says of each job."""
_NAME = re.compile(r"([0-9]+)-of-([0-9]+)\.json")


@dataclass
class PartRecord:
    """What one process says of its part.

    Parameters
    ----------
    failures, unreadable, notices : list, mapping, list
        As in ``RunRecord``.
    jobs : list
        For each job its protocol, view and observer, and the fields of ``JobRecord`` that were completed while it was
        asked.
    """

    failures: list[Failure] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    images_decoded: int = 0

    @classmethod
    def of(cls, jobs: Iterable[Job], progress: Progress, notices: Sequence[str]) -> PartRecord:
        """Return the record of a process that has asked these jobs."""
        completed = [
            {
                **dict(zip(("protocol", "view", "observer"), _name_of(job.record))),
                "notes": list(job.record.notes),
                "asked_again": dict(job.record.asked_again),
                "batch_size": job.record.batch_size,
            }
            for job in jobs
        ]
        all_notices = [*progress.notices, *notices]
        return cls(list(progress.failures), dict(progress.unreadable), all_notices, completed, progress.decoded)

    def write(self, folder: Path, part: Part) -> None:
        """Write the record, whole or not at all."""
        write_json(_path(folder, part), asdict(self))

    @classmethod
    def read(cls, folder: Path, part: Part) -> PartRecord | None:
        """Return the record of a part; None where it is not finished, or its record is damaged."""
        try:
            body = check_types(read_json(_path(folder, part)), cls)
            jobs = [check_types(row, JobRecord) for row in body["jobs"]]
            if any(name not in row for row in jobs for name in _COMPLETED):
                return None
            return cls(**{**body, "jobs": jobs, "failures": [Failure(**f) for f in body["failures"]]})
        except (UserError, KeyError, TypeError, AttributeError):
            return None


def _path(folder: Path, part: Part) -> Path:
    return folder / PARTS / f"{part.i}-of-{part.n}.json"


def _name_of(job: JobRecord) -> tuple[str, str, str]:
    return job.protocol, job.view, job.observer


def begin(folder: Path, part: Part) -> None:
    """Forget what this part said before, and what parts of another number said."""
    with disk_errors(folder):
        for path in sorted((folder / PARTS).glob("*.json")):
            name = _NAME.fullmatch(path.name)
            if name and (int(name[2]) != part.n or int(name[1]) == part.i):
                path.unlink(missing_ok=True)


def forget_parts(folder: Path) -> None:
    """Forget what the parts of a shared run said: a process has taken the whole run over, and says it itself."""
    with disk_errors(folder):
        for path in sorted((folder / PARTS).glob("*.json")):
            if _NAME.fullmatch(path.name):
                path.unlink(missing_ok=True)
        if (folder / PARTS).is_dir() and not any((folder / PARTS).iterdir()):
            (folder / PARTS).rmdir()


def unfinished(folder: Path, jobs: Iterable[Job], n: int, shard_size: int) -> list[int]:
    """Return the parts whose process has not finished, or whose answers are not all there."""
    named = [_NAME.fullmatch(path.name) for path in (folder / PARTS).glob("*.json")]
    said = {
        int(name[1]): PartRecord.read(folder, Part(int(name[1]), n)) for name in named if name and int(name[2]) == n
    }
    parts = {i: record for i, record in said.items() if record is not None}
    missing = set(range(1, n + 1)) - parts.keys()
    failed = {(f.observer, f.protocol) for record in parts.values() for f in record.failures}
    for job in [job for job in jobs if (job.observer.name, job.protocol) not in failed]:
        stored = {path.name for path in job.shards.folder.iterdir()} if job.shards.folder.is_dir() else set()
        for number, (_, batch) in enumerate(batches(job.stimuli.stimuli, shard_size)):
            if job.shards.path(batch).name not in stored:
                missing.add(Part.of(job.stimuli, number, n).i)
    return sorted(missing)


def with_parts(folder: Path, record: RunRecord) -> RunRecord:
    """Return the record of a shared run with what its parts say."""
    names = [name for path in sorted((folder / PARTS).glob("*.json")) if (name := _NAME.fullmatch(path.name))]
    parts = sorted(Part(int(name[1]), int(name[2])) for name in names)
    part_records = [part_record for part in parts if (part_record := PartRecord.read(folder, part))]
    completed: dict[tuple[str, str, str], JobRecord] = {_name_of(job): job for job in record.jobs}
    for part_record in part_records:
        for row in part_record.jobs:
            asked = (row["protocol"], row["view"], row["observer"])
            if asked in completed:
                completed[asked] = _completed(completed[asked], row)
    failures = once([*record.failures, *(f for p in part_records for f in p.failures)])
    failed = {(f.observer, f.protocol) for p in part_records for f in p.failures}
    unreadable = {key: why for p in part_records for key, why in p.unreadable.items()}
    return replace(
        record,
        jobs=[completed[_name_of(job)] for job in record.jobs if (job.observer, job.protocol) not in failed],
        failures=failures,
        unreadable=with_unreadable(record.unreadable, unreadable),
        notices=list(dict.fromkeys([*record.notices, *(n for p in part_records for n in p.notices)])),
        images_decoded=sum(p.images_decoded for p in part_records),
    )


def _completed(job: JobRecord, row: Mapping[str, Any]) -> JobRecord:
    return replace(
        job,
        notes=tuple(dict.fromkeys([*job.notes, *row["notes"]])),
        asked_again=job.asked_again or row["asked_again"],
        batch_size=job.batch_size or row["batch_size"],
    )


def parse_shard(text: str) -> tuple[int, int] | None:
    """Return the two numbers of ``i/n``; None for an empty text.

    >>> parse_shard("2/3")
    (2, 3)
    """
    if not text:
        return None
    first, slash, second = text.partition("/")
    if not (slash and all(number.strip().isdecimal() and number.isascii() for number in (first, second))):
        raise UserError(f"--shard {text!r}", "write i/n: --shard 1/4 is the first of four parts")
    return int(first), int(second)
