"""Segmentation grid: predicted masks of one image and its cues, a row for each model (figure 6 of Heinert et al.).

Drawn from masks that the run has kept (``cuebench run … --keep masks``): the picture itself, the truth, and what each
model predicts for the original, the shape cue and the texture cue.
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from cuebench.arrays import Array, Pixels
from cuebench.errors import UserError, did_you_mean
from cuebench.labels import label_map
from cuebench.options import Option
from cuebench.protocols.masks import OTHER
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import image_url, table
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import Run, folders, observers_of, scores
from cuebench.reports.stimulus_pictures import exactly, shown
from cuebench.reports.text import shorten, words
from cuebench.reports.theme import INK, SOFT
from cuebench.reports.vega import alt
from cuebench.runs.kept import kept_masks
from cuebench.stimuli.cue_files import read_labels
from cuebench.types import Stimulus, StimulusSet

PROTOCOL = "cue_decomposition_segmentation"
_METRICS = {"original": "quality_original", "eed": "quality_shape"}
_LONGEST = 260
_GAP = 3.0


def segmentation_grid(
    run: Run, *, image: str = "", conditions: Sequence[str] = ("original", "eed", "voronoi"), observers: int = 8
) -> Picture:
    """Draw the predictions of all observers for one image.

    Parameters
    ----------
    run : path or sequence of paths
        Run folder with ``cue_decomposition_segmentation`` that has kept masks; the images still lie where they were.
    image : str
        Name of the image; default: the first with a kept mask.
    conditions : sequence of str
        Columns; those that the run does not have are left out.
    observers : int
        How many rows at most.
    """
    stimuli, kept = kept_masks(folders(run)[0], PROTOCOL)
    images = sorted({k.stimulus.image for k in kept})
    if image and image not in images:
        raise did_you_mean("image with kept masks", image, images)
    chosen = image or images[0]
    pictures = {s.condition: s for s in stimuli if s.image == chosen}
    columns = [c for c in conditions if c in pictures]
    if not columns:
        raise UserError(f"{run} has none of {', '.join(conditions)}", f"it has {', '.join(pictures)}")
    looks = observers_of(run)
    names = [n for n in dict.fromkeys(k.observer for k in kept) if n in looks.kinds][:observers]
    quality = {(s.observer, s.condition): s.value for s in scores(run, PROTOCOL, *_METRICS.values(), "quality_texture")}
    palette = _palette(len(label_map(stimuli.targets).names))
    rows = [("picture", ""), ("truth", ""), *((looks.name(n), n) for n in names)]
    cells, records = [], []
    for line, (title, name) in enumerate(rows):
        for column, condition in enumerate(columns):
            picture = _cell(title, name, pictures[condition], stimuli, kept, palette)
            value = quality.get((name, condition), math.nan)
            text = f"mIoU {value:.3f}" if math.isfinite(value) else ""
            cells.append({"row": line, "column": column, "url": image_url(picture), "text": text})
            records.append({"row": title, "condition": condition, "image": chosen, "miou": value})
    ratio = picture.shape[0] / picture.shape[1]
    return Picture(
        f"Predicted masks: {shorten(chosen, 40)}",
        lambda room: _chart(cells, [t for t, _ in rows], columns, ratio, room),
        records,
        "Below each mask: mIoU of the model on all images of that cue; grey: not scored, or a class of no interest",
        f"Masks of {len(names)} models for one image: {', '.join(columns)}.",
    )


def _cell(
    title: str, name: str, stimulus: Stimulus, stimuli: StimulusSet, kept: Sequence[Any], palette: Pixels
) -> Pixels:
    if title == "picture" and not name:
        return _small(np.asarray(shown(stimuli, stimulus).convert("RGB")))
    if not name:
        return _small(_coloured(read_labels(Path(stimuli.root) / stimulus.mask), palette))
    for mask in kept:
        if mask.observer == name and mask.stimulus.id == stimulus.id:
            return _small(_coloured(mask.mask, palette))
    return _small(np.full((stimulus.height or 32, stimulus.width or 32, 3), 255, np.uint8))  # could not be shown


def _coloured(mask: Array, palette: Pixels) -> Pixels:
    number = np.asarray(mask).astype(np.intp)
    return np.asarray(palette[np.where(number < len(palette) - 1, number, len(palette) - 1)])


def _small(pixels: Pixels) -> Pixels:
    factor = min(1.0, _LONGEST / max(pixels.shape[:2]))
    size = max(1, round(pixels.shape[1] * factor)), max(1, round(pixels.shape[0] * factor))
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BILINEAR if factor < 1 else 0))


def _palette(classes: int) -> Pixels:
    """Return a colour for each class, neighbours far apart on the wheel, and grey for everything else."""
    golden = 0.618034
    colours = [
        colorsys.hls_to_rgb((0.02 + k * golden) % 1, (0.62, 0.45, 0.75)[k // 7 % 3], (0.6, 0.75, 0.5)[k % 3])
        for k in range(min(classes, OTHER))
    ]
    return np.rint(np.array([*colours, (0.55, 0.55, 0.55)]) * 255).astype(np.uint8)


def _chart(
    cells: Sequence[dict[str, Any]], rows: Sequence[str], columns: Sequence[str], ratio: float, room: float
) -> Any:
    head, left, below = 11.0, 62.0, 9.0
    wide = (room - left + _GAP) / len(columns) - _GAP
    high = wide * ratio
    step = high + _GAP + below
    height = head + len(rows) * step

    placed = [
        {
            **cell,
            "x": left + cell["column"] * (wide + _GAP) + wide / 2,
            "y": head + cell["row"] * step + high / 2,
            "below": head + cell["row"] * step + high + 5,
        }
        for cell in cells
    ]
    base = alt.Chart(table(placed)).encode(x=exactly(alt.X, "x", room))
    images = base.mark_image(width=wide, height=high).encode(y=exactly(alt.Y, "y", height), url="url:N")
    notes = base.mark_text(fontSize=6, color=SOFT).encode(y=exactly(alt.Y, "below", height), text="text:N")
    titles = [
        {"x": left + k * (wide + _GAP) + wide / 2, "y": 4.0, "text": words(name)} for k, name in enumerate(columns)
    ]
    sides = [{"x": 0.0, "y": head + k * step + high / 2, "text": shorten(name, 18)} for k, name in enumerate(rows)]
    layers = [images, notes]
    for labels, align in ((titles, "center"), (sides, "left")):
        layers.append(
            alt.Chart(table(labels))
            .mark_text(fontSize=7, color=INK, align=align)
            .encode(x=exactly(alt.X, "x", room), y=exactly(alt.Y, "y", height), text="text:N")
        )
    return alt.layer(*layers).properties(width=room, height=height)


FIGURE = Figure(
    "segmentation_grid",
    "Predicted masks of one image and its cues",
    segmentation_grid,
    protocol=PROTOCOL,
    options={
        "image": Option("", "name of the image; default: the first with a kept mask"),
        "conditions": Option(("original", "eed", "voronoi"), "columns; those that the run does not have are left out"),
        "observers": Option(8, "how many rows at most", low=1),
    },
    pictures=True,
)
