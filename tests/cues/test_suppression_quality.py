"""The three measures of a suppression."""

import math

import numpy as np
import pytest

from cuebench.cues import gaussian_blur, patch_shuffle
from cuebench.errors import UserError
from cuebench.metrics.suppression_quality import (
    gradient_correlation,
    high_frequency_ratio,
    mean_local_variance,
    suppression_quality,
)

IMAGE = np.random.default_rng(0).random((40, 48, 3))
GREY = IMAGE @ np.array([0.2125, 0.7154, 0.0721])


def test_an_unchanged_image_scores_one():
    assert suppression_quality(IMAGE, IMAGE) == pytest.approx((1, 1, 1))


def test_local_variance_is_the_mean_of_window_variances():
    wide = np.pad(GREY, 1, mode="symmetric")
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3))
    assert mean_local_variance(IMAGE, window=3) == pytest.approx(windows.var(axis=(2, 3)).mean())
    assert mean_local_variance(np.full((9, 9), 0.4)) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("cycles", "expected"), [(4, 0.0), (20, 1.0)])
def test_high_frequency_ratio_of_a_grating(cycles, expected):
    grating = 0.5 + 0.4 * np.cos(2 * np.pi * cycles * np.arange(64) / 64) * np.ones((64, 1))
    assert high_frequency_ratio(grating) == pytest.approx(expected, abs=1e-9)
    assert high_frequency_ratio(np.full((8, 8), 0.3)) == 0


def test_gradient_correlation_does_not_depend_on_contrast():
    assert gradient_correlation(IMAGE, 0.2 + 0.5 * IMAGE) == pytest.approx(1)
    assert math.isnan(gradient_correlation(IMAGE, np.zeros_like(IMAGE)))


def test_blur_and_shuffle_are_told_apart():
    y, x = np.mgrid[:64, :64]
    scene = np.where((y - 30) ** 2 + (x - 34) ** 2 < 400, 0.8, 0.2) + 0.1 * np.random.default_rng(1).random((64, 64))
    blur = suppression_quality(scene, gaussian_blur(scene, kernel=5), mode="corrected")
    shuffle = suppression_quality(scene, patch_shuffle(scene, grid=8), mode="corrected")
    assert blur.high_frequency < 0.5 * shuffle.high_frequency
    assert blur.gradient_correlation > 0.8 > shuffle.gradient_correlation


def test_uint8_and_float_agree():
    levels = np.rint(IMAGE * 255).astype(np.uint8)
    assert suppression_quality(levels, levels[::-1]) == pytest.approx(
        suppression_quality(levels / 255, levels[::-1] / 255)
    )


def test_a_constant_original_has_no_ratio():
    quality = suppression_quality(np.full((9, 9), 0.5), np.random.default_rng(0).random((9, 9)))
    assert all(math.isnan(value) for value in quality)


@pytest.mark.parametrize(
    "call",
    [
        lambda: suppression_quality(IMAGE, IMAGE[:5]),
        lambda: suppression_quality(IMAGE[0, 0], IMAGE),
        lambda: mean_local_variance(IMAGE, window=0),
        lambda: high_frequency_ratio(IMAGE, cutoff=0.6),
        lambda: high_frequency_ratio(np.full((4, 4), np.nan)),
    ],
)
def test_bad_input(call):
    with pytest.raises(UserError):
        call()


def test_the_measures_of_the_authors_are_those_of_their_libraries():
    """Windows, spectrum and gradients with scikit-image's and NumPy's own functions, as in the authors' script."""
    from skimage.color import rgb2gray
    from skimage.util import view_as_windows

    rng = np.random.default_rng(4)
    original = rng.integers(0, 256, (40, 56, 3), dtype=np.uint8)
    suppressed = gaussian_blur(original, kernel=5)
    planes = [rgb2gray(original), rgb2gray(suppressed)]
    variances = [np.var(view_as_windows(p, (11, 11)), axis=(-2, -1)).mean() for p in planes]
    powers = []
    for plane in planes:
        spectrum = np.abs(np.fft.fftshift(np.fft.fft2(plane))) ** 2
        y, x = np.ogrid[:40, :56]
        powers.append(spectrum[(x - 28) ** 2 + (y - 20) ** 2 >= 121].sum() / spectrum.sum())
    pairs = zip(*(np.gradient(p) for p in planes))
    correlations = [np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in pairs]
    expected = (variances[1] / variances[0], powers[1] / powers[0], np.mean(correlations))
    assert suppression_quality(original, suppressed) == pytest.approx(expected, rel=1e-6)
    with pytest.raises(UserError, match="mode is 'other'"):
        suppression_quality(original, suppressed, mode="other")


@pytest.mark.parametrize(("kernel", "sigma"), [(3, 0.33), (5, 0.66), (9, 1.33), (13, 2.0), (15, 2.33)])
def test_quantised_blur_is_opencvs(kernel, sigma):
    cv2 = pytest.importorskip("cv2")
    image = np.random.default_rng(5).integers(0, 256, (50, 60, 3), dtype=np.uint8)
    theirs = cv2.GaussianBlur(image, (kernel, kernel), sigmaX=sigma).astype(int)
    ours = gaussian_blur(image, kernel=kernel, sigma=sigma, quantised=True).astype(int)
    assert np.abs(ours - theirs).max() <= 1
    assert (ours != theirs).mean() < 0.02
