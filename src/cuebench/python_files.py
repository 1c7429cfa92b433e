"""Python files of users: run as modules, which import what lies in the folder of the file as ``python FILE.py`` would.

The folder goes to the *end* of Python's path: cuebench, and what it imports, never find a user's ``queue.py`` in place
of the standard library's. In the user's files ``import queue`` means the file beside them all the same: they have an
``__import__`` of their own. Where another module has the name already, such as the ``net.py`` of another folder, theirs
becomes a module of another name (``name_beside``), so that each model gets its own ``net.py``. Only import statements
can tell: ``importlib.import_module`` and ``pickle`` take the module that has the name.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from functools import lru_cache, partial
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
)
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from cuebench.errors import UserError
from cuebench.imports import forget, importing, is_library, watched

LOADED_BY_PATH = "cuebench_user_"
"""How the names of modules begin that are imported from a path; a hash of the path ends them."""


class _File(NamedTuple):
    """A module with a name of ours."""

    path: str
    """Of its file, or of the folder of a package without ``__init__.py``."""
    folder: str
    """What it imports is looked for here first."""
    package: bool = False


_files: dict[str, _File] = {}
"""Name of a module → its file."""
_folders: set[str] = set()
"""Folders of users' files."""
_added: set[str] = set()
"""Those of them that were not on Python's path."""
_beside: dict[tuple[str, str], str] = {}
"""Folder and what its files import → the name of that module."""


def name_of_file(path: str | Path) -> str:
    """Return the name of the module that a Python file becomes: two files of one name in two folders are two modules.

    A digest, not ``hash()``: the name is the same in every process, so what the module defines can travel between them.
    """
    file = Path(path).expanduser().absolute()
    return f"{LOADED_BY_PATH}{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}"


def import_file(path: str | Path) -> ModuleType:
    """Run a Python file as a module; whatever it raises is raised here.

    Raises
    ------
    UserError
        Where there is no such file.
    """
    file = _existing(path)
    if file.suffix != ".py":
        raise UserError(f"{path} cannot be imported as a Python file", "its name must end in .py")
    name = name_of_file(file)
    _files[name] = _File(str(file), _on_path(os.path.dirname(os.path.realpath(file))))
    spec = _UserFinder.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # so that classes defined there can be pickled
    forget(name)
    try:
        with watched(name):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def load_file(path: str | Path) -> ModuleType:
    """Import a Python file under a name of its own: once, and again after it was changed.

    Raises
    ------
    UserError
        Where there is no such file, or importing it raises an exception.
    """
    file = _existing(path)
    stat = file.stat()
    return _imported(str(file), stat.st_mtime_ns, stat.st_size)


@lru_cache
def _imported(path: str, modified: int, size: int) -> ModuleType:
    try:
        return import_file(path)
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        message = f"{path} cannot be imported: {type(error).__name__}: {error}"
        raise UserError(message, f"correct the file; python {path} shows the traceback") from error


def _existing(path: str | Path) -> Path:
    file = Path(path).expanduser().absolute()
    if not file.is_file():
        raise UserError(f"there is no Python file {path}", "write python:FILE.py:NAME")
    return file


# ------------------------------------------------------------------------------------------ what lies beside a file


def folder_of(name: str, file: str, package: bool) -> str:
    """Return the folder in which a module of a user looks first for what it imports; empty: it is not of such a folder.

    Parameters
    ----------
    name, file : str
        Of the module.
    package : bool
        It is a package.
    """
    known = _files.get(name) or _files.get(name.partition(".")[0])
    if known is not None:
        return known.folder
    up = name.count(".") + package
    folders = Path(file).parents
    return str(folders[up]) if up < len(folders) and str(folders[up]) in _folders else ""


def name_beside(name: str, folder: str) -> str:
    """Return the name of the module that ``import name`` means in a user's file.

    Parameters
    ----------
    name : str
        As the file says it.
    folder : str
        See `folder_of`.
    """
    top, dot, rest = name.partition(".")
    if folder not in _folders or top == "cuebench" or top.startswith(LOADED_BY_PATH):
        return name
    if (folder, top) not in _beside:
        _beside[folder, top] = _name_beside(top, folder)
    return _beside[folder, top] + dot + rest


def _name_beside(top: str, folder: str) -> str:
    wanted = PathFinder.find_spec(top, [folder, *(path for path in sys.path if path not in _added)])
    where = _where(wanted)
    lies_here = {os.path.dirname(where), os.path.dirname(os.path.dirname(where))}
    if wanted is None or folder not in lies_here or top in sys.builtin_module_names:
        return top
    loaded = sys.modules.get(top)
    usual = importlib.util.find_spec(top) if loaded is None else getattr(loaded, "__spec__", None)
    if usual is None or usual.origin == "frozen" or os.path.realpath(_where(usual)) == os.path.realpath(where):
        return top
    package = wanted.submodule_search_locations is not None
    if wanted.origin is not None and not where.endswith(".py"):
        return top  # a compiled module has one name only
    name = name_of_file(Path(folder, top))
    _files[name] = _File(where, folder, package)
    return name


def _where(spec: ModuleSpec | None) -> str:
    """Return the file of a module; of a package without ``__init__.py`` its first folder."""
    if spec is None:
        return ""
    folders = [str(folder) for folder in spec.submodule_search_locations or ()]
    return spec.origin or (folders[0] if folders else "")


def _on_path(folder: str) -> str:
    """Let what lies in a folder be imported, after everything else; return the folder."""
    if _UserFinder not in sys.meta_path:
        sys.meta_path.append(_UserFinder)
        sys.path_hooks.insert(0, _finder_of_user)
    if folder not in sys.path:
        sys.path.append(folder)
        _added.add(folder)
    if folder not in _folders:
        _folders.add(folder)
        for path in [p for p in sys.path_importer_cache if _of_user(p)]:
            sys.path_importer_cache.pop(path)
    for key in [key for key in _beside if key[0] == folder]:
        del _beside[key]
    return folder


def _of_user(path: str) -> bool:
    """Tell whether modules in a folder are a user's: it is one of a user's files, or of a package in it."""
    if path in sys.path and path not in _folders:
        return False
    inside = any(f"{path}{os.sep}".startswith(f + os.sep) for f in _folders)
    return inside and not is_library(os.path.join(path, "module.py"))


def _finder_of_user(path: str) -> FileFinder:
    if not _of_user(path) or not os.path.isdir(path):
        raise ImportError(f"{path} is no folder of a user's file")
    return FileFinder(path, (ExtensionFileLoader, EXTENSION_SUFFIXES), (_FromSource, [".py"]))


class _FromSource(SourceFileLoader):
    """Compiles the file that is there, and lets its code import what lies beside it.

    Python's compiled copy counts as current where seconds and size are the same: an edit of the same length in the
    second of the last one would be hashed as new code and run as the old.
    """

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def exec_module(self, module: ModuleType) -> None:
        folder = folder_of(module.__name__, str(self.path), hasattr(module, "__path__"))
        if folder:
            own = importing(partial(name_beside, folder=folder))
            vars(module)["__builtins__"] = {**vars(builtins), "__import__": own}
        super().exec_module(module)


class _UserFinder:
    """Finds the modules that have a name of ours."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """Return where a module comes from."""
        file = _files.get(name)
        if file is None:
            return None
        if os.path.isdir(file.path):
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [file.path]
            return spec
        inside = [os.path.dirname(file.path)] if file.package else None
        loader = _FromSource(name, file.path)
        return importlib.util.spec_from_file_location(name, file.path, loader=loader, submodule_search_locations=inside)
