"""TorchScript as content: the archive that a program is saved as, without what the order of compiling adds."""

from __future__ import annotations

import hashlib
import io
import pickletools
import re
import zipfile
from typing import Any

from cuebench.source_code import public_names

_MANGLE = re.compile(r"[./]___torch_mangle_\d+")
"""Types of one name are numbered as they are compiled, which says nothing about them."""
_DEFINITION = re.compile(r"^(?=class |def )", re.MULTILINE)
_CONSTANTS = re.compile(r"(?:^ +\w+ : Final\[.*\n)+", re.MULTILINE)


def hash_script(module: Any) -> str:
    """Return the hash of a TorchScript module or function: what it is saved as, without file names and lines.

    Nor does it depend on what was compiled before in the same process, or on the order in which torch writes constants,
    which is that of a set.
    """
    parts: list[tuple[str, str]] = []
    with zipfile.ZipFile(io.BytesIO(module.save_to_buffer())) as archive:
        for name in archive.namelist():
            if name.endswith(".debug_pkl") or "/.data/" in name:
                continue
            data, plain = archive.read(name), _plain(name)
            if name.endswith(".py"):
                parts += [(plain, text) for text in _DEFINITION.split(_in_order(_plain(data.decode())))]
            elif name.endswith(".pkl"):
                parts.append((plain, _of_pickle(data)))
            else:
                parts.append((plain, hashlib.sha256(data).hexdigest()))
    return hashlib.sha256(repr(sorted(parts)).encode()).hexdigest()


def _plain(text: str) -> str:
    """Return a text without the numbers of types, nor where the file lies that a type is from."""
    return public_names(_MANGLE.sub("", text))


def _in_order(source: str) -> str:
    """Return code with the constants of each class in the order of their names."""
    return _CONSTANTS.sub(lambda lines: "".join(sorted(lines[0].splitlines(keepends=True))), source)


def _of_pickle(data: bytes) -> str:
    """Return the instructions of a pickle; the length of a text, which they hold, depends on the numbers in it."""
    steps = ((code.name, argument) for code, argument, _ in pickletools.genops(data))
    return repr([(name, _plain(a) if isinstance(a, str) else a) for name, a in steps])
