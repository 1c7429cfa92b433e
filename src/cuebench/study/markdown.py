"""Markdown of a design's texts as HTML that can do nothing: no raw HTML, no scripts, no images of other hosts."""

from __future__ import annotations

from typing import Any

from cuebench.errors import MissingExtra


def to_html(text: str) -> str:
    """Return CommonMark with tables as HTML; raw HTML is shown as text, and links open in a new tab.

    >>> to_html("a *b* <script>")
    '<p>a <em>b</em> &lt;script&gt;</p>\\n'
    """
    try:
        from markdown_it import MarkdownIt
    except ModuleNotFoundError as error:
        raise MissingExtra("a study", "study", error.name or "") from None

    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    parser.add_render_rule("link_open", _open_link)
    return str(parser.render(text))


def _open_link(self: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
    tokens[index].attrSet("target", "_blank")
    tokens[index].attrSet("rel", "noopener noreferrer")
    return str(self.renderToken(tokens, index, options, env))
