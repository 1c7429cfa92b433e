"""One registry for all parts: built-in files, installed plug-ins, a file of your own, or an object.

Every kind of part (cue, metric, protocol, …) has a `Registry`. A part has a public name and comes from one of

- a file of this package: the file name is the public name, or the names in its ``METRICS``-like marker;
- an installed distribution, by an entry point of the group ``cuebench.<kind>s``;
- a Python file, named ``python:FILE.py:NAME`` wherever a part is named;
- an object that was passed to a function such as ``cuebench.evaluate``.

Built-in parts are listed without importing them (except files that hold several metrics): names come from the folder
and summaries from the docstring, so ``cuebench list`` is quick and works where an extra is missing. A plug-in that
cannot be loaded is reported by ``cuebench list`` and ``cuebench doctor`` and fails only where it is asked for.
"""

from __future__ import annotations

import ast
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from cuebench.errors import UserError, did_you_mean
from cuebench.imports import watched
from cuebench.python_files import load_file

ROOT = Path(__file__).parent
BUILT_IN = "cuebench"
"""Origin of the parts of this package."""
OBJECT = "a Python object"
"""Origin of parts that were passed as objects."""
SCHEME = "python:"
"""Prefix of a part in a file of the user's own: ``python:FILE.py:NAME``."""


@dataclass(frozen=True)
class Part:
    """A part that may not have been imported yet."""

    name: str
    origin: str
    load: Callable[[], Any]
    path: Path | None = None
    module: str = ""
    """Name of the module that the part is written in; empty: not known."""


@dataclass(frozen=True)
class Registry:
    """The parts of one kind.

    Parameters
    ----------
    kind : str
        The word used in messages, e.g. ``"metric"``.
    package : str
        Dotted package that holds one file, or one sub-package, for each part.
    marker : str
        Name that a part assigns at top level; empty: every public file is a part, and the object is the attribute that
        has the file's own name.
    several : str
        Name of a top-level tuple of parts, for files that declare more than one.
    requires : tuple of str
        Attributes that tell an object of this kind from anything else.
    function : bool
        The part is the function that has the file's own name; the marker describes it and becomes its ``info``.
    """

    kind: str
    package: str
    marker: str = ""
    several: str = ""
    requires: tuple[str, ...] = ()
    function: bool = False
    added: dict[str, Part] = field(default_factory=dict, compare=False, repr=False)
    """Parts that were passed as objects or named by file, in this process."""

    @property
    def folder(self) -> Path:
        """The folder that is scanned for built-in parts."""
        return ROOT.joinpath(*self.package.split(".")[1:])

    @property
    def group(self) -> str:
        """The entry-point group of plug-ins: ``cuebench.protocols``."""
        return f"cuebench.{self.kind.replace(' ', '_')}s"

    # ------------------------------------------------------------------------------------------ what there is

    @cached_property
    def _built_in(self) -> dict[str, Part]:
        paths = [*self.folder.glob("[!_]*.py"), *(p for p in self.folder.glob("[!_]*/__init__.py"))]
        parts: dict[str, Part] = {}
        for path in sorted(paths, key=_stem):
            name, text = _stem(path), path.read_text("utf-8")
            if not self.marker or _assigns(text, self.marker):
                parts[name] = Part(name, BUILT_IN, self._loader(name), path, f"{self.package}.{name}")
            elif self.several and _assigns(text, self.several):
                module = f"{self.package}.{name}"
                for part in getattr(importlib.import_module(module), self.several):
                    parts[part.name] = Part(part.name, BUILT_IN, partial(_identity, part), path, module)
        return dict(sorted(parts.items()))

    def _loader(self, name: str) -> Callable[[], Any]:
        return lambda: self.of_module(importlib.import_module(f"{self.package}.{name}"), name)

    def of_module(self, module: ModuleType, name: str) -> Any:
        """Return the part that a module holds."""
        if not self.function:
            return getattr(module, self.marker or name)
        function = getattr(module, name)
        function.info = getattr(module, self.marker)
        return function

    @cached_property
    def _plugins(self) -> dict[str, Part]:
        """Parts of installed distributions; a name that is taken is not replaced."""
        parts: dict[str, Part] = {}
        for entry in self._entries:
            if entry.name not in self._built_in and entry.name not in parts:
                load = partial(self._from_entry, entry)
                parts[entry.name] = Part(entry.name, _distribution(entry), load, module=entry.module)
        return parts

    @cached_property
    def _entries(self) -> list[metadata.EntryPoint]:
        """Entry points of this kind, in an order that does not depend on the file system."""
        return sorted(metadata.entry_points(group=self.group), key=lambda e: (e.name, _distribution(e)))

    def _from_entry(self, entry: metadata.EntryPoint) -> Any:
        with watched(entry.module):
            loaded = entry.load()
        return self.of_module(loaded, entry.name) if isinstance(loaded, ModuleType) else loaded

    @property
    def parts(self) -> dict[str, Part]:
        """Public name → part: built-in, installed, then those of this process."""
        return {**self._built_in, **self._plugins, **self.added}

    def names(self) -> list[str]:
        """Return the public names, sorted."""
        return sorted(self.parts)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.parts

    def usable(self) -> Iterator[tuple[str, Any]]:
        """Yield the name and object of every part that can be loaded; `broken` names the others."""
        for name in self:
            try:
                yield name, self.get(name)
            except UserError:
                continue

    def broken(self) -> dict[str, str]:
        """Return name → reason for every plug-in that cannot be loaded, or whose name is taken."""
        problems = {}
        for name in self._plugins:
            try:
                self.get(name)
            except UserError as error:
                problems[name] = error.message
        for entry in self._entries:
            distribution, owner = _distribution(entry), self.origin(entry.name)
            if owner != distribution:
                owner = "cuebench itself" if owner == BUILT_IN else owner
                problem = f"{distribution}: the name {entry.name!r} is taken by {owner}"
                problems[entry.name] = "; ".join(filter(None, [problems.get(entry.name), problem]))
        return problems

    # ------------------------------------------------------------------------------------------ one of them

    def get(self, name: str) -> Any:
        """Return a part by its public name, or by ``python:FILE.py:NAME``."""
        if name.startswith(SCHEME):
            return self._from_file(name)
        part = self._part(name)
        if part.origin == BUILT_IN:
            return part.load()
        try:
            loaded = part.load()
        except (Exception, SystemExit) as error:
            raise UserError(
                f"{self.kind} {name!r} of {part.origin} cannot be loaded: {type(error).__name__}: {error}",
                "upgrade or uninstall that package; everything else works without it",
            ) from error
        self._check(loaded, part.origin)
        declared = _name(loaded) if self.function else getattr(loaded, "name", name)  # sources and adapters have none
        if declared != name:
            raise UserError(
                f"{self.kind} {name!r} of {part.origin} calls itself {declared!r}",
                "a part has the same name in its entry point and in its code",
            )
        return loaded

    def resolve(self, part: Any) -> str:
        """Return the public name of a part given by name, by ``python:FILE.py:NAME`` or as an object.

        The latter two are added to this registry, so that everything else can refer to them by name.
        """
        if isinstance(part, str) and not part.startswith(SCHEME):
            self._part(part)
            return part
        origin = part if isinstance(part, str) else OBJECT
        if isinstance(part, str) and not _named_by.get():  # who names a file wants it to run
            allow_code(_file_of(part))
        loaded = self._from_file(part) if isinstance(part, str) else part
        self._check(loaded, origin)
        name = _name(loaded) or (part.rpartition(":")[2] if isinstance(part, str) else "")
        if not name:
            raise UserError(f"{origin} has no name", f"give the {self.kind} a name")
        taken = {**self._built_in, **self._plugins}.get(name)
        if taken is None:
            module = _module_name(part) if isinstance(part, str) else getattr(loaded, "__module__", "")
            self.added[name] = Part(name, origin, lambda: loaded, module=module)
        elif self.get(name) is not loaded:
            raise UserError(f"{self.kind} {name!r}: {taken.origin} has one of that name", "choose another name")
        return name

    def origin(self, name: str) -> str:
        """Say where a part comes from: ``cuebench``, a distribution with its version, a file, or this session."""
        return name if name.startswith(SCHEME) else self._part(name).origin

    def summary(self, name: str) -> str:
        """Return the first line of a part's documentation; built-in parts are not imported for it."""
        part = self._part(name)
        if part.path is not None and part.path.stem in (name, "__init__"):
            doc = ast.get_docstring(ast.parse(part.path.read_text("utf-8"))) or ""
        else:
            doc = _documentation(self.get(name))
        return doc.partition("\n")[0]

    def module(self, name: str) -> ModuleType:
        """Return the module that a part was written in."""
        self.get(name)
        module = _module_name(name) if name.startswith(SCHEME) else self._part(name).module
        return importlib.import_module(module)

    def _part(self, name: str) -> Part:
        if name not in self.parts:
            raise did_you_mean(self.kind, name, self.parts)
        return self.parts[name]

    def _from_file(self, spec: str) -> Any:
        file, _, name = spec.removeprefix(SCHEME).rpartition(":")
        if not file or not name:
            raise UserError(f"{self.kind} {spec!r} does not name a part of a file", f"write {SCHEME}FILE.py:NAME")
        _check_allowed(file)
        module = load_file(file)
        if not hasattr(module, name):
            public = [n for n in vars(module) if not n.startswith("_")]
            raise did_you_mean(f"name in {file}:", name, public)
        loaded = getattr(module, name)
        self._check(loaded, spec)
        return loaded

    def _check(self, part: Any, origin: str) -> None:
        missing = [a for a in self.requires if not hasattr(part, a)]
        if missing:
            raise UserError(
                f"{origin} is not a {self.kind}: a {type(part).__name__} without {', '.join(missing)}",
                f"docs/extending.md shows a {self.kind}",
            )


# ------------------------------------------------------------------------------------------ whose code may run

ALLOW_CODE = "CUEBENCH_ALLOW_CODE"
"""Environment variable: Python files that recipes and records may name, as in ``PATH``. Workers inherit it."""
_named_by: ContextVar[str] = ContextVar("named_by", default="")


def allow_code(file: str | Path) -> None:
    """Let recipes of stimuli and records of runs name a Python file, which is then run where they do.

    A table of stimuli and a run folder are data, and may come from anybody: they run nothing that you have not named
    yourself. A protocol, maker, figure or cue that you name as ``python:FILE.py:NAME`` is allowed by that.

    Parameters
    ----------
    file : path
        The file. The flag ``--allow-code FILE.py`` of every command does the same.
    """
    if not isinstance(file, str | os.PathLike) or not Path(file).expanduser().is_file():
        raise UserError(f"there is no Python file {str(file)!r:.200}", "name the file that you trust by its path")
    os.environ[ALLOW_CODE] = os.pathsep.join(sorted({*allowed_code(), _real(file)}))


def allowed_code() -> set[str]:
    """Return the Python files that recipes and records may name."""
    return {_real(file) for file in os.environ.get(ALLOW_CODE, "").split(os.pathsep) if file}


@contextmanager
def named_by_data(what: str) -> Iterator[None]:
    """Inside the block, ``python:FILE.py:NAME`` comes from data: only files that were allowed are run.

    Parameters
    ----------
    what : str
        What names them, as messages say it: ``the recipe of a stimulus``.
    """
    token = _named_by.set(what)
    try:
        yield
    finally:
        _named_by.reset(token)


def _check_allowed(file: str) -> None:
    what = _named_by.get()
    if what and _real(file) not in allowed_code():
        raise UserError(
            f"{what} names the Python file {file}; data runs no code that you have not named yourself",
            f"read that file; if you trust it, add --allow-code {file} (Python: cuebench.allow_code({file!r}))",
        )


def _real(file: str | Path) -> str:
    try:
        return os.path.realpath(Path(file).expanduser())
    except (ValueError, RuntimeError):  # no name that a file can have; no such user
        return str(file)


def _file_of(spec: str) -> str:
    return spec.removeprefix(SCHEME).rpartition(":")[0]


def expose(package: str, parts: Registry) -> None:
    """Let the attributes of a package be its parts: ``cuebench.cues.eed`` is the cue, not the module ``eed.py``.

    Python's import system sets a sub-module as an attribute of its package, which would hide the part of that name;
    the module class prevents it.
    """

    class PartPackage(ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or name not in parts:
                raise AttributeError(f"module {package!r} has no {parts.kind} {name!r}; known: {', '.join(parts)}")
            part = parts.get(name)
            super().__setattr__(name, part)
            return part

        def __setattr__(self, name: str, value: Any) -> None:
            if isinstance(value, ModuleType) and hasattr(value, parts.marker):
                value = parts.of_module(value, name)
            super().__setattr__(name, value)

        def __dir__(self) -> list[str]:
            return sorted({*super().__dir__(), *parts})

    sys.modules[package].__class__ = PartPackage


def _identity(part: Any) -> Any:
    return part


def _stem(path: Path) -> str:
    return path.parent.name if path.name == "__init__.py" else path.stem


def _assigns(text: str, name: str) -> bool:
    return any(line.startswith((f"{name} =", f"{name}:")) for line in text.splitlines())


def _name(part: Any) -> str:
    """Return what a part calls itself."""
    return str(getattr(part, "name", "") or getattr(part, "__name__", ""))


def _module_name(spec: str) -> str:
    """Return the name under which the file of ``python:FILE.py:NAME`` is imported."""
    return load_file(_file_of(spec)).__name__


def _distribution(entry: metadata.EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value


def _documentation(part: Any) -> str:
    """Return what a part says of itself: its title, else its docstring."""
    return str(getattr(part, "title", "") or getattr(part, "__doc__", "") or "")


cues = Registry("cue", "cuebench.cues", "CUE", requires=("info",), function=True)
_OF_ADAPTERS = ("load", "form", "version", "extra", "packages", "options")
adapters = Registry("observer", "cuebench.observers.adapters", "ADAPTER", requires=_OF_ADAPTERS)
metrics = Registry("metric", "cuebench.metrics", "METRIC", several="METRICS", requires=("formula", "compute"))
protocols = Registry("protocol", "cuebench.protocols", "PROTOCOL", requires=("score", "read", "headline"))
readers = Registry("reader", "cuebench.stimuli.readers", "READER", requires=("read",))
makers = Registry("maker", "cuebench.stimuli.makers", "MAKER", requires=("make",))
sources = Registry("source", "cuebench.stimuli.sources", "SOURCE")
datasets = Registry("dataset", "cuebench.stimuli.datasets", "DATASET")
figures = Registry("figure", "cuebench.reports.figures", "FIGURE", requires=("draw", "needs", "options"))
KINDS: dict[str, Registry] = {
    "protocols": protocols,
    "metrics": metrics,
    "cues": cues,
    "observers": adapters,
    "readers": readers,
    "makers": makers,
    "sources": sources,
    "datasets": datasets,
    "figures": figures,
}
"""Every kind of part, by the word of ``cuebench list`` and of its entry-point group ``cuebench.<kind>``."""
