"""Channel shuffle: red, green and blue exchanged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, Rng, Tolerance, on_images
from cuebench.errors import UserError

ORDERS = ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
"""The five orders that change something."""

CUE = CueInfo(
    kind="suppression",
    reference="Burgert et al. 2025 (suppression of colour)",
    random=True,
    identity={"order": (0, 1, 2)},
    levels={"order": ORDERS},
    device=Tolerance(),
)


def channel_shuffle(image: Any, *, order: Sequence[int] | None = None, rng: Rng = 0) -> Array:
    """Exchange the colour channels.

    Shape and texture stay, colours become wrong. A grey image comes back as it is.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    order : sequence of int, optional
        Which channel becomes red, green, blue; ``(0, 1, 2)`` is the identity. Default: one of the five other
        orders, drawn for each image.
    rng : int, Generator, sequence of int, or None
        Seed, the same for each image; or one seed for each image.

    Returns
    -------
    array

    References
    ----------
    .. [1] T. Burgert et al., "ImageNet-trained CNNs are not biased towards texture", 2025.
    """
    if order is not None and sorted(order) != [0, 1, 2]:
        raise UserError(f"order is {order!r}", "accepted: 0, 1 and 2 in any order, or None")

    def chosen(rng: np.random.Generator) -> list[int]:
        return list(ORDERS[rng.integers(len(ORDERS))] if order is None else order)

    def kernel(pixels: Array, *, rng: np.random.Generator) -> Array:
        return pixels if pixels.shape[2] == 1 else pixels[..., chosen(rng)]

    def on_device(images: Any, *, rng: Any) -> Any:
        from cuebench.cues.on_device import per_image

        if images.shape[-1] == 1:
            return images
        orders = per_image(chosen, rng, images.device)
        return images.gather(3, orders[:, None, None].expand(images.shape))

    return on_images(kernel, image, random=True, rng=rng, raw=True, on_device=on_device)
