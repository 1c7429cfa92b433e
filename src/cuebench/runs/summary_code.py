"""The code that makes the summary which a protocol keeps of answers, as a hash for the key of what is stored.

A protocol of one's own counts by the module of its `reduce` and by all that this imports; what a `partial` adds, and a
function of a notebook, by their content. A built-in one counts by its file and by those that summaries are made with,
as built-in cues do (``cues/versions.py``).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from cuebench.observers.torch.content import Content, code_of
from cuebench.registry import ROOT
from cuebench.source_code import place_of, reachable_code

_SUMMARIES = (
    *(str(ROOT.joinpath("protocols", name)) for name in ("correctness.py", "masks.py")),
    str(ROOT.joinpath("labels")),
)
"""Files and folders of cuebench that summaries are made with."""


def summary_code(reduce: Callable[..., Any]) -> str:
    """Return the hash of the code of a protocol's `reduce`; of what cannot be read, one that never comes again."""
    content = Content(lambda content, module: content.give_up("reduce", "a network"))
    own, unreadable = set[str](), list[str]()
    parts = []
    for function in _functions(reduce, content):
        module = str(getattr(function, "__module__", None) or type(function).__module__)
        kind = place_of(module).kind
        if kind == "cuebench":
            code = reachable_code([module], follow=partial(_makes_summaries, module))
            parts.append(repr(sorted(code.files.items())))
        elif kind == "none":  # of a notebook: no file says what it does
            content.feed(function, "reduce")
        else:
            own.add(module)
    code = reachable_code(own)
    files, unread = code_of(content.modules)
    unreadable += [*code.unreadable, *content.opaque, *unread]
    token = secrets.token_hex(16) if unreadable else ""
    digest = hashlib.sha256(repr((parts, code.digest, content.hexdigest(), files, token)).encode())
    return digest.hexdigest()[:16]


def _functions(reduce: Any, content: Content) -> Iterator[Any]:
    """Yield the function that a callable ends in; what was added to it on the way is fed."""
    while isinstance(reduce, partial):
        for value in (*reduce.args, *reduce.keywords.values()):
            content.feed(value, "an argument of reduce")
        content.note(sorted(reduce.keywords))
        reduce = reduce.func
    if not hasattr(reduce, "__module__") or not hasattr(reduce, "__qualname__"):
        content.feed(getattr(reduce, "__dict__", None), "reduce")  # an object that is called
    yield reduce


def _makes_summaries(reducing: str, module: str) -> bool:
    return module == reducing or place_of(module).file.startswith(_SUMMARIES)
