"""Texture of one image: the picture, the textures it answers to, what is tied to them, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PIL import Image

from cuebench.analyses.texture_of import TextureOf, Tie
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import heading, image_url, pictures, table, tooltip
from cuebench.reports.picture import Picture
from cuebench.reports.text import distinct, percent, short_name, words
from cuebench.reports.theme import CONDITIONS, NEUTRAL, SOFT, TEXTURE
from cuebench.reports.vega import alt
from cuebench.stimuli.drawing.textures import names
from cuebench.stimuli.sources.texture import draw

_MOST = 5


def texture_of(result: TextureOf, image: Image.Image) -> Picture:
    """Draw a card of what ``cuebench.texture_of`` returned.

    Parameters
    ----------
    result : TextureOf
        What the analysis returned.
    image : PIL image
        What was shown.
    """
    observer = short_name(result.observer)
    lists: dict[str, tuple[Sequence[Tie], str]] = {
        "textures by cosine": (result.likeness, TEXTURE),
        f"classes tied to {words(result.texture) or 'it'} (TAV)": (result.classes, CONDITIONS[0]),
        "predictions": (result.predictions, NEUTRAL),
    }
    records = [
        {"list": title, "rank": k + 1, "name": tie.name, "value": tie.value}
        for title, (ties, _) in lists.items()
        for k, tie in enumerate(ties)
    ]
    label = f" · label: {result.label}" if result.label else ""
    texture = words(result.texture) or "no texture resembles this"
    shown = image_url(_square(image))
    drawn = (
        [image_url(draw(seed=k, name=result.texture, size=128)) for k in range(3)] if result.texture in names() else []
    )

    def chart(room: float) -> Any:
        side = min(150.0, 0.45 * room) if room > 300 else room
        parts = [pictures([shown], ["the image"], room=side, columns=1)]
        if drawn:
            parts.append(
                pictures(drawn, ["", "", "the texture, drawn"], room=side / 3 - 8, columns=1, names_below=False)
            )
        wide = room - side * (4 / 3 if drawn else 1) - 120 if room > 300 else room - 90
        bars = [_bars(title, ties[:_MOST], colour, max(wide, 60)) for title, (ties, colour) in lists.items()]
        beside = alt.hconcat(*parts, spacing=8) if room > 300 else parts[0]
        stacked = alt.vconcat(*bars, spacing=6).resolve_scale(x="shared")
        return alt.hconcat(beside, stacked, spacing=12) if room > 300 else alt.vconcat(beside, stacked, spacing=12)

    return Picture(
        f"{texture} {result.texturedness:.2f}" if result.texture else texture[:1].upper() + texture[1:],
        chart,
        records,
        f"Answer of {observer}: {result.prediction}, {percent(result.confidence)}{label}"
        + (f". {result.verdict}" if result.texture else f"; largest cosine with a texture {result.texturedness:.2f}"),
        f"Texture of an image for {observer}: {texture}, {result.texturedness:.2f}. {result.verdict}",
    )


def _bars(title: str, ties: Sequence[Tie], colour: str, width: float) -> Any:
    labels = distinct([words(tie.name) for tie in ties], 24)
    data = table({"name": name, "value": tie.value} for name, tie in zip(labels, ties))
    axis = alt.Axis(title=None, ticks=False, domain=False, labelLimit=100)
    base = alt.Chart(data).encode(y=alt.Y("name:N", sort=labels, axis=axis))
    bars = base.mark_bar(color=colour, height=7).encode(
        x=alt.X("value:Q", scale=alt.Scale(domain=[0, 1]), axis=None), tooltip=tooltip("name", value=".3f")
    )
    values = base.mark_text(align="left", dx=3, color=SOFT).encode(x="value:Q", text=alt.Text("value:Q", format=".2f"))
    what = heading(title if ties else f"{title}: none", width)
    return alt.layer(bars, values).properties(width=width, height=max(10 * len(ties), 1), title=what)


def _square(image: Image.Image) -> Image.Image:
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    return image.convert("RGB").crop((left, top, left + side, top + side)).resize((384, 384), Image.Resampling.LANCZOS)


FIGURE = Figure("texture_of", "Texture of an image", texture_of, needs="objects")
