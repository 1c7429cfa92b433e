"""What all pages have in common: templates, colours, and what they may load. A page asks nobody for anything."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cuebench.errors import MissingExtra, printable
from cuebench.reports import theme

ASSETS = Path(__file__).parent / "assets"


def template(name: str, *folders: Path) -> Any:
    """Return a template of the report's folder, or of another one."""
    try:
        import jinja2
    except ImportError:
        raise MissingExtra("a page", "report", "jinja2") from None
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, ASSETS]),
        autoescape=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
        # A name from a file may hold marks that reverse what is read, or halves of characters.
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    return environment.get_template(name)


def json_for_script(data: Any) -> str:
    """Return JSON that can stand inside a ``script`` element: nothing in it can end the element or begin a comment.

    >>> json_for_script("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def policy(scripts: Sequence[str]) -> str:
    """Return the content security policy: these scripts and no other, nothing from anywhere else."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def colours() -> str:
    """Return the colours that the page shares with the figures as variables, light and, on screens, dark."""
    meanings = {
        "paper": theme.PAPER,
        "ink": theme.INK,
        "soft": theme.SOFT,
        "line": theme.FAINT,
        "neutral": theme.NEUTRAL,
        "shape": theme.SHAPE,
        "texture": theme.TEXTURE,
        "people": theme.PEOPLE,
    }
    light = "color-scheme:light;" + "".join(f"--{name}:{colour};" for name, colour in {**meanings, **_LIGHT}.items())
    shown = {**{name: theme.DARK.get(colour, colour) for name, colour in meanings.items()}, **_DARK}
    dark = "color-scheme:dark;" + "".join(f"--{name}:{colour};" for name, colour in shown.items())
    return (
        f':root{{{light}}}\n@media screen{{:root[data-theme="dark"]{{{dark}}}}}\n'
        f'@media screen and (prefers-color-scheme: dark){{:root:not([data-theme="light"]){{{dark}}}}}\n'
    )


# Colours of the page alone; those of words on paper and panel have a contrast of at least 4.5.
_LIGHT = {
    **{"panel": "#f5f6f8", "link": "#0a58a5", "right": "#00795a", "wrong": "#a3335c"},
    **{"shape-text": "#00609a", "texture-text": "#a84800", "shadow": "0 1px 2px rgb(0 0 0 / 8%)"},
    **{"caution": "#fff5db", "caution-line": "#c98a00", "problem": "#fdeaea", "problem-line": "#c22f2f"},
}
_DARK = {
    **{"panel": "#1f2329", "link": "#83bdf5", "right": "#45c39c", "wrong": "#ee86ac"},
    **{"shape-text": "#7cc6f0", "texture-text": "#f5a86c", "shadow": "none"},
    **{"caution": "#332a12", "caution-line": "#d7a52f", "problem": "#3a1c1e", "problem-line": "#ef7070"},
}
