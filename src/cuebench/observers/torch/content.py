"""The content of a Python value as a hash: numbers, tensors, containers, objects, functions and classes.

The same in every process, and another one for everything that could behave otherwise. What cannot be read (a lock, an
object of a compiled extension) is named in ``Content.opaque``; a hash with holes must not be trusted.

Functions and classes count by what they were compiled to and by what they call: compiled code exists in a notebook and
behind ``exec`` too, and it is what runs even where the file has been edited since. The modules that they come from are
collected in ``Content.modules``, and count by their files besides (`loaded_code`, ``cuebench/source_code.py``). Another
Python version gives other hashes of user code. The code of the standard library and of installed packages counts by
its name, and by the version of the package unless that is one of ``KNOWN``, which the built-in adapters are made of:
what an upgrade of theirs changes is found by asking again. Objects of installed classes count by what they hold.

What differs between two processes, or says only where a project lies, is left out: locks, open files, handlers of logs
and the like count by their class, and a module's own folder and the hash in the name of a file's module by a constant.
"""

from __future__ import annotations

import copyreg
import enum
import functools
import hashlib
import os
import pickle
import sys
import types
import weakref
from collections import ChainMap, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from contextlib import suppress
from contextvars import ContextVar
from operator import attrgetter
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from cuebench.observers.torch._functions import (
    KNOWN,
    MODEL_LIBRARIES,
    OF_A_FILE,
    PATHS,
    attributes,
    feed_code,
    feed_compiled,
    is_found,
    is_known_module,
    is_of,
)
from cuebench.observers.torch._script import hash_script
from cuebench.observers.torch._tools import is_alias, is_of_the_process, is_tool, name_of_tool
from cuebench.python_files import LOADED_BY_PATH
from cuebench.source_code import Code, Place, loaded_module, place_of, public_name, reachable_code

MOST = 200_000
"""Values that are looked at, about a second's work; whatever holds more counts as unreadable."""
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...))
_UNREADABLE = (TypeError, AttributeError, ValueError, RuntimeError, pickle.PicklingError)
_TORCH_WORDS = frozenset(
    {"dtype", "layout", "memory_format", "device", "qscheme", "finfo", "iinfo", "OpOverload", "OpOverloadPacket"}
)
_OF_A_MODULE = OF_A_FILE | {"__doc__", "__package__", "__loader__", "__builtins__", "__cached__"}
_OWN_FOLDER = "\0its own folder"
ORIGIN = frozenset(
    {"name_or_path", "_name_or_path", "_commit_hash", "pretrained_cfg", "default_cfg", "warnings_issued"}
)
"""Attributes in which libraries say where weights came from; the weights themselves are hashed."""
_LAZY = ("UninitializedParameter", "UninitializedBuffer")
_ROWS, _COLUMNS = ("crow_indices", "col_indices", "values"), ("ccol_indices", "row_indices", "values")
_SPARSE = {"coo": ("indices", "values"), "csr": _ROWS, "bsr": _ROWS, "csc": _COLUMNS, "bsc": _COLUMNS}
_ON_HEAP = 1 << 9
_PLAIN_CONTAINERS = (dict, list, tuple, OrderedDict, types.MappingProxyType)


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
    modules : set of str
        The modules whose code was met, except those of the standard library and of ``KNOWN`` libraries.
    built_in : set of str
        The modules of cuebench whose code was met.
    """

    def __init__(self, module: Callable[[Content, Any], None]) -> None:
        self.opaque: list[str] = []
        self.modules: set[str] = set()
        self.built_in: set[str] = set()
        self._digest, self._module = hashlib.sha256(), module
        self._seen: MutableMapping[int, str] = {}
        self._kept: list[Any] = []  # an id is unique only among the living
        self._left, self._depth = [MOST], 1
        self._folders: list[tuple[str, ...]] = [()]

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
        if type(value) is str:
            self.note("str", self._anywhere(value))
        elif type(value) in _PLAIN:
            self.note(type(value).__name__, value)
        elif type(value) is tuple and all(type(v) in _PLAIN for v in value):
            self.note("tuple", tuple(self._anywhere(v) if type(v) is str else v for v in value))
        elif is_alias(value):  # typing keeps some of them, and which are one object depends on what else was loaded
            self.note(type(value).__qualname__, getattr(value, "_name", None))
            held = (value.__origin__, *value.__args__, *getattr(value, "__metadata__", ()))
            self.items(enumerate(held), where)
        elif id(value) in self._seen:
            self.note("again", self._seen[id(value)])
        elif not self._left[0]:
            self.give_up(where, "more than can be looked at")
        else:
            self._seen[id(value)] = f"{'#' * self._depth}{len(self._kept)}"
            self._kept.append(value)
            self._left[0] -= 1
            try:
                self._feed_object(value, where)
            except RecursionError:
                self.give_up(where, "nested too deeply")
            except Exception as error:  # noqa: BLE001 - properties, ``__getstate__`` and the like of any class run here
                self.give_up(where, f"{type(error).__name__}: {error}")

    def _feed_object(self, value: Any, where: str) -> None:
        kind = type(value)
        self.note(kind.__qualname__)
        if _is_of_torch(value, "Tensor"):
            self.tensor(value, where)
            self.of_tensor(value, where)
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            self._array(value, where)
        elif kind in _PLAIN_CONTAINERS:
            self.items(value.items() if isinstance(value, Mapping) else enumerate(value), where)
        elif isinstance(value, set | frozenset):
            self._set(value, where)
            self._subclass(value, (set, frozenset), where)
        elif isinstance(value, enum.Enum):
            self.note(value.name)
            self.feed(kind, where)
            self._state(value, where)
        elif isinstance(value, PurePath):
            self.note(self._anywhere(str(value)))
            self._subclass(value, PATHS, where)
        elif isinstance(value, types.ModuleType):
            self._python_module(value, where)
        elif value is os.environ or value is getattr(os, "environb", None):
            self.note("environment")  # another one for every process; what of it matters is found by asking again
        elif isinstance(value, dict | list | tuple | Mapping):
            self.items(value.items() if isinstance(value, Mapping) else enumerate(value), where)
            if isinstance(value, defaultdict):
                self.feed(value.default_factory, where)
            self._subclass(value, (), where)
        elif _is_of_torch(value, "nn.Module"):
            self._module(self, value)
        elif not feed_code(self, value, where):
            self._instance(value, where)

    def _set(self, value: Iterable[Any], where: str) -> None:
        """Feed each item by a hash of its own, in the order of the hashes: a set's own differs between processes."""
        plain = (v for v in value if type(v) in _PLAIN)
        self.note(sorted(repr(self._anywhere(v) if type(v) is str else v) for v in plain))
        hashes = []
        for item in (v for v in value if type(v) not in _PLAIN):
            apart = self._apart()
            apart.feed(item, where)
            hashes.append(apart.hexdigest())
        self.note(sorted(hashes))

    def _apart(self) -> Content:
        """Return a hash of its own for a part of this content: it knows what this one has seen, but adds nothing."""
        apart = Content(self._module)
        apart.opaque, apart.modules, apart.built_in = self.opaque, self.modules, self.built_in
        apart._left, apart._folders = self._left, self._folders
        apart._depth, apart._seen = self._depth + 1, ChainMap({}, self._seen)
        return apart

    def aside(self, value: Any, where: str) -> None:
        """Feed something that is rarely read, such as an annotation: what cannot be read of it does no harm."""
        apart = self._apart()
        apart.opaque = []
        apart.feed(value, where)
        self.note("unread" if apart.opaque else apart.hexdigest())

    def _array(self, value: Any, where: str) -> None:
        dtype = value.dtype
        about = (repr(dtype), dtype.metadata) if dtype.names else (dtype.str,)
        self._numbers((*about, value.shape), np.ascontiguousarray(value.view(np.ndarray)))
        self._subclass(value, (np.ndarray, np.memmap), where)

    def _python_module(self, value: types.ModuleType, where: str) -> None:
        """Feed a module by its name and its file, and one without a file by what it holds."""
        self.note(public_name(value.__name__))
        if type(value) is not types.ModuleType:
            self.feed(type(value), where)
        if not self.meet(value.__name__) and not is_known_module(value):
            held = {k: v for k, v in vars(value).items() if k not in _OF_A_MODULE}
            self.items(sorted(held.items()), where)

    def meet(self, module: object, code: Any = None) -> bool:
        """Take note of the module that some code is from; return whether its name alone stands for it.

        A compiled class may have anything for its ``__module__``; only a text names a module. What an installed package
        makes while it runs has no name there.
        """
        if not isinstance(module, str) or not module or module == "__main__":
            return False
        place = place_of(module)
        if place.kind == "cuebench":
            self.built_in.add(module)
        installed = place.kind == "installed"
        if place.kind in ("standard", "cuebench") or (installed and module.partition(".")[0] in KNOWN):
            return True
        if module not in self.modules:
            self.modules.add(module)
            if place.kind == "user":
                self._know_folder(module, place)
        return installed and (code is None or is_found(module, code))

    def _know_folder(self, module: str, place: Place) -> None:
        """Take the folder of a module's file, and that which its package is in, for folders that may lie anywhere."""
        up = module.count(".") + place.package if not module.startswith(LOADED_BY_PATH) else 0
        for path in {os.path.abspath(place.file), os.path.realpath(place.file)}:
            folders = [str(folder) for folder in Path(path).parents[: up + 1] if folder.parent != folder]
            self._folders[0] = tuple(sorted({*self._folders[0], *folders[:1], *folders[-1:]}, key=len, reverse=True))

    def _anywhere(self, text: str) -> str:
        """Return a text without what says where the code lies: the folder of its file, the hash in a module's name."""
        if text.startswith(LOADED_BY_PATH):
            return public_name(text)
        if not text.startswith(self._folders[0]):
            return text
        folder = next((f for f in self._folders[0] if f"{text}{os.sep}".startswith(f + os.sep)), "")
        return (_OWN_FOLDER if folder else "") + text[len(folder) :]

    def _subclass(self, value: Any, plain: tuple[type, ...], where: str) -> None:
        """Feed the class of a container that is not one of Python's own, and what it holds besides its items."""
        if type(value) not in plain:
            self.feed(type(value), where)
            self._state(value, where)

    def _state(self, value: Any, where: str) -> None:
        """Feed the attributes of an object, those in slots too."""
        self.items(sorted(attributes(value).items()), where)

    def items(self, pairs: Iterable[tuple[Any, Any]], where: str) -> None:
        """Feed pairs of a key and a value, in their order."""
        for key, value in pairs:
            self.feed(key, where)
            self.feed(value, f"{where}[{key!r}]" if type(key) in _PLAIN else where)
        self.note("end")

    def tensor(self, value: Any, where: str) -> None:
        """Feed the numbers of a tensor, also of a quantised, a sparse or a nested one."""
        import torch

        if type(value).__name__ in _LAZY and is_of(type(value).__module__, MODEL_LIBRARIES):
            self.give_up(where, "not initialised before the first forward pass")
            return
        if hasattr(type(value), "__tensor_flatten__"):  # the numbers are in other tensors
            names, about = value.__tensor_flatten__()
            self.items([*((name, getattr(value, name)) for name in names), ("about", about)], where)
            return
        with torch._C.DisableTorchFunctionSubclass():
            value = value.detach()
            if value.is_nested:
                self.items(enumerate(value.unbind()), where)
                return
            if value.is_quantized:
                self._scales(value, where)
                value = value.int_repr()
            if value.is_meta:
                self.note("meta", str(value.dtype), tuple(value.shape))
            elif value.layout is torch.strided:
                self._numbers((value.dtype, tuple(value.shape)), numbers_of(value))
            else:
                self._sparse(value, where)

    def of_tensor(self, value: Any, where: str) -> None:
        """Feed the class of a tensor that is not torch's own, and its attributes."""
        import torch

        if type(value) not in (torch.Tensor, torch.nn.Parameter):
            self.feed(type(value), where)
        elif not vars(value):
            return
        held = attributes(value)
        if held:
            self.items(sorted(held.items()), where)

    def _sparse(self, value: Any, where: str) -> None:
        import torch

        self.note(str(value.layout), tuple(value.shape))
        if value.layout is torch.sparse_coo:
            value = value.coalesce()
        parts = _SPARSE.get(str(value.layout).rpartition("_")[2], ("to_dense",))
        for part in parts:
            self.tensor(getattr(value, part)(), where)

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
        """Feed an object by its class, by what pickle would keep of it, and by its attributes.

        Not by what pickle keeps alone: a ``__getstate__`` of the user's may leave out what decides an answer.
        """
        kind = type(value)
        if is_of_the_process(value):
            return
        if is_tool(value):
            self.note(name_of_tool(value, self._anywhere))
            self.feed(kind, where)
            return
        if hasattr(kind, "_compile_for_args") and is_of(kind.__module__, frozenset({"numba"})):
            self.meet(kind.__module__)
            self.items(enumerate((value.py_func, value.targetoptions)), where)  # not what it has compiled so far
            return
        self.feed(kind, where)
        if is_of(kind.__module__, MODEL_LIBRARIES):
            self._of_a_library(value, where)
            return
        if isinstance(value, functools.partial):
            self.items(enumerate((value.func, value.args, value.keywords)), where)
            self._state(value, where)
            return
        if isinstance(value, weakref.ref):
            self.feed(value(), where)
            self._state(value, where)
            return
        if isinstance(value, ContextVar):
            self.note(value.name)
            with suppress(LookupError):  # it has no value yet, and no default
                self.feed(value.get(), where)
            return
        if kind.__name__ == "Pattern" and is_of(kind.__module__, frozenset({"regex", "_regex"})):
            self.items(enumerate((value.pattern, value.flags, value.named_lists)), where)
            return
        named = self.meet(kind.__module__, kind)
        try:
            reduced = _reduced(value)
        except _UNREADABLE as error:
            if named and _is_of_python(kind):
                self._state(value, where)
            else:
                self.give_up(where, str(error))
            return
        if isinstance(reduced, str):  # a global of a module
            self.meet(getattr(value, "__module__", None))
        parts = (reduced,) if isinstance(reduced, str) else reduced[1:]
        self.items(enumerate(list(p) if hasattr(p, "__next__") else p for p in parts), where)
        if not named:
            self._state(value, where)

    def _of_a_library(self, value: Any, where: str) -> None:
        """Feed all attributes of a configuration and the like, except where it was loaded from."""
        name = type(value).__name__
        held = {k: v for k, v in attributes(value).items() if k not in ORIGIN}
        if name in _TORCH_WORDS:
            self.note(str(value))
        elif name == "ScriptFunction":
            self.note(hash_script(value))
        elif name == "Generator":
            self.feed(value.get_state(), where)
        elif name == "ScriptObject" and hasattr(value, "__getstate__"):
            self.feed(value.__getstate__(), where)
        elif name == "RemovableHandle":
            pass  # hooks are hashed with their modules; a handle only counts them
        elif name == "Graph" and hasattr(value, "nodes"):  # a list whose nodes know each other
            for node in value.nodes:
                self.note(node.op, node.name)
                self.items(enumerate((node.target, node.args, node.kwargs)), where)
        elif name == "Node" and hasattr(value, "op"):
            self.note(value.name)
        elif name == "CustomOpDef":
            self.items(((k, v) for k, v in held.items() if k not in ("_lib", "_opoverload", "_schema")), where)
        elif held or _is_of_python(type(value)):
            self.items(held.items(), where)
        else:
            try:
                reduced = _reduced(value)
                self.feed(reduced if isinstance(reduced, str) else reduced[1:], where)
            except _UNREADABLE as error:
                self.give_up(where, str(error))

    def give_up(self, where: str, why: str) -> None:
        """Say that something cannot be read."""
        self.opaque.append(f"{where} ({(why.splitlines() or ['?'])[0][:80]})")


def numbers_of(tensor: Any) -> Any:
    """Return the bytes of a strided tensor, in the order of its indices."""
    import torch

    flat = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous().reshape(-1)
    if not flat.numel():
        return b""
    if flat.stride(-1) != 1:  # one number of many is contiguous whatever its stride
        flat = flat.clone(memory_format=torch.contiguous_format)
    return flat.view(torch.uint8).numpy().data


def is_of_a_model_library(kind: type) -> bool:
    """Tell whether a class comes from timm, transformers and the like, not from torch or from a user."""
    return is_of(kind.__module__, MODEL_LIBRARIES - {"torch"})


def _is_of_python(kind: type) -> bool:
    """Tell whether objects of a class can hold nothing but attributes: it and its bases are written in Python."""
    return all(base is object or (base.__flags__ & _ON_HEAP and "__module__" in vars(base)) for base in kind.__mro__)


def _reduced(value: Any) -> Any:
    """Return what pickle keeps of an object, also of those that the standard library has told it about."""
    registered = copyreg.dispatch_table.get(type(value))
    return registered(value) if registered else value.__reduce_ex__(2)


def _is_of_torch(value: Any, kind: str) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, attrgetter(kind)(torch))


# ------------------------------------------------------------------------------------------ code in files


def code_of(modules: Iterable[str]) -> tuple[str, list[str]]:
    """Return the hash of the files that modules reach and of the code that they hold now, and what cannot be read.

    Empty where there is no code of a user's. A module may differ from its file: the file was edited after the import,
    or a function was replaced from outside. Both count.
    """
    code = reachable_code(modules)
    if not code.digest:
        return "", code.unreadable
    return hashlib.sha256((code.digest + _loaded(code)).encode()).hexdigest(), code.unreadable


def _loaded(code: Code) -> str:
    """Return the hash of the functions, methods and constants (names in capitals) of the modules that are loaded."""
    content = Content(lambda content, value: None)
    for name in sorted(code.files, key=lambda name: (public_name(name), name)):
        content.meet(name)
        for key, value in sorted(getattr(loaded_module(name), "__dict__", {}).items()):
            if isinstance(value, type) and value.__module__ == name:
                for member, function in list(vars(value).items()):
                    _loaded_function(content, f"{key}.{member}", function)
            elif key.isupper() and (type(value) in _PLAIN or type(value) in (tuple, frozenset)):
                content.note(key)
                content.feed(value, key)
            else:
                _loaded_function(content, key, value)
    return content.hexdigest()


def _loaded_function(content: Content, name: str, value: Any) -> None:
    function = getattr(value, "__func__", value)  # of a static or a class method
    if isinstance(function, types.FunctionType):
        home = function.__globals__.get("__name__", "")
        if place_of(home).kind in ("user", "none"):
            content.note(name)
            feed_compiled(content, function.__code__, name)
        else:
            content.note(name, home, function.__qualname__)
