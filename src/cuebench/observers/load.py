"""From a spec such as ``timm:resnet50`` to observers: find the adapter, check what it needs, let it load."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import PurePath
from urllib.parse import quote

from cuebench.errors import MissingExtra, UserError
from cuebench.observers.base import Adapter, LoadOptions, Observer, ObserverBase, Spec, complete
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


def with_distinct_names(specs: Sequence[str | Observer]) -> list[str | Observer]:
    """Return the specs; files of one name in several folders, such as two ``best.pth``, are named by folder, too.

    >>> with_distinct_names(["checkpoint:a/best.pth?arch=x:y", "checkpoint:b/best.pth?arch=x:y"])[1]
    'checkpoint:b/best.pth?arch=x:y&name=checkpoint:b/best'
    """
    files: dict[str, dict[str, PurePath]] = {}
    for text in [text for text in specs if isinstance(text, str) and ":" in text]:
        spec = Spec.parse(text)
        if spec.weight_file is not None and not spec.options.get("name"):
            files.setdefault(spec.name, {})[text] = spec.weight_file
    named: dict[str, str] = {}
    for same in [same for same in files.values() if len(same) > 1]:
        for depth in range(2, max(len(path.parts) for path in same.values()) + 1):
            names = {text: "/".join((*path.parts[-depth:-1], path.stem)) for text, path in same.items()}
            if len(set(names.values())) == len(same):  # the same file with other options cannot be told apart so
                named |= names
                break
    return [
        f"{text}{'&' if '?' in text else '?'}name={quote(Spec.parse(text).named_by(named[text]), safe='/:')}"
        if isinstance(text, str) and text in named
        else text
        for text in specs
    ]


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
