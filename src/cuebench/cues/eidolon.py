"""Corruption: eidolon, the layers of a scale space displaced by random smooth fields."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, Rng, Tolerance, on_images
from cuebench.cues.grey import as_grey
from cuebench.cues.parameters import check_number

REACHES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
COHERENCES = (1.0, 0.3, 0.0)
GRAIN = 10.0

CUE = CueInfo(
    kind="corruption",
    reference="Koenderink et al. 2017; Geirhos et al. 2018",
    random=True,
    identity={"reach": 0, "keep_colour": True},
    levels={"reach": REACHES, "coherence": COHERENCES, "grain": (GRAIN,)},
    device=Tolerance(1, 2e-3),
)


def eidolon(
    image: Any,
    *,
    reach: float = 8.0,
    coherence: float = 1.0,
    grain: float = GRAIN,
    keep_colour: bool = False,
    rng: Rng = 0,
) -> Array:
    r"""Disturb where things are, in each layer of the image's scale space ("partially coherent disarray").

    The image is split into differences of Gaussians :math:`L_k = G_{\sigma_k}*I - G_{\sigma_{k+1}}*I` with
    :math:`\sigma_0 = 0`, :math:`\sigma_k = 2^{(k-1)/2}`, and a rest. Each layer is displaced,

    .. math:: \mathrm{out}(x) = \sum_k L_k(x + r\,d_k(x)), \qquad
        d_k = \frac{c\,e + (1-c)\,e_k}{\sqrt{c^2 + (1-c)^2}},

    by fields of independent standard normal numbers smoothed to width `grain` and brought to unit variance: one
    field :math:`e` shared by all layers, and one of its own, :math:`e_k`, for each.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    reach : float
        :math:`r` ≥ 0, standard deviation of the displacement along each axis, in pixels. 0: unchanged.
        Published: 1, 2, 4, …, 128.
    coherence : float
        :math:`c` in [0, 1]. 1: all layers move together and edges stay sharp; 0: each for itself, which
        dissolves edges too. Published: 1, .3, 0.
    grain : float
        Width of the displacement fields in pixels, > 0; small values shatter, large ones bend. Published: 10.
    keep_colour : bool
        Keep the colours, displaced alike; the published stimuli are grey.
    rng : int, Generator, sequence of int, or None
        Seed, the same for each image; or one seed for each image.

    Returns
    -------
    array

    Notes
    -----
    Written from the description of the method. The published stimuli were made with the authors' Eidolon Factory,
    which draws and scales its fields differently: levels are comparable, pixels are not.

    References
    ----------
    .. [1] J. Koenderink et al., "Eidolons: novel stimuli for vision research", Journal of Vision 17, 2017.
    .. [2] R. Geirhos et al., "Generalisation in humans and deep neural networks", NeurIPS 2018.
    """
    check_number("reach", reach, low=0)
    check_number("coherence", coherence, low=0, high=1)
    check_number("grain", grain, above=0)

    def kernel(pixels: Array, *, rng: np.random.Generator) -> Array:
        grey = as_grey(pixels, keep_colour)
        if reach == 0:
            return grey
        size = (2, *grey.shape[:2])
        shared = _smooth_noise(size, grain, rng)
        if coherence == 1:
            # All layers move alike, and they sum to the image.
            return _displaced(grey, reach * shared)
        total = np.zeros(grey.shape)
        for layer in _layers(grey.astype(np.float64)):
            field = coherence * shared + (1 - coherence) * _smooth_noise(size, grain, rng)
            total += _displaced(layer, reach * field / np.hypot(coherence, 1 - coherence))
        return total

    def on_device(images: Any, *, rng: Any) -> Any:
        return _disarray(as_grey(images, keep_colour), reach, coherence, grain, rng)

    return on_images(kernel, image, random=True, rng=rng, on_device=on_device)


def _layers(image: Array) -> list[Array]:
    """Split an H×W×C image into layers that sum to it, half an octave each, up to a quarter of its size."""
    space = [image, *(_gaussian(image, sigma) for sigma in _sigmas(*image.shape[:2]))]
    return [fine - coarse for fine, coarse in pairwise(space)] + [space[-1]]


def _sigmas(height: int, width: int) -> list[float]:
    levels = max(1, int(2 * np.log2(max(max(height, width) / 4, 1))) + 1)
    return [2 ** (k / 2) for k in range(levels)]


def _gaussian(array: Array, sigma: float, axes: tuple[int, ...] = (0, 1)) -> Array:
    """Blur with mirrored borders, in time that does not depend on sigma (cosine transform)."""
    from scipy.fft import dctn, idctn

    spectrum = dctn(array, axes=axes)
    for axis in axes:
        length = array.shape[axis]
        weight = np.exp(-0.5 * (sigma * np.pi * np.arange(length) / length) ** 2)
        spectrum *= weight.reshape([-1 if a == axis else 1 for a in range(array.ndim)])
    return idctn(spectrum, axes=axes)


def _smooth_noise(size: tuple[int, int, int], grain: float, rng: np.random.Generator) -> Array:
    """Return two fields (down, right) of smooth noise with standard deviation 1 over the image."""
    field = _gaussian(rng.standard_normal(size), grain, axes=(1, 2))
    spread = np.sqrt((field**2).mean())
    return field / max(float(spread), 1e-12)


def _displaced(layer: Array, field: Array) -> Array:
    from scipy.ndimage import map_coordinates

    where = np.indices(layer.shape[:2]) + field
    planes = [map_coordinates(layer[..., c], where, order=1, mode="mirror") for c in range(layer.shape[2])]
    return np.stack(planes, axis=-1)


# ------------------------------------------------------------------------------------------------ on a device


@lru_cache(maxsize=64)
def _matrix(length: int, sigma: float) -> Array:
    """Return `_gaussian` along one axis as a matrix."""
    return _gaussian(np.eye(length), sigma, axes=(0,))


def _disarray(grey: Any, reach: float, coherence: float, grain: float, rngs: Any) -> Any:
    """Displace the layers of a tensor N×H×W×C."""
    from cuebench.cues.on_device import filtered, precise

    if reach == 0:
        return grey
    size = tuple(grey.shape[1:3])
    grey = grey.to(precise(grey.device))
    shared = _noise_on_device(size, grain, rngs, grey.device)
    if coherence == 1:
        return _displaced_on_device(grey, reach * shared)
    space = [grey, *(filtered(grey, _matrix(size[0], s), _matrix(size[1], s)) for s in _sigmas(*size))]
    total = 0.0
    for layer in [fine - coarse for fine, coarse in pairwise(space)] + [space[-1]]:
        field = coherence * shared + (1 - coherence) * _noise_on_device(size, grain, rngs, grey.device)
        total = total + _displaced_on_device(layer, reach * field / np.hypot(coherence, 1 - coherence))
    return total


def _noise_on_device(size: tuple[int, ...], grain: float, rngs: Any, device: Any) -> Any:
    """Return `_smooth_noise` of each image, N×H×W×2."""
    from cuebench.cues.on_device import filtered, normal

    drawn = normal(rngs, (2, *size), device).movedim(1, -1)
    field = filtered(drawn, _matrix(size[0], grain), _matrix(size[1], grain))
    return field / (field**2).mean((1, 2, 3), keepdim=True).sqrt().clamp(min=1e-12)


def _displaced_on_device(layer: Any, field: Any) -> Any:
    import torch

    from cuebench.cues.on_device import sampled

    places = []
    for axis in (0, 1):
        length = layer.shape[1 + axis]
        where = torch.arange(length, device=layer.device).reshape((-1, 1) if axis == 0 else (1, -1))
        period = max(1, 2 * length - 2)
        folded = (where + field[..., axis]).abs() % period if length > 1 else field[..., axis] * 0
        places.append(torch.where(folded > length - 1, period - folded, folded))
    return sampled(layer, *places)
