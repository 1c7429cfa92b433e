"""Cues by name: options that are typed by the function's signature, and calls whose errors name the cue.

Recipes (``contrast?level=0.3``) and ``cuebench cue --set level=0.3`` pass texts; Python passes values. Both are checked
against the annotations of the cue's keywords, so that an unknown name and a wrong type are errors that say what is
accepted. This holds for built-in cues, cues of plug-ins and ``python:FILE.py:NAME`` alike.
"""

from __future__ import annotations

import inspect
import json
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Union

import numpy as np

from cuebench import options
from cuebench.cues.base import CueInfo, is_tensor
from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.registry import BUILT_IN, SCHEME, cues

SUPPLIED = frozenset({"image", "other", "mask", "labels", "inside", "rng", "seed"})
"""Keywords that are images or seeds: files and ``--seed`` supply them, not options."""
_NOUNS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
_PLURALS = {int: "whole numbers", float: "numbers", str: "words"}
_NONE = frozenset({"none", "null"})


@dataclass(frozen=True)
class Parameter(Option):
    """An option whose type is the annotation of a function's keyword."""

    annotation: Any = Any

    def accepted(self) -> str:
        """Say in words what is accepted."""
        return ", or ".join(dict.fromkeys(_words(kind) for kind in _members(self.annotation)))

    def parse(self, value: Any) -> Any:
        """Return a value of the annotated type; a text is converted.

        Raises
        ------
        ValueError
            Where the value does not fit.
        """
        for kind in _members(self.annotation):
            try:
                return _converted(value, kind)
            except (TypeError, ValueError, OverflowError):
                continue
        raise ValueError(value)


def options_of(function: Callable[..., Any]) -> dict[str, Option]:
    """Return the options of a cue or source: every keyword that is neither an image nor a seed nor a function."""
    return {name: option for name, option in _declared(function).items() if name not in SUPPLIED}


def parse_options(
    function: Callable[..., Any], texts: Mapping[str, Any], part: str, *, recipe: bool = False
) -> dict[str, Any]:
    """Return keyword arguments of a cue or source, converted to the types that its signature declares.

    Parameters
    ----------
    function : callable
        The cue or source.
    texts : mapping of str to value
        Texts of a recipe or command line, or values from Python.
    part : str
        How messages name it: ``cue 'contrast'``.
    recipe : bool
        The texts are a whole step of a recipe: images are among them, and what the function needs must be there.

    Raises
    ------
    UserError
        For an unknown name, with the nearest one; for values that do not fit, all of them at once.
    """
    parameters = inspect.signature(function).parameters.values()
    declared: Mapping[str, Option] = _declared(function) if recipe else options_of(function)
    if any(p.kind is p.VAR_KEYWORD for p in parameters) and not _passes_to(function):
        declared = {**{name: Parameter(None) for name in texts}, **declared}  # the function decides what it accepts
    values = options.parse(declared, texts, part)
    needed = [p.name for p in parameters if p.default is p.empty and p.name in declared and p.name not in texts]
    if recipe and (missing := [name for name in needed if name != "seed"]):
        raise UserError(f"{part} needs {' and '.join(missing)}", f"write {missing[0]}=… behind the question mark")
    return {name: values[name] for name in texts}


def _passes_to(function: Callable[..., Any]) -> str:
    info: CueInfo | None = getattr(function, "info", None)
    return info.passes_to if info is not None else ""


def _declared(function: Callable[..., Any]) -> dict[str, Option]:
    """Return all parameters of a function, with those of the cue that it passes further keywords to."""
    passed = _parameters(cues.get(_passes_to(function))) if _passes_to(function) else {}
    return {**passed, **_parameters(function)}


def call(name: str, *images: Any, **keywords: Any) -> Any:
    """Call a cue by name; one that fails is a user error with the cue's name.

    Of a cue of a plug-in or of the user that is any exception; of a built-in one, what options bring about that are
    within their bounds but not in these pixels or this memory. Numbers that are none (0/0) never become grey levels.

    Parameters
    ----------
    name : str
        Public name, or ``python:FILE.py:NAME``.
    *images : arrays
        The image, and the second image of a mixing cue.
    **keywords
        Keyword arguments of the cue, already of the right types.
    """
    function = cues.get(name)
    if cues.origin(name) == BUILT_IN:
        try:
            with np.errstate(invalid="raise"):
                return function(*images, **keywords)
        except UserError:
            raise
        except _by_options() as error:
            shown = [f"{k}={v}" for k, v in keywords.items() if k != "rng" and isinstance(v, bool | int | float | str)]
            if not shown:  # nothing was chosen: a bug
                raise
            why = "it needs more memory than there is" if isinstance(error, MemoryError) else str(error).strip()
            raise UserError(
                f"cue {name!r} cannot be applied with {', '.join(shown)}: {why}"[:500],
                f"choose other values: cuebench explain {name}",
            ) from error
    hint = f"check it: cuebench.testing.check_cue({name!r})"
    try:
        result = function(*images, **keywords)
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(f"cue {name!r} failed: {type(error).__name__}: {error}", hint) from error
    image, picture = images[0], result[0] if isinstance(result, tuple) and result else result
    kind = type(image) if is_tensor(image) else np.ndarray
    if not isinstance(picture, kind) or picture.shape != image.shape or picture.dtype != image.dtype:
        received = f"{picture.shape} {picture.dtype}" if isinstance(picture, kind) else type(picture).__name__
        noun = "a tensor" if is_tensor(image) else "an array"
        raise UserError(f"cue {name!r} returned {received}; expected {noun} {image.shape} {image.dtype}", hint)
    return result


def _by_options() -> tuple[type[Exception], ...]:
    """Return what extreme options raise: numbers and arrays that are too large; OpenCV has an exception of its own."""
    opencv = sys.modules.get("cv2")
    raised = (ArithmeticError, MemoryError, ValueError)
    return (*raised, opencv.error) if opencv is not None else raised


def name_in_workers(name: str) -> str:
    """Return a name by which worker processes find a cue; empty where it is an object of this session only."""
    origin = cues.origin(name)
    if origin.startswith(SCHEME):
        return origin
    return "" if name in cues.added else name


@lru_cache(maxsize=256)
def _parameters(function: Callable[..., Any]) -> Mapping[str, Parameter]:
    """Return every parameter of a function that a text or an image can set, except the image that it works on."""
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError):  # an annotation that exists for type checkers only
        hints = {}
    declared = {}
    for position, (name, parameter) in enumerate(inspect.signature(function).parameters.items()):
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if position == 0 and parameter.kind is not parameter.KEYWORD_ONLY:
            continue
        default = None if parameter.default is parameter.empty else parameter.default
        annotation = hints.get(name, type(default) if isinstance(default, (bool, int, float, str)) else Any)
        if any(typing.get_origin(kind) is Callable or kind is Callable for kind in _members(annotation)):
            continue
        declared[name] = Parameter(default, annotation=annotation)
    return declared


def _members(annotation: Any) -> list[Any]:
    """Return the types of a union, those that refuse most texts first."""
    union = typing.get_origin(annotation) in (Union, types.UnionType)
    kinds = list(typing.get_args(annotation)) if union else [annotation]
    order = [types.NoneType, bool, int, float]
    return sorted(kinds, key=lambda k: order.index(k) if k in order else 5 if k is str else 6 if k is Any else 4)


def _words(kind: Any) -> str:
    if kind is types.NoneType:
        return "none"
    if typing.get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, typing.get_args(kind)))}"
    if _is_sequence(kind):
        items = [k for k in typing.get_args(kind) if k is not Ellipsis]
        count = f"{len(items)} " if typing.get_origin(kind) is tuple and len(items) > 1 else ""
        return f"{count}{_PLURALS.get(items[0] if items else Any, 'values')} separated by commas"
    if _is_array(kind):
        return "an image"
    return _NOUNS.get(kind, "any value")


def _converted(value: Any, kind: Any) -> Any:
    """Return the value as the kind; a ``ValueError`` or ``TypeError`` where it does not fit."""
    if kind is types.NoneType:
        if value is None or (isinstance(value, str) and value.lower() in _NONE):
            return None
        raise ValueError
    if kind in (bool, int, float):
        return Option(kind(), infinite=True).parse(value)  # the cue itself checks its numbers
    if typing.get_origin(kind) is Literal:
        return Option("", choices=tuple(map(str, typing.get_args(kind)))).parse(value)
    if _is_sequence(kind):
        return _sequence(value, kind)
    if kind is str or _is_array(kind):
        if isinstance(value, str if kind is str else np.ndarray):
            return value
        raise TypeError
    return _read(value) if isinstance(value, str) else value


def _sequence(value: Any, kind: Any) -> Any:
    """Return a sequence; of a text, JSON or ``a,b,c``, every item is converted."""
    if not isinstance(value, str):
        if isinstance(value, (Sequence, np.ndarray)):
            return value
        raise TypeError
    try:
        items = json.loads(value)
    except (ValueError, RecursionError):
        items = [text.strip() for text in value.split(",") if text.strip()]
    if not isinstance(items, list):
        items = [items]
    inner = [k for k in typing.get_args(kind) if k is not Ellipsis]
    if typing.get_origin(kind) is tuple and len(inner) > 1 and len(items) != len(inner):
        raise ValueError
    return [_converted(item, inner[0]) for item in items] if inner and inner[0] in (bool, int, float) else items


def _read(text: str) -> Any:
    """Read a text as JSON or a number such as ``inf``, else as it is."""
    for read in (json.loads, float):
        try:
            return read(text)
        except (ValueError, RecursionError):
            continue
    return text


def _is_sequence(kind: Any) -> bool:
    return typing.get_origin(kind) in (tuple, list, Sequence) or kind in (tuple, list)


def _is_array(kind: Any) -> bool:
    return typing.get_origin(kind) is np.ndarray or kind is np.ndarray
