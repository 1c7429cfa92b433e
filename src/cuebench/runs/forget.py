"""``--fresh``: delete what an earlier run wrote to a folder, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cuebench.errors import UserError, all_problems
from cuebench.places import RemotePath
from cuebench.registry import protocols
from cuebench.runs.record import PARTS, RunRecord

_ANSWERS = re.compile(r".*--[0-9a-f]{16}(\.stale-[0-9]+)?")
"""Earlier versions left the name empty where it had no Latin letters; answers that were set aside are called stale."""
_SET_ASIDE = re.compile(r"\.stale-[0-9]+$")
_SHARD = re.compile(r"key\.json|[0-9a-f]{24}\.parquet|\..+\.tmp")
_MANIFEST = re.compile(r"(.+)-[0-9a-f]{12}\.parquet")
_PART = re.compile(r"[0-9]+-of-[0-9]+\.json")
_LABELS = re.compile(r"labels-[0-9a-f]{12}\.\w+")


def check_forgettable(folder: Path) -> None:
    """Refuse to begin afresh in a folder that holds something else than a run."""
    if (folder / "run.json").is_file():
        return
    others = sorted(p.name for p in folder.iterdir() if p.name != ".lock")
    if others:
        shown = ", ".join(others[:5]) + (" …" if len(others) > 5 else "")
        raise UserError(
            f"--fresh: {folder} is not a run folder (it has no run.json, but {shown})",
            "choose another --out; nothing was deleted",
        )


def forget(folder: Path) -> None:
    """Delete answers, manifests, tables and scores of a run; what is not ours stays.

    The record stays too, until that of the new run replaces it: a folder without one would not be known as a run
    folder, should the process be killed in between.

    Raises
    ------
    UserError
        Naming everything that could not be deleted.
    """
    problems = [reason for path in list(_written(folder)) if (reason := _delete(path))]
    if problems:
        raise all_problems(f"--fresh: not everything in {folder} can be deleted", problems, "check the permissions")


def _written(folder: Path) -> Iterator[Path | RemotePath]:
    """Yield what a run wrote, files before their folders."""
    record = _recorded(folder)
    names = {*protocols, *(record.protocol_names() if record else ())}
    responses = record.options.responses_in(folder) if record else folder / "responses"
    shared = record is not None and record.options.responses  # with other runs: theirs stay
    ours = {job.folder for job in record.jobs} if record else set()
    for answers in _matching(responses, _ANSWERS):
        if shared and _SET_ASIDE.sub("", answers.name) not in ours:
            continue
        if (answers / "key.json").is_file():
            yield from sorted(_matching(answers, _SHARD), key=lambda p: p.name == "key.json")
            yield answers
    for path in _matching(folder / "stimuli", _MANIFEST):
        if path.name.rpartition("-")[0] in names:
            yield path
    yield from _matching(folder / "stimuli", _LABELS)
    for name in sorted(names):
        yield from sorted((folder / "tables").glob(f"{name}.*.parquet"))
    yield from _matching(folder / PARTS, _PART)
    yield responses
    yield from (folder / part for part in ("responses", "stimuli", "tables", PARTS))
    yield from (folder / part for part in ("scores.parquet", "scores.json"))


def _recorded(folder: Path) -> RunRecord | None:
    try:
        return RunRecord.read(folder)
    except UserError:  # none there, or damaged
        return None


def _matching(folder: Path | RemotePath, names: re.Pattern[str]) -> list[Any]:
    return sorted(p for p in folder.iterdir() if names.fullmatch(p.name)) if folder.is_dir() else []


def _delete(path: Path | RemotePath) -> str:
    """Delete a file, or a folder that is empty; return why it cannot be."""
    try:
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    return ""
