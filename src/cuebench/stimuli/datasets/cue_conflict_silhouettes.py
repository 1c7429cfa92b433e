"""The 160 filled silhouettes behind the cue-conflict images, black on white, 224 × 224 PNG; all hashes known."""

from __future__ import annotations

from functools import partial

from cuebench.stimuli.datasets._texture_vs_shape import CITATION, LICENCE, MIRRORS
from cuebench.stimuli.datasets.base import Dataset, listing
from cuebench.stimuli.structure import png

DATASET = Dataset(
    name="cue_conflict_silhouettes",
    about="160 silhouettes, ten for each of 16 classes; black is the object",
    citation=CITATION,
    licence=LICENCE,
    folder="cue_conflict",
    mirrors=MIRRORS,
    load=partial(
        listing,
        "cue_conflict_silhouettes",
        "cue_conflict/silhouettes",
        "stimuli/filled-silhouettes",
        png(224, 224),
    ),
)
