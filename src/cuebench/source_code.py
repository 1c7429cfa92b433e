"""Which code a model or a cue runs: the files of its modules and of all that they import, as one hash.

What user code does cannot be told from its objects alone: an import inside a function, ``package.module.function(x)``
and a module kept in an attribute are found in the *files*. Every file that belongs neither to the standard library nor
to an installed distribution is hashed, by its syntax (comments, layout and docstrings do not count), and its import
statements are followed; so is what its body asked for by a computed name or a path while it was loaded
(``imports.py``). Installed distributions count by name and version; an editable installation counts by its
files. Where a module belongs is told by where its file lies, never by its name: a helper called ``queue.py`` is the
user's.

What has no file (``__main__``, notebooks, ``exec``) is hashed as objects (``observers/torch/content.py``). What no file
shows (environment variables, data files, changes from outside) is found by asking again (``responses/again.py``).
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import site
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import metadata
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, Literal, NamedTuple

from cuebench.imports import Asked, asked_by, source_when_loaded
from cuebench.python_files import LOADED_BY_PATH, folder_of, name_beside

Kind = Literal["standard", "cuebench", "installed", "user", "none"]
MOST_FILES = 2000
"""Files that are hashed for one observer; whatever reaches more cannot be told apart and is not found again."""
_INSTALLED_FOLDERS = frozenset({"site-packages", "dist-packages"})
_NAMED_ALIKE = frozenset({"torch", "torchvision", "timm", "transformers", "numpy", "scipy"})
"""Well-known modules whose distributions have their names."""
_HERE = os.path.realpath(Path(__file__).parent)
_OF_A_PATH = re.compile(rf"\b{LOADED_BY_PATH}(\w[\w.-]*?)_[0-9a-f]{{12}}(?!\w)")
UNREADABLE = "answers are not found again later, because not all that decides them can be hashed"
EDITED = "edited since it was imported: start Python anew"
_notices: dict[str, None] = {}


class Place(NamedTuple):
    """Where a module comes from."""

    kind: Kind
    file: str = ""
    package: bool = False


NOWHERE = Place("none")


@dataclass
class Code:
    """The code that was reached: module → hash of its file, and the installed distributions with their versions."""

    files: dict[str, str] = field(default_factory=dict)
    distributions: set[str] = field(default_factory=set)
    unreadable: list[str] = field(default_factory=list)
    """Files that cannot be read, and those that were edited while their old code runs: the key must not come again."""

    @property
    def digest(self) -> str:
        """Hash of all of it; empty where no user's file and no distribution was reached."""
        if not self.files and not self.distributions:
            return ""
        files = sorted((public_name(name), sha) for name, sha in self.files.items())
        return hashlib.sha256(repr((files, sorted(self.distributions))).encode()).hexdigest()


def reachable_code(modules: Iterable[str], follow: Callable[[str], bool] | None = None) -> Code:
    """Return the code that is reached from modules by the import statements in their files, and by computed names.

    Parameters
    ----------
    modules : iterable of str
        Names of modules, loaded or not, and of factories (``module:factory``), which count by what they asked for;
        names of anything else are ignored.
    follow : callable, optional
        Tells whether a module's file is hashed and its imports are followed; default: the files of users.
    """
    code, seen, waiting = Code(), set[str](), list[str]()
    by_path: dict[str, Place] = {}

    def ask(of: str, file: str) -> None:
        for asked in asked_by(of, file):
            key, found = _place_asked_for(asked)
            if found.kind == "user" and key == asked.name:
                waiting.extend(_with_parents(key))
            elif found.kind == "user":
                by_path[key] = found
                waiting.append(key)

    for name in set(modules):
        module, factory, _ = name.partition(":")
        waiting += _with_parents(module)
        if factory:
            ask(name, "")
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        place = by_path.get(name) or place_of(name)
        if follow(name) if follow else place.kind == "user":
            if len(code.files) >= MOST_FILES:
                code.unreadable.append(f"more than {MOST_FILES} files of code")
                break
            try:
                source = _read(name, place.file)
            except OSError as error:
                code.unreadable.append(f"{place.file} ({error.strerror or error})")
                continue
            code.files[name], imports = _file(source, place.file.endswith(".py"), name, place.package)
            if place.kind == "user":
                runs = source_when_loaded(loaded_module(name), source, place.file if name in by_path else "")
                running = _file(runs, place.file.endswith(".py"), name, place.package)[0]
                if running != code.files[name]:
                    code.files[name] += f" and {running}"
                    code.unreadable.append(f"{place.file} ({EDITED})")
                    _notices[f"{place.file} was {EDITED}; answers of its old code are not found again"] = None
            folder = folder_of(name, place.file, place.package)
            for imported, root in ((name_beside(i, folder), name_beside(r, folder)) for i, r in imports):
                if imported.endswith(".*"):
                    waiting += [m for m in {*sys.modules, *_as_loaded.get()} if m.startswith(imported[:-1])]
                elif not root or place_of(root).kind == "user":
                    waiting.append(imported)
            ask(name, place.file)
        elif place.kind == "installed":
            code.distributions |= set(_distributions(name.partition(".")[0]))
    return code


def notice_unreadable(whose: str, what: Sequence[str]) -> None:
    """Keep a notice that answers are not found again later, because some of what decides them cannot be hashed."""
    _notices[f"{public_names(whose)}: {unreadable_note(what)}"] = None


def unreadable_note(what: Sequence[str]) -> str:
    """Return what is said of that which cannot be hashed."""
    return f"{UNREADABLE}: {'; '.join(what[:3])}{' …' * (len(what) > 3)}"


def notices_of_code() -> list[str]:
    """Return what to tell of code that cannot be hashed, or was edited while its old form runs; each once."""
    found = list(_notices)
    _notices.clear()
    return found


def _place_asked_for(asked: Asked) -> tuple[str, Place]:
    """Return a name and the place of what was asked for; one that was loaded from a path may be known by no name."""
    place = place_of(asked.name)
    if not asked.file or place.file == asked.file:
        return asked.name, place
    path = hashlib.sha256(asked.file.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    kind = _kind_of_file(asked.file, asked.name.partition(".")[0])
    return f"{LOADED_BY_PATH}{asked.name}_{path}", Place(kind, asked.file)


def public_name(module: str) -> str:
    """Return the name of a module without what the path of its file adds: ``models.py`` is ``models`` anywhere."""
    return public_names(module) if module.startswith(LOADED_BY_PATH) else module


def public_names(text: str) -> str:
    """Return a text with the public names of the modules in it."""
    return _OF_A_PATH.sub(r"\1", text)


# ------------------------------------------------------------------------------------------ where a module lies

_as_loaded: ContextVar[Mapping[str, Any]] = ContextVar("as_loaded", default={})  # noqa: B039 - nobody writes to it


@contextmanager
def as_loaded(modules: Mapping[str, Any]) -> Iterator[None]:
    """Let names stand for these modules inside the block: another model may have a helper of the same name."""
    token = _as_loaded.set(modules)
    try:
        yield
    finally:
        _as_loaded.reset(token)


def loaded_module(name: str) -> Any:
    """Return the loaded module of a name, or None."""
    return _as_loaded.get().get(name) or sys.modules.get(name)


MAIN = frozenset({"__main__", "__mp_main__"})
"""The program that was started, also by the name that ``multiprocessing`` gives it when something imports that."""


def place_of(name: str) -> Place:
    """Return where a module comes from, by the location of its file; nothing is imported."""
    if name in MAIN or not name:
        return NOWHERE
    module = loaded_module(name)
    if module is None:
        spec = _find_spec(name)
        if spec is None:
            return NOWHERE
        return _place(name, spec.origin if spec.has_location else None, spec)
    contents: dict[str, Any] = getattr(module, "__dict__", {})
    return _place(name, contents.get("__file__"), contents.get("__spec__"), "__path__" in contents)


def _place(name: str, file: Any, spec: ModuleSpec | None, package: bool | None = None) -> Place:
    if not isinstance(file, str) or not file:
        standard = name in sys.builtin_module_names or getattr(spec, "origin", None) in ("built-in", "frozen")
        return Place("standard") if standard else NOWHERE
    if package is None:
        package = spec is not None and spec.submodule_search_locations is not None
    return Place(_kind_of_file(file, name.partition(".")[0]), file, package)


@lru_cache(maxsize=100_000)
def _kind_of_file(file: str, top: str) -> Kind:
    path = os.path.realpath(file)
    if _below(path, _HERE):
        return "cuebench"
    if not _INSTALLED_FOLDERS.isdisjoint(Path(path).parts) or any(_below(path, f) for f in _installed_folders()):
        return "installed" if _distributions(top) else "user"
    if any(_below(path, folder) for folder in _standard_folders()):
        return "standard"
    # A torch that was built in its source folder has more files than can be hashed.
    return "installed" if top == "torch" and "torch" in sys.modules and hasattr(sys.modules["torch"], "_C") else "user"


def _below(path: str, folder: str) -> bool:
    return path.startswith(folder + os.sep)


@cache
def _standard_folders() -> tuple[str, ...]:
    folders = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), str(Path(os.__file__).parent)]
    return tuple(dict.fromkeys(os.path.realpath(f) for f in folders if f))


@cache
def _installed_folders() -> tuple[str, ...]:
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    folders += [site.getusersitepackages()]
    return tuple(dict.fromkeys(os.path.realpath(f) for f in folders if f))


@cache
def _packages() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())


@cache
def _distributions(top: str) -> tuple[str, ...]:
    """Return name and version of the distributions that bring a top-level module."""
    if top in _NAMED_ALIKE:  # the list of all packages takes a third of a second
        try:
            return (f"{top} {metadata.version(top)}",)
        except metadata.PackageNotFoundError:
            pass
    return tuple(f"{name} {metadata.version(name)}" for name in dict.fromkeys(_packages().get(top, ())))


def _find_spec(name: str) -> ModuleSpec | None:
    """Find a module that is not loaded, without importing its parents."""
    parent = name.rpartition(".")[0]
    path: Any = None
    if parent:
        loaded = loaded_module(parent)
        if loaded is not None:
            path = getattr(loaded, "__dict__", {}).get("__path__")
        else:
            spec = _find_spec(parent)
            path = spec.submodule_search_locations if spec else None
        if path is None:
            return None
    for finder in sys.meta_path:
        try:
            spec = finder.find_spec(name, path)
        except Exception:  # noqa: BLE001 - a finder of any package may raise anything
            continue
        if spec is not None:
            return spec
    return None


def _read(name: str, file: str) -> bytes:
    """Read the file of a module, also from a zip archive."""
    path = Path(file)
    if not path.exists():
        loader: Any = getattr(getattr(loaded_module(name), "__spec__", None), "loader", None)
        if hasattr(loader, "get_data"):
            return bytes(loader.get_data(file))
    return path.read_bytes()


# ------------------------------------------------------------------------------------------ what a file says


@lru_cache(maxsize=10_000)
def _file(source: bytes, python: bool, name: str, package: bool) -> tuple[str, list[tuple[str, str]]]:
    """Return the hash of a file and what it may import: see ``_imports``."""
    try:
        tree = ast.parse(source) if python else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    if tree is None:
        return hashlib.sha256(source).hexdigest(), []
    return syntax_digest(tree), sorted(_imports(tree, name if package else name.rpartition(".")[0]))


def syntax_digest(tree: ast.AST) -> str:
    """Return the hash of what a syntax tree means: no comments, no layout, no docstrings."""
    digest = hashlib.sha256()
    for part in _flat(tree):
        digest.update(part.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _flat(tree: Any) -> Iterator[str]:
    """Yield a tree as texts. Not ``ast.dump``: empty fields are left out, so that Python versions agree."""
    waiting: list[Any] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.AST):
            yield f"({type(node).__name__}"
            fields = [(f, v) for f, v in ast.iter_fields(node) if v is not None and v != []]
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                fields = [(f, v[1:] if f == "body" and _is_text(v[0]) else v) for f, v in fields]
            waiting.append(_END)
            for name, value in reversed(fields):
                waiting += [value, _Word(name)]
        elif isinstance(node, list):
            yield "["
            waiting += [_END, *reversed(node)]
        else:
            yield node if isinstance(node, _Word) else f" {node!r}"


class _Word(str):
    """A text that is written as it is."""

    __slots__ = ()


_END = _Word(")")


def _is_text(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return False
    return isinstance(statement.value.value, str)


def _imports(tree: ast.AST, package: str) -> set[tuple[str, str]]:
    """Return every name in a file that may be a module: of import statements anywhere, and of attributes of modules.

    Each with the module that it is an attribute of, which counts only where that module is a user's
    (``package.module.function``); empty for import statements. ``package.*`` stands for all loaded modules below it.
    """
    names: set[str] = set()
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                names |= _with_parents(alias.name)
                bound[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node.module or "", node.level, package)
            names |= _with_parents(base) | {f"{base}.{alias.name}" for alias in node.names}
            bound |= {alias.asname or alias.name: f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if function in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                text = node.args[0].value
                names |= _with_parents(_absolute(text.lstrip("."), len(text) - len(text.lstrip(".")), package))
    attributes: set[tuple[str, str]] = set()
    for node in ast.walk(tree):
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if parts and isinstance(node, ast.Name) and node.id in bound:
            root = bound[node.id]
            attributes |= {(name, root) for name in _with_parents(".".join([root, *reversed(parts)]))}
    return {(name, "") for name in names} | attributes


def _absolute(module: str, level: int, package: str) -> str:
    if not level:
        return module
    parts = package.split(".")
    base = ".".join(parts[: len(parts) - level + 1])
    return ".".join(filter(None, [base, module]))


def _with_parents(name: str) -> set[str]:
    parts = name.split(".")
    return {".".join(parts[: i + 1]) for i in range(len(parts))} - {""}
