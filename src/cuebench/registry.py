"""One registry for all parts: scan a folder, file name = public name, import on first use.

A part is a file that assigns the marker of its kind at top level (``METRIC = …``, ``PROTOCOL = …``) or, for kinds
without a marker, any file whose name has no leading underscore. Nothing is imported to list the parts: names come from
the folder and summaries from the docstring, so ``cuebench list`` is quick and works where an extra is missing.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from cuebench.errors import did_you_mean

ROOT = Path(__file__).parent


@dataclass(frozen=True)
class Registry:
    """The parts of one kind.

    Parameters
    ----------
    kind : str
        The word used in messages, e.g. ``"metric"``.
    package : str
        Dotted package that holds one file for each part.
    marker : str
        Name that a part assigns at top level; empty: every public file is a part, and the object is the attribute that
        has the file's own name.
    """

    kind: str
    package: str
    marker: str = ""

    @property
    def folder(self) -> Path:
        """The folder that is scanned."""
        return ROOT.joinpath(*self.package.split(".")[1:])

    @cached_property
    def files(self) -> dict[str, Path]:
        """Public name → file."""
        found = {path.stem: path for path in sorted(self.folder.glob("[!_]*.py"))}
        return {name: path for name, path in found.items() if self._is_part(path)}

    def _is_part(self, path: Path) -> bool:
        return not self.marker or any(
            line.startswith((f"{self.marker} =", f"{self.marker}:")) for line in path.read_text("utf-8").splitlines()
        )

    def names(self) -> list[str]:
        """Return the public names, sorted."""
        return list(self.files)

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __contains__(self, name: object) -> bool:
        return name in self.files

    def summary(self, name: str) -> str:
        """Return the first line of the part's module docstring, without importing it."""
        doc = ast.get_docstring(ast.parse(self._path(name).read_text("utf-8"))) or ""
        return doc.partition("\n")[0]

    def module(self, name: str) -> ModuleType:
        """Import and return the part's module; an unknown name says which ones are near."""
        self._path(name)
        return importlib.import_module(f"{self.package}.{name}")

    def get(self, name: str) -> Any:
        """Return the part itself: the marker's value, or the attribute of the file's own name."""
        return getattr(self.module(name), self.marker or name)

    def _path(self, name: str) -> Path:
        if name not in self.files:
            raise did_you_mean(self.kind, name, self.files)
        return self.files[name]


cues = Registry("cue", "cuebench.cues", "CUE")
adapters = Registry("observer", "cuebench.observers.adapters", "ADAPTER")
metrics = Registry("metric", "cuebench.metrics", "METRIC")
protocols = Registry("protocol", "cuebench.protocols", "PROTOCOL")
readers = Registry("stimulus reader", "cuebench.stimuli.readers", "READER")
makers = Registry("maker", "cuebench.stimuli.makers", "MAKER")
sources = Registry("stimulus source", "cuebench.stimuli.sources", "SOURCE")
datasets = Registry("dataset", "cuebench.stimuli.datasets", "DATASET")
figures = Registry("figure", "cuebench.reports.figures")
