"""What all conformance checks share: how they fail, and how a user chooses among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from cuebench.errors import did_you_mean

Subject = TypeVar("Subject")


class CheckFailed(AssertionError):
    """A part does not keep its contract."""


def require(condition: Any, message: str) -> None:
    """Raise ``CheckFailed`` with the message unless the condition holds."""
    if not condition:
        raise CheckFailed(message)


def run_checks(checks: Mapping[str, Callable[[Subject], None]], subject: Subject, only: Iterable[str]) -> None:
    """Run the named checks, or all of them, in their own order."""
    chosen = set(only)
    for name in chosen - set(checks):
        raise did_you_mean("check", name, checks)
    for name, check in checks.items():
        if not chosen or name in chosen:
            check(subject)
