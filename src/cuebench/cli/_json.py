"""Results for machines: one strict JSON document on standard output, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any, TextIO

from cuebench.files import json_text

_reserved: list[TextIO] = []


def print_json(data: Any) -> None:
    """Print a result as JSON that every parser reads: NaN is null."""
    print(json_text(data), end="", file=_reserved[-1] if _reserved else sys.stdout)


@contextmanager
def only_json() -> Iterator[None]:
    """Keep standard output for ``print_json``: what a model or a library prints meanwhile goes to standard error."""
    _reserved.append(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _reserved.pop()
