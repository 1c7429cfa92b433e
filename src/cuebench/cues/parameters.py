"""Checks of parameters, and imports of the optional image libraries, shared by all cues."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np

from cuebench.errors import MissingExtra, UserError

PIP_NAMES = {"cv2": "opencv-python-headless", "skimage": "scikit-image"}


def optional(module: str, what: str) -> ModuleType:
    """Import a module of the extra ``image``; where it is missing, the error says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtra(what, "image", PIP_NAMES.get(package, package)) from error


def check_number(
    name: str,
    value: Any,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    above: float | None = None,
    infinite: bool = False,
) -> float:
    """Return a real number of [low, high] (and > `above`); the error says what was received and what is accepted."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    fits = is_number and low <= value <= high and (above is None or value > above)
    if not fits or not (infinite or math.isfinite(value)):
        raise UserError(f"{name} is {value!r}", f"accepted: {_interval('a number', low, high, above)}")
    return float(value)


def check_whole(name: str, value: Any, *, low: int = 1, high: float = math.inf) -> int:
    """Return a whole number of [low, high]; the error says what was received and what is accepted."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise UserError(f"{name} is {value!r}", f"accepted: {_interval('a whole number', low, high, None)}")
    return int(value)


def check_choice(name: str, value: Any, choices: Iterable[Any]) -> Any:
    """Return the value if it is one of the choices; the error lists them."""
    known = list(choices)
    if value not in known:
        raise UserError(f"{name} is {value!r}", f"accepted: {', '.join(repr(c) for c in known)}")
    return value


def _interval(noun: str, low: float, high: float, above: float | None) -> str:
    bounds = [f"> {above:g}"] if above is not None else [f"≥ {low:g}"] * (low > -math.inf)
    bounds += [f"≤ {high:g}"] * (high < math.inf)
    return f"{noun} {' and '.join(bounds)}".strip()
