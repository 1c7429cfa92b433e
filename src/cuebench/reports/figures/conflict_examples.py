"""Cue-conflict images that are answered by their shape, by their texture, and by neither: a sheet of examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuebench.analyses.conflict_examples import (
    GROUPS,
    KINDS,
    ConflictImages,
    ImageOutcome,
    conflict_images,
    examples,
    picture,
)
from cuebench.options import Option
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import heading, image_url, pictures
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import Run, folders
from cuebench.reports.text import percent, words
from cuebench.reports.vega import alt

BY = Option("models", "whose answers count", choices=GROUPS)
COUNT = Option(8, "images of each kind", low=1, high=48)
_TITLES = {
    "shape": "Answered by shape",
    "texture": "Answered by texture",
    "neither": "Answered by neither",
}


def conflict_examples(run: Run, *, by: str = "models", count: int = 8) -> Picture:
    """Draw images whose shape, whose texture, and neither of which decides the answers (Fig. 1b, 4a and G).

    Parameters
    ----------
    run : path or sequence of paths
        Run folders of ``cue_conflict``; the images must still lie where the run found them.
    by : str
        Whose answers count: ``models``, ``people`` or ``all``.
    count : int
        Images of each kind.
    """
    conflicts = conflict_images(folders(run), by)
    chosen = {kind: images for kind in KINDS if (images := examples(conflicts.images, kind, count))}
    records = [_record(kind, image) for kind, images in chosen.items() for image in images]
    tiles = {kind: [tile(conflicts, image) for image in images] for kind, images in chosen.items()}
    who = f"{len(conflicts.observers)} observer{'s' * (len(conflicts.observers) != 1)}"
    return Picture(
        "What decides the answer",
        lambda room: _chart(chosen, tiles, room),
        records,
        f"Below each image: shape/texture. Answers of {who} among the classes of the set",
        f"Cue-conflict images answered by shape, by texture and by neither, by {who}.",
    )


def tile(conflicts: ConflictImages, image: ImageOutcome) -> str:
    """Return the picture of an image as a URL."""
    return image_url(np.asarray(picture(conflicts, image.stimulus)))


def caption(image: ImageOutcome) -> str:
    """Return what stands below an image: its shape and its texture."""
    return f"{words(image.stimulus.shape)}/{words(image.stimulus.texture)}"


def shares(images: Sequence[ImageOutcome], kind: str) -> str:
    """Return the smallest and the largest share of a kind among some images: ``67 to 100 % of the answers``."""
    low, high = (end(getattr(i, kind) for i in images) for end in (min, max))
    return f"{f'{100 * low:.0f} to ' if low < high else ''}{percent(high)} of the answers"


def _record(kind: str, image: ImageOutcome) -> dict[str, Any]:
    s = image.stimulus
    by = {name: getattr(image, name) for name in KINDS}
    return {"kind": kind, "image": s.id, "shape_class": s.shape, "texture_class": s.texture, **by, "n": image.n}


def _chart(chosen: dict[str, list[ImageOutcome]], tiles: dict[str, list[str]], room: float) -> Any:
    columns = 8 if room > 300 else 4
    rows: Sequence[Any] = [
        pictures(tiles[kind], [caption(i) for i in images], room=room, columns=columns).properties(
            title=heading(f"{_TITLES[kind]} ({shares(images, kind)})", room)
        )
        for kind, images in chosen.items()
    ]
    return alt.vconcat(*rows, spacing=6)


FIGURE = Figure(
    "conflict_examples",
    "Cue-conflict images by what decides the answer",
    conflict_examples,
    protocol="cue_conflict",
    options={"by": BY, "count": COUNT},
    pictures=True,
)
