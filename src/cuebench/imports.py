"""Which modules a user's code asks for while it is loaded, however it does: by computed names and by paths, too.

Import statements are found in files (``source_code.py``), a computed name is not. So while a user's file or factory is
loaded, everything that Python imports with is watched, and what is asked for is noted with the module whose body asks
for it: also where it was loaded long before, for another model. A module's body runs once in a process; what it asked
for then stays noted. What a factory asks for when it is called is noted as ``module:factory``. Only the thread that
loads is listened to. The text of each file that runs is kept: an edit that comes later is not what runs.
"""

from __future__ import annotations

import builtins
import importlib._bootstrap
import os
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from threading import RLock, local
from types import ModuleType, TracebackType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

_HERE = os.path.realpath(Path(__file__).parent) + os.sep
_BOOTSTRAP: Any = importlib._bootstrap
_FROZEN = "<frozen importlib"
_lock = RLock()
_asked: dict[str, dict[str, set[Asked]]] = {}
"""Module, or ``module:factory`` → its file → what it asked for: two models may have a helper of the same name."""


class _Loading(local):
    """What a thread is loading, the innermost last."""

    def __init__(self) -> None:
        self.names: list[str] = []


_loading = _Loading()
_watching: list[_Watching] = []
"""One for each block that is being watched, in any thread; the first has replaced Python's functions."""


class Asked(NamedTuple):
    """A module that was asked for, and its file where it was loaded from a path."""

    name: str
    file: str = ""


def asked_by(name: str, file: str = "") -> set[Asked]:
    """Return what was asked for while a module was loaded (from a file), or a factory (``module:factory``) called."""
    found = _asked.get(name, {})
    kept = [asked for of, asked in found.items() if not of or not file or of == file]
    return set[Asked]().union(*kept)


def forget(module: str) -> None:
    """Forget what a module and its factories asked for: it is loaded again."""
    for name in [n for n in list(_asked) if n.partition(":")[0] == module]:
        _asked.pop(name, None)


@contextmanager
def watched(name: str) -> Iterator[None]:
    """Note what this thread asks for while the block runs; what no module's body asks for, for ``name``."""
    with _lock:
        _watching.append(_watching[0] if _watching else _Watching())
    _loading.names.append(name)
    try:
        yield
    except BaseException as error:
        _hide_watching(error)
        raise
    finally:
        _loading.names.pop()
        with _lock:
            watching = _watching.pop()
            if not _watching:
                watching.end()


class _Watching:
    """The functions that Python imports with, replaced by such that note what is asked for.

    Another library may replace them in turn, before and while they are watched: its own stay where they are.
    """

    def __init__(self) -> None:
        functions = (_importing, _importing_module, _executing)
        self._replaced = []
        for (owner, name), function in zip(_PLACES, functions, strict=True):
            own, plain = name in vars(owner), getattr(owner, name)
            watching = function(plain)
            setattr(owner, name, watching)
            self._replaced.append((owner, name, plain if own else None, watching))

    def end(self) -> None:
        """Put back what is still replaced by a function of this."""
        for owner, name, plain, watching in self._replaced:
            if vars(owner).get(name) is not watching:
                continue
            if plain is None:
                delattr(owner, name)
            else:
                setattr(owner, name, plain)


_PLACES: tuple[tuple[Any, str], ...] = (
    (builtins, "__import__"),
    (_BOOTSTRAP, "_gcd_import"),  # what importlib.import_module calls, under whatever name it is known
    (SourceFileLoader, "exec_module"),
)


def _importing(plain: Any) -> Any:
    def _import(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        module = plain(name, globals, locals, fromlist, level)
        if _loading.names and not is_library(_asking_frame().f_globals.get("__file__")):
            own = str(getattr(module, "__name__", name))
            _note(Asked(own if level else name))
            for asked in _modules_of(own, module, fromlist or ()):
                _note(Asked(asked))
        return module

    return _import


def _asking_frame() -> Any:
    """Return the frame of who imports."""
    frame: Any = sys._getframe(2)
    return frame.f_back if frame.f_code is _RESOLVING else frame


def _modules_of(name: str, module: Any, fromlist: Iterable[Any]) -> list[str]:
    """Return the modules among what is imported *from* a module."""
    names = [*fromlist, *(getattr(module, "__all__", ()) if "*" in fromlist else ())]
    modules = {n: sys.modules.get(f"{name}.{n}") for n in names}
    return [f"{name}.{n}" for n, inside in modules.items() if inside is not None and getattr(module, n, None) is inside]


def importing(resolve: Callable[[str], str]) -> Callable[..., Any]:
    """Return an ``__import__`` that imports another module in place of the one that is named."""

    def _import(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        return builtins.__import__(name if level else resolve(name), globals, locals, fromlist, level)

    return _import


def _importing_module(plain: Any) -> Any:
    def _import_module(name: str, package: Any = None, level: int = 0) -> Any:
        module = plain(name, package, level)
        if _loading.names:
            _note(Asked(str(getattr(module, "__name__", name)) if level else name))
        return module

    return _import_module


def _executing(plain: Any) -> Any:
    def _execute(loader: Any, module: ModuleType) -> None:
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and not is_library(file):
            with suppress(OSError):
                _keep_source(module, loader.get_data(file))
            if _loading.names:
                _note(Asked(module.__name__, file))
        plain(loader, module)

    return _execute


def _note(asked: Asked) -> None:
    """Note what is asked for with the module whose body runs, else with what is being loaded."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        known, file = frame.f_globals, frame.f_globals.get("__file__")
        if known is not globals() and str(known.get("__name__")).startswith("cuebench."):
            break  # who loads it
        if frame.f_code.co_name == "<module>" and isinstance(file, str) and not is_library(file):
            _asked.setdefault(str(known.get("__name__")), {}).setdefault(file, set()).add(asked)
            return
        frame = frame.f_back
    _asked.setdefault(_loading.names[-1], {}).setdefault("", set()).add(asked)


# ------------------------------------------------------------------------------------------ edited since

_sources: WeakKeyDictionary[ModuleType, tuple[Any, bytes]] = WeakKeyDictionary()
"""Module → its spec, which is another one once it is loaded again, and its file's text."""
_sources_by_path: dict[str, bytes] = {}


def _keep_source(module: ModuleType, source: bytes) -> None:
    _sources[module] = vars(module).get("__spec__"), source
    _sources_by_path[str(module.__file__)] = source


def source_when_loaded(loaded: object, now: bytes, file: str = "") -> bytes:
    """Return the text of a module's file when it was loaded; if nobody watched, when it was asked for first.

    Parameters
    ----------
    loaded : module or None
        One that is not loaded yet runs what its file says now.
    now : bytes
        What its file says now.
    file : str
        The file, where the module was loaded from a path and may be known by no name.
    """
    if file:
        return _sources_by_path.get(file, now)
    if not isinstance(loaded, ModuleType):
        return now
    spec = vars(loaded).get("__spec__")
    known = _sources.get(loaded)
    if known is None or known[0] is not spec:
        known = _sources[loaded] = (spec, now)
    return known[1]


@lru_cache(maxsize=100_000)
def is_library(file: object) -> bool:
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


_RESOLVING = importing(str).__code__
_WATCHING = {_RESOLVING, *(make(None).__code__ for make in (_importing, _importing_module, _executing))}
