"""Errors of the user: one class with a message and a hint; every other exception is a bug."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

MOST_NAMES = 40
"""Most known names that an error lists; where there are more, it lists the nearest."""

# Control characters (but line feed and tab), marks that reverse the order of what is read, halves of characters that
# stand for bytes which are not UTF-8, and what XML does not allow.
UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def is_utf8(text: str) -> bool:
    """Tell whether a text is Unicode: names of files that are not get halves of characters from the system."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def printable(text: str) -> str:
    """Return a text that can be shown anywhere: a name from a file cannot command a terminal or break an SVG.

    >>> printable("net\x1b[31m")
    'net\ufffd[31m'
    """
    return UNPRINTABLE.sub("\ufffd", text)


def is_printable(text: str) -> bool:
    """Tell whether a text holds nothing that ``printable`` would replace."""
    return UNPRINTABLE.search(text) is None


class UserError(Exception):
    """A mistake that the user can correct: printed without a traceback, with what to do next.

    Parameters
    ----------
    message : str
        What is wrong, with the value that was received.
    hint : str
        What to do next, ideally a command.
    """

    problems: tuple[str, ...] = ()
    """Where several are reported at once (``all_problems``): each of them."""

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = message
        self.hint = hint
        super().__init__(f"{message}\n{hint}" if hint else message)

    def __reduce__(self) -> tuple[type[UserError], tuple[str, str]]:
        """Keep both parts when the error crosses a process border."""
        return type(self), (self.message, self.hint)


class MissingExtra(UserError):
    """A part of cuebench needs an optional dependency that is not installed."""

    def __init__(self, what: str, extra: str, missing: str = "") -> None:
        self.what, self.extra, self.missing = what, extra, missing
        because = f": the Python package '{missing}' is not installed" if missing else ""
        super().__init__(f"{what} needs the extra '{extra}'{because}", f"pip install 'cuebench[{extra}]'")

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str, str]]:  # type: ignore[override]
        """Keep all parts when the error crosses a process border."""
        return type(self), (self.what, self.extra, self.missing)


def did_you_mean(kind: str, name: str, known: Iterable[str]) -> UserError:
    """Build the error for an unknown name, with the nearest known ones.

    >>> print(did_you_mean("protocol", "cue_conflct", ["cue_conflict", "triplets"]))
    unknown protocol 'cue_conflct'. Did you mean 'cue_conflict'?
    known: cue_conflict, triplets
    """
    names = sorted({*known})
    near = difflib.get_close_matches(str(name), names, n=3, cutoff=0.5)
    guess = f" Did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
    shown = names if len(names) <= MOST_NAMES else difflib.get_close_matches(str(name), names, n=MOST_NAMES, cutoff=0)
    more = f" … and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    listing = ", ".join(shown) + more if names else "none"
    return UserError(f"unknown {kind} {name!r}.{guess}", f"known: {listing}")


class NoStimuli(UserError):
    """A folder in which stimuli are expected is missing or empty: perhaps the data root is another one.

    Parameters
    ----------
    message, hint : str
        As of every ``UserError``.
    place : str
        The folder.
    """

    def __init__(self, message: str, hint: str, place: str) -> None:
        self.place = place
        super().__init__(message, hint)


def all_problems(title: str, problems: Iterable[str], hint: str = "", most: int = 20) -> UserError:
    """Build an error that reports all problems at once instead of the first only."""
    listed = list(problems)
    lines = [f"{title}: {len(listed)} problem{'s' * (len(listed) != 1)}", *(f"  - {p}" for p in listed[:most])]
    if len(listed) > most:
        lines.append(f"  … and {len(listed) - most} more")
    error = UserError("\n".join(lines), hint)
    error.problems = tuple(listed)
    return error
