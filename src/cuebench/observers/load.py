"""From a spec such as ``timm:resnet50`` to observers: find the adapter, check what it needs, let it load."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence, Set
from pathlib import Path, PurePath

from cuebench.errors import MissingExtra, UserError
from cuebench.observers.base import Adapter, LoadOptions, Observer, ObserverBase, Spec, complete
from cuebench.observers.spec_files import meant, with_name, without_name
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


def with_distinct_names(
    specs: Sequence[str | Observer], held: Sequence[str] = (), folder: str | Path = "."
) -> list[str | Observer]:
    """Return the specs; files of one name in several folders, such as two ``best.pth``, are named by folder, too.

    Parameters
    ----------
    specs : sequence of str or Observer
        As the user wrote them.
    held : sequence of str
        Specs of the run folder as they are meant from everywhere (`spec_files.meant`): they keep their names there.
    folder : path
        From which the specs are meant.

    >>> with_distinct_names(["checkpoint:a/best.pth?arch=x:y", "checkpoint:b/best.pth?arch=x:y"])[1]
    'checkpoint:b/best.pth?arch=x:y&name=checkpoint:b/best'
    """
    texts = [text for text in specs if isinstance(text, str) and ":" in text]
    taken = {Spec.parse(text).options.get("name") or Spec.parse(text).name for text in held if ":" in text}
    files: dict[str, dict[str, PurePath]] = {}
    named: dict[str, str] = {}
    for text in texts:
        spec = Spec.parse(text)
        if spec.weight_file is None or spec.options.get("name"):
            continue
        there = meant(text, folder)
        earlier = next((other for other in held if there in (other, _before_it_was_named(other))), None)
        if earlier is None:
            files.setdefault(spec.name, {})[text] = spec.weight_file
        elif earlier != there:
            named[text] = Spec.parse(earlier).options["name"]
    for name, same in files.items():
        if len(same) > 1 or name in taken:
            named |= _names_by_folder(same, taken, Path(folder)) or {}
    return [with_name(text, named[text]) if isinstance(text, str) and text in named else text for text in specs]


def _names_by_folder(same: Mapping[str, PurePath], taken: Set[str], folder: Path) -> dict[str, str] | None:
    """Return names with as many folders as it takes; None for the same file with other options."""
    for paths in (same, {text: folder.absolute() / path for text, path in same.items()}):
        for depth in range(2, max(len(path.parts) for path in paths.values()) + 1):
            names = {text: _name_by(Spec.parse(text), path, depth) for text, path in paths.items()}
            if len(set(names.values())) == len(same) and taken.isdisjoint(names.values()):
                return names
    return None


def _name_by(spec: Spec, path: PurePath, depth: int) -> str:
    return spec.named_by("/".join((*path.parts[-depth:-1], path.stem)))


def _before_it_was_named(text: str) -> str:
    """Return a spec as it was written before `with_distinct_names` named it; any other as it is."""
    spec = Spec.parse(text) if ":" in text else None
    if spec is None or spec.weight_file is None:
        return text
    path, name = spec.weight_file, spec.options.get("name")
    automatic = name in {_name_by(spec, path, depth) for depth in range(2, len(path.parts) + 1)}
    return without_name(text) if automatic else text


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
