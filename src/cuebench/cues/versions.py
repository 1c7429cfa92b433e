"""Versions of cues: a hash of the code that makes a picture, for the key of answers to pictures made in the stream.

A built-in cue counts by the syntax of its file and of the files of cues that it imports: comments and docstrings do not
count, and no number has to be raised by hand. A cue of ``python:FILE.py:NAME`` counts by its file and all that this
imports; one of a plug-in by the distribution's version, or by its files where the installation is editable; a function
that was passed as an object and has no file counts as new in every session. The libraries that built-in cues compute
with do not count; what an upgrade of theirs changes is found by asking again.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import secrets
from collections.abc import Iterable
from urllib.parse import parse_qsl

from cuebench.registry import ROOT, SCHEME, Registry, cues, named_by_data, sources
from cuebench.source_code import place_of, reachable_code

_PICTURE_CODE = tuple(
    str(ROOT.joinpath(*folder)) for folder in (("cues",), ("stimuli", "sources"), ("stimuli", "drawing"))
)
"""Folders of cuebench whose code makes pictures."""
_SESSION = secrets.token_hex(8)
_NAMES = re.compile(rf"{SCHEME}[^\"',;\]]+:\w+|\w+")


def recipe_versions(recipes: Iterable[tuple[str, bool]]) -> dict[str, str]:
    """Return cue or source → version for everything that recipes name.

    Parameters
    ----------
    recipes : iterable of (str, bool)
        Recipes (``stimuli/render.py``), and whether the first step is a source.
    """
    names: set[tuple[str, bool]] = set()
    for recipe, has_source in set(recipes):
        for number, step in enumerate(recipe.split(";") if recipe else ()):
            name, _, query = step.partition("?")
            names.add((name, has_source and number == 0))
            # A cue may be told to apply others (`chain`): their names stand in its options.
            names |= {(n, False) for _, text in parse_qsl(query) for n in _NAMES.findall(_unescaped(text))}
    known = {False: set(cues.names()), True: set(sources.names())}
    versions: dict[str, str] = {}
    for name, is_source in sorted(names):
        if name.startswith(SCHEME) or name in known[is_source]:
            public = name.rpartition(":")[2]
            with named_by_data("the recipe of a stimulus"):
                versions[public] = versions.get(public, "") + version_of(name, sources if is_source else cues)
    return versions


def _unescaped(text: str) -> str:
    """Return the text of an option; where it is JSON, with letters in place of ``\\u0061``."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def version_of(name: str, registry: Registry = cues, callers: frozenset[str] = frozenset()) -> str:
    """Return the version of one cue or source: a hash of its code, and of the cues that it calls by name.

    Parameters
    ----------
    name : str
        Public name, or ``python:FILE.py:NAME``.
    registry : Registry
        Of cues or of sources.
    callers : frozenset of str
        Cues that call this one, whose versions are being made.
    """
    function = registry.get(name)
    module = registry.module(name).__name__ if name.startswith(SCHEME) else registry.parts[name].module
    place = place_of(module)
    if place.kind == "none":
        return f"session-{_SESSION}"
    if place.kind == "cuebench":
        files = reachable_code([module], follow=lambda name: place_of(name).file.startswith(_PICTURE_CODE)).files
        own = repr(sorted(files.items()))
    else:
        code = reachable_code([module])
        own = code.digest + (f"session-{_SESSION}" if code.unreadable else "")
    info = getattr(function, "info", None)
    defaults = repr([parameter.default for parameter in inspect.signature(function).parameters.values()])
    callers |= {name}
    called = {getattr(info, "passes_to", ""), *_NAMES.findall(defaults)} & (set(cues.names()) - callers)
    called_versions = [version_of(other, cues, callers) for other in sorted(called)]
    return hashlib.sha256(repr((own, called_versions)).encode()).hexdigest()[:16]
