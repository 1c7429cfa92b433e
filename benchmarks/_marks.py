"""Parts of a page that are written by a command: they stand between ``<!-- name -->`` and ``<!-- /name -->``."""

from __future__ import annotations

import re
from collections.abc import Mapping


def filled(text: str, parts: Mapping[str, str]) -> str:
    """Return a page with what stands between its marks made anew.

    Parameters
    ----------
    text : str
        The page.
    parts : mapping of str to str
        Name of a mark → what goes there.
    """
    for name, made in parts.items():
        mark = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        assert mark.search(text), f"the page has no mark {name}"
        text = mark.sub(lambda match, made=made: f"{match[1]}{made}\n{match[2]}", text)  # type: ignore[misc]
    return text
