"""From a spec such as ``timm:resnet50`` to observers: find the adapter, check what it needs, let it load."""

from __future__ import annotations

import importlib.util

from cuebench.errors import MissingExtra, UserError
from cuebench.observers.base import Adapter, LoadOptions, ObserverBase, Spec, complete
from cuebench.registry import adapters


def load(spec: str, options: LoadOptions | None = None) -> list[ObserverBase]:
    """Return the observers that a spec stands for (one file of people gives many).

    Parameters
    ----------
    spec : str
        ``SOURCE:NAME[?key=value&…]``; ``cuebench list observers`` prints the sources and their forms.
    options : LoadOptions, optional
        Device, precision, offline …: the same for every observer of a run.

    Raises
    ------
    MissingExtra
        A package that the source needs is not installed; nothing heavy is imported to find that out.
    """
    parsed = Spec.parse(spec)
    adapter: Adapter = adapters.get(parsed.scheme)
    require(f"observer {spec!r}", adapter.extra, adapter.packages, adapter.install)
    observers = [complete(observer) for observer in adapter.load(parsed, options or LoadOptions())]
    for observer in observers:
        # A suite loads its members by their own adapters, whose versions count. Some observers are frozen dataclasses.
        if not observer.loaded_by:
            object.__setattr__(observer, "loaded_by", f"{parsed.scheme}/{adapter.version}")
    return observers


def missing_packages(adapter: Adapter) -> list[str]:
    """Return the packages of an adapter that are not installed."""
    return [name for name in adapter.packages if importlib.util.find_spec(name) is None]


def require(what: str, extra: str, packages: tuple[str, ...], install: str = "") -> None:
    """Raise ``MissingExtra`` for the first package that is not installed, without importing any.

    Packages that belong to no extra have a command of their own, ``install``.
    """
    for name in packages:
        if importlib.util.find_spec(name) is None:
            if install:
                raise UserError(f"{what}: the Python package {name!r} is not installed", install)
            raise MissingExtra(what, extra, name)
