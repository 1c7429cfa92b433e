"""The flags of a command, read from the function behind it: what files of settings and ``explain`` know them from."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Union

import typer

from cuebench.errors import UserError


class Flag(NamedTuple):
    """A flag of a verb, or one of its arguments."""

    parameter: str
    """Name of the parameter of the function."""
    names: tuple[str, ...]
    """As it is written: ``--observer``, ``-o``; empty for an argument."""
    kind: Any
    """Type of the value, without None; paths are text."""
    default: Any
    help: str
    is_path: bool = False

    @property
    def key(self) -> str:
        """The word of a file of settings: ``data_root`` for ``--data-root``."""
        return self.names[0].split("/")[0].removeprefix("--").replace("-", "_") if self.names else self.parameter


def flags_of(command: Callable[..., Any]) -> list[Flag]:
    """Return the flags and arguments of a command, in their order."""
    hints = typing.get_type_hints(command, include_extras=True)
    flags = []
    for name, parameter in inspect.signature(command).parameters.items():
        hint = hints[name]
        if typing.get_origin(hint) is not typing.Annotated:
            continue  # the context
        kind, info = typing.get_args(hint)[:2]
        is_argument = isinstance(info, typer.models.ArgumentInfo)
        # Within Annotated, the first of the names is where typer has the default otherwise.
        written = [] if is_argument else [n for n in (info.default, *(info.param_decls or ())) if isinstance(n, str)]
        names = () if is_argument else tuple(written) or (f"--{name.replace('_', '-')}",)
        default = None if parameter.default is inspect.Parameter.empty else parameter.default
        flags.append(Flag(name, names, _plain(kind), default, info.help or "", _is_path(kind)))
    return flags


def refuse_empty_paths(command: Callable[..., Any], arguments: Sequence[str]) -> None:
    """Raise for a path that is written as an empty text, as ``--out "$UNSET"`` is: it would be the current folder."""
    flags, before = [flag for flag in flags_of(command) if flag.is_path], ""
    names = {name for flag in flags for name in flag.names}
    for word in arguments:
        option = word[:-1] if word.startswith("--") and word.endswith("=") else before if not word else ""
        is_argument = not word and not before.startswith("-") and not all(flag.names for flag in flags)
        if option in names or is_argument:
            raise UserError(f"{option if option in names else 'a path'} is empty", "write . for the current folder")
        before = word


def _is_path(kind: Any) -> bool:
    return kind is Path or any(map(_is_path, typing.get_args(kind)))


def _plain(kind: Any) -> Any:
    """Return a type without None, and text for a path."""
    if typing.get_origin(kind) in (Union, types.UnionType):
        kind = next(member for member in typing.get_args(kind) if member is not type(None))
    if kind == list[Path]:
        return list[str]
    return str if kind is Path else kind
