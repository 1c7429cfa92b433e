"""Object masks for images that come without: GrabCut (no weights needed), Hugging Face models, or your own function.

A segmenter is a function ``segment(image, label) -> mask`` (uint8 H×W×3 and the name of the class → bool H×W).
``segmenter`` returns one by name:

- ``grabcut``;
- ``hf:MODEL``: semantic, instance or panoptic segmentation; the segment whose label is the class, else the largest that
  is not background;
- ``sam:MODEL``: promptable; the best mask at the image's centre;
- ``grounded:DETECTOR+SAM``: found by the name of the class (Grounding DINO), then segmented in its box;
- ``python:MODULE:FUNCTION`` or ``python:FILE.py:FUNCTION``: such a function of your own.
"""

from __future__ import annotations

import importlib
from types import ModuleType

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.parameters import optional
from cuebench.errors import MissingExtra, UserError
from cuebench.python_files import load_file
from cuebench.registry import SCHEME
from cuebench.stimuli.masks.base import BadSource, Segmenter, checked

_SIDE = 320
"""GrabCut works on a copy whose longer side has this many pixels."""
_SMALLEST = 0.05
"""A guessed object covers more than this part of the image."""


def segmenter(name: str) -> Segmenter:
    """Return a segmenter by name; see the module."""
    scheme, _, rest = name.partition(":")
    if scheme == "grabcut" and not rest:
        return grabcut
    if scheme == "hf" and rest:
        from cuebench.stimuli.masks.transformers import labelled

        return labelled(rest)
    if scheme == "sam" and rest:
        from cuebench.stimuli.masks.sam import promptable

        return promptable(rest)
    if scheme == "grounded" and rest:
        from cuebench.stimuli.masks.grounded import grounded

        return grounded(rest)
    if name.startswith(SCHEME) and ":" in rest:
        return _own_function(rest)
    raise UserError(
        f"segmenter {name!r}", "accepted: grabcut, hf:MODEL, sam:MODEL, grounded:DETECTOR+SAM or python:MODULE:FUNCTION"
    )


def _own_function(place: str) -> Segmenter:
    """Return the user's function from ``MODULE:FUNCTION`` or ``FILE.py:FUNCTION``."""
    module, _, name = place.rpartition(":")
    try:
        loaded = load_file(module) if module.endswith(".py") else importlib.import_module(module)
        function: Segmenter = getattr(loaded, name)
    except (ImportError, AttributeError) as error:
        raise UserError(f"segmenter python:{place} cannot be loaded: {error}") from None
    return function


def grabcut(image: Array, label: str = "") -> Array:
    """Segment the object in the middle of an image: GrabCut from a centred rectangle, largest piece, holes filled.

    Parameters
    ----------
    image : uint8 array H×W×3
        A photograph with one object that does not touch the border.
    label : str
        Not used; every segmenter is called with the class.

    Raises
    ------
    BadSource
        No object was found.
    """
    cv2 = optional("cv2", "the segmenter 'grabcut'")
    height, width = image.shape[:2]
    scale = min(1.0, _SIDE / max(height, width))
    small = cv2.resize(
        image, (max(8, round(width * scale)), max(8, round(height * scale))), interpolation=cv2.INTER_AREA
    )
    rows, columns = small.shape[:2]
    edge = max(1, round(0.04 * min(rows, columns)))
    marks = np.full((rows, columns), cv2.GC_BGD, np.uint8)
    marks[edge : rows - edge, edge : columns - edge] = cv2.GC_PR_FGD
    mask = _largest_piece(_foreground(cv2, small, marks, rounds=6), opening=1)
    if mask is None:
        raise BadSource("the segmenter found no object")
    large = cv2.resize(mask.astype(np.float32), (width, height), interpolation=cv2.INTER_LINEAR)
    return checked(large > 0.5)


def guess_mask(image: Array) -> Array:
    """Guess the object in the middle of a colour image, for pictures that show what a cue does.

    GrabCut from a centred disc, so that the object may touch the border. The disc itself where GrabCut is not installed
    or finds nothing.
    """
    height, width = image.shape[:2]
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    disc: Array = y**2 + x**2 < 0.6
    try:
        cv2 = optional("cv2", "guessing an object mask")
    except MissingExtra:
        return disc
    marks = np.where(disc, cv2.GC_PR_FGD, cv2.GC_PR_BGD).astype(np.uint8)
    marks[(np.abs(y) > 0.97) | (np.abs(x) > 0.97)] = cv2.GC_BGD
    marks[y**2 + x**2 < 0.05] = cv2.GC_FGD
    mask = _largest_piece(_foreground(cv2, image, marks, rounds=5), opening=2)
    return disc if mask is None or mask.mean() <= _SMALLEST else mask


def _foreground(cv2: ModuleType, image: Array, marks: Array, rounds: int) -> Array:
    """Run GrabCut from marks of certain and probable fore- and background; the same result each time."""
    cv2.setRNGSeed(0)
    models = np.zeros((2, 1, 65))
    cv2.grabCut(np.ascontiguousarray(image), marks, None, models[0], models[1], rounds, cv2.GC_INIT_WITH_MASK)
    return (marks == cv2.GC_FGD) | (marks == cv2.GC_PR_FGD)


def _largest_piece(mask: Array, opening: int) -> Array | None:
    """Return the largest connected piece of an opened mask, its holes filled; None where nothing is left."""
    from scipy.ndimage import binary_fill_holes, binary_opening, label

    pieces, count = label(binary_opening(mask, iterations=opening))
    if not count:
        return None
    return np.asarray(binary_fill_holes(pieces == 1 + np.bincount(pieces.ravel())[1:].argmax()))
