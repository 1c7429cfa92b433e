"""Which modules a user's code asks for while it is loaded, however it does: by computed names and by paths, too.

Import statements are found in files (``source_code.py``), a computed name is not. So while a user's file or factory is
loaded, everything that Python imports with is watched, and what is asked for is noted with the module whose body asks
for it: also where it was loaded long before, for another model. A module's body runs once in a process; what it asked
for then stays noted. What a factory asks for when it is called is noted with the factory's module.
"""

from __future__ import annotations

import builtins
import importlib._bootstrap
import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from threading import RLock
from types import ModuleType, TracebackType
from typing import Any, NamedTuple

_HERE = os.path.realpath(Path(__file__).parent) + os.sep
_BOOTSTRAP: Any = importlib._bootstrap
_FROZEN = "<frozen importlib"
_lock = RLock()
_loading: list[str] = []
"""Modules that are being loaded, the innermost last."""
_asked: dict[str, set[Asked]] = {}


class Asked(NamedTuple):
    """A module that was asked for, and its file where it was loaded from a path."""

    name: str
    file: str = ""


def asked_by(module: str) -> set[Asked]:
    """Return what was asked for while a module was loaded, or its factories called."""
    return _asked.get(module, set())


@contextmanager
def watched(module: str) -> Iterator[None]:
    """Note what is asked for while the block runs; what no module's body asks for, for ``module``."""
    with _lock:
        if not _loading:
            _watch()
        _loading.append(module)
    try:
        yield
    except BaseException as error:
        _hide_watching(error)
        raise
    finally:
        with _lock:
            _loading.remove(module)
            if not _loading:
                _unwatch()


def _watch() -> None:
    global _plain_import, _plain_import_module, _plain_execute
    _plain_import, _plain_import_module = builtins.__import__, _BOOTSTRAP._gcd_import
    _plain_execute = SourceFileLoader.exec_module
    builtins.__import__ = _import
    _BOOTSTRAP._gcd_import = _import_module  # what importlib.import_module calls, under whatever name it is known
    SourceFileLoader.exec_module = _execute  # type: ignore[assignment,method-assign]


def _unwatch() -> None:
    builtins.__import__, _BOOTSTRAP._gcd_import = _plain_import, _plain_import_module
    SourceFileLoader.exec_module = _plain_execute  # type: ignore[method-assign]


_plain_import: Any = builtins.__import__
_plain_import_module: Any = _BOOTSTRAP._gcd_import
_plain_execute: Any = SourceFileLoader.exec_module


def _import(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> ModuleType:
    module: ModuleType = _plain_import(name, globals, locals, fromlist, level)
    if not _is_library(sys._getframe(1).f_globals.get("__file__")):
        if level:
            name = str(getattr(module, "__name__", name))
        _note(Asked(name))
    return module


def _import_module(name: str, package: Any = None, level: int = 0) -> ModuleType:
    module: ModuleType = _plain_import_module(name, package, level)
    _note(Asked(str(getattr(module, "__name__", name)) if level else name))
    return module


def _execute(loader: Any, module: ModuleType) -> None:
    file = getattr(module, "__file__", None)
    if isinstance(file, str) and not _is_library(file):
        _note(Asked(module.__name__, file))
    _plain_execute(loader, module)


def _note(asked: Asked) -> None:
    """Note what is asked for with the module whose body runs, else with what is being loaded."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        known, file = frame.f_globals, frame.f_globals.get("__file__")
        if known is not globals() and str(known.get("__name__")).startswith("cuebench."):
            break  # who loads it
        if frame.f_code.co_name == "<module>" and isinstance(file, str) and not _is_library(file):
            _asked.setdefault(str(known.get("__name__")), set()).add(asked)
            return
        frame = frame.f_back
    if _loading:
        _asked.setdefault(_loading[-1], set()).add(asked)


@lru_cache(maxsize=100_000)
def _is_library(file: object) -> bool:
    """Tell whether a file is of Python, of an installed package or of cuebench; code without a file is not."""
    if not isinstance(file, str):
        return False
    if file.startswith("<frozen"):
        return True
    path = os.path.realpath(file)
    return path.startswith(_HERE) or path.startswith(_libraries()) or f"{os.sep}site-packages{os.sep}" in path


@cache
def _libraries() -> tuple[str, ...]:
    paths = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    return tuple(dict.fromkeys(os.path.realpath(path) + os.sep for path in paths if path))


def _hide_watching(error: BaseException) -> None:
    """Leave the frames of importing out of a traceback, as Python does where nobody watches."""
    shown: list[TracebackType] = []
    step = error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if not (file == __file__ and step.tb_frame.f_code in _WATCHING) and not file.startswith(_FROZEN):
            shown.append(step)
        step = step.tb_next
    for one, following in zip(shown, [*shown[1:], None]):
        one.tb_next = following


_WATCHING = {function.__code__ for function in (_import, _import_module, _execute)}
