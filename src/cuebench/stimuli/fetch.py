"""Fetch the files of a published dataset: verified, resumable, from several mirrors.

A file counts as verified *by hash* where the published hash is known, and *by structure only* where it is not; the
hash of such a file is recorded in ``<data root>/<folder>/fetched.json`` and compared from then on. A file that is
already there is never overwritten.
"""

from __future__ import annotations

import hashlib
import os
import threading
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from cuebench.errors import UserError, all_problems
from cuebench.files import disk_errors, file_behind, hash_file, take_lock, write_error, write_json
from cuebench.reading import read_json
from cuebench.registry import datasets
from cuebench.stimuli._download import Refused, Unreachable, download
from cuebench.stimuli.archive import unpack
from cuebench.stimuli.datasets.base import Dataset, RemoteFile
from cuebench.stimuli.made import MADE

PARALLEL = 8
PART = ".part"
_REMOVE = "remove it; the hashes are then recorded anew"
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Fetched:
    """Summary of a fetch: the files in the data root, and how they were verified."""

    dataset: str
    folder: str
    files: int
    downloaded: int
    by_hash: int
    by_structure: int

    def __str__(self) -> str:
        return (
            f"{self.dataset}: {self.files:,} files in {self.folder}, {self.downloaded:,} of them downloaded now; "
            f"{self.by_hash:,} files verified by hash, {self.by_structure:,} by structure only"
        )


@dataclass
class _Job:
    """The state of a fetch that its threads share."""

    dataset: Dataset
    root: Path
    mirrors: tuple[str, ...]
    recorded: dict[str, str]
    suffix: str = PART
    down: dict[str, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def record(self) -> Path:
        return self.root / self.dataset.folder / "fetched.json"

    def place(self, file: RemoteFile) -> Path:
        return self.root / file.path


def fetch(
    dataset: str | Dataset,
    data_root: Path,
    *,
    mirrors: Sequence[str] = (),
    offline: bool = False,
    progress: Progress | None = None,
) -> Fetched:
    """Bring the files of a dataset into a data root; the error names every missing file.

    Parameters
    ----------
    dataset : str or Dataset
        Name of a dataset (``cuebench list stimuli``), or a ``Dataset``.
    data_root : Path
        Files go to ``data_root/<folder of the dataset>/…``.
    mirrors : sequence of str
        Addresses that hold a copy, tried before the published ones.
    offline : bool
        Never use the network: verify what is there, and name every missing file with its hash and place.
    progress : callable, optional
        ``progress(files done, files in all)``.

    Returns
    -------
    Fetched
        Counts, and how the files were verified.

    Raises
    ------
    UserError
        With all problems at once; files that did arrive are kept, and the same command continues from there.
    """
    chosen: Dataset = datasets.get(dataset) if isinstance(dataset, str) else dataset
    root = Path(data_root).expanduser()
    home = root / chosen.folder
    job = _Job(chosen, root, (*mirrors, *chosen.mirrors), _read_record(home / "fetched.json"))
    if (home / MADE).is_file():
        raise UserError(f"{home} holds a set made by `cuebench make`", "choose another --data-root")
    files = chosen.load()
    missing = _verify_present(job, files)
    if missing and offline:
        raise _put_by_hand(job, missing, [f"offline: {len(missing)} of {len(files)} files are missing"])
    try:
        with _part_suffix(root / f".{chosen.name}.lock") if missing else nullcontext(PART) as job.suffix:
            failures = _download_all(job, missing, len(files), progress)
    finally:
        # Also after Ctrl-C: what was fetched is known next time.
        if job.recorded and job.recorded != _read_record(job.record):
            about = "sha256 of files without a published hash, as first fetched on this machine"
            write_json(job.record, {"about": about, "sha256": dict(sorted(job.recorded.items()))})
    if failures:
        raise _put_by_hand(job, [f for f, _ in failures], [reason for _, reason in failures])
    for file in files:  # also an archive that was put in place by hand
        if file.unpack and not (root / file.unpack).is_dir():
            unpack(job.place(file), root / file.unpack, pictures=file.pictures)
    by_hash = sum(bool(f.sha256 or f.md5) for f in files)
    return Fetched(chosen.name, str(home), len(files), len(missing), by_hash, len(files) - by_hash)


# ---- what is there ---------------------------------------------------------------------------------------------------


def _verify_present(job: _Job, files: Iterable[RemoteFile]) -> list[RemoteFile]:
    """Verify the files that are there, return those that are not; wrong files are an error, all at once."""
    files = list(files)
    there = [f for f in files if job.place(f).is_file()]
    with ThreadPoolExecutor(PARALLEL) as pool:
        checked = zip(there, pool.map(lambda f: _accept(job, f, job.place(f)), there))
        problems = [f"{job.place(f)}: {problem}" for f, problem in checked if problem]
    if problems:
        hint = "remove or replace these files, then run the same command again; nothing was overwritten"
        raise all_problems(f"wrong files of dataset {job.dataset.name!r}", problems, hint)
    present = {f.path for f in there}
    return [f for f in files if f.path not in present and not (f.unpack and (job.root / f.unpack).is_dir())]


def _accept(job: _Job, file: RemoteFile, path: Path) -> str:
    """Check the content of ``path``; return a problem, or "". A hash that was not published is recorded."""
    facts = hash_file(path)
    known = file.sha256 or job.recorded.get(file.path, "")
    if known and facts.sha256 != known:
        whose = "expected" if file.sha256 else "but it was fetched before with"
        return f"sha256 is {facts.sha256}, {whose} {known}"
    if not known:
        problem = _md5_problem(file, path) if file.md5 else ""
        problem = problem or (file.check(path) if file.check else ("" if facts.size else "the file is empty"))
        if problem:
            return problem
        with job.lock:
            job.recorded[file.path] = facts.sha256
    return ""


def _md5_problem(file: RemoteFile, path: Path) -> str:
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    return "" if digest == file.md5 else f"md5 is {digest}, expected {file.md5}"


def _read_record(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    record = read_json(path, hint=_REMOVE)
    hashes = record.get("sha256") if isinstance(record, dict) else None
    if not isinstance(hashes, dict) or not all(isinstance(value, str) for value in hashes.values()):
        raise UserError(f"{path} is damaged: it holds no hashes", _REMOVE)
    return dict(hashes)


# ---- what is not -----------------------------------------------------------------------------------------------------


def _download_all(
    job: _Job, missing: list[RemoteFile], total: int, progress: Progress | None
) -> list[tuple[RemoteFile, str]]:
    failures: list[tuple[RemoteFile, str]] = []
    done = total - len(missing)
    with ThreadPoolExecutor(PARALLEL) as pool:
        for file, reason in zip(missing, pool.map(lambda f: _fetch_file(job, f), missing)):
            failures += [(file, reason)] if reason else []
            done += 1
            if progress:
                progress(done, total)
    return failures


def _fetch_file(job: _Job, file: RemoteFile) -> str:
    """Fetch a file from the first mirror that has it; return why that failed, or ""."""
    place = file_behind(job.place(file))
    part = place.with_name(place.name + job.suffix)
    reasons = []
    with disk_errors(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        for mirror in job.mirrors:
            reason = job.down.get(mirror) or _from_mirror(job, file, mirror, part)
            if not reason:
                part.replace(place)
                return ""
            reasons.append(reason)
        if job.suffix != PART:
            part.unlink(missing_ok=True)
    return "; ".join(reasons) or "the dataset names no mirror"


@contextmanager
def _part_suffix(lock: Path) -> Iterator[str]:
    """Yield the suffix of unfinished files: the common one, or one of our own while another process fetches.

    An unfinished file of the common suffix is continued by the next fetch; two processes must not write to it at once.
    The system drops the lock when the process dies, however it dies.
    """
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("ab")
    except OSError as error:
        raise write_error(lock, error) from error
    with file:
        try:
            take_lock(file.fileno())
        except OSError:  # another process holds it, or the file system knows no locks
            yield f".{os.getpid()}{PART}"
        else:
            yield PART


def _from_mirror(job: _Job, file: RemoteFile, mirror: str, part: Path) -> str:
    url = f"{mirror.rstrip('/')}/{urllib.parse.quote(file.source)}"
    # A part left by another mirror or an older version may not fit: then try once more, from the first byte.
    for resumed in (part.is_file(), False):
        try:
            download(url, part, file.size)
        except Unreachable as error:
            # Not asked again in this fetch: a thousand files must not wait for the same dead server.
            return job.down.setdefault(mirror, f"{mirror}: {error}")
        except Refused as error:
            return str(error)
        problem = _accept(job, file, part)
        if not problem:
            return ""
        part.unlink(missing_ok=True)
        if not resumed:
            break
    return f"{url}: {problem}"


def _put_by_hand(job: _Job, missing: list[RemoteFile], reasons: list[str]) -> UserError:
    """Build the error that tells how to put every missing file in place by hand."""
    orders = [f"put file {f.source} with {f.identity} at {job.place(f).absolute()}" for f in missing]
    distinct = list(dict.fromkeys(reasons))
    more = [f"… and {len(distinct) - 5} more reasons"] if len(distinct) > 5 else []
    why = "\n".join(f"  - {r}" for r in distinct[:5] + more)
    source = [f"the files are published below {job.dataset.mirrors[0]}"] if job.dataset.mirrors else []
    kept = "what has arrived is kept, the same command continues"
    hint = "; ".join([*source, "or name a copy with --mirror URL", kept])
    listing = "\n".join(f"  {order}" for order in orders)
    return UserError(f"dataset {job.dataset.name!r} is not complete\n{why}\n{listing}", hint)
