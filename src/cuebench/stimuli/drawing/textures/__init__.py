"""Procedural textures in the spirit of Brodatz and the Describable Textures Dataset: drawn, never downloaded.

>>> from cuebench.stimuli.drawing.textures import names, texture
>>> texture("honeycombed", size=(64, 96), rng=0).shape
(64, 96, 3)
>>> len(names()) >= 40
True

Every public function of a file here is a texture: it draws on a ``Canvas`` and returns H×W×3 in about [0, 1]. A new
texture is one function, a new family one file; there is no list to extend.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np

from cuebench.arrays import Array, Pixels
from cuebench.errors import UserError, did_you_mean
from cuebench.stimuli.drawing.canvas import Canvas
from cuebench.stimuli.drawing.colour import grey

VERSION = 1
"""A change of any pixel is a new version: pictures of two versions must never be mixed."""

Draw = Callable[[Canvas], Array]


def names() -> list[str]:
    """Return the names of all textures, sorted."""
    return sorted(_drawings())


def texture(
    name: str,
    *,
    size: tuple[int, int] = (224, 224),
    rng: np.random.Generator | int,
    colour: bool = True,
    scale: float = 1.0,
) -> Pixels:
    """Draw a fresh patch of a texture.

    Phase, scale, orientation, colours, light and irregularity are drawn from ``rng``, so each seed is another variant
    of the same structure.

    Parameters
    ----------
    name : str
        One of ``names()``.
    size : pair of int
        Height and width in pixels.
    rng : Generator or int
        The same seed gives the same bytes on one kind of CPU; another moves a few values by a grey level.
    colour : bool
        False: the same structure in grey.
    scale : float
        Size of the structure; 1 suits pictures of 224 pixels, 2 is twice as coarse.

    Returns
    -------
    uint8 array, height × width × 3

    Raises
    ------
    UserError
        For an unknown name (with the nearest ones), a size below 8 pixels or a scale that is not positive.
    """
    if name not in _drawings():
        raise did_you_mean("texture", name, _drawings())
    try:
        height, width = (int(n) for n in size)
    except (TypeError, ValueError):
        raise UserError(f"size is {size!r}", "give height and width, e.g. size=(224, 224)") from None
    if min(height, width) < 8 or not 0 < scale < float("inf"):
        raise UserError(
            f"cannot draw a texture of {height} × {width} pixels at scale {scale}",
            "height and width must be at least 8, scale positive",
        )
    canvas = Canvas((height, width), np.random.default_rng(rng), scale)
    image = _photographed(canvas, _drawings()[name](canvas))
    image = image if colour else grey(image)
    return np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8)


@lru_cache(maxsize=1)
def _drawings() -> dict[str, Draw]:
    """Return texture → its function, from every public file of this folder."""
    drawings: dict[str, Draw] = {}
    for path in sorted(Path(__file__).parent.glob("[!_]*.py")):
        module = importlib.import_module(f"{__name__}.{path.stem}")
        functions = inspect.getmembers(module, inspect.isfunction)
        drawings |= {n: f for n, f in functions if f.__module__ == module.__name__ and not n.startswith("_")}
    return drawings


def _photographed(canvas: Canvas, image: Array) -> Array:
    """Add what a camera adds: uneven light, exposure and grain."""
    rng = canvas.rng
    angle, fall = rng.uniform(0, 2 * np.pi), rng.uniform(0, 0.13)
    height, width = canvas.size
    reach = np.float32(2 * canvas.scale / max(height, width))
    slope = (canvas.x * np.float32(np.cos(angle)) + canvas.y * np.float32(np.sin(angle))) * reach
    light = np.float32(rng.uniform(0.93, 1.06)) * (1 + np.float32(fall) * slope)
    grain = np.float32(rng.uniform(0.006, 0.02)) * rng.standard_normal(canvas.size, np.float32)
    return np.asarray(image * light[..., None] + grain[..., None], np.float32)
