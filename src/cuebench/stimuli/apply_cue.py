"""Apply a cue to a file or to a folder of images: in parallel, resumable, the same for any number of workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cuebench._version import __version__
from cuebench.errors import UserError
from cuebench.files import disk_errors, write_json
from cuebench.options import SEED, WORKERS, parse
from cuebench.reading import read_json
from cuebench.registry import cues
from cuebench.stimuli._cue_worker import run_jobs
from cuebench.stimuli.cue_files import Job, check_call, plan
from cuebench.stimuli.input_log import InputLog, digests
from cuebench.stimuli.made import changes

MANIFEST = "cue.json"
"""Name of the file in the target folder that says how it was made."""
_UNRECORDED = frozenset({"backend", "workers"})
"""Options that decide where a cue is computed, not what it is."""

Progress = Callable[[int, int, str], None]
"""``progress(done, total, message)``; the message is empty, or names a file that failed and why."""


class Applied(NamedTuple):
    """The result of `apply_cue`: counts of files, and failures."""

    target: Path
    made: int
    """Files that were written now."""
    kept: int
    """Files that were there already."""
    failed: dict[str, str]
    """Source file → reason."""


def apply_cue(
    cue: str | Callable[..., Any],
    source: str | Path,
    target: str | Path,
    *,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    workers: int = 0,
    mask: str | Path | None = None,
    invert_mask: bool = False,
    other: str | Path | None = None,
    fresh: bool = False,
    progress: Progress | None = None,
) -> Applied:
    """Apply a cue to an image file or to every image below a folder.

    Results are PNG files under the same relative names. Each is written whole or not at all; the same call continues
    where it stopped and keeps results whose inputs are the same, by their hashes. ``cue.json`` in the target folder
    records cue and parameters; a call with others is refused.

    Parameters
    ----------
    cue : str or callable
        Public name, ``python:FILE.py:NAME``, or a function with a ``CueInfo`` as ``info`` (which runs in this process,
        as worker processes cannot see it).
    source, target : path
        A file and a file (or folder), or a folder and a folder.
    options : mapping, optional
        Keyword arguments of the cue: values, or texts that are converted to the types of its signature.
    seed : int
        The seed of each file is derived from this and its relative name, so neither the order nor the number of
        workers matters.
    workers : int
        Processes; 0: one for each core.
    mask : path, optional
        File, or folder with files of the same relative names. For a cue that needs an object mask: white or opaque
        inside the object. For one that moves pixels: a label mask, moved along and written to ``masks/`` in the target.
    invert_mask : bool
        The object is black, as in the published silhouettes.
    other : path, optional
        File, or folder with files of the same relative names: the second image of a mixing cue.
    fresh : bool
        Make all files again, with these parameters.
    progress : callable, optional
        See `Progress`.

    Returns
    -------
    Applied

    Raises
    ------
    UserError
        A mistake that concerns the whole call: unknown cue or parameter, no images, other parameters in the folder,
        or every file failed for the same reason.
    """
    name = cue if isinstance(cue, str) else cues.resolve(cue)
    options = check_call(name, options or {}, has_mask=mask is not None, has_other=other is not None)
    given = parse({"seed": SEED, "workers": WORKERS}, {"seed": seed, "workers": workers}, f"cue {name!r}")
    seed, workers = given["seed"], given["workers"]
    jobs = plan(name, Path(source), Path(target), options, seed, mask, invert_mask, other)
    whole_folder, new = Path(source).is_dir(), False
    todo, log, hashes = jobs, None, dict[Path, str]()
    if whole_folder:
        recipe = recipe_of(name, options, seed, Path(target), mask=mask, other=other, invert_mask=invert_mask)
        new = not (Path(target) / MANIFEST).exists()
        claim_folder(Path(target), recipe, jobs, fresh=fresh)
        log, hashes = InputLog(Path(target)), digests({job.target: job.inputs for job in jobs})
        todo = [job for job in jobs if fresh or not log.is_current(job.results, job.inputs, hashes[job.target])]
        remaining = {job.target for job in todo}
        for job in jobs:
            if job.target not in remaining:
                log.add(job.target, hashes[job.target])
    kept, total = len(jobs) - len(todo), len(jobs)
    report = progress or (lambda done, total, message: None)
    failed: dict[str, str] = {}
    report(kept, total, "")
    for done, (job, reason) in enumerate(run_jobs(todo, workers), start=kept + 1):
        if reason:
            failed[str(job.source)] = reason
        elif log is not None:
            log.add(job.target, hashes[job.target])
        report(done, total, f"{job.source}: {reason}" if reason else "")
    if log is not None:
        log.finish()
    if new and len(failed) == total:  # nothing was made: a corrected command must not meet the claim of this one
        with disk_errors(Path(target)):
            (Path(target) / MANIFEST).unlink()
    reasons = set(failed.values())
    if total > 1 and len(failed) == total and len(reasons) == 1:  # one mistake is one error, not a thousand
        raise UserError(f"all {total} files failed: {reasons.pop()}")
    return Applied(Path(target), len(todo) - len(failed), kept, failed)


def recipe_of(
    name: str,
    options: Mapping[str, Any],
    seed: int,
    target: Path,
    *,
    mask: str | Path | None = None,
    other: str | Path | None = None,
    invert_mask: bool = False,
) -> dict[str, Any]:
    """Return what ``cue.json`` says; other folders are named as seen from the target, so that all may move together."""
    kept = {key: value for key, value in options.items() if key not in _UNRECORDED}
    places = {key: _seen_from(target, path) for key, path in (("mask", mask), ("other", other))}
    return {"cue": name, "options": kept, "seed": seed, **places, "invert_mask": invert_mask}


def claim_folder(folder: Path, recipe: Mapping[str, Any], jobs: list[Job], *, fresh: bool = False) -> None:
    """Write the manifest of a target folder, or refuse a folder that was made in another way."""
    path = folder / MANIFEST
    if not fresh:
        _check_claim(path, recipe, jobs)
    write_json(path, {**recipe, "cuebench": __version__})


def _check_claim(path: Path, wanted: Mapping[str, Any], jobs: list[Job]) -> None:
    way_out = "choose another folder, or make all files again with --fresh"
    if not path.exists():
        taken = next((job.target for job in jobs if job.target.exists()), None)
        if taken is not None:
            raise UserError(f"{taken} exists, but {path.parent} has no {MANIFEST} that says how it was made", way_out)
        return
    try:
        record = read_json(path)
    except UserError:
        record = None
    if not isinstance(record, dict):
        raise UserError(f"{path} is not readable as JSON", way_out)
    if changed := changes(record, wanted):
        raise UserError(f"{path.parent} was made with other parameters: {changed}", way_out)


def _seen_from(target: Path, path: str | Path | None) -> str | None:
    if path is None:
        return None
    try:
        return Path(os.path.relpath(Path(path).resolve(), target.resolve())).as_posix()
    except ValueError:  # another drive of Windows
        return Path(path).resolve().as_posix()
