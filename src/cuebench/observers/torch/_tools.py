"""Objects that help a program along and decide no answer: locks, queues, open files, handlers of logs, consoles."""

from __future__ import annotations

import io
import logging
import queue
import random
import sys
import threading
import types
import typing
from collections.abc import Callable
from typing import Any

from cuebench.source_code import place_of

_KINDS: tuple[type, ...] = (
    type(threading.Lock()),
    type(threading.RLock()),
    threading.local,
    threading.Condition,
    threading.Event,
    threading.Barrier,
    threading.Thread,
    queue.Queue,
    queue.SimpleQueue,
    logging.Handler,
    io.IOBase,
)
_IN_MEMORY = (io.BytesIO, io.StringIO)
"""Files that hold what they say."""
_BY_NAME = frozenset(
    {"multiprocessing.synchronize.SemLock", "concurrent.futures._base.Executor"}
    | {"rich.console.Console", "requests.sessions.Session", "psutil.Process"}
)
_ALIASES: tuple[Any, ...] = (type(typing.List[int]), types.GenericAlias)  # noqa: UP006 - typing's own


def is_of_the_process(value: object) -> bool:
    """Tell whether an object is a generator that functions of a module draw from: its state is not a model's."""
    return value is random._inst or value is getattr(sys.modules.get("numpy.random.mtrand"), "_rand", random._inst)


def is_tool(value: object) -> bool:
    """Tell whether an object counts by its class alone, and an open file by its name."""
    if isinstance(value, _KINDS):
        return not isinstance(value, _IN_MEMORY)
    named = (base for base in type(value).__mro__ if f"{base.__module__}.{base.__qualname__}" in _BY_NAME)
    return any(place_of(base.__module__).kind in ("standard", "installed") for base in named)


def name_of_tool(value: object, path: Callable[[str], str]) -> str:
    """Return the name of an open file; empty for all else."""
    name = getattr(value, "name", "") if isinstance(value, io.IOBase) else ""
    return path(name) if isinstance(name, str) else ""


def is_alias(value: object) -> bool:
    """Tell whether a value is a type with arguments, such as ``list[int]`` or ``Optional[int]``."""
    return isinstance(value, _ALIASES) and isinstance(getattr(value, "__args__", None), tuple)
