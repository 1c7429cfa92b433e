"""Charts in web pages: many charts, one copy of Vega, no request to anywhere, light and dark, readable on a phone.

A page has ``head()`` once, ``chart(picture)`` for each chart, and ``script()`` once at its end. Each chart is there as
a drawing (SVG) at once, also where scripts are forbidden; when it comes into sight, Vega takes over with tooltips. A
page with a switch of its own sets ``data-theme="dark"`` or ``"light"`` on the root element; without, the reader's
setting counts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

from cuebench.errors import printable
from cuebench.reports import theme, vega
from cuebench.reports.picture import Picture
from cuebench.reports.theme import WIDTHS, Width

_SCREEN = 1.45
"""Pixels of a screen to a point of a figure at most: texts of 7 points are 10 pixels high."""
_NARROW = 520
"""Pixels below which a page-wide chart is drawn as wide as a column."""


def head() -> str:
    """Return the style of charts, for the head of a page."""
    rules = [
        f':root[data-theme="dark"] .cuebench-chart [{side}="{light}"]{{{side}:{dark}}}'
        for light, dark in theme.DARK.items()
        for side in ("fill", "stroke")
    ]
    by_setting = [rule.replace(':root[data-theme="dark"]', ':root:not([data-theme="light"])') for rule in rules]
    return (
        "<style>\n.cuebench-chart{margin:1em 0;overflow-x:auto}\n"
        ".cuebench-chart svg{width:100%;height:auto;display:block}\n"
        ".cuebench-chart .vega-embed,.cuebench-chart .vega-embed.has-actions{width:100%;display:block;padding:0}\n"
        ".cuebench-chart .vega-embed summary{opacity:0;transform:scale(.7)}\n"
        ".cuebench-chart:hover .vega-embed summary,.cuebench-chart .vega-embed summary:focus{opacity:.6}\n"
        + "\n".join(rules)
        + "\n@media (prefers-color-scheme: dark){\n"
        + "\n".join(by_setting)
        + "\n}\n@media print{.cuebench-chart{break-inside:avoid}.cuebench-chart details{display:none}}\n</style>"
    )


def chart(picture: Picture, width: Width = "page", *, drawn: bool = True) -> str:
    """Return a picture as an element of a page.

    Parameters
    ----------
    picture : Picture
        What to show.
    width : str
        ``column`` or ``page``; on a narrow screen a page becomes a column.
    drawn : bool
        Put the drawing there at once; without it the chart needs scripts, and the page is smaller.
    """
    spec = picture.spec(width)
    versions = {"wide": spec, "narrow": picture.spec("column")} if width != "column" else {"wide": spec}
    shared = all(version.get("datasets") == spec.get("datasets") for version in versions.values())
    # The configuration is part of the script: a page has it once. So are the data of both versions, where they agree.
    left_out = {"config", "datasets"} if shared else {"config"}
    content = {name: {k: v for k, v in version.items() if k not in left_out} for name, version in versions.items()}
    content |= {"datasets": spec.get("datasets", {})} if shared else {}
    encoded = _inside_script(json.dumps(content, ensure_ascii=False, allow_nan=False))
    drawing = picture.svg(width) if drawn else ""
    return (
        f'<figure class="cuebench-chart" style="max-width:{WIDTHS[width] * _SCREEN:.0f}px">'
        f'<div role="img" aria-label="{escape(picture.description)}">{drawing}</div>'
        f'<script type="application/json">{encoded}</script></figure>'
    )


def script() -> str:
    """Return Vega and what draws the charts, for the end of a page."""
    return "\n".join(f"<script>{text}</script>" for text in scripts())


def scripts() -> tuple[str, str]:
    """Return the contents of both scripts, for a page whose security policy lists the hash of each."""
    constants = {"CONFIG": theme.config(), "DARK": theme.DARK, "NARROW": _NARROW}
    defined = "".join(f"const {name}={_inside_script(json.dumps(value))};\n" for name, value in constants.items())
    return _inside_script(vega.bundle(), is_json=False), f"(function(){{\n{defined}{_DRAW}}})();"


def page(pictures: Sequence[Picture], *, title: str = "", width: Width = "page") -> str:
    """Return a whole page with some charts."""
    heading = escape(printable(title or "Figures"))
    charts = "\n".join(chart(picture, width) for picture in pictures)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{heading}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<style>:root{color-scheme:light dark}body{margin:1.5em auto;max-width:60em;padding:0 1em;"
        f"background:{theme.PAPER}}}@media (prefers-color-scheme: dark){{body{{background:{theme.DARK[theme.PAPER]}}}}}"
        f"</style>\n{head()}</head>\n<body><main>\n{charts}\n</main>\n{script()}</body></html>\n"
    )


def _inside_script(text: str, *, is_json: bool = True) -> str:
    """Make a text harmless inside of a script element: nothing in it can end the element."""
    if is_json:
        return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


_DRAW = """
const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");
function isDark() {
  return root.dataset.theme === "dark" || (root.dataset.theme !== "light" && system.matches);
}
function themed(spec) {
  let text = JSON.stringify({...spec, config: CONFIG});
  if (isDark()) for (const [light, dark] of Object.entries(DARK)) text = text.replaceAll(`"${light}"`, `"${dark}"`);
  return JSON.parse(text);
}
function isNarrow(figure) { return figure.clientWidth < NARROW; }
async function draw(figure) {
  const {wide, narrow, datasets} = JSON.parse(figure.querySelector("script").textContent);
  figure.dataset.narrow = isNarrow(figure);
  const spec = {datasets, ...(narrow && isNarrow(figure) ? narrow : wide)};
  const target = figure.querySelector("div");
  const holder = document.createElement("div");
  const actions = {export: true, source: false, compiled: false, editor: false};
  // ast: expressions are interpreted, not compiled, so that a page may forbid eval.
  const options = {renderer: "svg", ast: true, actions, tooltip: {theme: isDark() ? "dark" : "light"}};
  await vegaEmbed(holder, themed(spec), options);
  target.replaceChildren(holder);
  figure.dataset.drawn = "vega";
}
const charts = [...document.querySelectorAll("figure.cuebench-chart")];
const seen = new IntersectionObserver(entries => {
  for (const entry of entries) if (entry.isIntersecting) { seen.unobserve(entry.target); draw(entry.target); }
}, {rootMargin: "300px"});
charts.forEach(figure => seen.observe(figure));
function again() { charts.filter(figure => figure.dataset.drawn).forEach(draw); }
new MutationObserver(again).observe(root, {attributes: true, attributeFilter: ["data-theme"]});
system.addEventListener("change", again);
addEventListener("resize", () => charts.filter(figure => figure.dataset.drawn)
  .filter(figure => figure.dataset.narrow !== String(isNarrow(figure))).forEach(draw));
"""
