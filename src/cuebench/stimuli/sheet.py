"""A contact sheet: all cues of one image, grouped and labelled."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from cuebench.arrays import Array
from cuebench.errors import MissingExtra, UserError
from cuebench.registry import cues
from cuebench.stimuli.cue_files import read_image, read_mask, write_image
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
"""What the sheet shows where the defaults are slow or show little."""

TEXTURES = {"blend": "voronoi_shuffle", "add_texture": "texture_residual_shuffle"}
"""The texture cue of the second image that a mixture takes; the shape cue is always `eed`."""


class Scene(NamedTuple):
    """What the cues of a sheet are drawn from."""

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
    given = {"image": scene.image, "object mask": _as_picture(scene.mask), "second image": scene.other}
    groups = [Group("Input", [Tile(name, "", picture) for name, picture in given.items()])]
    for kind, heading in KINDS.items():
        tiles = []
        for name in cues:
            if cues.get(name).info.kind == kind:
                picture, reason = _drawn(name, scene)
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


def _drawn(name: str, scene: Scene) -> tuple[Array | None, str]:
    try:
        return _result(name, scene), ""
    except MissingExtra as error:
        return None, error.hint
    except UserError as error:
        return None, error.message


def _result(name: str, scene: Scene) -> Array:
    function = cues.get(name)
    info = function.info
    given: dict[str, Any] = dict(OPTIONS.get(name, {}))
    if info.random:
        given["rng"] = scene.seed
    if "mask" in info.needs:
        given["mask"] = scene.mask
    if "other" not in info.needs:
        return function(scene.image, **given)
    # A mixture: the shape cue of the image with a texture cue of the second one.
    shape = _function("eed")(scene.image, **EED)
    texture = TEXTURES.get(name, "voronoi_shuffle")
    return function(shape, _function(texture)(scene.other, rng=scene.seed, **OPTIONS.get(texture, {})), **given)


def _function(name: str) -> Callable[..., Any]:
    return cues.get(name)


def _caption(name: str) -> str:
    """Name the parameters that have published levels, and those the sheet changes."""
    parameters = inspect.signature(_function(name)).parameters
    shown = {key: parameters[key].default for key in cues.get(name).info.levels if key in parameters}
    options = {key: value for key, value in {**shown, **OPTIONS.get(name, {})}.items() if value is not None}
    return ", ".join(f"{key}={_short(value)}" for key, value in options.items())


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return " + ".join(str(part) for part in value) if isinstance(value, tuple) else str(value)


def _as_picture(mask: Array) -> Array:
    return np.repeat(np.where(mask, 255, 0).astype(np.uint8)[..., None], 3, axis=2)


def _colour(image: Array) -> Array:
    return np.repeat(image[..., None], 3, axis=2) if image.ndim == 2 else image


def squared(image: Array, size: int) -> Array:
    """Resize the shorter side to `size` and cut out the middle; masks stay boolean."""
    picture = Image.fromarray(image)
    scale = size / min(picture.size)
    wide = tuple(max(size, round(length * scale)) for length in picture.size)
    how = Image.Resampling.NEAREST if image.dtype == np.bool_ else Image.Resampling.LANCZOS
    left, top = (wide[0] - size) // 2, (wide[1] - size) // 2
    return np.asarray(picture.resize((wide[0], wide[1]), how).crop((left, top, left + size, top + size)))


def guess_mask(image: Array) -> Array:
    """Guess the object in the middle of a colour image (GrabCut); a disc where that finds nothing."""
    height, width = image.shape[:2]
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    disc = y**2 + x**2 < 0.6
    try:
        import cv2
    except ImportError:
        return disc
    cv2.setRNGSeed(0)
    labels = np.where(disc, cv2.GC_PR_FGD, cv2.GC_PR_BGD).astype(np.uint8)
    labels[(np.abs(y) > 0.97) | (np.abs(x) > 0.97)] = cv2.GC_BGD
    labels[y**2 + x**2 < 0.05] = cv2.GC_FGD
    models = np.zeros((2, 1, 65))
    cv2.grabCut(np.ascontiguousarray(image), labels, None, models[0], models[1], 5, cv2.GC_INIT_WITH_MASK)
    return _largest((labels == cv2.GC_FGD) | (labels == cv2.GC_PR_FGD), disc)


def _largest(found: Array, instead: Array) -> Array:
    """Return the largest connected part, its holes filled; `instead` where it is tiny."""
    from scipy.ndimage import binary_fill_holes, binary_opening, label

    parts, count = label(binary_opening(found, iterations=2))
    if not count:
        return instead
    largest = parts == 1 + np.bincount(parts.ravel())[1:].argmax()
    return binary_fill_holes(largest) if largest.mean() > 0.05 else instead
