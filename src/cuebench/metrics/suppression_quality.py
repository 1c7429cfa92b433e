"""How much a suppression takes away: local variance, high frequencies and gradients, relative to the original."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError

_LUMINANCE = np.array([0.2125, 0.7154, 0.0721])


PUBLISHED_WINDOW = 11
"""Side of the window, and radius in the spectrum, of the authors."""


class SuppressionQuality(NamedTuple):
    """The three measures of one pair of images; 1, 1, 1 for an unchanged image."""

    local_variance: float
    """Mean local variance over that of the original: 0 = all texture gone."""
    high_frequency: float
    """High-frequency energy ratio over that of the original: 0 = all fine detail gone."""
    gradient_correlation: float
    """Correlation of the gradients with those of the original: 1 = edges kept, 0 = unrelated."""


def suppression_quality(
    original: Any, suppressed: Any, *, mode: str = "faithful", window: int = 7, cutoff: float = 0.25
) -> SuppressionQuality:
    """Compare an image with its suppressed version.

    A good suppression of texture lowers the first two numbers and keeps the third near 1; a good suppression of
    shape does the reverse.

    Parameters
    ----------
    original, suppressed : array
        Two images of the same shape, H×W or H×W×C; uint8, or float in [0, 1].
    mode : {"faithful", "corrected"}
        As the authors' code measures: variance in all windows of 11 × 11 that lie inside the image, share of the
        spectral power (with the mean) at a radius of 11 or more, mean of the correlations of the two gradient
        components. Or with the functions below: mirrored borders, frequencies in cycles per pixel without the mean,
        gradient magnitudes.
    window : int
        Side of the window of `mean_local_variance`, corrected.
    cutoff : float
        Border of `high_frequency_ratio`, corrected.

    Returns
    -------
    SuppressionQuality
        A ratio whose denominator is 0 (a constant original) is NaN.
    """
    first, second = _plane(original, "original"), _plane(suppressed, "suppressed")
    if first.shape != second.shape:
        raise UserError(f"original has size {first.shape}, suppressed {second.shape}", "accepted: the same size")
    if mode == "faithful":
        return SuppressionQuality(
            _ratio(_inner_variance(second), _inner_variance(first)),
            _ratio(_outer_power(second), _outer_power(first)),
            _component_correlation(first, second),
        )
    if mode != "corrected":
        raise UserError(f"mode is {mode!r}", "accepted: 'faithful', 'corrected'")
    return SuppressionQuality(
        _ratio(mean_local_variance(second, window=window), mean_local_variance(first, window=window)),
        _ratio(high_frequency_ratio(second, cutoff=cutoff), high_frequency_ratio(first, cutoff=cutoff)),
        gradient_correlation(first, second),
    )


def _inner_variance(plane: Array) -> float:
    """Return the mean variance in all windows of 11 × 11 that lie inside the image."""
    from scipy.ndimage import uniform_filter

    side = min(PUBLISHED_WINDOW, *plane.shape)
    plane = plane - plane.mean()
    variance = uniform_filter(plane**2, side) - uniform_filter(plane, side) ** 2
    # The window around a pixel reaches side // 2 before it, and one pixel less behind it where the side is even.
    height, width = (n - side + 1 for n in plane.shape)
    inner = variance[side // 2 : side // 2 + height, side // 2 : side // 2 + width]
    return float(np.maximum(inner, 0).mean())


def _outer_power(plane: Array) -> float:
    """Return the share of the spectral power, with the mean, at a radius of 11 or more."""
    power = np.abs(np.fft.fft2(plane)) ** 2
    rows, columns = (np.fft.fftfreq(n, 1 / n) for n in plane.shape)
    outer = rows[:, None] ** 2 + columns[None, :] ** 2 >= PUBLISHED_WINDOW**2
    total = float(power.sum())
    return float(power[outer].sum()) / total if total > 0 else 0.0


def _component_correlation(first: Array, second: Array) -> float:
    """Return the mean of Pearson's correlations of the vertical and of the horizontal differences."""
    components = zip(np.gradient(first), np.gradient(second))
    return float(np.mean([_pearson(a.ravel(), b.ravel()) for a, b in components]))


def mean_local_variance(image: Any, *, window: int = 7) -> float:
    r"""Return the mean over all pixels of the luminance's variance in a window around each.

    :math:`\frac1{HW}\sum_x \left(\overline{Y^2}_{w(x)} - \overline Y_{w(x)}^2\right)`, with mirrored borders.

    Parameters
    ----------
    image : array
        H×W or H×W×C; uint8, or float in [0, 1].
    window : int
        Side of the window in pixels, ≥ 1 (1: always 0).
    """
    from scipy.ndimage import uniform_filter

    if window < 1:
        raise UserError(f"window is {window}", "accepted: a whole number ≥ 1")
    plane = _plane(image, "image")
    # Variance does not depend on the mean; without it, less is lost to round-off.
    plane = plane - plane.mean()
    variance = uniform_filter(plane**2, window) - uniform_filter(plane, window) ** 2
    return float(np.maximum(variance, 0).mean())


def high_frequency_ratio(image: Any, *, cutoff: float = 0.25) -> float:
    r"""Return the part of the luminance's energy at high spatial frequencies.

    :math:`\sum_{f > c}\lvert F\rvert^2 / \sum_{f > 0}\lvert F\rvert^2` with :math:`f` the distance from zero
    frequency in cycles per pixel; the mean (f = 0) is left out. 0 for a constant image.

    Parameters
    ----------
    image : array
        H×W or H×W×C; uint8, or float in [0, 1].
    cutoff : float
        :math:`c` in (0, 0.5]: 0.25 is half the highest frequency along an axis.
    """
    if not 0 < cutoff <= 0.5:
        raise UserError(f"cutoff is {cutoff}", "accepted: cycles per pixel in (0, 0.5]")
    plane = _plane(image, "image")
    energy = np.abs(np.fft.fft2(plane - plane.mean())) ** 2
    energy[0, 0] = 0
    frequency = np.hypot(np.fft.fftfreq(plane.shape[0])[:, None], np.fft.fftfreq(plane.shape[1])[None, :])
    total = float(energy.sum())
    # What round-off leaves of a constant image is no energy.
    return float(energy[frequency > cutoff].sum()) / total if total > 1e-12 * plane.size else 0.0


def gradient_correlation(original: Any, suppressed: Any) -> float:
    r"""Return Pearson's correlation of the two images' gradient magnitudes :math:`\lVert\nabla Y\rVert` (Sobel).

    Parameters
    ----------
    original, suppressed : array
        H×W or H×W×C; uint8, or float in [0, 1].

    Returns
    -------
    float
        In [−1, 1]; NaN where one of the images has the same gradient everywhere (e.g. a constant image).
    """
    return _pearson(*(_gradient(_plane(image, "image")).ravel() for image in (original, suppressed)))


def _pearson(first: Array, second: Array) -> float:
    first, second = first - first.mean(), second - second.mean()
    scale = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second) / scale if scale > 1e-12 * first.size else float("nan")


def _gradient(plane: Array) -> Array:
    from scipy.ndimage import sobel

    return np.hypot(sobel(plane, 0), sobel(plane, 1)) / 8


def _plane(image: Any, name: str) -> Array:
    """Return the luminance as H×W float64 in [0, 1]."""
    array = np.asarray(image)
    if array.ndim not in (2, 3) or array.size == 0 or (array.ndim == 3 and array.shape[2] not in (1, 3)):
        raise UserError(f"{name} has shape {array.shape}", "accepted: H×W, H×W×1 or H×W×3")
    plane = array.astype(np.float64) / (255 if array.dtype == np.uint8 else 1)
    if not np.isfinite(plane).all():
        raise UserError(f"{name} has values that are not finite", "accepted: uint8, or floats in [0, 1]")
    if plane.ndim == 2:
        return plane
    return plane[..., 0] if plane.shape[2] == 1 else plane @ _LUMINANCE


def _ratio(value: float, reference: float) -> float:
    return value / reference if reference > 0 else float("nan")
