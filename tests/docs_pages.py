"""What tells people which commands, options and files there are, and the code in it."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
DOCS, SOURCE = ROOT / "docs", ROOT / "src"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
FOR_CONTRIBUTORS = [ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md")]
EXAMPLES = [
    path
    for folder in ("examples", "gallery")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".md", ".py") and "egg-info" not in str(path)
]
WRITTEN = [*PAGES, *FOR_CONTRIBUTORS, *EXAMPLES]
"""Everything that tells people which commands, options and files there are."""


def text_of(path: Path) -> str:
    """Return a page, or the docstrings of a script."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        return text
    with_docstrings = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, with_docstrings))
    return "\n\n".join(ast.get_docstring(node) or "" for node in nodes).replace("``", "`")


class Block(NamedTuple):
    """A fenced block of code: its language and its text."""

    language: str
    text: str


def blocks(page: str) -> list[Block]:
    return [Block(*match) for match in re.findall(r"^```(\w*)\n(.*?)^```", page, re.DOTALL | re.MULTILINE)]


def spans(page: str) -> list[str]:
    """Return the code spans outside of blocks; one that is broken over lines becomes one line."""
    prose = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose)]
