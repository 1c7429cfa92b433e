"""Texture agreement: whether an image shows the usual texture of its prediction, its label, both or neither."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cuebench.arrays import Array, Bools, Counts, Positions
from cuebench.errors import UserError
from cuebench.metrics.base import Metric

KINDS = ("prediction", "label", "both", "neither")


class Agreement(NamedTuple):
    """Which images are of each kind (KINDS, images × 4), and which could be judged."""

    kinds: Bools
    judged: Bools


def texture_agreement(texture: Array, prediction: Array, label: Array, dominant: Array) -> Agreement:
    """Compare the texture of each image with the usual textures of its prediction and its label.

    Parameters
    ----------
    texture : int array n
        From ``texture_identity``; −1: none.
    prediction, label : int array n
        Positions of classes.
    dominant : int array m
        Dominant texture of each class (``Groups.dominant``); −1: the class has no clean image.

    Returns
    -------
    Agreement
        ``kinds[i]`` has one True where the image is judged, none where it is not.

    Examples
    --------
    >>> texture_agreement(np.array([2]), np.array([0]), np.array([1]), np.array([2, 5])).kinds.tolist()
    [[True, False, False, False]]
    """
    if not len(texture) == len(prediction) == len(label):
        raise UserError(f"{len(texture)} textures, {len(prediction)} predictions and {len(label)} labels do not fit")
    of_prediction, of_label = dominant[prediction], dominant[label]
    judged = (texture >= 0) & (of_prediction >= 0) & (of_label >= 0)
    p, q = judged & (texture == of_prediction), judged & (texture == of_label)
    return Agreement(np.stack([p & ~q, q & ~p, p & q, judged & ~p & ~q], axis=1), judged)


class ClassAgreement(NamedTuple):
    """For each label with an image that agrees with one texture only: how many agree with that of the prediction, and
    how many with that of the label itself (``own``).
    """

    label: Positions
    prediction: Counts
    own: Counts


def by_label(agreement: Agreement, label: Array, classes: int) -> ClassAgreement:
    """Count, for each label, the images that agree with the prediction's texture only, and with the label's only."""
    for_prediction = np.bincount(label[agreement.kinds[:, 0]], minlength=classes)
    for_label = np.bincount(label[agreement.kinds[:, 1]], minlength=classes)
    labels = np.flatnonzero(for_prediction + for_label)
    return ClassAgreement(labels, for_prediction[labels], for_label[labels])


METRIC = Metric(
    name="texture_agreement",
    title="Agreement of an image's texture with the dominant texture of a class",
    formula=(
        "with t = TID(x), p = dominant(predicted class), l = dominant(label): prediction = [t = p ≠ l], "
        "label = [t = l ≠ p], both = [t = p = l], neither = [t ≠ p, t ≠ l]; shares of all images"
    ),
    denominator="images with a texture whose prediction and label both have a dominant texture on clean images",
    compute=texture_agreement,
    reference="Hoak, Sheatsley & McDaniel, Err on the Side of Texture, figures 12 and 13",
    caveats=(
        "Dominant textures come from clean images grouped by prediction, as in the paper.",
        "The texture is read from the model's own answer, so agreement with the prediction is high by construction; "
        "the share that agrees with the label is the informative one.",
    ),
    chance="about 1 / number of textures for each of prediction and label, were the texture independent of the answer",
    higher_is="more images of that kind",
    needs=("logits",),
)
