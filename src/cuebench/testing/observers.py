"""Checks of observers and of the adapters that load them."""

from __future__ import annotations

from typing import Any

from cuebench.observers.base import Spec
from cuebench.registry import adapters
from cuebench.testing.base import require


def check_adapter(name: str) -> None:
    """Check that an adapter can be listed without its libraries and shows how it is written."""
    adapter = adapters.get(name)
    require(adapter.form.startswith(f"{name}:"), f"the form {adapter.form!r} of {name!r} does not begin with its name")
    require(adapter.version >= 1, f"adapter {name!r} has version {adapter.version}")
    require(bool(adapter.extra) == bool(adapter.packages), f"adapter {name!r}: an extra and its packages go together")
    for example in adapter.examples:
        require(Spec.parse(example).scheme == name, f"{example!r} is not an example of {name!r}")


def check_observer(observer: Any, *, tolerance: float = 1e-4, seed: int = 0) -> None:
    """Check an observer of your own; see ``cuebench.observers.conformance.check_observer``."""
    from cuebench.observers.conformance import check_observer as check

    check(observer, tolerance=tolerance, seed=seed)
