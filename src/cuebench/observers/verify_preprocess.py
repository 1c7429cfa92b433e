"""Check that our ``Preprocess`` and a library's transform turn an image into the same input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

from cuebench.errors import UserError
from cuebench.observers.preprocess import Preprocess

TOLERANCE = 1e-5
"""In units of the normalised pixel; one grey level is at least 0.004."""


def same_input(preprocess: Preprocess, theirs: Callable[[Image.Image], Any], what: str) -> Preprocess:
    """Return ``preprocess`` if it agrees with the library's transform on test images; refuse otherwise.

    Parameters
    ----------
    preprocess : Preprocess
        Our translation of the library's configuration.
    theirs : callable
        The library's transform, image → 3×H×W.
    what : str
        Whose transform, for the message.
    """
    for image in _test_images(preprocess.hw):
        ours, expected = preprocess.apply(image), np.asarray(theirs(image), dtype=np.float32)
        if ours.shape != expected.shape:
            raise _refusal(what, preprocess, f"its transform gives {expected.shape}, ours {ours.shape}")
        largest = float(np.abs(ours - expected).max())
        if not largest <= TOLERANCE:
            raise _refusal(what, preprocess, f"they differ by up to {largest:.3g} on a test image")
    return preprocess


def _refusal(what: str, preprocess: Preprocess, why: str) -> UserError:
    return UserError(
        f"the preprocessing of {what} cannot be expressed exactly as [{preprocess}]: {why}",
        "load the model yourself and pass cuebench.wrap(model, preprocess=cuebench.Preprocess(…)) "
        "if an approximation is good enough for you",
    )


def _test_images(size: tuple[int, int]) -> list[Image.Image]:
    # Odd borders, both orientations, one image larger and one smaller than the input.
    rng = np.random.default_rng(0)
    height, width = size
    shapes = [(height + 93, width + 160), (height * 2 // 3 + 90, width // 2 + 61)]
    return [Image.fromarray(rng.integers(0, 256, (*shape, 3), dtype=np.uint8)) for shape in shapes]
