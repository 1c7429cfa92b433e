"""Corruption: random shifts of the Fourier phases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, Rng, Tolerance, on_images
from cuebench.cues.grey import as_grey
from cuebench.cues.parameters import check_choice, check_number

WIDTHS = (0.0, 30.0, 60.0, 90.0, 120.0, 150.0, 180.0)
MODES = ("faithful", "corrected")

CUE = CueInfo(
    kind="corruption",
    reference="Geirhos et al. 2018",
    random=True,
    identity={"width": 0, "keep_colour": True},
    levels={"width": WIDTHS, "mode": MODES},
    device=Tolerance(1, 1e-3),
)


def phase_noise(
    image: Any, *, width: float = 90.0, mode: str = "faithful", keep_colour: bool = False, rng: Rng = 0
) -> Array:
    r"""Shift the phase of each spatial frequency by a random angle.

    .. math:: \mathrm{out} = \mathrm{clip}\,\mathrm{Re}\,
        \mathcal F^{-1}\left(\lvert F\rvert\, e^{i(\arg F + \varphi)}\right), \qquad \varphi \sim U(-w, w)

    A real image needs opposite shifts at opposite frequencies, :math:`\varphi(-k) = -\varphi(k)`.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    width : float
        :math:`w` in degrees, [0, 180]. 0: unchanged; 180: no phase left, only the amplitude spectrum.
        Published: 0, 30, 60, 90, 120, 150, 180.
    mode : {"faithful", "corrected"}
        ``"faithful"``: as published. The shifts of the second half of the (centred, row by row) spectrum are the
        negatives of those of the first half in the *same* order, where the opposite frequencies come in
        *reverse* order; the inverse transform is then complex, its imaginary part is dropped, and power is
        lost. The first row and column of the centred spectrum are left alone. ``"corrected"``: opposite
        shifts at opposite frequencies, for all of them; the result is real by itself.
    keep_colour : bool
        Keep the colours, with the same shifts in all channels; the published stimuli are grey.
    rng : int, Generator, sequence of int, or None
        Seed, the same for each image; or one seed for each image.

    Returns
    -------
    array

    References
    ----------
    .. [1] R. Geirhos et al., "Generalisation in humans and deep neural networks", NeurIPS 2018.
    """
    check_number("width", width, low=0, high=180)
    check_choice("mode", mode, MODES)
    draw = published_shifts if mode == "faithful" else antisymmetric_shifts

    def kernel(pixels: Array, *, rng: np.random.Generator) -> Array:
        grey = as_grey(pixels, keep_colour).astype(np.float64)
        shifts = draw(grey.shape[0], grey.shape[1], np.deg2rad(width), rng)
        return noisy(grey, shifts).real

    def on_device(images: Any, *, rng: Any) -> Any:
        arrange = _published_on_device if mode == "faithful" else _antisymmetric_on_device
        return _noisy_on_device(as_grey(images, keep_colour), arrange, np.deg2rad(width), rng)

    return on_images(kernel, image, random=True, rng=rng, on_device=on_device)


def noisy(image: Array, shifts: Array) -> Array:
    """Return the (complex) image whose Fourier phases are shifted."""
    spectrum = np.fft.fft2(image, axes=(0, 1))
    return np.fft.ifft2(spectrum * np.exp(1j * shifts)[..., None], axes=(0, 1))


def antisymmetric_shifts(height: int, width: int, limit: float, rng: np.random.Generator) -> Array:
    """Return uniform shifts with φ(−k) = −φ(k), 0 where k = −k."""
    number = np.arange(height * width).reshape(height, width)
    opposite = number[-np.arange(height) % height][:, -np.arange(width) % width]
    drawn = rng.uniform(-limit, limit, size=(height, width))
    mirrored = drawn.reshape(-1)[opposite]
    return np.where(number < opposite, drawn, np.where(number > opposite, -mirrored, 0.0))


def published_shifts(height: int, width: int, limit: float, rng: np.random.Generator) -> Array:
    """Return the published shifts: the second half repeats the first with the other sign, not mirrored."""
    centred = np.zeros((height, width))
    count = (height - 1) * (width - 1)
    drawn = rng.uniform(-limit, limit, size=count // 2)
    middle = np.zeros(count % 2)
    centred[1:, 1:] = np.concatenate([drawn, middle, -drawn]).reshape(height - 1, width - 1)
    return np.fft.ifftshift(centred)


def _noisy_on_device(grey: Any, arrange: Callable[..., Any], limit: float, rngs: Any) -> Any:
    """Return the real part of `noisy` for a tensor N×H×W×C."""
    import torch

    from cuebench.cues.on_device import precise

    shifts = arrange(*grey.shape[1:3], limit, rngs, grey.device)
    planes = grey.to(precise(grey.device)).movedim(-1, 1)
    turned = torch.fft.fft2(planes) * torch.polar(torch.ones_like(shifts), shifts)[:, None]
    return torch.fft.ifft2(turned).real.movedim(1, -1)


def _antisymmetric_on_device(height: int, width: int, limit: float, rngs: Any, device: Any) -> Any:
    import torch

    from cuebench.cues.on_device import uniform

    number = torch.arange(height * width, device=device).reshape(height, width)
    opposite = number.flip(0, 1).roll((1, 1), (0, 1))
    drawn = uniform(rngs, (height, width), device) * (2 * limit) - limit
    mirrored = drawn.reshape(len(drawn), -1)[:, opposite]
    return torch.where(number < opposite, drawn, torch.where(number > opposite, -mirrored, 0.0))


def _published_on_device(height: int, width: int, limit: float, rngs: Any, device: Any) -> Any:
    import torch

    from cuebench.cues.on_device import uniform

    count = (height - 1) * (width - 1)
    drawn = uniform(rngs, (count // 2,), device) * (2 * limit) - limit
    centred = drawn.new_zeros(len(drawn), height, width)
    middle = drawn.new_zeros(len(drawn), count % 2)
    centred[:, 1:, 1:] = torch.cat([drawn, middle, -drawn], 1).reshape(len(drawn), height - 1, width - 1)
    return torch.fft.ifftshift(centred, dim=(1, 2))
