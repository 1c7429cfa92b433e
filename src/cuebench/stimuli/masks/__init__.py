"""Segmenters for images without a mask: GrabCut (needs no weights), a Hugging Face model, or anybody's function.

A segmenter is a function ``segment(image, label) -> mask`` (uint8 H×W×3 and the class name → bool H×W). ``segmenter``
returns one by name: ``grabcut``, ``hf:MODEL`` (semantic, instance or panoptic segmentation: the segment whose label is
the class, else the largest that is not background), ``sam:MODEL`` (promptable: the best mask at the image's centre), or
``python:MODULE:FUNCTION``, which is such a function itself.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.parameters import optional
from cuebench.errors import UserError
from cuebench.stimuli.refined_bias.masks import BadSource, checked

Segmenter = Callable[[Array, str], Array]
_SIDE = 320
"""GrabCut works on a copy whose longer side has this many pixels."""


PLUGINS = {
    "hf": "cuebench.stimuli.masks.transformers:labelled",
    "sam": "cuebench.stimuli.masks.transformers:promptable",
}
"""Scheme → function that returns a segmenter for a model; imported when it is asked for."""


def segmenter(name: str) -> Segmenter:
    """Return a segmenter by name; see the module."""
    scheme, _, rest = name.partition(":")
    if scheme == "grabcut" and not rest:
        return grabcut
    if scheme in PLUGINS and rest:
        made: Segmenter = _imported(PLUGINS[scheme])(rest)
        return made
    if scheme == "python" and ":" in rest:
        found: Segmenter = _imported(rest)
        return found
    raise UserError(f"segmenter {name!r}", "accepted: grabcut, hf:MODEL, sam:MODEL or python:MODULE:FUNCTION")


def _imported(place: str) -> Any:
    module, _, function = place.partition(":")
    try:
        return getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise UserError(f"segmenter python:{place} cannot be loaded: {error}") from None


def grabcut(image: Array, label: str = "") -> Array:
    """Find the object in the middle of an image: GrabCut from a centred rectangle, the largest piece, holes filled.

    Parameters
    ----------
    image : uint8 array H×W×3
        A photograph with one object that does not touch the border.
    label : str
        Not used; every segmenter is given the class.
    """
    cv2 = optional("cv2", "the segmenter 'grabcut'")
    height, width = image.shape[:2]
    scale = min(1.0, _SIDE / max(height, width))
    small = cv2.resize(
        image, (max(8, round(width * scale)), max(8, round(height * scale))), interpolation=cv2.INTER_AREA
    )
    rows, columns = small.shape[:2]
    edge = max(1, round(0.04 * min(rows, columns)))
    cv2.setRNGSeed(0)
    marks, models = np.zeros((rows, columns), np.uint8), np.zeros((2, 1, 65))
    box = (edge, edge, columns - 2 * edge, rows - 2 * edge)
    cv2.grabCut(np.ascontiguousarray(small), marks, box, models[0], models[1], 6, cv2.GC_INIT_WITH_RECT)
    found = (marks == cv2.GC_FGD) | (marks == cv2.GC_PR_FGD)
    large = cv2.resize(_largest(found).astype(np.float32), (width, height), interpolation=cv2.INTER_LINEAR)
    return checked(large > 0.5)


def _largest(found: Array) -> Array:
    from scipy.ndimage import binary_fill_holes, binary_opening, label

    parts, count = label(binary_opening(found))
    if not count:
        raise BadSource("the segmenter found no object")
    return np.asarray(binary_fill_holes(parts == 1 + np.bincount(parts.ravel())[1:].argmax()))
