"""Contact sheet of all procedural textures, one variant of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import image_url, pictures
from cuebench.reports.picture import Picture
from cuebench.reports.text import words
from cuebench.stimuli.drawing.textures import names
from cuebench.stimuli.sources.texture import draw

_PIXELS = 192


def texture_sheet(*, variant: int = 0, columns: int = 10, colour: bool = True, textures: Sequence[str] = ()) -> Picture:
    """Draw every texture with its name.

    Parameters
    ----------
    variant : int
        Which variant of each; another number shows other phases, scales, orientations and colours.
    columns : int
        Tiles in a row.
    colour : bool
        False: in grey.
    textures : sequence of str
        Only these; default: all.
    """
    if columns < 1:
        raise UserError(f"columns must be 1 or more; got {columns}")
    shown = list(textures) or names()
    tiles = [image_url(draw(seed=variant, name=name, size=_PIXELS, colour=colour)) for name in shown]
    records = [{"texture": name, "variant": variant, "colour": colour} for name in shown]

    def chart(room: float) -> Any:
        return pictures(
            tiles, [words(name) for name in shown], room=room, columns=columns if room > 300 else min(columns, 5)
        )

    return Picture(
        f"{len(shown)} procedural textures",
        chart,
        records,
        f"Variant {variant} of each; every seed is another one",
        f"A sheet of {len(shown)} textures: {', '.join(words(name) for name in shown[:8])}…",
    )


FIGURE = Figure(
    "texture_sheet",
    "Contact sheet of procedural textures",
    texture_sheet,
    needs="nothing",
    options={
        "variant": Option(0, "which variant of each", low=0),
        "columns": Option(10, "tiles in a row", low=1),
        "colour": Option(True, "false: in grey"),
        "textures": Option((), "only these; default: all"),
    },
    pictures=True,
)
