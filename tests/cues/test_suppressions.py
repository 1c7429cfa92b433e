"""The suppressions, alone and in pairs."""

import numpy as np
import pytest

from cuebench.cues import (
    bilateral,
    chain,
    channel_shuffle,
    edge_blur,
    gaussian_blur,
    greyscale,
    non_local_means,
    patch_rotation,
    patch_shuffle,
    saturation,
)
from cuebench.cues.chain import PAIRS
from cuebench.cues.channel_shuffle import ORDERS
from cuebench.errors import UserError

RNG = np.random.default_rng(0)
STEP = np.clip(np.repeat(np.arange(40)[None, :] >= 20, 40, 0) * 0.6 + 0.2 + RNG.uniform(-0.04, 0.04, (40, 40)), 0, 1)
COLOUR = RNG.random((16, 12, 3)).astype(np.float32)


def bilateral_by_hand(image, diameter, sigma_colour, sigma_space):
    radius = diameter // 2
    wide = np.pad(image, ((radius, radius), (radius, radius), (0, 0)), mode="reflect")
    total, weight = np.zeros_like(image), np.zeros((*image.shape[:2], 1))
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            if dy * dy + dx * dx > radius * radius:
                continue
            near = wide[radius + dy :, radius + dx :][: image.shape[0], : image.shape[1]]
            colour = np.abs(near - image).sum(-1, keepdims=True)
            w = np.exp(-(dy * dy + dx * dx) / (2 * sigma_space**2) - colour**2 / (2 * (sigma_colour / 255) ** 2))
            total, weight = total + w * near, weight + w
    return total / weight


@pytest.mark.parametrize("channels", [1, 3])
def test_bilateral_is_the_formula(channels):
    image = COLOUR[..., :channels]
    expected = bilateral_by_hand(image.astype(np.float64), 5, 60, 75)
    assert np.allclose(bilateral(image, diameter=5, sigma_colour=60), expected, atol=2e-3)


@pytest.mark.parametrize("smooth", [bilateral, non_local_means])
def test_smoothers_remove_texture_and_keep_the_edge(smooth):
    out = smooth(STEP)
    assert out[:, :15].std() < 0.6 * STEP[:, :15].std()
    assert (out[:, 22] - out[:, 17]).mean() > 0.5


@pytest.mark.parametrize("kernel", [3, 9, 15])
def test_gaussian_blur_equals_open_cv(kernel):
    import cv2

    expected = cv2.GaussianBlur(COLOUR, (kernel, kernel), 0, borderType=cv2.BORDER_REFLECT_101)
    # OpenCV has fixed tables for sizes up to 9 that follow the rule only roughly.
    assert np.allclose(gaussian_blur(COLOUR, kernel=kernel), expected, atol=2e-2 if kernel <= 9 else 1e-5)


def test_gaussian_blur_is_the_formula():
    offset = np.arange(-2, 3)
    weights = np.exp(-(offset**2) / (2 * 1.1**2))
    weights /= weights.sum()
    wide = np.pad(COLOUR[..., 0].astype(np.float64), 2, mode="reflect")
    rows = np.apply_along_axis(np.convolve, 0, wide, weights, "valid")
    expected = np.apply_along_axis(np.convolve, 1, rows, weights, "valid")
    assert np.allclose(gaussian_blur(COLOUR, kernel=5)[..., 0], expected, atol=1e-5)


def test_greyscale_fades_to_luminance():
    grey = COLOUR @ np.array([0.2125, 0.7154, 0.0721], np.float32)
    assert np.allclose(greyscale(COLOUR), grey[..., None], atol=1e-6)
    assert np.allclose(greyscale(COLOUR, alpha=0.4), 0.6 * COLOUR + 0.4 * grey[..., None], atol=1e-6)


def test_channel_shuffle_draws_each_of_the_five_orders_and_never_the_identity():
    drawn = [channel_shuffle(COLOUR, rng=seed) for seed in range(40)]
    orders = {next(o for o in ORDERS if np.array_equal(d, COLOUR[..., list(o)])) for d in drawn}
    assert orders == set(ORDERS)


def test_channel_shuffle_leaves_grey_alone():
    assert np.array_equal(channel_shuffle(STEP, rng=1), STEP)


def test_pairs_take_away_two_kinds_of_information():
    assert len(PAIRS) == 2 * 3 + 2 * 2 + 3 * 2
    assert ("patch_shuffle", "bilateral") in PAIRS
    assert ("bilateral", "gaussian_blur") not in PAIRS


@pytest.mark.parametrize("pair", PAIRS)
def test_every_pair_runs(pair):
    out = chain(COLOUR, cues=pair, rng=1)
    assert out.shape == COLOUR.shape
    assert not np.array_equal(out, COLOUR)


def test_chain_is_one_cue_after_the_other():
    seed = int(np.random.default_rng(5).integers(2**63))
    expected = greyscale(patch_shuffle(COLOUR, grid=4, rng=seed), alpha=0.3)
    out = chain(COLOUR, cues=[("patch_shuffle", {"grid": 4}), ("greyscale", {"alpha": 0.3})], rng=5)
    assert np.array_equal(out, expected)


@pytest.mark.parametrize(
    ("cues", "message"),
    [("greyscale", "cues is"), (["contours"], "needs mask"), (["grayscale"], "unknown cue"), (3, "cues is")],
)
def test_chains_that_cannot_be(cues, message):
    with pytest.raises(UserError, match=message):
        chain(COLOUR, cues=cues)


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (bilateral, {"diameter": 0}),
        (bilateral, {"sigma_colour": 0}),
        (gaussian_blur, {"kernel": 4}),
        (gaussian_blur, {"kernel": 0}),
        (gaussian_blur, {"sigma": 0}),
        (non_local_means, {"strength": -1}),
        (non_local_means, {"patch": 4}),
        (greyscale, {"alpha": 1.2}),
        (channel_shuffle, {"order": (0, 1)}),
        (patch_rotation, {"angles": (45,)}),
        (patch_rotation, {"angles": ()}),
        (patch_rotation, {"grid": 0}),
        (patch_shuffle, {"grid": -2}),
    ],
)
def test_bad_parameters(function, options):
    with pytest.raises(UserError, match=next(iter(options))) as caught:
        function(COLOUR, **options)
    assert caught.value.hint.startswith("accepted")


def test_saturation_scales_the_distance_from_grey():
    image = np.full((2, 2, 3), (0.6, 0.5, 0.4))
    grey = 0.2125 * 0.6 + 0.7154 * 0.5 + 0.0721 * 0.4
    assert np.allclose(saturation(image, factor=0.5), grey + 0.5 * (image - grey))
    assert np.allclose(saturation(image, factor=0.0), greyscale(image))
    assert np.allclose(saturation(image, factor=0.3), greyscale(image, alpha=0.7))
    assert saturation(image, factor=50.0).max() == 1  # clipped at the gamut


def test_edge_blur_smooths_the_outline_and_keeps_the_texture():
    rng = np.random.default_rng(0)
    image = np.where(np.arange(64) < 32, 0.25, 0.75)[None, :, None] + np.zeros((64, 64, 3))
    image += rng.uniform(-0.04, 0.04, image.shape)
    out = edge_blur(image)
    across = np.abs(np.diff(out.mean(axis=(0, 2))))
    assert across.max() < 0.15  # the step was 0.5
    assert np.allclose(out[:, :12], image[:, :12], atol=0.02)  # far from the outline the texture stays
    assert np.array_equal(edge_blur(image, sigma=0), image)
    assert np.abs(np.diff(edge_blur(image, sigma=8.0).mean(axis=(0, 2)))).max() < across.max()
