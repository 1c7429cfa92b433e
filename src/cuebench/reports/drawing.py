"""A picture of simple shapes, written as SVG or PNG: one description, two renderers, no plotting library."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from cuebench.errors import UserError, printable
from cuebench.files import write_atomic

FONT = "Helvetica Neue, Helvetica, Arial, sans-serif"
INK, SOFT, FAINT, PAPER = "#22252b", "#6b7280", "#e3e5ea", "#ffffff"
SERIES = ("#2f6fdb", "#e07b39", "#3a9d6e", "#b84a8c", "#8a6fd1", "#c9a227", "#4aa3b8", "#d1495b")
# Dark blue to teal to pale yellow: lightness rises evenly, so the order survives in grey and for the colour-blind.
HEAT = ("#10204b", "#1f4e79", "#2a7f8e", "#3fae8a", "#8fd07a", "#f3ee9c")


@dataclass(frozen=True)
class Shape:
    """One thing to draw: its kind and what it needs to know."""

    kind: str
    at: tuple[float, ...]
    fill: str = "none"
    stroke: str = "none"
    width: float = 1.0
    text: str = ""
    size: float = 12.0
    anchor: str = "start"
    turn: float = 0.0
    bold: bool = False
    opacity: float = 1.0
    data: bytes = b""


@dataclass
class Drawing:
    """A picture of a given size in pixels; shapes are drawn in the order in which they were added."""

    width: float
    height: float
    title: str = ""
    shapes: list[Shape] = field(default_factory=list)

    def rect(self, x: float, y: float, w: float, h: float, fill: str, **more: Any) -> None:
        """Add a filled rectangle."""
        self.shapes.append(Shape("rect", (x, y, w, h), fill=fill, **more))

    def line(self, x1: float, y1: float, x2: float, y2: float, stroke: str = INK, width: float = 1.0) -> None:
        """Add a straight line."""
        self.shapes.append(Shape("line", (x1, y1, x2, y2), stroke=stroke, width=width))

    def circle(self, x: float, y: float, r: float, fill: str, **more: Any) -> None:
        """Add a disc."""
        self.shapes.append(Shape("circle", (x, y, r), fill=fill, **more))

    def text(self, x: float, y: float, text: str, size: float = 12, fill: str = INK, **more: Any) -> None:
        """Add text whose baseline is at y; ``turn`` in degrees, clockwise; ``anchor`` start, middle or end."""
        self.shapes.append(Shape("text", (x, y), text=text, size=size, fill=fill, **more))

    def image(self, x: float, y: float, w: float, h: float, png: bytes) -> None:
        """Add a bitmap."""
        self.shapes.append(Shape("image", (x, y, w, h), data=png))

    def svg(self) -> str:
        """Return the picture as SVG."""
        body = "\n".join(_SVG[s.kind](s) for s in self.shapes)
        head = f'width="{self.width:g}" height="{self.height:g}" viewBox="0 0 {self.width:g} {self.height:g}"'
        name = f"<title>{escape(printable(self.title))}</title>\n" if self.title else ""
        back = f'<rect width="100%" height="100%" fill="{PAPER}"/>'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {head} font-family="{FONT}">\n{name}{back}\n{body}\n</svg>\n'

    def png(self, scale: float = 2.0) -> bytes:
        """Return the picture as PNG, ``scale`` pixels to a unit."""
        from cuebench.reports.raster import render

        buffer = io.BytesIO()
        render(self, scale).save(buffer, "PNG")
        return buffer.getvalue()

    def save(self, path: str | Path) -> Path:
        """Write ``.svg`` or ``.png``, by the name."""
        target = Path(path).expanduser()
        if target.suffix.lower() not in {".svg", ".png"}:
            raise UserError(f"cannot write a figure as {target.name!r}", "name it .svg or .png")
        data = self.svg().encode() if target.suffix.lower() == ".svg" else self.png()
        write_atomic(target, data)
        return target


def heat(value: float) -> str:
    """Return the colour of a value in [0, 1]."""
    position = min(max(value, 0.0), 1.0) * (len(HEAT) - 1)
    low = min(int(position), len(HEAT) - 2)
    return blend(HEAT[low], HEAT[low + 1], position - low)


def blend(first: str, second: str, share: float) -> str:
    """Mix two ``#rrggbb`` colours."""
    a, b = (tuple(int(c[i : i + 2], 16) for i in (1, 3, 5)) for c in (first, second))
    return "#" + "".join(f"{round(x + (y - x) * share):02x}" for x, y in zip(a, b))


def shorten(text: str, most: int = 22) -> str:
    """Cut a long name and say so."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def short_name(observer: str, among: Sequence[str] = ()) -> str:
    """Return the telling part of an observer's spec: ``onnx:/a/b/net.onnx`` → ``net``."""
    bare = observer.partition("?")[0].partition(":")[2] or observer
    name = Path(bare).name
    stem = name.rsplit(".", 1)[0] if name.rsplit(".", 1)[-1] in {"onnx", "safetensors", "pt", "pth", "csv"} else name
    same = [o for o in among if o != observer and short_name(o) == stem]
    return observer if same else stem


def _rect(s: Shape) -> str:
    x, y, w, h = s.at
    return f'<rect x="{x:.2f}" y="{y:.2f}" width="{w:.2f}" height="{h:.2f}"{_paint(s)}/>'


def _line(s: Shape) -> str:
    x1, y1, x2, y2 = s.at
    return f'<line x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}"{_paint(s)}/>'


def _circle(s: Shape) -> str:
    x, y, r = s.at
    return f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{r:.2f}"{_paint(s)}/>'


def _text(s: Shape) -> str:
    x, y = s.at
    turn = f' transform="rotate({s.turn:g} {x:.2f} {y:.2f})"' if s.turn else ""
    bold = ' font-weight="600"' if s.bold else ""
    where = f'x="{x:.2f}" y="{y:.2f}" font-size="{s.size:g}" text-anchor="{s.anchor}"'
    return f'<text {where} fill="{s.fill}"{bold}{turn}>{escape(printable(s.text))}</text>'


def _image(s: Shape) -> str:
    x, y, w, h = s.at
    code = base64.b64encode(s.data).decode()
    return f'<image x="{x:.2f}" y="{y:.2f}" width="{w:.2f}" height="{h:.2f}" href="data:image/png;base64,{code}"/>'


def _paint(s: Shape) -> str:
    line = f' stroke="{s.stroke}" stroke-width="{s.width:g}"' if s.stroke != "none" else ""
    faint = f' opacity="{s.opacity:g}"' if s.opacity < 1 else ""
    return f' fill="{s.fill}"{line}{faint}'


_SVG = {"rect": _rect, "line": _line, "circle": _circle, "text": _text, "image": _image}
