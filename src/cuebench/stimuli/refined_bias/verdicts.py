"""Verdicts of people on the cues of a set, from a table or from ``cuebench curate``: they override the inspection."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cuebench.errors import UserError, all_problems
from cuebench.reading import read_csv
from cuebench.stimuli.curation.verdict_log import KEEP, read_logs

ACCEPT = frozenset({"accept", "accepted", "good", "keep", "yes", "1", "true"})
REJECT = frozenset({"reject", "rejected", "bad", "drop", "no", "0", "false"})
_NAMES = ("cue", "stimulus", "file", "image")


def read_verdicts(path: Path, known: Iterable[str]) -> dict[str, tuple[bool, str]]:
    """Return cue → (accepted, reason) from a CSV, or from the logs of ``cuebench curate``.

    Parameters
    ----------
    path : Path
        A folder of logs, or a CSV with columns
        ``cue`` (or ``stimulus``, ``file``, ``image``: a file name with or without folder and extension),
        ``verdict`` (accept or reject) and, if wanted, ``reason``. Of several rows for a cue (several people) the
        majority counts; a tie rejects.
    known : iterable of str
        Names of the cues that were made.
    """
    if path.is_dir():
        return _of_judges(path, known)
    columns, rows, lines = read_csv(path, "verdicts")
    column = next((n for n in _NAMES if n in columns), "")
    if not column or "verdict" not in columns:
        raise UserError(f"{path}: needs columns cue and verdict; found {', '.join(columns) or 'none'}")
    names, problems = set(known), []
    votes: dict[str, list[bool]] = {}
    reasons: dict[str, list[str]] = {}
    for line, row in zip(lines, rows):
        cue, word = Path(row[column].strip()).name, row["verdict"].strip().lower()
        cue = cue.removesuffix(".png")
        if cue not in names:
            problems.append(f"line {line}: no cue {cue!r} was made")
        elif word not in ACCEPT | REJECT:
            problems.append(f"line {line}: verdict {row['verdict']!r}; accepted: accept or reject")
        else:
            votes.setdefault(cue, []).append(word in ACCEPT)
            reasons.setdefault(cue, []).append((row.get("reason") or "").strip())
    if problems:
        raise all_problems(f"verdicts {path}", problems)
    return {
        cue: (2 * sum(accepted) > len(accepted), "; ".join(dict.fromkeys(r for r in reasons[cue] if r)))
        for cue, accepted in votes.items()
    }


def _of_judges(folder: Path, known: Iterable[str]) -> dict[str, tuple[bool, str]]:
    """Return the majority of the judges; a tie rejects. Verdicts about other cues are left alone: sets may grow."""
    logs = read_logs(folder)
    if not logs:
        raise UserError(f"{folder} holds no verdicts", "judge some cues: cuebench curate DIR")
    verdicts = {}
    for cue in known:
        given = [by_cue[cue] for by_cue in logs.values() if cue in by_cue]
        if given:
            kept = sum(v.verdict == KEEP for v in given)
            reasons = dict.fromkeys(v.reason for v in given if v.reason)
            verdicts[cue] = (2 * kept > len(given), "; ".join(reasons))
    return verdicts
