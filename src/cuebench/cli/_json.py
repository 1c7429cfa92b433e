"""Results for machines: one strict JSON document on standard output."""

from __future__ import annotations

from typing import Any

from cuebench.files import json_text


def print_json(data: Any) -> None:
    """Print a result as JSON that every parser reads: NaN is null."""
    print(json_text(data), end="")
