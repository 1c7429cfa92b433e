"""The content of a Python value as a hash: numbers, tensors, containers, objects, functions and classes.

The same in every process, and another one for everything that could behave otherwise. What cannot be read (a lock, an
object of a compiled extension) is named in ``Content.opaque``; a hash with holes must not be trusted.

Functions and classes count by what they were compiled to and by what they call: compiled code exists in a notebook and
behind ``exec`` too, and it is what runs even where the file has been edited since. The modules that they come from are
collected in ``Content.modules``, and count by their files besides (`loaded_code`, ``cuebench/source_code.py``). Another
Python version gives other hashes of user code. The code of the standard library and of the libraries in ``KNOWN``,
where these are installed, counts by its name only: what an upgrade of theirs changes is found by asking again.
"""

from __future__ import annotations

import builtins
import copyreg
import dis
import enum
import functools
import hashlib
import pickle
import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from pathlib import PurePath
from typing import Any

import numpy as np

from cuebench.source_code import Code, place_of, reachable_code

MOST = 200_000
"""Values that are looked at, about a second's work; whatever holds more counts as unreadable."""
MODEL_LIBRARIES = frozenset({"torch", "torchvision", "timm", "transformers", "open_clip", "efficientnet_lite_pytorch"})
KNOWN = MODEL_LIBRARIES | {"numpy", "scipy", "PIL"}
"""Libraries whose code counts by its name, where it lies where libraries are installed."""
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...))
_BUILTIN_TYPES = frozenset(v for v in vars(types).values() if isinstance(v, type))
_UNREADABLE = (TypeError, AttributeError, ValueError, RuntimeError, pickle.PicklingError)
_TORCH_WORDS = ("dtype", "layout", "memory_format", "device", "qscheme")
_DESCRIPTORS = (staticmethod, classmethod, property, functools.cached_property)
_LOADS = {"LOAD_GLOBAL", "LOAD_NAME"}
_PLAIN_CONTAINERS = (dict, list, tuple, OrderedDict, types.MappingProxyType)
_OF_PYTHON = frozenset(
    {"__module__", "__doc__", "__dict__", "__weakref__", "__qualname__", "__slots__", "__slotnames__", "_abc_impl"}
    | {"__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__firstlineno__"}
    | {"__static_attributes__", "__abstractmethods__", "__parameters__", "__orig_bases__", "__match_args__"}
    | {"__dataclass_fields__", "__dataclass_params__", "__type_params__"}
)
"""Members of a class that Python keeps there; they decide no answer."""


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
    """

    def __init__(self, module: Callable[[Content, Any], None]) -> None:
        self.opaque: list[str] = []
        self.modules: set[str] = set()
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
        elif type(value) in _PLAIN_CONTAINERS:
            self.items(value.items() if isinstance(value, Mapping) else enumerate(value), where)
        elif isinstance(value, set | frozenset) and all(type(v) in _PLAIN for v in value):
            self.note(sorted(map(repr, value)))  # the order of a set differs between processes
            self._subclass(value, (set, frozenset), where)
        elif isinstance(value, enum.Enum):
            self.note(value.name)
            self.feed(type(value), where)
            self._state(value, where)
        elif isinstance(value, PurePath):
            self.note(str(value))
        elif isinstance(value, types.ModuleType):
            self.note(value.__name__)
            self.meet(value.__name__)
        elif isinstance(value, dict | list | tuple | Mapping):
            self.items(value.items() if isinstance(value, Mapping) else enumerate(value), where)
            self.feed(getattr(value, "default_factory", None), where)
            self._subclass(value, (), where)
        elif _is_of_torch(value, "nn.Module"):
            self._module(self, value)
        elif not _feed_code(self, value, where):
            self._instance(value, where)

    def meet(self, module: str | None) -> bool:
        """Take note of the module that some code is from; return whether its name alone stands for it."""
        if not module or module == "__main__":
            return False
        kind = place_of(module).kind
        if kind in ("standard", "cuebench") or (kind == "installed" and module.partition(".")[0] in KNOWN):
            return True
        self.modules.add(module)
        return False

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
        """Feed an object by its class, by what pickle would keep of it, and by its attributes.

        Not by what pickle keeps alone: a ``__getstate__`` of the user's may leave out what decides an answer.
        """
        kind = type(value)
        self.feed(kind, where)
        if _is_of(kind.__module__, MODEL_LIBRARIES):
            self._of_a_library(value, where)
            return
        if isinstance(value, functools.partial):
            self.items(enumerate((value.func, value.args, value.keywords)), where)
            return
        try:
            reduced = _reduced(value)
        except _UNREADABLE as error:
            self.give_up(where, str(error))
            return
        parts = (reduced,) if isinstance(reduced, str) else reduced[1:]
        self.items(enumerate(list(p) if hasattr(p, "__next__") else p for p in parts), where)
        if not self.meet(kind.__module__):
            self._state(value, where)

    def _of_a_library(self, value: Any, where: str) -> None:
        """Feed the public data of a configuration and the like; what a library keeps for itself decides no answer."""
        name = type(value).__name__
        if name in _TORCH_WORDS:
            self.note(str(value))
        elif name == "ScriptFunction":
            self.note(value.code)
        elif name == "Generator":
            self.feed(value.get_state(), where)
        elif name == "ScriptObject" and hasattr(value, "__getstate__"):
            self.feed(value.__getstate__(), where)
        elif hasattr(value, "__dict__"):
            self.items(((k, v) for k, v in vars(value).items() if not k.startswith("_")), where)
        else:
            try:
                self.feed(_reduced(value)[1:], where)
            except _UNREADABLE as error:
                self.give_up(where, str(error))

    def give_up(self, where: str, why: str) -> None:
        """Say that something cannot be read."""
        self.opaque.append(f"{where} ({(why.splitlines() or ['?'])[0][:80]})")


def _reduced(value: Any) -> Any:
    """Return what pickle keeps of an object, also of those that the standard library has told it about."""
    registered = copyreg.dispatch_table.get(type(value))
    return registered(value) if registered else value.__reduce_ex__(2)


def _is_of_torch(value: Any, kind: str) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, attrgetter(kind)(torch))


# ------------------------------------------------------------------------------------------ functions and classes


def attributes(value: Any) -> dict[str, Any]:
    """Return all attributes that an object itself holds: of its dictionary and of its slots."""
    held = dict(getattr(value, "__dict__", None) or {})
    for base in type(value).__mro__:
        for name, member in vars(base).items():
            if isinstance(member, types.MemberDescriptorType) and not name.startswith("__"):
                try:
                    held.setdefault(f"slot {name}", member.__get__(value))
                except AttributeError:  # not filled
                    continue
    return held


def _is_of(module: str | None, libraries: frozenset[str]) -> bool:
    """Tell whether a module belongs to one of the libraries as it was installed."""
    return (module or "").partition(".")[0] in libraries and place_of(module or "").kind in ("installed", "none")


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
        if not isinstance(value.__self__, types.ModuleType | None):  # a method of an object
            content.feed(value.__self__, where)
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
    if type(value) is not type:  # a metaclass can decide how objects are made and what their attributes are
        content.feed(type(value), f"metaclass of {value.__qualname__}")
    for base in value.__mro__:
        if _is_known_class(content, base):
            content.note(base.__module__, base.__qualname__)
            continue
        content.note(base.__qualname__)
        for name, member in vars(base).items():
            if name not in _OF_PYTHON and not isinstance(member, types.MemberDescriptorType):
                content.note(name)
                content.feed(member, f"{base.__qualname__}.{name}")


def _is_known_class(content: Content, value: type) -> bool:
    if value.__module__ == "builtins":  # as ``exec`` without a name says of everything
        return getattr(builtins, value.__name__, None) is value or value in _BUILTIN_TYPES
    return content.meet(value.__module__)


def _function(content: Content, value: types.FunctionType, where: str) -> None:
    home = value.__globals__.get("__name__")
    content.note(value.__qualname__)
    if content.meet(home):
        content.note(home)
    else:
        _compiled(content, value.__code__, where)
        content.items(enumerate((value.__defaults__, value.__kwdefaults__)), where)
        if place_of(home or "").kind != "installed":
            content.items(_used(content, value), where)
    # Also of a library's: a decorator keeps the decorated function there.
    content.items(enumerate(map(_cell, value.__closure__ or ())), where)


def _compiled(content: Content, code: types.CodeType, where: str) -> None:
    # Neither file nor line numbers: a function that moves stays the same.
    content.note(code.co_code, code.co_names, code.co_exceptiontable, code.co_flags, code.co_argcount)
    content.items(enumerate(code.co_consts), where)


def _used(content: Content, value: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the globals that a function loads, with what it takes from modules of the user's.

    Modules that it imports when it runs are met too: code without a file has no import statements to be read.
    """
    loaded: set[str] = set()
    for instruction in (i for code in _nested(value.__code__) for i in dis.get_instructions(code)):
        if instruction.opname in _LOADS:
            loaded.add(instruction.argval)
        elif instruction.opname == "IMPORT_NAME" and instruction.argval:
            content.meet(instruction.argval)
    names = {name for code in _nested(value.__code__) for name in code.co_names}
    for name in sorted(loaded & value.__globals__.keys()):
        used = value.__globals__[name]
        yield name, used
        if isinstance(used, types.ModuleType) and place_of(used.__name__).kind in ("user", "none"):
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
    for name in sorted(code.files):
        for key, value in sorted(vars(sys.modules[name]).items()) if name in sys.modules else ():
            if isinstance(value, type) and value.__module__ == name:
                for member, function in vars(value).items():
                    _loaded_function(content, f"{key}.{member}", function)
            elif key.isupper() and (type(value) in _PLAIN or type(value) in (tuple, frozenset)):
                content.note(key, sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value))
            else:
                _loaded_function(content, key, value)
    return content.hexdigest()


def _loaded_function(content: Content, name: str, value: Any) -> None:
    function = getattr(value, "__func__", value)  # of a static or a class method
    if isinstance(function, types.FunctionType):
        home = function.__globals__.get("__name__", "")
        if place_of(home).kind in ("user", "none"):
            content.note(name)
            _compiled(content, function.__code__, name)
        else:
            content.note(name, home, function.__qualname__)
