"""Prediction quality Q of a model on one version of a data set, with its bootstrap draws. A helper, not a metric.

Q is accuracy for classification and dataset-level mIoU for segmentation. All versions of an image are drawn together,
and all models of a run with the same draws, so differences and quotients of qualities have the right intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cuebench.arrays import Array, Floats
from cuebench.errors import UserError
from cuebench.metrics.mean_iou import iou_of_areas, mean_iou_of_areas
from cuebench.metrics.relative_accuracy import resampled_accuracies
from cuebench.statistics.intervals import Bootstrap, percentile, undefined, weights

REFERENCE = "Heinert et al. 2025, Shape Bias and Robustness Evaluation via Cue Decomposition, eq. 3 to 5"
CAVEATS = (
    "Accuracy (top-1 over all classes of the model, or over a label map) or dataset-level mIoU; the condition and the "
    "note say which.",
    "The interval resamples images; all versions of one are drawn together.",
)


@dataclass(frozen=True)
class Quality:
    """A value in [0, 1], its bootstrap draws, and how many pictures it rests on."""

    value: float
    draws: Floats
    n: int

    def interval(self) -> Bootstrap:
        """Return the percentile interval; NaN where there is one image or none."""
        if not len(self.draws):
            return undefined("images", f"{self.n} image{'s' * (self.n != 1)}: nothing to resample")
        return percentile(self.draws, "images")


def accuracies(correct: Array, shown: Array, *, seed: int, resamples: int) -> list[Quality]:
    """Return the accuracy in each condition.

    Parameters
    ----------
    correct, shown : arrays images × conditions
        Whether the picture was answered right (or by which share of those who answered it), and whether it was
        answered at all.
    seed, resamples : int
        Of the bootstrap.
    """
    n = shown.sum(axis=0)
    right = (correct * shown).sum(axis=0)
    draws = _nothing(correct.shape[1]) if len(correct) < 2 else resampled_accuracies(
        correct, shown, seed=seed, resamples=resamples
    )  # fmt: skip
    return [Quality(float(right[c] / n[c]) if n[c] else np.nan, draws[:, c], int(n[c])) for c in range(len(n))]


def mean_ious(areas: Sequence[Array], shown: Array, *, seed: int, resamples: int) -> list[Quality]:
    """Return the dataset-level mIoU in each condition.

    Parameters
    ----------
    areas : sequence of int arrays images × 3 × classes
        Of each condition: pixels of each class that are right, in the truth, in the answer; zeros where not shown.
    shown : bool array images × conditions
        Whether the picture was answered at all.
    seed, resamples : int
        Of the bootstrap, which draws the confusion matrices of images.
    """
    if any(len(a) != len(shown) for a in areas):
        raise UserError(f"areas of {[len(a) for a in areas]} images, {len(shown)} rows shown")
    found = []
    for condition, own in enumerate(areas):
        value = mean_iou_of_areas(own.sum(axis=0)[None])[0]
        draws = np.empty(0) if len(own) < 2 else _drawn(own, seed, resamples, mean_iou_of_areas)
        found.append(Quality(float(value), draws, int(shown[:, condition].sum())))
    return found


def class_ious(areas: Array, shown: Array, *, seed: int, resamples: int) -> list[Quality]:
    """Return the IoU of each class in one condition; NaN where truth and answers never hold it.

    Parameters
    ----------
    areas : int array images × 3 × classes
        As in ``mean_ious``.
    shown : bool array, one value for each image
        Whether it was answered at all.
    seed, resamples : int
        Of the bootstrap over images, the same draws as for the mIoU.
    """
    values = iou_of_areas(areas.sum(axis=0)[None])[0]
    draws = np.empty((0, len(values))) if len(areas) < 2 else _drawn(areas, seed, resamples, iou_of_areas)
    return [Quality(float(v), draws[:, k], int(shown.sum())) for k, v in enumerate(values)]


def _drawn(areas: Array, seed: int, resamples: int, measure: Callable[[Array], Floats]) -> Floats:
    """Return a measure of the areas of resampled images, one row for each resample."""
    drawn = weights("images", len(areas), seed, resamples)
    flat = areas.reshape(len(areas), -1).astype(np.float64)
    step = max(1, 4_000_000 // max(flat.shape))
    parts = [drawn[i : i + step].astype(np.float64) @ flat for i in range(0, resamples, step)]
    return np.concatenate([measure(p.reshape(-1, *areas.shape[1:])) for p in parts])


def _nothing(conditions: int) -> Floats:
    return np.empty((0, conditions))
