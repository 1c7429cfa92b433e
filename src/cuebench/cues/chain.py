"""Several cues one after the other, e.g. the pairs of suppressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

from cuebench import registry
from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, Rng, on_images
from cuebench.errors import UserError

SUPPRESSIONS: Mapping[str, tuple[str, ...]] = {
    "shape": ("patch_shuffle", "patch_rotation"),
    "texture": ("bilateral", "gaussian_blur", "non_local_means"),
    "colour": ("greyscale", "channel_shuffle"),
}
"""What each suppression takes away."""

PAIRS = tuple(pair for first, second in combinations(SUPPRESSIONS.values(), 2) for pair in product(first, second))
"""The pairs that take away two kinds of information."""

Step = str | tuple[str, Mapping[str, Any]]

CUE = CueInfo(
    kind="suppression",
    reference="Burgert et al. 2025 (pairs of suppressions)",
    random=True,
    identity={"cues": ()},
    moves_mask=True,
    levels={"cues": PAIRS},
)


def chain(
    image: Any, *, cues: Sequence[Step] = ("patch_shuffle", "gaussian_blur"), mask: Any = None, rng: Rng = 0
) -> Any:
    """Apply cues one after the other; floats are passed on, so nothing is rounded in between.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    cues : sequence of str or (str, mapping)
        Names of cues, or names with their keyword arguments. Empty: identity. Cues that need an object mask or a
        second image cannot be chained.
    mask : array, optional
        Label mask that is moved by those cues that move pixels.
    rng : int, Generator, sequence of int, or None
        Seed, the same for each image; or one seed for each image. Each step draws a seed from it.

    Returns
    -------
    array, or (array, array)
        The image; with ``mask=`` the image and the moved mask.

    Examples
    --------
    >>> import numpy as np
    >>> image = np.linspace(0, 1, 48).reshape(4, 4, 3)
    >>> both = chain(image, cues=["patch_shuffle", ("greyscale", {"alpha": 0.5})], rng=1)
    """
    if isinstance(cues, str) or not isinstance(cues, Sequence):
        raise UserError(f"cues is {cues!r}", "accepted: a sequence of cue names, or of (name, options)")
    steps = [_step(step) for step in cues]

    def kernel(pixels: Array, *, rng: np.random.Generator, labels: Array | None = None) -> Any:
        for function, options in steps:
            keywords = dict(options)
            if function.info.random:
                keywords["rng"] = int(rng.integers(2**63))
            if function.info.moves_mask and labels is not None:
                pixels, labels = function(pixels, mask=labels, **keywords)
            else:
                pixels = function(pixels, **keywords)
        return pixels if labels is None else (pixels, labels)

    return on_images(kernel, image, random=True, rng=rng, labels=mask)


def _step(step: Any) -> tuple[Any, Mapping[str, Any]]:
    """Return the function of a step and its keyword arguments."""
    name, options = (step, {}) if isinstance(step, str) else step
    function = registry.cues.get(name)
    if function.info.needs:
        needs = " and ".join(function.info.needs)
        raise UserError(f"the cue {name!r} needs {needs}", "chain only cues that need no further image")
    return function, options
