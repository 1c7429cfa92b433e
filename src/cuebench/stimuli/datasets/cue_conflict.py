"""The 1,280 cue-conflict images of Geirhos et al. 2019, 224 × 224 PNG.

The hashes of 256 files (one for each of the 16 × 16 class pairs) are known. The other 1,024 are checked by their
structure (a complete PNG of the right size); their hashes are recorded and compared from then on.
"""

from __future__ import annotations

from functools import partial

from cuebench.stimuli.datasets._texture_vs_shape import CITATION, LICENCE, MIRRORS
from cuebench.stimuli.datasets.base import Dataset, listing
from cuebench.stimuli.structure import png

DATASET = Dataset(
    name="cue_conflict",
    about="1,280 images with the shape of one class and the texture of another; 80 of them aligned",
    citation=CITATION,
    licence=LICENCE,
    folder="cue_conflict",
    mirrors=MIRRORS,
    # The folder is called 512 although the published files are 224 × 224.
    load=partial(
        listing, "cue_conflict", "cue_conflict/stimuli", "stimuli/style-transfer-preprocessed-512", png(224, 224)
    ),
)
