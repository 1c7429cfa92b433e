"""Functions and classes as content: what they were compiled to, and what they call.

Not their source: compiled code exists in a notebook and behind ``exec`` too, and it is what runs even where the file
has been edited since. So a comment does not count, and another Python version gives other hashes of user code. The
code of the libraries in ``KNOWN`` counts by its name only, without a version: an upgrade that changes answers is rare,
and would cost everybody every stored answer (an adapter whose answers do change gets another ``version``).
"""

from __future__ import annotations

import builtins
import dis
import functools
import sys
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuebench.observers.torch.content import Content

MODEL_LIBRARIES = frozenset({"torch", "torchvision", "timm", "transformers", "open_clip", "efficientnet_lite_pytorch"})
KNOWN = MODEL_LIBRARIES | {"cuebench", "numpy", "scipy", "PIL"} | sys.stdlib_module_names
_DESCRIPTORS = (staticmethod, classmethod, property, functools.cached_property)
_LOADS = {"LOAD_GLOBAL", "LOAD_NAME"}


def is_of(module: str | None, libraries: frozenset[str]) -> bool:
    """Tell whether a module belongs to one of the libraries."""
    return (module or "").partition(".")[0] in libraries


def feed(content: Content, value: Any, where: str) -> bool:
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
    return is_of(value.__module__, KNOWN)


def _counts(name: str, member: Any) -> bool:
    """Tell whether a member of a class can decide an answer: not what Python itself keeps there."""
    if name.startswith("__") or name == "_abc_impl":
        return isinstance(member, types.FunctionType | staticmethod | classmethod)
    return not isinstance(member, types.MemberDescriptorType)


def _function(content: Content, value: types.FunctionType, where: str) -> None:
    home = value.__globals__.get("__name__")
    content.note(value.__qualname__)
    if is_of(home, KNOWN):
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
        found = value.__globals__[name]
        yield name, found
        if (
            isinstance(found, types.ModuleType)
            and not is_of(found.__name__, KNOWN)
            and not _is_installed(found.__name__)
        ):
            yield from ((n, vars(found)[n]) for n in sorted(names & vars(found).keys()))


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
