"""From an observer's masks to confusion matrices: what is stored of a segmentation. Private to the protocols.

A mask is compared where the ground truth is: the answer is brought to its size by the nearest pixel, its classes to the
data set's by the label map.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.labels import LabelSpace, label_map
from cuebench.metrics.mean_iou import ConfusionMatrix
from cuebench.metrics.quality import Quality, mean_ious
from cuebench.protocols import correctness
from cuebench.protocols.base import ScoreOptions
from cuebench.protocols.correctness import Table
from cuebench.responses.table import Reduce, Responses
from cuebench.stimuli.cue_files import read_labels
from cuebench.stimuli.decomposition.classes import IGNORE
from cuebench.types import Stimulus, StimulusSet

FULL = 64
"""Up to so many classes the whole confusion matrix of each image is stored; above, the three areas that IoU needs."""


def check(labels: LabelSpace, stimuli: StimulusSet) -> list[str]:
    """Say which classes of the masks a model cannot answer; one that belongs to two of them is refused by the map."""
    resolved = label_map(stimuli.targets).resolve(labels)
    return [f"class {name!r} of the masks has no member among its {len(labels)} classes" for name in resolved.uncovered]


def qualities(responses: Responses, options: ScoreOptions) -> tuple[Table, dict[str, Quality]]:
    """Return the areas of every picture, images × conditions, and condition → mIoU."""
    conditions = list(dict.fromkeys(s.condition for s in responses.stimuli))
    found = correctness.table(responses, areas(responses), conditions)
    by_condition = [found.values[:, i] for i in range(len(conditions))]
    own = mean_ious(by_condition, found.shown, seed=options.seed, resamples=options.resamples)
    return found, dict(zip(conditions, own))


def reduce(stimuli: StimulusSet, labels: LabelSpace | None) -> Reduce:
    """Return the function that turns the masks of a batch into one confusion matrix for each image."""
    if labels is None:
        raise UserError("a segmentation needs to know what its numbers stand for", "give the observer labels=")
    targets = label_map(stimuli.targets)
    classes = len(targets.names)
    # Position of an answered class → position among the classes of the masks; the last entry is any other number.
    owner = np.append(targets.resolve(labels).target_of(len(labels)), -1).astype(np.int16)

    def counted(columns: Mapping[str, Array], shown: Sequence[Stimulus]) -> dict[str, Array]:
        if "masks" not in columns:
            raise UserError("these images have masks: an observer with capability 'masks' is needed")
        made = [
            _confusion(owner, np.asarray(answer), Path(stimuli.root), stimulus, classes)
            for answer, stimulus in zip(columns["masks"], shown)
        ]
        if classes <= FULL:
            return {"confusion": np.stack([m.counts.ravel() for m in made]).astype(np.int32)}
        return {"areas": np.stack([m.areas.ravel() for m in made]).astype(np.int32)}

    return counted


def areas(responses: Responses) -> Array:
    """Return rows × 3 × classes: pixels of each class that are right, in the truth, in the answer."""
    classes = len(label_map(responses.stimuli.targets).names)
    if "areas" in responses.columns:
        return responses.columns["areas"].reshape(-1, 3, classes).astype(np.int64)
    counts = responses.columns["confusion"].reshape(-1, classes, classes + 1).astype(np.int64)
    found = [np.diagonal(counts, axis1=1, axis2=2), counts.sum(axis=2), counts[:, :, :-1].sum(axis=1)]
    return np.stack(found, axis=1)


def _confusion(owner: Array, answer: Array, root: Path, stimulus: Stimulus, classes: int) -> ConfusionMatrix:
    truth = _truth(root / stimulus.mask, stimulus.mask_sha256)
    if answer.ndim != 2:
        raise UserError(f"an answer of shape {answer.shape} for one image; expected height × width of class numbers")
    if answer.shape != truth.shape:
        picture = Image.fromarray(answer.astype(np.int32))
        answer = np.asarray(picture.resize((truth.shape[1], truth.shape[0]), Image.Resampling.NEAREST))
    inside = (answer >= 0) & (answer < len(owner) - 1)
    try:
        return ConfusionMatrix.of(truth, owner[np.where(inside, answer, -1)], classes, IGNORE)
    except UserError as error:
        raise UserError(f"{stimulus.mask}: {error.message}", error.hint) from None


@lru_cache(maxsize=8)  # forty corruptions of one image share its mask
def _truth(path: Path, sha256: str) -> Array:
    """Read a mask; the hash is part of the key, because a set can be made again in the same folder."""
    return read_labels(path)
