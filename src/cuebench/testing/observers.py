"""Checks of observers and of the adapters that load them."""

from __future__ import annotations

from typing import Any

from cuebench.observers.base import Adapter, Spec
from cuebench.registry import adapters
from cuebench.testing.base import require


def check_adapter(adapter: str | Adapter) -> None:
    """Check that an adapter can be listed without its libraries and shows how it is written.

    Parameters
    ----------
    adapter : str or Adapter
        A name, ``python:FILE.py:NAME``, or the object; its own name is what its form begins with.
    """
    part: Adapter = adapters.get(adapter) if isinstance(adapter, str) else adapter
    require(isinstance(part, Adapter), f"expected an Adapter, got a {type(part).__name__}: {part!r}")
    named = isinstance(adapter, str) and adapter in adapters
    first, colon, _ = part.form.partition(":")
    require(colon and first.isidentifier(), f"the form {part.form!r} does not begin with a name and a colon")
    name = str(adapter) if named else first
    require(part.form.startswith(f"{name}:"), f"the form {part.form!r} of {name!r} does not begin with its name")
    require(part.version >= 1, f"adapter {name!r} has version {part.version}")
    how = part.extra or part.install
    require(bool(how) == bool(part.packages), f"adapter {name!r}: an extra (or install=) and its packages go together")
    for example in part.examples:
        require(Spec.parse(example).scheme == name, f"{example!r} is not an example of {name!r}")


def check_observer(observer: Any, *, tolerance: float = 1e-4, seed: int = 0) -> None:
    """Check an observer of your own; see ``cuebench.observers.conformance.check_observer``."""
    from cuebench.observers.conformance import check_observer as check

    check(observer, tolerance=tolerance, seed=seed)
