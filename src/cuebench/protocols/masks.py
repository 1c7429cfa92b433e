"""Confusion matrices of an observer's masks: what is stored of a segmentation, and the IoU from it.

The answer is scaled to the size of the ground truth by the nearest pixel, and its classes become those of the data set
by the label map.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.labels import LabelSpace, label_map
from cuebench.metrics.mean_iou import ConfusionMatrix, iou_of_areas, mean_iou_of_areas
from cuebench.options import Option
from cuebench.protocols.base import Protocol, ScoreOptions
from cuebench.protocols.correctness import Table
from cuebench.protocols.trials import TrialRows
from cuebench.responses.store import KEPT
from cuebench.responses.table import Reduce, Responses
from cuebench.statistics.intervals import undefined
from cuebench.statistics.sums import estimates_of_sums
from cuebench.stimuli.cue_files import read_labels
from cuebench.stimuli.decomposition.classes import IGNORE
from cuebench.types import Estimate, Stimulus, StimulusSet

KEEP: Mapping[str, Option] = {
    "keep_masks": Option(
        0, "images whose predicted masks are kept to be drawn, chosen by their content", low=0, words=("all",)
    )
}
"""The option of protocols with masks; `keeping` follows it."""
PREDICTED = "masks"
"""Name under which predicted masks are kept."""
OTHER = 255
"""In a kept mask: a class that is none of the data set's."""
FULL = 64
"""Largest number of classes for which whole confusion matrices are stored; above it, the three areas IoU needs."""


def check(labels: LabelSpace, stimuli: StimulusSet) -> list[str]:
    """Say which classes of the masks a model cannot answer; one that belongs to two of them is refused by the map."""
    resolved = label_map(stimuli.targets).resolve(labels)
    return [f"class {name!r} of the masks has no member among its {len(labels)} classes" for name in resolved.uncovered]


def mean_ious(areas: Table) -> dict[str, Estimate]:
    """Return condition → mIoU of all images together, with an interval over images."""
    return {
        condition: _estimates(areas, i, lambda sums: mean_iou_of_areas(sums)[:, None])[0]
        for i, condition in enumerate(areas.conditions)
    }


def class_ious(areas: Table, condition: str) -> list[Estimate]:
    """Return the IoU of each class in a condition, NaN where the class is absent.

    A class that is answered but is in no mask has an IoU of 0 whatever the model can do: it has no interval.
    """
    column = areas.conditions.index(condition)
    in_masks = areas.values[:, column, 1].sum(axis=0) > 0
    nowhere = (undefined("images", "in no mask: every answer of it is wrong"),)
    ious = _estimates(areas, column, iou_of_areas)
    return [e if known or math.isnan(e.value) else replace(e, intervals=nowhere) for e, known in zip(ious, in_masks)]


def _estimates(areas: Table, column: int, statistic: Callable[[Array], Array]) -> list[Estimate]:
    values, shown = areas.values[:, column], int(areas.shown[:, column].sum())
    numbers = [shown] * values.shape[-1]
    return estimates_of_sums(values, statistic, numbers)


def keeping(protocol: Protocol, values: Mapping[str, Any]) -> Protocol:
    """Return the protocol that keeps the predicted masks of as many images as its options ask for."""
    number = values["keep_masks"]
    if not number:
        return protocol
    with_masks: Any = protocol.reduce
    return replace(protocol, reduce=partial(with_masks, keep=number), stored=f"masks of {number} images")


def reduce(stimuli: StimulusSet, labels: LabelSpace | None, keep: int | str = 0) -> Reduce:
    """Return the function that turns the masks of a batch into one confusion matrix for each image.

    Parameters
    ----------
    stimuli : StimulusSet
        What is shown; its masks are the truth.
    labels : LabelSpace or None
        What the numbers of the answered masks stand for.
    keep : int or "all"
        Images whose predicted masks are kept as well, in the classes of the data set and at the size of the truth.
    """
    if labels is None:
        raise UserError("the classes that the numbers of the masks stand for are unknown", "give the observer labels=")
    targets = label_map(stimuli.targets)
    classes = len(targets.names)
    # Position of an answered class → position among the classes of the masks; the last entry is any other number.
    owner = np.append(targets.resolve(labels).target_of(len(labels)), -1).astype(np.int16)
    chosen = _chosen(stimuli, keep)
    if chosen and classes > OTHER:
        raise UserError(f"masks of {classes} classes cannot be kept", f"at most {OTHER} fit into a picture")

    def counted(columns: Mapping[str, Array], shown: Sequence[Stimulus]) -> dict[str, Array]:
        if "masks" not in columns:
            raise UserError("these images have masks: an observer with capability 'masks' is needed")
        matrices, pictures = [], np.full(len(shown), b"", dtype=object)
        for row, (answer, stimulus) in enumerate(zip(columns["masks"], shown)):
            truth = _truth(Path(stimuli.root) / stimulus.mask, stimulus.mask_sha256)
            predicted = _in_classes(owner, np.asarray(answer), truth.shape)
            matrices.append(_confusion(truth, predicted, stimulus, classes))
            if stimulus.id in chosen:
                pictures[row] = _png(np.where(predicted < 0, OTHER, predicted).astype(np.uint8))
        kept = {KEPT + PREDICTED: pictures} if chosen else {}
        if classes <= FULL:
            return {"confusion": np.stack([m.counts.ravel() for m in matrices]).astype(np.int32), **kept}
        return {"areas": np.stack([m.areas.ravel() for m in matrices]).astype(np.int32), **kept}

    return counted


def _chosen(stimuli: StimulusSet, keep: int | str) -> frozenset[str]:
    """Return the ids of all pictures of some images: those whose names have the smallest hashes."""
    if not keep:
        return frozenset()
    images = sorted({s.image for s in stimuli}, key=lambda name: hashlib.sha256(name.encode()).digest())
    wanted = set(images if keep == "all" else images[: int(keep)])
    return frozenset(s.id for s in stimuli if s.image in wanted)


def _png(mask: Array) -> bytes:
    file = io.BytesIO()
    Image.fromarray(mask).save(file, format="PNG", optimize=True)
    return file.getvalue()


def areas(responses: Responses) -> Array:
    """Return rows × 3 × classes: pixels of each class that are correct, in the truth, in the answer."""
    classes = len(label_map(responses.stimuli.targets).names)
    if "areas" in responses.columns:
        return responses.columns["areas"].reshape(-1, 3, classes).astype(np.int64)
    counts = responses.columns["confusion"].reshape(-1, classes, classes + 1).astype(np.int64)
    parts = [np.diagonal(counts, axis1=1, axis2=2), counts.sum(axis=2), counts[:, :, :-1].sum(axis=1)]
    return np.stack(parts, axis=1)


def trial_rows(responses: Responses, options: ScoreOptions) -> list[TrialRows]:
    """Return the mean IoU of each picture, over the classes that occur in it."""
    ious = mean_iou_of_areas(areas(responses))
    return [TrialRows(responses.truth("condition"), np.arange(len(responses)), {"value": ious})]


def _in_classes(owner: Array, answer: Array, size: tuple[int, ...]) -> Array:
    """Return an answer at the size of the truth, in the classes of the data set; −1: none of them."""
    if answer.ndim != 2:
        raise UserError(f"an answer of shape {answer.shape} for one image; expected height × width of class numbers")
    if answer.shape != size:
        picture = Image.fromarray(answer.astype(np.int32))
        answer = np.asarray(picture.resize((size[1], size[0]), Image.Resampling.NEAREST))
    inside = (answer >= 0) & (answer < len(owner) - 1)
    # NumPy 2.5 refuses −1 beside the bytes of a mask.
    return np.asarray(owner[np.where(inside, answer.astype(np.intp), -1)])


def _confusion(truth: Array, predicted: Array, stimulus: Stimulus, classes: int) -> ConfusionMatrix:
    try:
        return ConfusionMatrix.of(truth, predicted, classes, IGNORE)
    except UserError as error:
        raise UserError(f"{stimulus.mask}: {error.message}", error.hint) from None


@lru_cache(maxsize=8)  # forty corruptions of one image share its mask
def _truth(path: Path, sha256: str) -> Array:
    """Read a mask; the hash is part of the key, because a set can be made again in the same folder."""
    return read_labels(path)
