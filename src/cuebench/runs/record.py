"""``run.json``: what was run, with what, on what, and what was partial. Score and report start from here.

run.json             this record
stimuli/*.parquet    the manifest of every stimulus set that was shown
responses/           the shards (``responses/store.py``)
scores.parquet       one row for each score
scores.json          the same rows
tables/*.parquet     what does not fit the tidy form, e.g. confusion matrices
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from cuebench._version import __version__
from cuebench.errors import UserError
from cuebench.files import disk_errors, write_json
from cuebench.types import Failure

FORMAT = 1
_PACKAGES = ("numpy", "scipy", "pillow", "pyarrow", "torch", "torchvision", "timm", "transformers", "onnxruntime")


@dataclass(frozen=True)
class JobRecord:
    """One observer on one stimulus set: enough to find and score its answers without the observer."""

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

    @classmethod
    def parse(cls, row: Mapping[str, Any]) -> JobRecord:
        """Rebuild a record from JSON, where tuples have become lists."""
        return cls(**{**row, "needs": tuple(row["needs"]), "notes": tuple(row["notes"])})


@dataclass
class RunRecord:
    """The whole record."""

    arguments: dict[str, Any]
    batch_size: int
    seed: int
    status: str = "running"
    jobs: list[JobRecord] = field(default_factory=list)
    stimuli: dict[str, dict[str, Any]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    skipped: list[Failure] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    scored: dict[str, Any] = field(default_factory=dict)
    """What the scores in this folder were made with: seed, resamples, settings, common."""
    images_decoded: int = 0
    started: str = ""
    finished: str = ""

    def write(self, out: Path) -> None:
        """Write ``run.json`` atomically."""
        body = {"format": FORMAT, "cuebench": __version__, **asdict(self), "environment": environment()}
        write_json(out / "run.json", body)

    @classmethod
    def read(cls, out: Path) -> RunRecord:
        """Read ``run.json``; a folder without one, a damaged one or one of a later cuebench is an error that says so.

        Raises
        ------
        DamagedRecord
            Where the file is cut short, or lacks what this version writes.
        """
        body = _body(out)
        try:
            known = {name: body[name] for name in cls.__dataclass_fields__ if name in body}
            known["jobs"] = [JobRecord.parse(job) for job in known["jobs"]]
            for name in ("failures", "skipped"):
                known[name] = [Failure(**f) for f in known[name]]
            return cls(**known)
        except (KeyError, TypeError, AttributeError) as error:
            raise DamagedRecord(f"{out / 'run.json'} is damaged or of an older cuebench: {error}", _AGAIN) from None


class DamagedRecord(UserError):
    """A ``run.json`` that cannot be read: no record for whoever scores, and none in the way of whoever runs again."""


_AGAIN = "run the same command again: the answers are kept"


def _body(out: Path) -> dict[str, Any]:
    path = out / "run.json"
    if not path.is_file():
        raise UserError(f"{out} is not a run folder: it has no run.json", "make one with: cuebench run … --out DIR")
    try:
        body = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise DamagedRecord(f"{path} is damaged: {error}", _AGAIN) from None
    written = body.get("format") if isinstance(body, dict) else None
    if isinstance(written, int) and written > FORMAT:
        raise UserError(f"{path} has format {written}; this cuebench reads {FORMAT}", "upgrade cuebench")
    if written != FORMAT:
        raise DamagedRecord(f"{path} has format {written}; this cuebench reads {FORMAT}", _AGAIN)
    return dict(body)


def note_scored(out: Path, scored: Mapping[str, Any], failures: Sequence[Failure]) -> None:
    """Write into ``run.json`` how it was scored, and what failed; all else stays as the run left it."""
    write_json(out / "run.json", {**_body(out), "scored": dict(scored), "failures": [asdict(f) for f in failures]})


def environment() -> dict[str, Any]:
    """Return host and versions: what a reader needs to repeat the run."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "host": platform.node(),
        "cpus": os.cpu_count(),
        "packages": versions(_PACKAGES),
        "command": sys.argv,
    }


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Return the installed versions, without importing anything."""
    found = {}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def now() -> str:
    """Return the time as an ISO string in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Hold the run folder: two runs that write the same record would lose one of them."""
    with disk_errors(out):
        file = (out / ".lock").open("w")
    with file:
        try:
            _lock(file.fileno())
        except OSError:
            raise UserError(f"another run is writing to {out}", "wait for it, or choose another --out") from None
        yield


def _lock(descriptor: int) -> None:
    """Take an exclusive lock that the system drops when the process dies, however it dies."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
