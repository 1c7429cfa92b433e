"""Blend, clipped sum, composite; and the residual that the sum takes."""

import numpy as np
import pytest

from cuebench.cues import add_texture, blend, composite, patch_shuffle, texture_residual, texture_residual_shuffle
from cuebench.errors import UserError

RNG = np.random.default_rng(0)
SHAPE, TEXTURE = RNG.random((2, 30, 40, 3))
MASK = np.zeros((30, 40), dtype=bool)
MASK[8:20, 10:30] = True


def test_blend_is_the_weighted_mean():
    assert np.allclose(blend(SHAPE, TEXTURE, gamma_s=0.7, gamma_t=0.3), 0.7 * SHAPE + 0.3 * TEXTURE)
    assert np.allclose(blend(SHAPE, TEXTURE, gamma_s=7, gamma_t=3), 0.7 * SHAPE + 0.3 * TEXTURE)


@pytest.mark.parametrize(("gamma_s", "gamma_t"), [(1, 1), (1, 2), (0.8, 3)])
def test_sum_is_clipped(gamma_s, gamma_t):
    expected = np.clip(gamma_s * SHAPE + gamma_t * (TEXTURE - 0.5), 0, 1)
    assert np.allclose(add_texture(SHAPE, TEXTURE, gamma_s=gamma_s, gamma_t=gamma_t), expected)


def test_sum_without_centre_adds_the_picture():
    assert np.allclose(add_texture(SHAPE, TEXTURE, centre=0), np.clip(SHAPE + TEXTURE, 0, 1))


def test_shape_and_residual_add_up_to_the_image():
    from cuebench.cues import eed

    smooth = 0.4 + 0.2 * SHAPE
    kept = eed(smooth, steps=3, stretch=False)
    assert np.allclose(add_texture(kept, texture_residual(smooth, steps=3, stretch=False)), smooth, atol=1e-5)


def test_residual_of_a_constant_image_is_mid_grey():
    assert np.allclose(texture_residual(np.full((9, 9, 3), 0.3), steps=2), 0.5, atol=1e-6)


def test_residual_shuffle_is_the_shuffled_residual():
    labels = np.arange(30 * 40).reshape(30, 40)
    residual = texture_residual(SHAPE, steps=2)
    out, moved = texture_residual_shuffle(SHAPE, steps=2, mask=labels, rng=4)
    expected, places = patch_shuffle(residual, mask=labels, rng=4)
    assert np.array_equal(out, expected)
    assert np.array_equal(moved, places)


@pytest.mark.parametrize("alpha", [0, 0.2, 0.6, 1])
def test_composite_is_the_rule_of_the_textured_silhouettes(alpha):
    m = np.where(MASK, 1, 1 - alpha)[..., None]
    assert np.allclose(composite(SHAPE, mask=MASK, alpha=alpha), m * SHAPE + (1 - m))


def test_composite_on_another_picture():
    out = composite(SHAPE, mask=MASK, background=TEXTURE)
    assert np.allclose(out[MASK], SHAPE[MASK])
    assert np.allclose(out[~MASK], TEXTURE[~MASK])


@pytest.mark.parametrize(("size", "pixels"), [(0.2, 45), (0.4, 90), (0.6, 135), (0.8, 180), (1.0, 224)])
def test_composite_sizes_are_the_published_pixels(size, pixels):
    image = np.zeros((224, 224))
    out = composite(image, mask=np.ones((224, 224), bool), size=size)
    assert np.any(out == 0, axis=1).sum() == pixels
    assert np.any(out == 0, axis=0).sum() == pixels
    rows = np.flatnonzero(np.any(out == 0, axis=1))
    assert abs(rows[0] - (223 - rows[-1])) <= 1


def test_composite_places():
    image = np.zeros((20, 20))
    mask = np.ones((20, 20), bool)
    corner = composite(image, mask=mask, size=0.5, position=(10, 3))
    assert np.array_equal(np.argwhere(corner == 0)[0], [10, 3])
    starts = {
        tuple(np.argwhere(composite(image, mask=mask, size=0.5, position="random", rng=s) == 0)[0]) for s in range(40)
    }
    assert len(starts) > 20
    assert all(0 <= y <= 10 and 0 <= x <= 10 for y, x in starts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 2}, "alpha is 2"),
        ({"size": 0}, "size is 0"),
        ({"size": 1.5}, "size is 1.5"),
        ({"background": -1}, "background is -1"),
        ({"background": np.zeros((3, 3, 3))}, "background has shape"),
        ({"position": "left"}, "position is 'left'"),
        ({"position": (99, 0), "size": 0.5}, "position is"),
    ],
)
def test_bad_composites(options, message):
    with pytest.raises(UserError, match=message):
        composite(SHAPE, mask=MASK, **options)


@pytest.mark.parametrize("function", [blend, add_texture])
def test_bad_weights(function):
    with pytest.raises(UserError, match="gamma_t is -1"):
        function(SHAPE, TEXTURE, gamma_t=-1)


def test_blend_of_nothing():
    with pytest.raises(UserError, match="both 0"):
        blend(SHAPE, TEXTURE, gamma_s=0, gamma_t=0)


@pytest.mark.parametrize(("size", "place"), [(0.2, "centre"), (0.6, "centre"), (0.8, (7, 3))])
def test_bicubic_composites_are_those_that_pillow_pastes(size, place):
    """Experiment 2 as published: texture pasted onto clear white, resized as RGBA (bicubic), pasted onto white."""
    from PIL import Image

    rng = np.random.default_rng(3)
    texture, mask = rng.integers(0, 256, (224, 224, 3), dtype=np.uint8), np.zeros((224, 224), bool)
    mask[40:190, 60:150] = rng.random((150, 90)) < 0.7
    base = Image.new("RGBA", (224, 224), (255, 255, 255, 0))
    base.paste(Image.fromarray(texture), mask=Image.fromarray(np.uint8(mask) * 255))
    side = {0.2: 45, 0.6: 135, 0.8: 180}[size]
    small = base.resize((side, side), Image.Resampling.BICUBIC)
    expected = Image.new("RGB", (224, 224), "white")
    corner = ((224 - side) // 2,) * 2 if place == "centre" else place[::-1]
    expected.paste(small.convert("RGB"), corner, mask=small)
    ours = composite(texture, mask=mask, size=size, position=place, resample="bicubic")
    np.testing.assert_array_equal(ours, np.asarray(expected))
    assert np.abs(ours.astype(int) - composite(texture, mask=mask, size=size, position=place)).max() > 3
    grey = composite(texture[..., :1], mask=mask, size=size, position=place, resample="bicubic")
    assert grey.shape == (224, 224, 1)
    np.testing.assert_array_equal(grey[..., 0], ours[..., 0])
