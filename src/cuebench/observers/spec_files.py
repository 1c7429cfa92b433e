"""The files that a spec names: what it means from another folder, and specs that mean the same."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path, PurePath
from urllib.parse import quote, unquote

from cuebench.errors import UserError
from cuebench.observers.base import Adapter, Spec
from cuebench.registry import SCHEME, adapters

Change = Callable[[str, bool], str]
"""``change(value, certain) -> value`` of what names a file, or (not certain) may name one."""
_FILE = frozenset({"FILE", "PATH", "CONFIG.py"})
_PERHAPS = frozenset({"FOLDER"})
"""Words for what stands behind the colon in the forms of adapters."""
_FOLDERS = frozenset({"folder", "weights_dir"})
"""Options that name folders."""
_NAMED_OTHERWISE = frozenset({"recorded", "chat"})
"""Sources whose observers are not called by their spec."""


def meant(text: str, folder: str | Path) -> str:
    """Return a spec that means from everywhere what this one means in a folder, under the name that it has there.

    >>> meant("onnx:nets/a.onnx", "/work")
    'onnx:/work/nets/a.onnx'
    >>> meant("python:m.py:a", "/work")
    'python:/work/m.py:a?name=python:m.py:a'
    """
    adapter = _adapter(text)
    if adapter is None:
        return text

    def change(value: str, certain: bool) -> str:
        return value if value.startswith("~") else _there(value, folder, certain)

    changed = _with_files(text, adapter, change)
    scheme, named = text.partition(":")[0], "name" in Spec.parse(text).options
    if changed == text or named or "name" not in adapter.options or scheme in _NAMED_OTHERWISE:
        return changed
    name = Spec.parse(text).name
    return changed if Spec.parse(changed).name == name else with_name(changed, name)


def without_folders(text: str) -> str:
    """Return a spec with the bare names of its files and without its own name: it is compared with another machine's.

    >>> without_folders("checkpoint:a/b.pt?name=x&arch=timm:y")
    'checkpoint:b.pt?arch=timm:y'
    """
    adapter = _adapter(text)
    if adapter is None:
        return text

    def change(value: str, certain: bool) -> str:
        return PurePath(value).name if certain or "/" in value else value

    return without_name(_with_files(text, adapter, change))


def with_name(text: str, name: str) -> str:
    """Return a spec with another name, instead of the one that it may have.

    >>> with_name("python:m.py:b?name=net&seed=1", "other")
    'python:m.py:b?seed=1&name=other'
    """
    plain = without_name(text)
    return f"{plain}{'&' if '?' in plain else '?'}name={quote(name, safe='/:,')}"


def without_name(text: str) -> str:
    """Return a spec without the name that it may have been given."""
    body, _, query = text.partition("?")
    kept = [pair for pair in query.split("&") if pair and not pair.startswith("name=")]
    return f"{body}?{'&'.join(kept)}" if kept else body


def _adapter(text: str) -> Adapter | None:
    """Return the adapter of a spec; None for an object, and for what is no spec that could be loaded here."""
    try:
        scheme = Spec.parse(text).scheme
        found: Adapter | None = adapters.get(scheme) if scheme in adapters else None
    except UserError:
        return None
    return found


def _with_files(text: str, adapter: Adapter, change: Change) -> str:
    scheme, _, rest = text.partition(":")
    body, _, query = rest.partition("?")
    words = {word for form in re.findall(rf"\b{scheme}:([^?\[\s]+)", adapter.form) for word in form.split("|")}
    if scheme == SCHEME.removesuffix(":"):
        body = _with_python_file(body, change)
    elif words & (_FILE | _PERHAPS):
        body = change(body, bool(words & _FILE))
    options = [_with_file_of(pair, change) for pair in query.split("&")]
    return f"{scheme}:{body}{'?' if query else ''}{'&'.join(options)}"


def _with_file_of(pair: str, change: Change) -> str:
    """Change an option whose value looks like a file: with a folder or an ending."""
    key, equals, raw = pair.partition("=")
    value = unquote(raw)
    if key == "arch" and value.startswith(SCHEME):
        changed = SCHEME + _with_python_file(value.removeprefix(SCHEME), change)
    elif key != "name" and (key in _FOLDERS or "/" in value or PurePath(value).suffix):
        changed = change(value, False)
    else:
        return pair
    return pair if changed == value else f"{key}{equals}{quote(changed, safe='/:,')}"


def _with_python_file(body: str, change: Change) -> str:
    """Change the file of ``FILE.py:NAME``; a module is found wherever one is."""
    file, colon, name = body.rpartition(":")
    return f"{change(file, True)}{colon}{name}" if file.endswith(".py") else body


def _there(value: str, folder: str | Path, certain: bool) -> str:
    """Return a path as it is meant in a folder; links in it are followed but for the last, which may be renewed."""
    try:
        path = Path(folder, value)
        if not (certain or path.exists()):
            return value
        return os.path.join(path.parent.resolve(), path.name) if path.name != ".." else str(path.resolve())
    except (OSError, ValueError, RuntimeError):  # too long for a name, or no text that a file system takes
        return value
