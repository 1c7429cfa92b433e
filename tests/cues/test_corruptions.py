"""Each corruption against its formula written out another way, and the published levels."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuebench.cues import (
    contrast,
    eidolon,
    high_pass,
    low_pass,
    phase_noise,
    power_equalisation,
    rotation,
    salt_and_pepper,
    uniform_noise,
)
from cuebench.cues.phase_noise import antisymmetric_shifts, noisy, published_shifts
from cuebench.cues.power_equalisation import mean_spectrum
from cuebench.errors import UserError
from cuebench.registry import cues

COLOUR = np.random.default_rng(0).random((21, 18, 3))
GREY = 0.2125 * COLOUR[..., 0] + 0.7154 * COLOUR[..., 1] + 0.0721 * COLOUR[..., 2]
EVEN = np.random.default_rng(1).random((24, 32))

PUBLISHED = {
    "contrast": {"level": (1, 0.5, 0.3, 0.15, 0.1, 0.05, 0.03, 0.01)},
    "uniform_noise": {"width": (0, 0.03, 0.05, 0.1, 0.2, 0.35, 0.6, 0.9)},
    "low_pass": {"sigma": (0, 1, 3, 5, 7, 10, 15, 40)},
    "high_pass": {"sigma": (math.inf, 3, 1.5, 1, 0.7, 0.55, 0.45, 0.4)},
    "phase_noise": {"width": (0, 30, 60, 90, 120, 150, 180)},
    "salt_and_pepper": {"probability": (0, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)},
    "rotation": {"angle": (0, 90, 180, 270)},
    "eidolon": {"reach": (1, 2, 4, 8, 16, 32, 64, 128), "grain": (10,), "coherence": (1, 0.3, 0)},
    "composite": {"alpha": (0, 0.2, 0.4, 0.6, 0.8, 1), "size": (0.2, 0.4, 0.6, 0.8, 1)},
    "interior_patches": {"grid": (4, 8, 16, 32)},
    "patch_shuffle": {"grid": (2, 4, 6, 8, 10, 12, 14, 16)},
    "gaussian_blur": {"kernel": (3, 5, 7, 9, 11, 13, 15)},
    "non_local_means": {"strength": (5, 10, 15, 20, 25)},
    "greyscale": {"alpha": (0.2, 0.4, 0.6, 0.8, 1)},
    "blend": {"gamma_s": (0.7, 0.5, 0.3), "gamma_t": (0.3, 0.5, 0.7)},
    "add_texture": {"gamma_s": (1, 1, 0.8), "gamma_t": (1, 2, 3)},
}


@pytest.mark.parametrize(("name", "keyword"), [(n, k) for n, ks in PUBLISHED.items() for k in ks])
def test_published_levels(name, keyword):
    assert tuple(cues.get(name).info.levels[keyword]) == PUBLISHED[name][keyword]


def test_published_constants():
    from cuebench.cues import grey

    assert grey.WEIGHTS == (0.2125, 0.7154, 0.0721)
    assert grey.MEAN_GREY == 0.4423
    assert cues.module("uniform_noise").CONTRAST == cues.module("salt_and_pepper").CONTRAST == 0.3


def test_contrast_is_the_formula():
    expected = (1 - 0.15) / 2 + 0.15 * GREY
    out = contrast(COLOUR, level=0.15)
    assert np.allclose(out, expected[..., None])
    assert np.allclose(contrast(COLOUR, level=0.15, keep_colour=True), 0.425 + 0.15 * COLOUR)
    assert np.all(contrast(COLOUR, level=0) == 0.5)


def gaussian_by_hand(plane, sigma, border):
    radius = int(4 * sigma + 0.5)
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    weights /= weights.sum()
    wide = np.pad(plane, radius, constant_values=border)
    rows = np.apply_along_axis(np.convolve, 0, wide, weights, "valid")
    return np.apply_along_axis(np.convolve, 1, rows, weights, "valid")


@pytest.mark.parametrize("sigma", [0.4, 1.0, 3.0])
def test_low_pass_is_a_gaussian_with_a_grey_border(sigma):
    expected = gaussian_by_hand(GREY, sigma, 0.4423)
    assert np.allclose(low_pass(COLOUR, sigma=sigma)[..., 1], expected)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_low_pass_of_sigma_0_is_the_image(height, width, seed):
    image = np.random.default_rng(seed).random((height, width))
    assert np.array_equal(low_pass(image, sigma=0), image)


@pytest.mark.parametrize("sigma", [0.4, 1.5])
def test_high_pass_is_the_rest_around_a_mean(sigma):
    rest = GREY - gaussian_by_hand(GREY, sigma, 0.4423)
    expected = np.clip(rest - rest.mean() + 0.4423, 0, 1)
    assert np.allclose(high_pass(COLOUR, sigma=sigma)[..., 0], expected)


def test_high_pass_at_infinity_is_the_grey_image():
    assert np.allclose(high_pass(COLOUR, sigma=math.inf)[..., 0], GREY)


def test_uniform_noise_is_the_formula():
    noise = np.random.default_rng(5).uniform(-0.6, 0.6, size=(21, 18, 1))
    expected = np.clip(0.35 + 0.3 * GREY[..., None] + noise, 0, 1)
    out = uniform_noise(COLOUR, width=0.6, rng=5)
    assert np.allclose(out, expected)
    assert np.array_equal(out[..., 0], out[..., 2])


def test_uniform_noise_keeps_within_its_width():
    out = uniform_noise(np.full((64, 64), 0.5), width=0.2, rng=1)
    assert np.abs(out - 0.5).max() <= 0.2
    assert out.std() == pytest.approx(0.2 / math.sqrt(3), rel=0.05)


def test_salt_and_pepper_replaces_the_right_share():
    out = salt_and_pepper(np.full((200, 200), 0.5), probability=0.35, rng=2)
    assert (out == 1).mean() == pytest.approx(0.175, abs=0.01)
    assert (out == 0).mean() == pytest.approx(0.175, abs=0.01)
    assert set(np.unique(out)) == {0, 0.5, 1}
    everything = salt_and_pepper(COLOUR, probability=1)
    assert set(np.unique(everything)) == {0, 1}


def test_salt_and_pepper_pixels_left_have_the_lower_contrast():
    out = salt_and_pepper(COLOUR, probability=0.5, rng=0)[..., 0]
    left = (out > 0) & (out < 1)
    assert np.allclose(out[left], (0.35 + 0.3 * GREY)[left])


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_corrected_phase_noise_is_real_and_keeps_the_power(height, width, seed):
    rng = np.random.default_rng(seed)
    image = rng.random((height, width, 1))
    shifts = antisymmetric_shifts(height, width, np.pi, rng)
    out = noisy(image, shifts)
    assert np.abs(out.imag).max() < 1e-12
    assert np.sum(out.real**2) == pytest.approx(np.sum(image**2))
    assert out.real.mean() == pytest.approx(image.mean())


def test_published_phase_noise_is_not_hermitian_and_loses_power():
    shifts = published_shifts(24, 32, np.deg2rad(90), np.random.default_rng(0))
    out = noisy(EVEN[..., None], shifts)
    assert np.abs(out.imag).max() > 1e-3
    assert np.var(out.real) < 0.95 * np.var(EVEN)
    assert np.allclose(phase_noise(EVEN, width=90, rng=0), np.clip(out.real[..., 0], 0, 1))


def test_published_shifts_are_in_the_same_order_with_the_other_sign():
    centred = np.fft.fftshift(published_shifts(8, 6, 1.0, np.random.default_rng(3)))
    assert np.all(centred[0] == 0)
    assert np.all(centred[:, 0] == 0)
    flat = centred[1:, 1:].ravel()
    middle = len(flat) // 2
    assert flat[middle] == 0
    assert np.array_equal(flat[:middle], -flat[middle + 1 :])
    assert not np.allclose(flat[:middle], -flat[middle + 1 :][::-1])


@pytest.mark.parametrize("mode", ["faithful", "corrected"])
def test_phase_noise_of_width_0_is_the_image(mode):
    assert np.allclose(phase_noise(EVEN, width=0, mode=mode), EVEN)


def test_power_equalisation_gives_the_common_spectrum_and_keeps_the_phases():
    common = mean_spectrum([EVEN, EVEN[::-1], 0.5 + 0.2 * (EVEN - 0.5)])
    smooth = 0.5 + 0.1 * (EVEN - 0.5)
    out = power_equalisation(smooth, spectrum=common * 0.6)
    got, source = np.fft.fft2(out), np.fft.fft2(smooth)
    assert np.allclose(np.abs(got), common * 0.6, atol=1e-8)
    assert np.allclose(np.exp(1j * np.angle(got)), np.exp(1j * np.angle(source)), atol=1e-6)


def test_power_equalisation_without_a_spectrum_is_one_over_f():
    image = 0.5 + 0.2 * (EVEN - 0.5)
    got = np.abs(np.fft.fft2(power_equalisation(image)))
    frequency = np.hypot(np.fft.fftfreq(24)[:, None], np.fft.fftfreq(32)[None, :])
    product = (got * frequency).ravel()[1:]
    assert np.allclose(product, product[0])
    assert power_equalisation(image).var() == pytest.approx(image.var())


def test_power_equalisation_refuses_a_spectrum_of_another_size():
    with pytest.raises(UserError, match="spectrum has shape"):
        power_equalisation(EVEN, spectrum=np.ones((3, 3)))
    with pytest.raises(UserError, match="no images"):
        mean_spectrum([])


@pytest.mark.parametrize("angle", [0, 90, 180, 270, 360, -90])
def test_rotation_by_quarters_is_exact(angle):
    square = EVEN[:24, :24]
    assert np.array_equal(rotation(square, angle=angle), np.rot90(square, angle // 90))


def test_rotation_of_an_oblong_keeps_size_and_fills():
    out = rotation(EVEN, angle=90)
    assert out.shape == EVEN.shape
    assert np.allclose(out[:, 0], 0.4423)


def test_eidolon_layers_sum_to_the_image():
    layers = cues.module("eidolon")._layers(COLOUR)
    assert np.allclose(sum(layers), COLOUR)


def test_eidolon_coherent_shortcut_equals_the_sum_of_layers():
    module = cues.module("eidolon")
    image = EVEN[..., None]
    field = module._smooth_noise((2, 24, 32), 4.0, np.random.default_rng(0))
    by_layers = sum(module._displaced(layer, 3 * field) for layer in module._layers(image))
    assert np.allclose(module._displaced(image, 3 * field), by_layers)


def test_eidolon_displacement_has_the_reach_as_standard_deviation():
    field = cues.module("eidolon")._smooth_noise((2, 64, 64), 10.0, np.random.default_rng(0))
    assert np.sqrt((field**2).mean()) == pytest.approx(1)


def test_eidolon_incoherent_differs_from_coherent_and_dissolves_edges():
    step = np.repeat(np.arange(64)[None, :] >= 32, 64, axis=0).astype(np.float64)
    coherent, incoherent = (eidolon(step, reach=4, coherence=c, rng=1) for c in (1, 0))
    grey = [np.mean((p > 0.1) & (p < 0.9)) for p in (coherent, incoherent)]
    assert grey[1] > 2 * grey[0]


@pytest.mark.parametrize("name", [n for n in PUBLISHED if cues.get(n).info.kind == "corruption"])
def test_colour_images_come_back_grey_unless_colour_is_kept(name):
    function = cues.get(name)
    out = function(COLOUR)
    assert np.allclose(out[..., 0], out[..., 1])
    assert np.allclose(out[..., 0], out[..., 2])
    kept = function(COLOUR, keep_colour=True)
    assert not np.allclose(kept[..., 0], kept[..., 1])


BAD = [
    (contrast, {"level": 1.5}),
    (contrast, {"level": -0.1}),
    (contrast, {"level": math.nan}),
    (low_pass, {"sigma": -1}),
    (low_pass, {"sigma": math.inf}),
    (high_pass, {"sigma": 0}),
    (uniform_noise, {"width": -1}),
    (phase_noise, {"width": 181}),
    (phase_noise, {"mode": "exact"}),
    (salt_and_pepper, {"probability": 2}),
    (eidolon, {"grain": 0}),
    (eidolon, {"coherence": 1.1}),
    (rotation, {"angle": "left"}),
    (power_equalisation, {"exponent": -1}),
]


@pytest.mark.parametrize(("function", "options"), BAD)
def test_bad_parameters_name_the_value_and_what_is_accepted(function, options):
    with pytest.raises(UserError) as caught:
        function(EVEN, **options)
    (name, value), *_ = options.items()
    assert name in caught.value.message
    assert repr(value) in caught.value.message
    assert caught.value.hint.startswith("accepted")
