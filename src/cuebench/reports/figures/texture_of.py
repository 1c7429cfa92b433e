"""Texture of one image: the picture, the textures it answers to, what is tied to them, and the verdict."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from PIL import Image

from cuebench.analyses.texture_of import TextureOf, Tie
from cuebench.reports.drawing import FAINT, INK, SERIES, SOFT, Drawing, short_name, shorten
from cuebench.reports.figures.base import Figure
from cuebench.stimuli.drawing.textures import names
from cuebench.stimuli.png import png_bytes
from cuebench.stimuli.sources.texture import draw

_LEFT, _TOP, _SIDE = 24, 66, 300


def texture_of(result: TextureOf, image: Image.Image) -> Drawing:
    """Draw a card of what ``cuebench.texture_of`` returned.

    Parameters
    ----------
    result : TextureOf
        What the analysis returned.
    image : PIL image
        What was shown.
    """
    page = Drawing(900, 446, f"Texture of an image for {short_name(result.observer)}")
    texture = (result.texture or "no texture resembles this").replace("_", " ")
    page.text(_LEFT, 34, f"{texture} {result.texturedness:.2f}", 20, bold=True)
    answer = f"answer of {short_name(result.observer)}: {result.prediction}, {result.confidence:.0%}"
    page.text(_LEFT, 53, answer + (f" · label: {result.label}" if result.label else ""), 12, SOFT)
    page.image(_LEFT, _TOP, _SIDE, _SIDE, png_bytes(_square(image)))
    if result.texture in names():
        page.text(_LEFT + _SIDE + 20, _TOP + 10, "the texture, drawn", 10.5, SOFT)
        for k in range(3):
            patch = Image.fromarray(draw(seed=k, name=result.texture, size=128))
            page.image(_LEFT + _SIDE + 20, _TOP + 18 + k * 96, 88, 88, png_bytes(patch))
    x = _LEFT + _SIDE + (140 if result.texture in names() else 30)
    _bars(page, x, _TOP + 10, "textures by cosine", result.likeness, SERIES[0])
    _bars(page, x, _TOP + 118, f"classes tied to {result.texture or 'it'} (TAV)", result.classes, SERIES[1])
    _bars(page, x, _TOP + 226, "predictions", result.predictions, SERIES[2])
    for k, line in enumerate(textwrap.wrap(result.verdict, 120)):
        page.text(_LEFT, _TOP + _SIDE + 46 + 18 * k, line, 13, INK, bold=k == 0)
    return page


def _bars(page: Drawing, x: float, y: float, title: str, ties: Sequence[Tie], colour: str) -> None:
    page.text(x, y, title.replace("_", " "), 11, SOFT)
    for k, tie in enumerate(ties[:5]):
        level = y + 8 + 17 * k
        page.text(x + 128, level + 10, shorten(tie.name.replace("_", " "), 20), 11, anchor="end")
        page.rect(x + 136, level + 1, 200, 11, FAINT)
        page.rect(x + 136, level + 1, max(200 * tie.value, 0.5), 11, colour)
        page.text(x + 342, level + 10, f"{tie.value:.2f}", 10.5, SOFT)
    if not ties:
        page.text(x + 8, y + 20, "none", 11, SOFT)


def _square(image: Image.Image) -> Image.Image:
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    return image.convert("RGB").crop((left, top, left + side, top + side)).resize((512, 512), Image.Resampling.LANCZOS)


FIGURE = Figure("texture_of", "Texture of an image", texture_of, needs="objects")
