"""Contact sheet of the novel objects: every shape in every texture, then sizes, places and backgrounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from PIL import Image, ImageDraw

from cuebench.arrays import Pixels
from cuebench.stimuli.sheet_layout import FAINT, INK, PAPER, RULE, font
from cuebench.stimuli.sources.novel_object import BACKGROUNDS

CELL, LEFT, TOP, MARGIN, HEAD = 112, 104, 132, 36, 30
STRIP = 168
Parts = Mapping[str, Any]


def contact_sheet(shapes: Parts, textures: Parts, settings: Any, drawn: Callable[..., Any]) -> Image.Image:
    """Draw the sheet; ``drawn(object, shapes, textures, settings)`` draws a stimulus."""
    from cuebench.stimuli.makers.novel_objects import Object

    width = LEFT + CELL * len(textures) + MARGIN
    strips = TOP + CELL * len(shapes) + 64
    sheet = Image.new("RGB", (max(width, LEFT + STRIP * 5 + MARGIN), strips + 3 * (STRIP + 34) + MARGIN), PAPER)
    pen = ImageDraw.Draw(sheet)
    pen.text((MARGIN, 30), "Novel objects", fill=INK, font=font(34))
    caption = f"{len(shapes)} shapes in {len(textures)} textures, each with its own patch; seed {settings.seed}"
    pen.text((MARGIN, 74), caption, fill=FAINT, font=font(17))
    for column, texture in enumerate(textures):
        _label(pen, (LEFT + CELL * column + CELL // 2, TOP - 16), texture, "mm")
    for row, shape in enumerate(shapes):
        _label(pen, (LEFT - 14, TOP + CELL * row + CELL // 2), shape, "rm")
        for column, texture in enumerate(textures):
            picture = drawn(Object(shape, texture, 1.0, "aligned", 0), shapes, textures, settings)
            _paste(sheet, picture, (LEFT + CELL * column + 5, TOP + CELL * row + 5), CELL - 10)
    _strips(sheet, pen, strips, shapes, textures, settings, drawn)
    return sheet


def _strips(
    sheet: Image.Image,
    pen: ImageDraw.ImageDraw,
    top: int,
    shapes: Parts,
    textures: Parts,
    settings: Any,
    drawn: Callable[..., Any],
) -> None:
    """Draw the sizes in the middle, the sizes at random places, and the backgrounds."""
    from cuebench.stimuli.makers.novel_objects import SIZES, Object

    names, fills = list(shapes), list(textures)
    count = min(len(fills), (sheet.width - LEFT - MARGIN) // STRIP)
    for line, (heading, place) in enumerate((("aligned", "aligned"), ("unaligned", "unaligned"), ("backgrounds", ""))):
        y = top + line * (STRIP + 34)
        pen.line((MARGIN, y - 14, sheet.width - MARGIN, y - 14), fill=RULE)
        _label(pen, (LEFT - 14, y + STRIP // 2), heading, "rm")
        for k in range(count):
            shape, texture = names[(3 * k + line) % len(names)], fills[(5 * k + 2 * line) % len(fills)]
            size = SIZES[k % len(SIZES)] if place else 0.8
            chosen = settings if place else settings._replace(background=BACKGROUNDS[k % len(BACKGROUNDS)])
            where = place if size < 1 or place != "unaligned" else "aligned"
            picture = drawn(Object(shape, texture, size, where or "aligned", 0), shapes, textures, chosen)
            x = LEFT + STRIP * k
            _paste(sheet, picture, (x + 4, y), STRIP - 12)
            pen.rectangle((x + 4, y, x + STRIP - 9, y + STRIP - 13), outline=RULE)
            _label(pen, (x + STRIP // 2 - 2, y + STRIP - 3), f"{size:.0%}" if place else chosen.background, "mm")


def _paste(sheet: Image.Image, picture: Pixels, at: tuple[int, int], side: int) -> None:
    sheet.paste(Image.fromarray(picture).resize((side, side), Image.Resampling.LANCZOS), at)


def _label(pen: ImageDraw.ImageDraw, at: tuple[int, int], text: str, anchor: str) -> None:
    size = 15
    while size > 9 and font(size).getlength(text) > (LEFT - 22 if anchor == "rm" else CELL - 8):
        size -= 1
    pen.text(at, text, fill=INK, font=font(size), anchor=anchor)
