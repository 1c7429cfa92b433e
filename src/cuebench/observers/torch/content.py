"""The content of a Python value as a hash: numbers, tensors, containers, objects, functions and classes.

The same in every process, and another one for everything that could behave otherwise. What cannot be read (a lock, an
object of a compiled extension) is named in ``Content.opaque``; a hash with holes must not be trusted.

Functions and classes count by what they were compiled to and by what they call, not by their source: compiled code
exists in a notebook and behind ``exec`` too, and it is what runs even where the file has been edited since. So a
comment does not count, and another Python version gives other hashes of user code. The code of the libraries in
``KNOWN`` counts by its name only, without a version: an upgrade that changes answers is rare, and would invalidate
every stored answer (an adapter whose answers do change gets another ``version``).
"""

from __future__ import annotations

import builtins
import dis
import enum
import functools
import hashlib
import pickle
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from pathlib import PurePath
from typing import Any

import numpy as np

MOST = 200_000
"""Values that are looked at, about a second's work; whatever holds more counts as unreadable."""
MODEL_LIBRARIES = frozenset({"torch", "torchvision", "timm", "transformers", "open_clip", "efficientnet_lite_pytorch"})
KNOWN = MODEL_LIBRARIES | {"cuebench", "numpy", "scipy", "PIL"} | sys.stdlib_module_names
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...))
_UNREADABLE = (TypeError, AttributeError, ValueError, RuntimeError, pickle.PicklingError)
_TORCH_WORDS = ("dtype", "layout", "memory_format")
_DESCRIPTORS = (staticmethod, classmethod, property, functools.cached_property)
_LOADS = {"LOAD_GLOBAL", "LOAD_NAME"}


class Content:
    """A hash that values are fed to.

    Parameters
    ----------
    module : callable
        ``module(content, value)`` feeds an nn.Module.

    Attributes
    ----------
    opaque : list of str
        What could not be read, and why.
    """

    def __init__(self, module: Callable[[Content, Any], None]) -> None:
        self.opaque: list[str] = []
        self._digest, self._module = hashlib.sha256(), module
        self._seen: dict[int, str] = {}
        self._kept: list[Any] = []  # an id is unique only among the living

    def skip(self, named: Mapping[int, str]) -> None:
        """Take objects as known, id → name: they are hashed elsewhere, and only their name counts."""
        self._seen.update(named)

    def hexdigest(self) -> str:
        """Return the hash of everything so far."""
        return self._digest.hexdigest()

    def note(self, *words: object) -> None:
        """Feed plain words."""
        self._digest.update(f"{words!r};".encode("utf-8", "surrogatepass"))

    def feed(self, value: Any, where: str) -> None:
        """Feed one value; ``where`` names it in ``opaque``."""
        if type(value) in _PLAIN or (type(value) is tuple and all(type(v) in _PLAIN for v in value)):
            self.note(type(value).__name__, value)
        elif id(value) in self._seen:
            self.note("again", self._seen[id(value)])
        elif len(self._kept) >= MOST:
            self.give_up(where, "more than can be looked at")
        else:
            self._seen[id(value)] = f"#{len(self._kept)}"
            self._kept.append(value)
            try:
                self._feed_object(value, where)
            except RecursionError:
                self.give_up(where, "nested too deeply")

    def _feed_object(self, value: Any, where: str) -> None:
        self.note(type(value).__qualname__)
        if _is_of_torch(value, "Tensor"):
            self.tensor(value, where)
        elif isinstance(value, np.ndarray) and value.dtype != object:
            self._numbers((value.dtype.str, value.shape), np.ascontiguousarray(value))
        elif isinstance(value, Mapping):
            self.items(value.items(), where)
        elif isinstance(value, list | tuple):
            self.items(enumerate(value), where)
        elif isinstance(value, set | frozenset) and all(type(v) in _PLAIN for v in value):
            self.note(sorted(map(repr, value)))  # the order of a set differs between processes
        elif isinstance(value, enum.Enum | PurePath):
            self.note(str(value))
        elif isinstance(value, types.ModuleType):
            self.note(value.__name__)
        elif _is_of_torch(value, "nn.Module"):
            self._module(self, value)
        elif not _feed_code(self, value, where):
            self._instance(value, where)

    def items(self, pairs: Iterable[tuple[Any, Any]], where: str) -> None:
        """Feed pairs of a key and a value, in their order."""
        for key, value in pairs:
            self.feed(key, where)
            self.feed(value, f"{where}[{key!r}]" if type(key) in _PLAIN else where)
        self.note("end")

    def tensor(self, value: Any, where: str) -> None:
        """Feed the numbers of a tensor, also of a quantised or a sparse one."""
        import torch

        value = value.detach()
        try:
            if value.is_quantized:
                self._scales(value, where)
                value = value.int_repr()
            if value.layout is not torch.strided:
                self.note(str(value.layout))
                value = value.to_dense()
            flat = value.cpu().contiguous().reshape(-1)
            self._numbers((value.dtype, tuple(value.shape)), flat.view(torch.uint8).numpy() if flat.numel() else b"")
        except (RuntimeError, NotImplementedError) as error:
            self.give_up(where, str(error))

    def _scales(self, value: Any, where: str) -> None:
        import torch

        self.note(str(value.qscheme()))
        if value.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
            self.note(value.q_scale(), value.q_zero_point())
        else:
            self.tensor(value.q_per_channel_scales(), where)
            self.tensor(value.q_per_channel_zero_points(), where)

    def _numbers(self, about: tuple[object, ...], data: Any) -> None:
        self.note(*map(str, about))
        self._digest.update(data)

    def _instance(self, value: Any, where: str) -> None:
        """Feed an object by its class and by what pickle would keep of it."""
        kind = type(value)
        self.feed(kind, where)
        if _is_of(kind.__module__, MODEL_LIBRARIES):
            self._of_a_library(value, where)
        elif isinstance(value, functools.partial):
            self.items(enumerate((value.func, value.args, value.keywords)), where)
        else:
            try:
                reduced = value.__reduce_ex__(2)
            except _UNREADABLE as error:
                return self.give_up(where, str(error))
            parts = (reduced,) if isinstance(reduced, str) else reduced[1:]
            self.items(enumerate(list(p) if hasattr(p, "__next__") else p for p in parts), where)
        return None

    def _of_a_library(self, value: Any, where: str) -> None:
        """Feed the public data of a configuration and the like; what a library keeps for itself decides no answer."""
        name = type(value).__name__
        if name in _TORCH_WORDS:
            self.note(str(value))
        elif name == "ScriptFunction":
            self.note(value.code)
        elif name == "ScriptObject" and hasattr(value, "__getstate__"):
            self.feed(value.__getstate__(), where)
        else:
            public = {k: v for k, v in getattr(value, "__dict__", {}).items() if not k.startswith("_")}
            self.items(public.items(), where)

    def give_up(self, where: str, why: str) -> None:
        """Say that something cannot be read."""
        self.opaque.append(f"{where} ({(why.splitlines() or ['?'])[0][:80]})")


def _is_of_torch(value: Any, kind: str) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, attrgetter(kind)(torch))


# ------------------------------------------------------------------------------------------ functions and classes


def _is_of(module: str | None, libraries: frozenset[str]) -> bool:
    """Tell whether a module belongs to one of the libraries."""
    return (module or "").partition(".")[0] in libraries


def _feed_code(content: Content, value: Any, where: str) -> bool:
    """Feed a class or something that can be called; return False for anything else."""
    if isinstance(value, type):
        _class(content, value)
    elif isinstance(value, types.FunctionType):
        _function(content, value, where)
    elif isinstance(value, types.MethodType):
        content.items(enumerate((value.__func__, value.__self__)), where)
    elif isinstance(value, types.BuiltinFunctionType):
        content.note(value.__module__, value.__qualname__)
    elif isinstance(value, types.CodeType):
        _compiled(content, value, where)
    elif isinstance(value, functools._lru_cache_wrapper):
        content.feed(value.__wrapped__, where)
    elif isinstance(value, _DESCRIPTORS):
        content.items(enumerate(getattr(value, name, None) for name in ("__func__", "func", "fget", "fset")), where)
    else:
        return False
    return True


def _class(content: Content, value: type) -> None:
    for base in value.__mro__:
        if _is_known_class(base):
            content.note(base.__module__, base.__qualname__)
            continue
        content.note(base.__qualname__)
        for name, member in vars(base).items():
            if _counts(name, member):
                content.note(name)
                content.feed(member, f"{base.__qualname__}.{name}")


def _is_known_class(value: type) -> bool:
    if value.__module__ == "builtins":  # as ``exec`` without a name says of everything
        return getattr(builtins, value.__name__, None) is value
    return _is_of(value.__module__, KNOWN)


def _counts(name: str, member: Any) -> bool:
    """Tell whether a member of a class can decide an answer: not what Python itself keeps there."""
    if name.startswith("__") or name == "_abc_impl":
        return isinstance(member, types.FunctionType | staticmethod | classmethod)
    return not isinstance(member, types.MemberDescriptorType)


def _function(content: Content, value: types.FunctionType, where: str) -> None:
    home = value.__globals__.get("__name__")
    content.note(value.__qualname__)
    if _is_of(home, KNOWN):
        content.note(home)
    else:
        _compiled(content, value.__code__, where)
        content.items(enumerate((value.__defaults__, value.__kwdefaults__)), where)
        if not _is_installed(home):
            content.items(_used(value), where)
    # Also of a library's: a decorator keeps the decorated function there.
    content.items(enumerate(map(_cell, value.__closure__ or ())), where)


def _compiled(content: Content, code: types.CodeType, where: str) -> None:
    # Neither file nor line numbers: a function that moves stays the same.
    content.note(code.co_code, code.co_names, code.co_exceptiontable, code.co_flags, code.co_argcount)
    content.items(enumerate(code.co_consts), where)


def _is_installed(module: str | None) -> bool:
    file = getattr(sys.modules.get(module or ""), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file


def _used(value: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the globals that a function loads, with what it takes from modules of the user's."""
    names = {name for code in _nested(value.__code__) for name in code.co_names}
    if not names & value.__globals__.keys():
        return
    loaded = {i.argval for c in _nested(value.__code__) for i in dis.get_instructions(c) if i.opname in _LOADS}
    for name in sorted(loaded & value.__globals__.keys()):
        used = value.__globals__[name]
        yield name, used
        if isinstance(used, types.ModuleType) and not _is_of(used.__name__, KNOWN) and not _is_installed(used.__name__):
            yield from ((n, vars(used)[n]) for n in sorted(names & vars(used).keys()))


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)


def _cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
