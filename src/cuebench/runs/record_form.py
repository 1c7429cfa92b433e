"""The form of ``run.json``: a folder that somebody else made is data, and its values are checked before they are used.

The checksum of a record finds damage, not intent: who writes a wrong value can compute it anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cuebench.options import check_types
from cuebench.types import Headline


@dataclass(frozen=True)
class _Arguments:
    observers: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    data_root: str | None = None
    folder: str = ""


@dataclass(frozen=True)
class _Labels:
    name: str
    names: tuple[str, ...]
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Protocol:
    version: int = 0
    origin: str = ""
    headline: Mapping[str, Any] = field(default_factory=dict)


def check_record(known: Mapping[str, Any], record: type[Any], options: type[Any]) -> None:
    """Refuse a record with values of other types, or with names that lead out of its folder.

    Parameters
    ----------
    known : mapping
        The fields of the record, as JSON gives them.
    record, options : type
        ``RunRecord`` and ``RunOptions``.

    Raises
    ------
    ValueError
        Says which value is wrong. A ``UserError`` where ``check_types`` found it.
    """
    check_types(known, record)
    check_types(known["arguments"], _Arguments)
    check_types(known["arguments"], options)
    for protocol in known.get("protocols", {}).values():
        check_types(protocol, _Protocol)
        check_types(protocol.get("headline") or {}, Headline)
    for job in known["jobs"]:
        for name in ("folder", "stimuli"):
            if not is_plain_name(job[name]):
                raise ValueError(f"{name} {job[name]!r} is no name of a file in this folder")
        if job.get("labels") is not None:
            check_types(job["labels"], _Labels)
            if missing := {"name", "names", "ids"} - set(job["labels"]):
                raise ValueError(f"labels without {', '.join(sorted(missing))}")
    for name in known.get("stimuli", {}):
        if not is_plain_name(name):
            raise ValueError(f"{name!r} is no name of a file in this folder")


_LONGEST_NAME = 255
"""Bytes of a file's name: more are more than most file systems take."""


def is_plain_name(name: str) -> bool:
    """Tell whether a text is the name of a file, without a folder or a drive before it."""
    short = 0 < len(name.encode("utf-8", "surrogatepass")) <= _LONGEST_NAME
    return short and name not in (".", "..") and not set(name) & set("/\\:\0")
