"""Contours, silhouette, edges, sketch and mean shift."""

import numpy as np
import pytest

from cuebench.arrays import Array
from cuebench.cues import contours, edges, mean_shift, silhouette, sketch
from cuebench.cues.contours import blur_inside, border
from cuebench.errors import UserError

Y, X = np.mgrid[:48, :64]
DISC = (Y - 24) ** 2 + (X - 32) ** 2 < 18**2


def scene() -> Array:
    """A bright square inside a disc on a striped background."""
    image = np.where(X % 4 < 2, 0.9, 0.1)
    image[DISC] = 0.3
    image[18:30, 26:38] = 0.8
    return image


def test_contours_draw_nothing_outside_the_object():
    out = contours(scene(), mask=DISC)
    assert set(np.unique(out)) == {0, 1}
    assert not out[~DISC].any()


def test_contours_draw_the_outline_and_the_structure_inside():
    out = contours(scene(), mask=DISC, sigma=1)
    assert np.all(out[border(DISC)] == 1)
    inner = contours(scene(), mask=DISC, sigma=1, outline=False)
    ys, xs = np.nonzero(inner)
    assert len(ys) > 30
    assert ys.min() >= 15
    assert ys.max() <= 32
    assert xs.min() >= 23
    assert xs.max() <= 40


def test_contours_do_not_see_the_background():
    plain = scene()
    plain[~DISC] = 0
    assert np.array_equal(contours(scene(), mask=DISC), contours(plain, mask=DISC))


def test_more_blur_leaves_fewer_contours():
    rough = scene()
    rough[DISC] += 0.15 * ((X + Y) % 3)[DISC] - 0.1
    drawn = [contours(rough, mask=DISC, sigma=s, low=0.02, high=0.05, outline=False).sum() for s in (0, 3)]
    assert drawn[1] < drawn[0]


def test_blur_inside_is_the_normalised_convolution():
    from scipy.ndimage import gaussian_filter

    plane = scene()
    expected = gaussian_filter(plane * DISC, 2.0)[DISC] / gaussian_filter(DISC.astype(float), 2.0)[DISC]
    assert np.allclose(blur_inside(plane, DISC, 2.0)[DISC], expected)


def test_contours_of_an_empty_mask_are_black():
    assert not contours(scene(), mask=np.zeros_like(DISC)).any()


def test_contours_accept_a_grey_and_integer_mask():
    image = (scene() * 255).astype(np.uint8)
    out = contours(image, mask=DISC.astype(np.uint8) * 255)
    assert set(np.unique(out)) == {0, 255}


def test_silhouette_is_black_on_white():
    out = silhouette(scene(), mask=DISC)
    assert np.array_equal(out, np.where(DISC, 0.0, 1.0))
    assert np.array_equal(silhouette(scene(), mask=DISC, foreground=1, background=0), DISC.astype(float))


@pytest.mark.parametrize("method", ["canny", "sobel"])
def test_edges_are_where_the_step_is(method):
    step = np.where(X < 32, 0.2, 0.8)
    out = edges(step, method=method)
    assert abs(int(out[24].argmax()) - 31.5) <= 1
    assert out[:, :20].max() < 0.01
    assert np.allclose(edges(step, method=method, invert=True), 1 - out)


@pytest.mark.parametrize("method", ["canny", "sobel"])
@pytest.mark.parametrize("level", [0.0, 0.37, 1.0])
def test_a_constant_image_has_no_edges(method, level):
    assert not edges(np.full((20, 20, 3), level, np.float32), method=method).any()


def test_sketch_draws_dark_lines_on_white():
    line = np.full((48, 64), 0.8)
    line[:, 32] = 0.1
    out = sketch(line)
    assert out[24, 32] < 0.2
    assert out[24, :20].min() > 0.99
    assert np.all(sketch(np.full((20, 20), 0.3)) > 0.99)


def test_sketch_is_the_formula():
    from scipy.ndimage import gaussian_filter

    plane = np.log(scene() + 0.05)
    difference = gaussian_filter(plane, 1.4, mode="nearest") - gaussian_filter(plane, 2.24, mode="nearest")
    expected = 1 + np.tanh(40 * np.minimum(difference + 0.03, 0))
    assert np.allclose(sketch(scene()), expected, atol=1e-4)


def test_mean_shift_flattens_texture_and_keeps_the_step():
    rng = np.random.default_rng(0)
    image = np.where(X < 32, 0.2, 0.8) + rng.uniform(-0.05, 0.05, X.shape)
    out = mean_shift(image)
    assert out[:, :28].std() < 0.5 * image[:, :28].std()
    assert out[:, 36:].mean() - out[:, :28].mean() == pytest.approx(0.6, abs=0.02)


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (contours, {"sigma": -1, "mask": DISC}),
        (contours, {"low": 0.5, "mask": DISC}),
        (silhouette, {"background": 2, "mask": DISC}),
        (edges, {"method": "laplace"}),
        (edges, {"sigma": -1}),
        (sketch, {"sigma": 0}),
        (sketch, {"ratio": 1}),
        (mean_shift, {"spatial_radius": 0}),
        (mean_shift, {"colour_radius": -1}),
    ],
)
def test_bad_parameters(function, options):
    with pytest.raises(UserError, match=next(iter(options))) as caught:
        function(scene(), **options)
    assert caught.value.hint.startswith("accepted")
