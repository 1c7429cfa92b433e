"""Draw a ``Drawing`` with Pillow: twice too large, then shrunk, which smooths every edge."""

from __future__ import annotations

import io
from functools import lru_cache
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from cuebench.errors import printable
from cuebench.reports.drawing import PAPER, Drawing, Shape

OVERSAMPLE = 2
_MISSING = str.maketrans({"→": "›", "−": "-", "–": "-"})
"""Signs that Pillow's own font lacks, and what stands in for them."""


def render(drawing: Drawing, scale: float = 2.0) -> Image.Image:
    """Return the picture as an RGB image, ``scale`` pixels to a unit."""
    zoom = scale * OVERSAMPLE
    size = (round(drawing.width * zoom), round(drawing.height * zoom))
    page = Image.new("RGB", size, PAPER)
    for shape in drawing.shapes:
        _DRAW[shape.kind](page, shape, zoom)
    return page.resize((round(drawing.width * scale), round(drawing.height * scale)), Image.Resampling.LANCZOS)


def _rect(page: Image.Image, s: Shape, zoom: float) -> None:
    x, y, w, h = (n * zoom for n in s.at)
    box = (x, y, max(x + w - 1, x), max(y + h - 1, y))
    _on(page, s, box, lambda pen, b, fill: pen.rectangle(b, fill=fill, **_outline(s, zoom)))


def _circle(page: Image.Image, s: Shape, zoom: float) -> None:
    x, y, r = (n * zoom for n in s.at)
    _on(page, s, (x - r, y - r, x + r, y + r), lambda pen, b, fill: pen.ellipse(b, fill=fill, **_outline(s, zoom)))


def _on(page: Image.Image, s: Shape, box: tuple[float, ...], draw: Any) -> None:
    """Draw a filled shape, see-through where it asks for it."""
    fill = None if s.fill == "none" else s.fill
    if s.opacity >= 1:
        draw(ImageDraw.Draw(page), box, fill)
        return
    left, top = int(box[0]) - 1, int(box[1]) - 1
    size = (int(box[2]) - left + 3, int(box[3]) - top + 3)
    mask = Image.new("L", size, 0)
    moved = (box[0] - left, box[1] - top, box[2] - left, box[3] - top)
    draw(ImageDraw.Draw(mask), moved, round(255 * s.opacity))
    page.paste(Image.new("RGB", size, s.fill), (left, top), mask)


def _outline(s: Shape, zoom: float) -> dict[str, Any]:
    if s.stroke == "none" or s.opacity < 1:
        return {}
    return {"outline": s.stroke, "width": max(1, round(s.width * zoom))}


def _line(page: Image.Image, s: Shape, zoom: float) -> None:
    points = [n * zoom for n in s.at]
    ImageDraw.Draw(page).line(points, fill=s.stroke, width=max(1, round(s.width * zoom)))


def _text(page: Image.Image, s: Shape, zoom: float) -> None:
    font = _font(s.size * zoom)
    anchor = {"start": "ls", "middle": "ms", "end": "rs"}[s.anchor]
    x, y = (n * zoom for n in s.at)
    bold = max(1, round(s.size * zoom / 70)) if s.bold else 0
    written = printable(s.text).translate(_MISSING)
    if not s.turn:
        ImageDraw.Draw(page).text((x, y), written, fill=s.fill, font=font, anchor=anchor, stroke_width=bold)
        return
    # Turned text is drawn on a tile whose centre is the anchor, and the tile is turned about it.
    reach = int(font.getlength(written) + 2 * s.size * zoom)
    tile = Image.new("L", (2 * reach, 2 * reach), 0)
    ImageDraw.Draw(tile).text((reach, reach), written, fill=255, font=font, anchor=anchor, stroke_width=bold)
    tile = tile.rotate(-s.turn, Image.Resampling.BICUBIC)
    page.paste(Image.new("RGB", tile.size, s.fill), (round(x) - reach, round(y) - reach), tile)


def _image(page: Image.Image, s: Shape, zoom: float) -> None:
    x, y, w, h = (round(n * zoom) for n in s.at)
    with Image.open(io.BytesIO(s.data), formats=("PNG",)) as picture:
        page.paste(picture.convert("RGB").resize((w, h), Image.Resampling.LANCZOS), (x, y))


@lru_cache(maxsize=64)
def _font(size: float) -> Any:
    return ImageFont.load_default(size)


_DRAW = {"rect": _rect, "circle": _circle, "line": _line, "text": _text, "image": _image}
