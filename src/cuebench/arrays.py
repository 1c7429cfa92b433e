"""Types of NumPy arrays, named for what they hold."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]
Pixels = np.ndarray[Any, np.dtype[np.uint8]]
Counts = np.ndarray[Any, np.dtype[np.int64]]
Positions = np.ndarray[Any, np.dtype[np.intp]]
Strings = np.ndarray[Any, np.dtype[np.str_]]


def instruction_sets() -> str:
    """Return which instructions of this CPU NumPy uses, comma-separated: the last digits of numbers depend on them."""
    return ",".join(np.show_config(mode="dicts")["SIMD Extensions"].get("found", ()))
