"""The content of a Python value as a hash: numbers, tensors, containers, objects, functions and classes.

The same in every process, and another one for everything that could behave otherwise. What cannot be read (a lock, an
object of a compiled extension) is named in ``Content.opaque``; a hash with holes must not be trusted.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import pickle
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from pathlib import PurePath
from typing import Any

import numpy as np

from cuebench.observers.torch import code as _code

MOST = 200_000
"""Values that are looked at, about a second's work; whatever holds more counts as unreadable."""
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...))
_UNREADABLE = (TypeError, AttributeError, ValueError, RuntimeError, pickle.PicklingError)
_TORCH_WORDS = ("dtype", "layout", "memory_format")


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
        elif not _code.feed(self, value, where):
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
        if _code.is_of(kind.__module__, _code.MODEL_LIBRARIES):
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
