"""Corruption: the amplitude spectrum replaced by a common one, phases kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo, Tolerance, as_batch, on_images
from cuebench.cues.grey import as_grey, luminance
from cuebench.cues.parameters import check_number
from cuebench.errors import UserError

CUE = CueInfo(
    kind="corruption",
    reference="Geirhos et al. 2018",
    device=Tolerance(1, 1e-3),
)


def power_equalisation(image: Any, *, spectrum: Any = None, exponent: float = 1.0, keep_colour: bool = False) -> Array:
    r"""Give the image the amplitude spectrum of a whole set of images.

    :math:`\mathrm{out} = \mathrm{clip}\,\mathrm{Re}\,\mathcal F^{-1}\left(A\, e^{i\arg F}\right)`

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C; uint8 or float in [0, 1].
    spectrum : array, optional
        The common amplitudes :math:`A`, H×W in the order of ``numpy.fft.fft2``, e.g. from `mean_spectrum`; the
        published study took the mean over all its images.
        Default: :math:`A \propto 1/f^\mathrm{exponent}`, the form of natural images, with the image's own mean and
        variance.
    exponent : float
        Fall of the default spectrum, ≥ 0. 0: white; 1: natural; larger: smoother.
    keep_colour : bool
        Keep the colours, with the same amplitudes in all channels; the published stimuli are grey.

    Returns
    -------
    array

    References
    ----------
    .. [1] R. Geirhos et al., "Generalisation in humans and deep neural networks", NeurIPS 2018.
    """
    check_number("exponent", exponent, low=0)
    common = None if spectrum is None else np.asarray(spectrum, dtype=np.float64)
    if common is not None and (common.ndim != 2 or not np.isfinite(common).all() or (common < 0).any()):
        raise UserError(f"spectrum has shape {common.shape}", "accepted: H×W finite amplitudes ≥ 0")

    def kernel(pixels: Array) -> Array:
        grey = as_grey(pixels, keep_colour).astype(np.float64)
        transform = np.fft.fft2(grey, axes=(0, 1))
        if common is None:
            amplitude = _natural(transform, exponent)
        else:
            _check_size(common, grey.shape[:2])
            amplitude = common[..., None]
        return np.fft.ifft2(amplitude * np.exp(1j * np.angle(transform)), axes=(0, 1)).real

    def on_device(images: Any) -> Any:
        return _equalised_on_device(as_grey(images, keep_colour), common, exponent)

    return on_images(kernel, image, on_device=on_device)


def mean_spectrum(images: Iterable[Any]) -> Array:
    """Return the mean amplitude spectrum (H×W, in the order of ``fft2``) of the luminance of equal-sized images."""
    total, count = np.zeros(()), 0
    for image in images:
        for pixels in as_batch(image)[0]:
            amplitude = np.abs(np.fft.fft2(luminance(pixels)[..., 0].astype(np.float64)))
            if count and amplitude.shape != total.shape:
                raise UserError(
                    f"image {count} has size {amplitude.shape}, the first {total.shape}", "resize them first"
                )
            total, count = total + amplitude, count + 1
    if not count:
        raise UserError("mean_spectrum received no images", "accepted: one or more images of equal size")
    return total / count


def _natural(transform: Array, exponent: float) -> Array:
    """Return amplitudes ∝ f^−exponent with the mean and the variance of each channel."""
    shape = _fall(transform.shape[:2], exponent)[..., None]
    power = (np.abs(transform) ** 2).sum(axis=(0, 1)) - np.abs(transform[0, 0]) ** 2
    amplitude = shape * np.sqrt(np.maximum(power, 0) / max(float((shape**2).sum()), 1e-12))
    amplitude[0, 0] = np.abs(transform[0, 0])
    return amplitude


def _fall(size: tuple[int, ...], exponent: float) -> Array:
    """Return f^−exponent, 0 for the mean."""
    height, width = size
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)[None, :])
    frequency[0, 0] = np.inf if exponent else 1.0
    shape: Array = frequency**-exponent
    shape[0, 0] = 0
    return shape


def _check_size(common: Array, size: tuple[int, ...]) -> None:
    if common.shape != tuple(size):
        raise UserError(f"spectrum has shape {common.shape}, the image {size}", "compute it at the image's size")


def _equalised_on_device(grey: Any, common: Array | None, exponent: float) -> Any:
    import torch

    from cuebench.cues.on_device import precise, to_device

    transform = torch.fft.fft2(grey.to(precise(grey.device)).movedim(-1, 1))
    size = tuple(grey.shape[1:3])
    if common is not None:
        _check_size(common, size)
        amplitude = to_device(common, grey.device).expand(transform.shape)
    else:
        shape = to_device(_fall(size, exponent), grey.device)
        own = transform.abs()
        power = (own**2).sum((-2, -1), keepdim=True) - own[..., :1, :1] ** 2
        amplitude = shape * torch.sqrt(power.clamp(min=0) / (shape**2).sum().clamp(min=1e-12))
        amplitude[..., 0, 0] = own[..., 0, 0]
    return torch.fft.ifft2(torch.polar(amplitude.contiguous(), transform.angle())).real.movedim(1, -1)
