"""The code that makes the summary which a protocol keeps of answers, as a hash for the key of what is stored.

A protocol of one's own counts by all that its `reduce` is made of, as a model's functions do: compiled code, defaults,
closures, the object that it is bound to, attributes, what a decorator or a `partial` adds, and the files that all of it
is from with what these import. A built-in one counts by its file and by those that summaries are made with, as built-in
cues do (``cues/versions.py``).
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Set
from functools import partial
from typing import Any

from cuebench.observers.torch.content import Content, code_of
from cuebench.registry import ROOT
from cuebench.source_code import notice_unreadable, place_of, reachable_code

_PROTOCOLS = str(ROOT.joinpath("protocols")) + os.sep
_SUMMARIES = (
    *(str(ROOT.joinpath("protocols", name)) for name in ("correctness.py", "masks.py")),
    str(ROOT.joinpath("labels")),
)
"""Files and folders of cuebench that summaries are made with."""


def summary_code(reduce: Callable[..., Any]) -> str:
    """Return the hash of the code of a protocol's `reduce`; of what cannot be read, one that never comes again.

    A notice says so (``source_code.notices_of_code``).
    """
    content = Content(lambda content, module: content.give_up("reduce", "a network"))
    content.feed(reduce, "reduce")
    built_in = reachable_code(content.built_in, follow=partial(_makes_summaries, content.built_in))
    files, unread = code_of(content.modules)
    token = secrets.token_hex(16) if content.opaque or unread else ""
    if content.opaque:
        what = f"{getattr(reduce, '__module__', '')}.{getattr(reduce, '__qualname__', type(reduce).__qualname__)}"
        notice_unreadable(f"summaries by {what.removeprefix('.')}", content.opaque)
    parts = (sorted(built_in.files.items()), content.hexdigest(), files, token)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _makes_summaries(met: Set[str], module: str) -> bool:
    file = place_of(module).file
    return file.startswith(_SUMMARIES) or (module in met and file.startswith(_PROTOCOLS))
