"""Results for machines: one strict JSON document on standard output, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any, TextIO

from cuebench.errors import UNPRINTABLE
from cuebench.files import json_text

_reserved: list[TextIO] = []


def print_json(data: Any) -> None:
    """Print a result as JSON that every parser reads: NaN is null."""
    print(escaped(json_text(data)), end="", file=_reserved[-1] if _reserved else sys.stdout)


def escaped(text: str) -> str:
    """Return JSON in which characters that a terminal obeys, or that are no UTF-8, are written as ``\\u001b``.

    Every parser reads the same text again.
    """
    # They occur within strings only; JSON itself escapes those below the space.
    return UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


@contextmanager
def only_json() -> Iterator[None]:
    """Keep standard output for ``print_json``: what a model or a library prints meanwhile goes to standard error."""
    _reserved.append(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _reserved.pop()
