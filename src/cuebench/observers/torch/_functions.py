"""Functions and classes as content: what they were compiled to, what they are made with, and what they call."""

from __future__ import annotations

import builtins
import ctypes
import dis
import functools
import inspect
import types
from collections.abc import Iterator
from pathlib import PosixPath, PurePath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import TYPE_CHECKING, Any

from cuebench.source_code import loaded_module, place_of

if TYPE_CHECKING:
    from cuebench.observers.torch.content import Content

MODEL_LIBRARIES = frozenset({"torch", "torchvision", "timm", "transformers", "open_clip", "efficientnet_lite_pytorch"})
KNOWN = MODEL_LIBRARIES | {"numpy", "scipy", "PIL"}
"""Libraries whose code counts by its name, where it lies where libraries are installed."""
_BUILTIN_TYPES = frozenset(v for v in vars(types).values() if isinstance(v, type))
PATHS = (PurePosixPath, PosixPath, PureWindowsPath, WindowsPath)
_OF_PATHS = (*PATHS, *PurePath.__mro__)
_DESCRIPTORS = (staticmethod, classmethod, property, functools.cached_property)
_CYTHON = "cython_function_or_method"
_OF_COMPILED_CLASSES = (
    types.GetSetDescriptorType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
)
_LOADS_CONSTANT = frozenset(dis.hasconst)
_HAS_DOCSTRING = 0x4000000
_LOADS = {"LOAD_GLOBAL", "LOAD_NAME"}
_WRITTEN_LATER = ("_torchdynamo", "_dynamo", "_is_hf_initialized", "_compile_kwargs", "_compiler_ctx")
"""Beginnings of attributes that compilers and loaders write while a model is made or runs, addresses among them.

Those of torch, transformers and lightning, which does it once it is imported.
"""
_MOST_DECORATORS = 20
_GENERATED_BY_ATTRS = "<attrs generated"
_OF_PYTHON = frozenset(
    {"__module__", "__doc__", "__dict__", "__weakref__", "__qualname__", "__slots__", "__slotnames__", "_abc_impl"}
    | {"__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__firstlineno__"}
    | {"__static_attributes__", "__abstractmethods__", "__parameters__", "__orig_bases__", "__match_args__"}
    | {"__dataclass_fields__", "__dataclass_params__", "__type_params__", "__pyx_vtable__"}
    | {"__pydantic_core_schema__", "__pydantic_validator__", "__pydantic_serializer__"}
)
"""Members of a class that Python and pydantic keep there; they decide no answer, or are made of what else is there."""
OF_A_FILE = frozenset({"__name__", "__file__", "__spec__", "__path__"})
"""Globals that say where a module lies: another place of a project is no other model."""


def attributes(value: Any) -> dict[str, Any]:
    """Return all attributes that an object itself holds: of its dictionary and of its slots.

    Not what torch's compiler and loaders write there while a model is made or runs.
    """
    try:
        held = dict(object.__getattribute__(value, "__dict__"))  # not what a ``__getattr__`` makes up
    except AttributeError:
        held = {}
    for base in type(value).__mro__:
        slots = _slots if type(base) is type else _slots.__wrapped__  # a metaclass may have made it unhashable
        for name, member in slots(base):
            try:
                held.setdefault(f"slot {name}", member.__get__(value))
            except AttributeError:  # not filled
                continue
    for name in [n for n in held if isinstance(n, str) and n.startswith(_WRITTEN_LATER)]:
        del held[name]
    return held


@functools.lru_cache(maxsize=1000)
def _slots(kind: type) -> list[tuple[str, Any]]:
    if kind in _OF_PATHS:  # parts of the text, and what was worked out from it so far
        return []
    slots = ((k, v) for k, v in list(vars(kind).items()) if isinstance(v, types.MemberDescriptorType))
    return [(name, member) for name, member in slots if not name.startswith("__")]


def is_of(module: object, libraries: frozenset[str]) -> bool:
    """Tell whether a module belongs to one of the libraries as it was installed."""
    if not isinstance(module, str) or module.partition(".")[0] not in libraries:
        return False
    return place_of(module).kind in ("installed", "none")


def feed_code(content: Content, value: Any, where: str) -> bool:
    """Feed a class or something that can be called; return False for anything else."""
    if isinstance(value, type):
        _class(content, value)
    elif isinstance(value, types.FunctionType):
        _function(content, value, where)
    elif isinstance(value, types.MethodType):
        content.items(enumerate((value.__func__, value.__self__)), where)
    elif isinstance(value, types.BuiltinFunctionType) or type(value).__name__ == _CYTHON:
        of = getattr(value, "__self__", None)
        home = value.__module__ or (of.__name__ if isinstance(of, types.ModuleType) else "")
        content.note(home if isinstance(home, str) else "", value.__qualname__)
        content.meet(home)
        if not isinstance(of, types.ModuleType | None):
            content.feed(of, where)  # a method of an object
    elif isinstance(value, _OF_COMPILED_CLASSES):
        content.note(value.__name__, value.__objclass__.__qualname__)
        content.meet(value.__objclass__.__module__)
    elif isinstance(value, types.CodeType):
        feed_compiled(content, value, where)
    elif isinstance(value, ctypes.CDLL):
        content.note(value._name)  # its handle is an address
    elif isinstance(value, functools._lru_cache_wrapper):
        content.feed(value.__wrapped__, where)
    elif isinstance(value, _DESCRIPTORS):
        names = ("__func__", "func", "fget", "fset", "fdel")
        content.items(enumerate(getattr(value, name, None) for name in names), where)
        if type(value) not in _DESCRIPTORS:
            content.feed(type(value), where)
            held = attributes(value)
            content.items(sorted((k, v) for k, v in held.items() if k not in ("lock", "__doc__")), where)
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
        for name, member in list(vars(base).items()):  # reading may add to it
            if name not in _OF_PYTHON and not isinstance(member, types.MemberDescriptorType):
                content.note(name)
                content.feed(member, f"{base.__qualname__}.{name}")
        _annotations(content, base)


def _annotations(content: Content, value: Any) -> None:
    try:
        hints = vars(value).get("__annotations__") if isinstance(value, type) else value.__annotations__
    except Exception:  # noqa: BLE001 - Python 3.14 works them out when they are asked for
        hints = None
    if hints:
        content.aside(dict(hints), "annotations")


def is_known_module(value: types.ModuleType) -> bool:
    """Tell whether a module's file stands for it, or that of the library which brings it."""
    name = value.__name__
    if loaded_module(name) is not value:
        return bool(is_of(name, KNOWN) and type(value) is not types.ModuleType)  # torch.ops.aten
    return name == "__main__" or place_of(name).kind != "none" or is_of(name.partition(".")[0], KNOWN)


def _is_known_class(content: Content, value: type) -> bool:
    if value.__module__ == "builtins":  # as ``exec`` without a name says of everything
        return getattr(builtins, value.__name__, None) is value or value in _BUILTIN_TYPES
    return content.meet(value.__module__, value)


def is_found(module: str, value: Any) -> bool:
    """Tell whether a class or function is what its module holds under its name, or what a decorator there wraps."""
    found: Any = loaded_module(module)
    for name in value.__qualname__.split("."):
        found = getattr(found, "__dict__", {}).get(name)
        for _ in range(_MOST_DECORATORS):
            if found is value or found is None or isinstance(found, type):
                break
            inner = (getattr(found, kept, None) for kept in ("__func__", "fget", "func", "__wrapped__"))
            found = next((f for f in inner if f is not None), None)
    return found is value


def _function(content: Content, value: types.FunctionType, where: str) -> None:
    home = value.__globals__.get("__name__")
    content.note(value.__qualname__)
    if value.__code__.co_filename.startswith(_GENERATED_BY_ATTRS):
        return
    if content.meet(home, value):
        content.note(home)
    else:
        feed_compiled(content, value.__code__, where)
        content.items(enumerate((value.__defaults__, value.__kwdefaults__)), where)
        if place_of(home or "").kind != "installed":
            content.items(_used(content, value), where)
            _annotations(content, value)
        content.items(sorted(attributes(value).items()), where)
    # Also of a library's: a decorator keeps the decorated function there.
    content.items(enumerate(map(_cell, value.__closure__ or ())), where)


def feed_compiled(content: Content, code: types.CodeType, where: str) -> None:
    if code.co_filename.startswith(_GENERATED_BY_ATTRS):  # made of attributes of its class; holds a random number
        return
    # Neither file nor line numbers: a function that moves stays the same.
    operations, constants = _without_docstring(code)
    content.note(operations, code.co_names, code.co_exceptiontable, code.co_flags & ~_HAS_DOCSTRING)
    count = code.co_argcount + code.co_kwonlyargcount
    stars = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    content.note(code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_varnames[: count + stars])
    content.items(enumerate(constants), where)


def _without_docstring(code: types.CodeType) -> tuple[bytes, tuple[Any, ...]]:
    """Return the operations and the constants of some code without a first constant that no operation loads.

    That is where a docstring is, and what stands there if there is none.
    """
    operations, first = bytearray(code.co_code), code.co_consts[:1]
    if not first or not isinstance(first[0], str | None):
        return code.co_code, code.co_consts
    loads = [at for at in range(0, len(operations), 2) if operations[at] in _LOADS_CONSTANT]
    if any(not operations[at + 1] or (at and operations[at - 2] == dis.EXTENDED_ARG) for at in loads):
        return code.co_code, code.co_consts
    for at in loads:
        operations[at + 1] -= 1
    return bytes(operations), code.co_consts[1:]


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
    for name in sorted((loaded & value.__globals__.keys()) - OF_A_FILE):
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
