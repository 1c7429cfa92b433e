"""Options of parts: declared once with a type, parsed in one place, listed by ``cuebench explain``.

A part (protocol, maker, adapter, figure) declares name → `Option`. Whatever a user writes, ``--set key=value`` on the
command line, ``?key=value`` behind an observer or a keyword in Python, is checked against the declaration: an unknown
name, a wrong type and a value out of range are errors that say what is accepted.

>>> declared = {"draw": Option(28, "triplets of each anchor", low=1, words=("all",)), "ema": Option(True, "the EMA")}
>>> parse(declared, {"draw": "all", "ema": "no"}, "protocol 'triplets'")
{'draw': 'all', 'ema': False}
"""

from __future__ import annotations

import difflib
import math
import numbers
import re
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any, Literal, Union
from urllib.parse import parse_qsl

from cuebench.errors import UserError, all_problems, did_you_mean

TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off"})


@dataclass(frozen=True)
class Option:
    """One option of a part.

    Parameters
    ----------
    default : bool, int, float, str or tuple
        Its value where none is given; its type is the type of the option. A tuple takes ``a,b,c``.
    about : str
        What it changes, in a few words.
    choices : tuple of str
        The only accepted texts; for a tuple, those of each item. Empty: any.
    low, high : float
        Bounds of a number, both accepted; for a tuple of numbers, those of each item.
    words : tuple of str
        Words that are accepted instead of a number, such as ``all``.
    item : type
        Type of the items of a tuple: str, int or float. Numbers are also separated by ``x``: ``224x256``.
    lengths : tuple of int
        Accepted numbers of items of a tuple; empty: any.
    infinite : bool
        Whether infinity is a number that is accepted.
    scoring : bool
        Of a protocol with ``configure``: whether it changes nothing but scores, so that stored answers can be scored
        again with another value. Any other option decides what is shown or asked.
    """

    default: Any
    about: str = ""
    choices: tuple[str, ...] = ()
    low: float = -math.inf
    high: float = math.inf
    words: tuple[str, ...] = ()
    item: type[str | int | float] = str
    lengths: tuple[int, ...] = ()
    infinite: bool = False
    scoring: bool = False

    def accepted(self) -> str:
        """Say in words what is accepted."""
        if isinstance(self.default, bool):
            return "true or false"
        if self.choices:
            listed = ", ".join(c for c in self.choices if c)
            return f"{listed} (several with commas)" if isinstance(self.default, tuple) else f"one of {listed}"
        bounds = [f"≥ {self.low:g}"] * (self.low > -math.inf) + [f"≤ {self.high:g}"] * (self.high < math.inf)
        if isinstance(self.default, (int, float)):
            noun = "a whole number" if isinstance(self.default, int) else "a number"
            return ", or ".join([f"{noun} {' and '.join(bounds)}".strip(), *self.words])
        if isinstance(self.default, tuple) and self.item is not str:
            count = " or ".join(map(str, self.lengths))
            noun = "whole numbers" if self.item is int else "numbers"
            return f"{count} {noun} {' and '.join(bounds)}".strip() + ", separated by commas or x"
        return "a,b,c" if isinstance(self.default, tuple) else "text"

    def parse(self, value: Any) -> Any:
        """Return a value of the declared type.

        Raises
        ------
        ValueError
            Where the value does not fit; `parse` of the module turns it into a user error.
        """
        text = value.strip() if isinstance(value, str) else value
        if isinstance(self.default, bool):
            return _boolean(text)
        if text in self.words:
            return text
        if isinstance(self.default, (int, float)):
            return self._number(text, int if isinstance(self.default, int) else float)
        if isinstance(self.default, tuple):
            return self._items(text)
        if not isinstance(text, (str, int, float)) and not hasattr(text, "__fspath__"):
            raise ValueError
        return self._choice(str(text))

    def _items(self, value: Any) -> tuple[Any, ...]:
        items: tuple[Any, ...]
        if isinstance(value, bytes):
            raise ValueError
        if self.item is str:
            texts = value.split(",") if isinstance(value, str) else map(str, value)
            items = tuple(self._choice(text.strip()) for text in texts if text.strip())
        else:
            numbers = re.split("[,x×]", value) if isinstance(value, str) else value
            numbers = [numbers] if isinstance(numbers, (int, float)) else numbers
            items = tuple(self._number(number, self.item) for number in numbers)
        if self.lengths and len(items) not in self.lengths:
            raise ValueError
        return items

    def _number(self, value: Any, kind: type[Any]) -> int | float:
        if isinstance(value, str) and (not value.isascii() or "_" in value):  # Python would read 1_0 and ٣
            raise ValueError
        if isinstance(value, bool) or (kind is int and isinstance(value, float) and value != int(value)):
            raise ValueError
        number: int | float = kind(value)
        if not self.low <= number <= self.high or (math.isinf(number) and not self.infinite):
            raise ValueError
        return number

    def _choice(self, text: str) -> str:
        if self.choices and text not in self.choices:
            raise ValueError
        return text


SEED = Option(0, "the same seed gives the same result", low=0)
"""Of functions that draw random numbers."""
WORKERS = Option(0, "processes", low=0, high=10_000)
"""Of functions that share their work among processes."""


def parse(declared: Mapping[str, Option], given: Mapping[str, Any], part: str) -> dict[str, Any]:
    """Return every option of a part with its value: the given ones parsed, the others by default.

    Parameters
    ----------
    declared : mapping of str to Option
        What the part accepts.
    given : mapping of str to value
        Texts from a command line, or values from Python.
    part : str
        How messages name the part: ``protocol 'triplets'``.

    Raises
    ------
    UserError
        For an unknown name, with the nearest one; for values that do not fit, all of them at once.
    """
    values = {name: option.default for name, option in declared.items()}
    problems = []
    for name, value in given.items():
        if name not in declared:
            raise did_you_mean(f"option of {part}:", name, declared)
        try:
            values[name] = declared[name].parse(value)
        except (TypeError, ValueError, OverflowError):
            near = difflib.get_close_matches(str(value), declared[name].choices, n=1)
            guess = f". Did you mean {near[0]!r}?" if near else ""
            problems.append(f"{name}={value!r}: expected {declared[name].accepted()}{guess}")
    if len(problems) == 1:
        raise UserError(f"option of {part}: {problems[0]}")
    if problems:
        raise all_problems(f"options of {part}", problems)
    return values


def split(settings: Sequence[str], reserved: Mapping[str, str] | None = None) -> dict[str, str]:
    """Turn ``["size=224"]`` into ``{"size": "224"}``; everything that is not ``key=value`` is reported at once.

    Parameters
    ----------
    settings : sequence of str
        What was written behind ``--set``.
    reserved : mapping of str to str
        Keys that have a flag of their own → that flag.
    """
    pairs = [s.partition("=") for s in settings]
    problems = [f"{s!r} is not key=value" for s, (key, sign, _) in zip(settings, pairs) if not (key.strip() and sign)]
    problems += [f"{key.strip()!r} is set with {reserved[key.strip()]}" for key, _, _ in pairs
                 if reserved and key.strip() in reserved]  # fmt: skip
    names = [key.strip() for key, _, _ in pairs]
    problems += [f"{name!r} is given twice" for name in dict.fromkeys(n for n in names if names.count(n) > 1)]
    if problems:
        raise all_problems("--set", problems)
    return {key.strip(): value.strip() for key, _, value in pairs}


def query_options(query: str, part: str) -> dict[str, str]:
    """Read ``a=1&b=2``, the options behind ``?``; one that is written twice, or without a value, is an error.

    Parameters
    ----------
    query : str
        What stands behind the question mark.
    part : str
        How messages name what the options belong to.
    """
    pairs = parse_qsl(query, keep_blank_values=True)
    options = dict(pairs)
    if empty := [key for key, value in pairs if not value.strip()]:
        raise UserError(f"{part}: option {empty[0]!r} has no value", f"write {empty[0]}=VALUE, or leave it out")
    if len(options) < len(pairs):
        repeated = sorted(key for key in options if sum(key == other for other, _ in pairs) > 1)
        raise UserError(f"{part}: option {repeated[0]!r} is written twice", "keep one of them")
    return options


def check_types(values: Mapping[str, Any], declared: type[Any], what: str = "") -> dict[str, Any]:
    """Return values as the types that a dataclass declares for its fields; NumPy's numbers become Python's.

    Parameters
    ----------
    values : mapping of str to value
        Field → value, from Python or from JSON. Names that are no field are left out.
    declared : type
        The dataclass.
    what : str
        How the message begins: ``run.json``.

    Raises
    ------
    UserError
        For values of another type, all at once: ``batch_size="32"`` is not the number 32.
    """
    converted, problems = {}, []
    for name, kind in _type_hints(declared).items():
        if name in values:
            try:
                converted[name] = _typed(values[name], kind)
            except _WrongType as error:
                problems.append(f"{name}{error.where}: expected {error.expected}; got {_shown(error.value)}")
    if len(problems) == 1:
        raise UserError(f"{what}: {problems[0]}" if what else problems[0])
    if problems:
        raise all_problems(what or "options", problems)
    return converted


def _type_hints(declared: Any) -> dict[str, Any]:
    """Return the types of the fields of a dataclass: found out once, as thousands of rows are checked."""
    if declared not in _HINTS:
        _HINTS[declared] = typing.get_type_hints(declared)
    return _HINTS[declared]


_HINTS: dict[Any, dict[str, Any]] = {}


class _WrongType(Exception):
    """A value that is not of its type: which, what was expected, and where in a larger value it stands."""

    def __init__(self, value: Any, expected: str, where: str = "") -> None:
        super().__init__(expected)
        self.value, self.expected, self.where = value, expected, where


_LARGEST = 2**63
"""Whole numbers beyond this fit no array; JSON may hold numbers of any length."""
_NOUNS: dict[Any, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    type(None): "None",
}


def _typed(value: Any, kind: Any) -> Any:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        for member in inner:
            try:
                return _typed(value, member)
            except _WrongType:
                continue
        raise _WrongType(value, " or ".join(_NOUNS.get(member, str(member)) for member in inner))
    if origin is Literal:
        return _typed(value, str)
    if isinstance(origin or kind, type) and issubclass(origin or kind, Mapping):
        if not isinstance(value, Mapping):
            raise _WrongType(value, "a mapping, such as {name: value}")
        of_key, of_value = inner or (Any, Any)
        return {_inside(k, of_key, k): _inside(v, of_value, k) for k, v in value.items()}
    if isinstance(origin or kind, type) and issubclass(origin or kind, (list, tuple)):
        if not isinstance(value, (list, tuple)):
            raise _WrongType(value, "a list")
        if origin is tuple and inner[-1] is not Ellipsis and len(value) != len(inner):
            raise _WrongType(value, f"{len(inner)} values")
        return [_inside(item, inner[0] if inner else Any, i) for i, item in enumerate(value)]
    if is_dataclass(kind):
        if not isinstance(value, Mapping):
            raise _WrongType(value, "a mapping, such as {name: value}")
        hints = _type_hints(kind)
        return {name: _inside(v, hints.get(name, Any), name) for name, v in value.items()}
    return _plain(value, kind)


def _inside(value: Any, kind: Any, key: object) -> Any:
    try:
        return _typed(value, kind)
    except _WrongType as error:
        raise _WrongType(error.value, error.expected, f"[{key!r}]{error.where}") from None


def _plain(value: Any, kind: Any) -> Any:
    """Return a value that holds no others; a truth value is no number, though Python thinks so."""
    if kind not in _NOUNS:
        return value
    truth = isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")  # of Python, of NumPy
    if kind is bool and truth:
        return bool(value)
    if kind is int and isinstance(value, numbers.Integral) and not truth and abs(int(value)) < _LARGEST:
        return int(value)
    if kind is float and isinstance(value, int) and not truth and abs(value) < _LARGEST:
        return value
    if kind is float and isinstance(value, numbers.Real) and not isinstance(value, int) and not truth:
        return float(value)
    if kind is str and isinstance(value, str):
        return str(value)
    if kind is type(None) and value is None:
        return None
    raise _WrongType(value, _NOUNS[kind])


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '…'} ({type(value).__name__})"


def describe(declared: Mapping[str, Option]) -> list[str]:
    """Return a line for each option: name, default, what is accepted, what it changes."""
    lines = []
    for name, option in declared.items():
        default = ",".join(map(str, option.default)) if isinstance(option.default, tuple) else option.default
        shown = str(default).lower() if isinstance(default, bool) else default
        about = f": {option.about}" if option.about else ""
        lines.append(f"{name}={shown} ({option.accepted()}){about}")
    return lines


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).lower()
    if text not in TRUE | FALSE:
        raise ValueError
    return text in TRUE
