"""Contours over cue-conflict images: the outline of the shape, and the structure that the texture brought along."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cuebench.analyses.conflict_examples import (
    KINDS,
    ConflictImages,
    ImageOutcome,
    conflict_images,
    examples,
    picture,
)
from cuebench.arrays import Array
from cuebench.cues.contours import contours
from cuebench.errors import UserError, did_you_mean
from cuebench.options import Option
from cuebench.reports import theme
from cuebench.reports.figures.base import Figure
from cuebench.reports.figures.conflict_examples import BY, COUNT, caption, shares
from cuebench.reports.marks import image_url, pictures
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import Run, folders
from cuebench.stimuli.image_files import read_rgb

NEAR = 7
"""Pixels around the outline of the shape within which a contour belongs to the shape."""
SHORTEST = 60
"""Pixels of a contour below which it is a detail of the texture, not a structure."""
EDGE = 6
"""Pixels at the border of an image whose contours are left out: style transfer draws a frame there."""


class Overlay(NamedTuple):
    """An image with lines over it, and the share of its contour pixels that are not the outline of the shape."""

    picture: Array
    leaked: float
    has_outline: bool


def contour_overlay(
    run: Run, *, kind: str = "texture", by: str = "models", count: int = 8, images: tuple[str, ...] = ()
) -> Picture:
    """Draw structure over cue-conflict images: whose shape is it? (Fig. 3a and F of Kim et al. 2026)

    In the colour of shape: the outline of the shape's source, from its silhouette. In white: contours of the image that
    are far from that outline, the structure that came with the texture.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders of ``cue_conflict``; images and silhouettes must still lie where the run found them.
    kind : str
        Images that are answered by ``texture``, ``shape`` or ``neither``.
    by : str
        Whose answers count: ``models``, ``people`` or ``all``.
    count : int
        How many images.
    images : tuple of str
        These images instead, for example ``bear1-clock2``.
    """
    conflicts = conflict_images(folders(run), by)
    chosen = _named(conflicts, images) if images else examples(conflicts.images, kind, count)
    if not chosen:
        raise UserError(f"no image was answered by {kind}", "choose another: --set kind=shape")
    overlays = [overlay(conflicts, image) for image in chosen]
    records = [
        {"image": i.stimulus.id, "shape_class": i.stimulus.shape, "texture_class": i.stimulus.texture,
         "leaked": o.leaked, "share_by_shape": i.shape, "share_by_texture": i.texture, "n": i.n}
        for i, o in zip(chosen, overlays)
    ]  # fmt: skip
    answered = "" if images else f"; by {kind}: {shares(chosen, kind)}"
    blue = "blue: outline of the shape; " if any(o.has_outline for o in overlays) else ""
    return Picture(
        "Structure in cue-conflict images",
        lambda room: _chart(chosen, overlays, room),
        records,
        f"Below each image: shape/texture{answered}; {blue}white: other contours, most of which came with the texture",
        f"{len(chosen)} cue-conflict images with contours.",
    )


def _named(conflicts: ConflictImages, names: tuple[str, ...]) -> list[ImageOutcome]:
    known = {i.stimulus.id: i for i in conflicts.images}
    for name in names:
        if name not in known:
            raise did_you_mean("conflict image", name, known)
    return [known[name] for name in names]


def overlay(conflicts: ConflictImages, image: ImageOutcome) -> Overlay:
    """Draw the outline of the shape and the other contours over an image."""
    from scipy.ndimage import binary_dilation, binary_erosion, distance_transform_edt, label

    stimulus = image.stimulus
    pixels = np.array(picture(conflicts, stimulus))
    everywhere = np.ones(pixels.shape[:2], bool)
    lines = contours(pixels, mask=everywhere, sigma=4.0, low=0.02, high=0.05, outline=False)[..., 0] > 127
    lines &= np.pad(everywhere[EDGE:-EDGE, EDGE:-EDGE], EDGE)
    pieces, _ = label(lines, np.ones((3, 3)))
    lines &= np.bincount(pieces.ravel())[pieces] >= SHORTEST
    silhouette = _silhouette(conflicts.root, stimulus.shape, stimulus.shape_source, pixels.shape[:2])
    outline = np.zeros_like(lines)
    if silhouette is not None:
        outline = silhouette & ~binary_erosion(silhouette)
    other = lines & (distance_transform_edt(~outline) > NEAR) if outline.any() else lines
    shown = (0.65 * pixels).astype(np.uint8)
    shown[binary_dilation(other)] = 255
    shown[binary_dilation(outline)] = [int(theme.SHAPE[i : i + 2], 16) for i in (1, 3, 5)]
    return Overlay(shown, float(other.sum() / max(lines.sum(), 1)), silhouette is not None)


def _silhouette(root: Path, name: str, source: str, size: tuple[int, int]) -> Array | None:
    """Return the silhouette of a shape's source, black on white, from beside the stimuli; None where there is none."""
    path = root.parent / "silhouettes" / name / f"{source}.png"
    if not path.is_file():
        return None
    mask = np.asarray(read_rgb(path).convert("L").resize(size[::-1])) < 128
    return mask if mask.any() else None


def _chart(chosen: list[ImageOutcome], overlays: list[Overlay], room: float) -> Any:
    names = [caption(i) for i in chosen]
    return pictures([image_url(o.picture) for o in overlays], names, room=room, columns=4 if room < 300 else 8)


FIGURE = Figure(
    "contour_overlay",
    "Contours over cue-conflict images",
    contour_overlay,
    protocol="cue_conflict",
    options={
        "kind": Option("texture", "images that are answered by this", choices=KINDS),
        "by": BY,
        "count": COUNT,
        "images": Option((), "these images instead, for example bear1-clock2"),
    },
    pictures=True,
)
