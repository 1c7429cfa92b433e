"""Contact sheet: all cues of an image, grouped and labelled."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo
from cuebench.cues.by_name import call
from cuebench.errors import MissingExtra, UserError
from cuebench.registry import cues
from cuebench.stimuli.cue_files import read_image, read_mask, write_image
from cuebench.stimuli.masks import guess_mask
from cuebench.stimuli.sheet_layout import Group, Tile, draw

KINDS = {
    "shape": "Shape: what is left without texture",
    "texture": "Texture: what is left without shape",
    "mixing": "Mixtures of shape and texture",
    "suppression": "Suppression of one kind of information",
    "corruption": "Corruptions",
}
"""Groups in the order of the sheet."""

EED = {"accuracy": 40.0}
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "eed": EED,
    "texture_residual": {**EED, "stretch": False},
    "texture_residual_shuffle": {**EED, "stretch": False},
    "contrast": {"level": 0.3},
    "chain": {"cues": ("patch_shuffle", "greyscale")},
    "composite": {"size": 0.8},
    "add_texture": {"gamma_t": 2.0},
    "eidolon": {"coherence": 0.0},
}
"""Options of the sheet, where the defaults are slow or show little."""

TEXTURES = {"blend": "voronoi_shuffle", "add_texture": "texture_residual_shuffle"}
"""The texture cue of the second image that a mixture takes; the shape cue is always `eed`."""


class Scene(NamedTuple):
    """The inputs of a sheet: image, object mask, second image, seed."""

    image: Array
    mask: Array
    other: Array
    seed: int = 0


def contact_sheet(scene: Scene, *, title: str = "", columns: int = 10) -> tuple[Image.Image, dict[str, str]]:
    """Draw every cue of the registry on one image.

    Parameters
    ----------
    scene : Scene
        The image (uint8, H×W×3), its object mask, and a second image of the same size for the mixtures.
    title : str
        Heading.
    columns : int
        Tiles in a row.

    Returns
    -------
    image, problems
        The sheet, and for each cue that could not be drawn the reason, which its tile shows too.
    """
    problems: dict[str, str] = {}
    mask = np.repeat(np.where(scene.mask, 255, 0).astype(np.uint8)[..., None], 3, axis=2)
    inputs = {"image": scene.image, "object mask": mask, "second image": scene.other}
    groups = [Group("Input", [Tile(name, "", picture) for name, picture in inputs.items()])]
    known = dict(cues.usable())
    for kind, heading in KINDS.items():
        tiles = []
        for name in [name for name, function in known.items() if function.info.kind == kind]:
            picture, reason = None, ""
            try:
                picture = _result(name, scene)
            except MissingExtra as error:
                reason = error.hint
            except UserError as error:
                reason = error.message
            problems.update({name: reason} if reason else {})
            tiles.append(Tile(name, reason or _caption(name), picture))
        groups.append(Group(heading, tiles))
    return draw(groups, title=title, columns=columns), problems


def save_sheet(
    source: Path,
    target: Path,
    *,
    mask: Path | None = None,
    invert_mask: bool = False,
    other: Path | None = None,
    seed: int = 0,
    size: int = 224,
) -> dict[str, str]:
    """Draw the contact sheet of an image file, cut to a square of `size` pixels.

    Without `mask` the object is guessed (GrabCut from the image's middle), and the sheet says so; without `other`
    the mixtures use the image upside down. Returns the problems of `contact_sheet`.
    """
    if target.suffix.lower() not in SUFFIXES:
        raise UserError(f"cannot write a sheet as {target.name!r}", f"name it {', '.join(SUFFIXES)}")
    image = squared(_colour(read_image(source)), size)
    inside = guess_mask(image) if mask is None else squared(read_mask(mask, invert=invert_mask), size)
    second = image[::-1] if other is None else squared(_colour(read_image(other)), size)
    title = f"{source.name}" + (" (object mask guessed)" if mask is None else "")
    sheet, problems = contact_sheet(Scene(image, inside, np.ascontiguousarray(second), seed), title=title)
    write_image(target, np.asarray(sheet))
    return problems


def _result(name: str, scene: Scene) -> Array:
    """Return a cue of the scene; a mixture joins the shape cue of the image with a texture cue of the second one."""
    info: CueInfo = cues.get(name).info
    keywords: dict[str, Any] = dict(OPTIONS.get(name, {}))
    if info.random:
        keywords["rng"] = scene.seed
    if "mask" in info.needs:
        keywords["mask"] = scene.mask
    if "other" not in info.needs:
        result: Array = call(name, scene.image, **keywords)
        return result
    texture = TEXTURES.get(name, "voronoi_shuffle")
    second = call(texture, scene.other, rng=scene.seed, **OPTIONS.get(texture, {}))
    result = call(name, call("eed", scene.image, **EED), second, **keywords)
    return result


def _caption(name: str) -> str:
    """Name the parameters that have published levels, and those the sheet changes."""
    parameters = inspect.signature(cues.get(name)).parameters
    shown = {key: parameters[key].default for key in cues.get(name).info.levels if key in parameters}
    texts = []
    for key, value in {**shown, **OPTIONS.get(name, {})}.items():
        if isinstance(value, float):
            texts.append(f"{key}={value:g}")
        elif value is not None:
            texts.append(f"{key}={' + '.join(map(str, value)) if isinstance(value, tuple) else value}")
    return ", ".join(texts)


def _colour(image: Array) -> Array:
    return np.repeat(image[..., None], 3, axis=2) if image.ndim == 2 else image


def squared(image: Array, size: int) -> Array:
    """Resize the shorter side to `size` and cut out the middle; masks stay boolean."""
    picture = Image.fromarray(image)
    scale = size / min(picture.size)
    width, height = (max(size, round(length * scale)) for length in picture.size)
    resampling = Image.Resampling.NEAREST if image.dtype == np.bool_ else Image.Resampling.LANCZOS
    left, top = (width - size) // 2, (height - size) // 2
    return np.asarray(picture.resize((width, height), resampling).crop((left, top, left + size, top + size)))
