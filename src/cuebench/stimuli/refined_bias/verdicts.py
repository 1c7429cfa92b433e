"""Verdicts of people on the cues of a set: a table ``cue,verdict`` that overrides the automatic inspection."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from cuebench.errors import UserError, all_problems

ACCEPT = frozenset({"accept", "accepted", "good", "keep", "yes", "1", "true"})
REJECT = frozenset({"reject", "rejected", "bad", "drop", "no", "0", "false"})
_NAMES = ("cue", "stimulus", "file", "image")


def read_verdicts(path: Path, known: Iterable[str]) -> dict[str, tuple[bool, str]]:
    """Return cue → (accepted, reason) from a CSV.

    Parameters
    ----------
    path : Path
        Columns ``cue`` (or ``stimulus``, ``file``, ``image``: a file name with or without folder and extension),
        ``verdict`` (accept or reject) and, if wanted, ``reason``. Of several rows for a cue (several people) the
        majority counts; a tie rejects.
    known : iterable of str
        Names of the cues that were made.
    """
    rows = _rows(path)
    column = next((n for n in _NAMES if rows and n in rows[0]), "")
    if rows and (not column or "verdict" not in rows[0]):
        raise UserError(f"{path}: needs columns cue and verdict; found {', '.join(rows[0])}")
    names, problems = set(known), []
    votes: dict[str, list[bool]] = {}
    reasons: dict[str, list[str]] = {}
    for line, row in enumerate(rows, start=2):
        cue, word = Path((row[column] or "").strip()).name, (row["verdict"] or "").strip().lower()
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


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"verdicts {path} cannot be read: {error}") from None
