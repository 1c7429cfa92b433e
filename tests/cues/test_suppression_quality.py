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
    blur = suppression_quality(scene, gaussian_blur(scene, kernel=5))
    shuffle = suppression_quality(scene, patch_shuffle(scene, grid=8))
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
