"""Raw responses of ten people and thirteen networks to the 1,280 cue-conflict images, one CSV each.

The hashes of 14 of the 23 files are known. The three Caffe networks of the 2019 paper are left out: one of them
has the same name (alexnet) as a later network in the same folder.
"""

from __future__ import annotations

from functools import partial

from cuebench.stimuli.datasets._texture_vs_shape import CITATION, LICENCE, MIRRORS
from cuebench.stimuli.datasets.base import Dataset, listing
from cuebench.stimuli.structure import table

COLUMNS = ("subj", "session", "trial", "rt", "object_response", "category", "condition", "imagename")

DATASET = Dataset(
    name="cue_conflict_responses",
    about="trial by trial answers of ten people and thirteen networks",
    citation=CITATION,
    licence=LICENCE,
    folder="cue_conflict",
    mirrors=MIRRORS,
    load=partial(
        listing, "cue_conflict_responses", "cue_conflict/responses", "raw-data", table(COLUMNS, 1280), flat=True
    ),
)
