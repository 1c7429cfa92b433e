"""Layout of contact sheets: headings, tiles, captions."""

from __future__ import annotations

import textwrap
from functools import lru_cache
from typing import Any, NamedTuple

from PIL import Image, ImageDraw, ImageFont

from cuebench.arrays import Array

PAPER, INK, FAINT, RULE, EMPTY = "#ffffff", "#1a1a1a", "#6b6b6b", "#c9c9c9", "#f0f0f0"
MARGIN, GAP, CAPTION, HEADING, TITLE = 28, 14, 42, 46, 58


class Tile(NamedTuple):
    """A picture with its name and a line below; without a picture, the line is the reason."""

    name: str
    note: str
    picture: Array | None


class Group(NamedTuple):
    """Tiles under one heading."""

    heading: str
    tiles: list[Tile]


def draw(groups: list[Group], *, title: str, columns: int) -> Image.Image:
    """Draw groups of equally large tiles below each other."""
    pictures = (tile.picture for group in groups for tile in group.tiles if tile.picture is not None)
    tall, wide = next(pictures).shape[:2]
    bands = _bands(groups, columns)
    step_x, step_y = wide + GAP, tall + CAPTION + GAP
    width = 2 * MARGIN + columns * step_x - GAP
    height = TITLE + MARGIN + sum(HEADING + band.rows * step_y for band in bands)
    sheet = Image.new("RGB", (width, height), PAPER)
    pen = ImageDraw.Draw(sheet)
    pen.text((MARGIN, 20), title, fill=INK, font=font(24))
    top = TITLE
    for band in bands:
        for group, first in band.groups:
            left = MARGIN + first * step_x
            right = left + min(len(group.tiles), columns) * step_x - GAP
            pen.line((left, top + 6, right, top + 6), fill=RULE, width=1)
            pen.text((left, top + 15), group.heading, fill=INK, font=font(18))
            for number, tile in enumerate(group.tiles):
                at = (left + number % columns * step_x, top + HEADING + number // columns * step_y)
                _draw_tile(sheet, pen, tile, at, (tall, wide))
        top += HEADING + band.rows * step_y
    return sheet


class _Band(NamedTuple):
    """Groups side by side, each with its first column, and the rows of tiles they take."""

    groups: list[tuple[Group, int]]
    rows: int


def _bands(groups: list[Group], columns: int) -> list[_Band]:
    """Put neighbouring groups side by side where they fit."""
    bands: list[_Band] = []
    free = 0
    for group in groups:
        count = len(group.tiles)
        if bands and count <= free:
            bands[-1].groups.append((group, columns - free))
            free -= count
        else:
            bands.append(_Band([(group, 0)], max(1, -(-count // columns))))
            free = columns - count if count < columns else 0
    return bands


def _draw_tile(
    sheet: Image.Image, pen: ImageDraw.ImageDraw, tile: Tile, at: tuple[int, int], side: tuple[int, int]
) -> None:
    x, y = at
    height, width = side
    note = tile.note
    if tile.picture is None:
        pen.rectangle((x, y, x + width - 1, y + height - 1), fill=EMPTY)
        text = "\n".join(textwrap.wrap(tile.note, 28)[:8])
        pen.multiline_text((x + 10, y + 10), text, fill=FAINT, font=font(14), spacing=4)
        note = "not drawn"
    else:
        sheet.paste(Image.fromarray(tile.picture), (x, y))
        pen.rectangle((x, y, x + width - 1, y + height - 1), outline=RULE)
    pen.text((x, y + height + 5), tile.name, fill=INK, font=font(15))
    pen.text((x, y + height + 23), _fitted(note, width), fill=FAINT, font=font(12))


def _fitted(text: str, width: int) -> str:
    """Shorten a text to a width in pixels."""
    small = font(12)
    if small.getlength(text) <= width:
        return text
    while text and small.getlength(text + "…") > width:
        text = text[:-1]
    return text + "…"


@lru_cache
def font(size: int) -> Any:
    """Return Pillow's built-in font in a size."""
    return ImageFont.load_default(size)
