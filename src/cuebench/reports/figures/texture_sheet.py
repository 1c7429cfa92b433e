"""Contact sheet of all procedural textures, one variant of each."""

from __future__ import annotations

import io
from collections.abc import Sequence

from PIL import Image

from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.reports.drawing import SOFT, Drawing
from cuebench.reports.figures.base import Figure
from cuebench.stimuli.drawing.textures import names
from cuebench.stimuli.sources.texture import draw

_TILE, _GAP, _CAPTION, _TOP = 112, 8, 18, 60


def texture_sheet(*, variant: int = 0, columns: int = 10, colour: bool = True, textures: Sequence[str] = ()) -> Drawing:
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
    rows = -(-len(shown) // columns)
    wide = min(columns, len(shown)) * (_TILE + _GAP) + 2 * 20 - _GAP
    page = Drawing(wide, _TOP + rows * (_TILE + _CAPTION + _GAP) + 10, f"{len(shown)} procedural textures")
    page.text(20, 30, page.title, 17, bold=True)
    page.text(20, 47, f"variant {variant} of each; every seed is another one", 11.5, SOFT)
    for k, name in enumerate(shown):
        x = 20 + (k % columns) * (_TILE + _GAP)
        y = _TOP + (k // columns) * (_TILE + _CAPTION + _GAP)
        page.image(x, y, _TILE, _TILE, _tile(name, variant, colour))
        page.text(x + _TILE / 2, y + _TILE + 13, name.replace("_", " "), 11, anchor="middle")
    return page


def _tile(name: str, variant: int, colour: bool) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(draw(seed=variant, name=name, size=224, colour=colour)).save(buffer, "PNG")
    return buffer.getvalue()


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
)
