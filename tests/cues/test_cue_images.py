"""dtype, range, batch and seed discipline in one place."""

import re
import sys

import numpy as np
import pytest

from cuebench.cues import greyscale, silhouette, uniform_noise, voronoi_shuffle
from cuebench.cues.base import as_batch, check_image, check_mask, generators, on_images
from cuebench.cues.parameters import check_choice, check_number, check_whole, optional
from cuebench.errors import MissingExtra, UserError
from cuebench.registry import cues
from cuebench.testing import check_cue

GOOD = np.random.default_rng(0).random((4, 5, 3)).astype(np.float32)


@pytest.mark.parametrize(
    ("image", "message", "hint"),
    [
        (np.where(GOOD > 0.5, np.nan, GOOD), "NaN", "finite"),
        (np.where(np.equal(GOOD, GOOD.max()), np.inf, GOOD), "1 infinite value", "finite"),
        (GOOD * 255, "float values from", "divide by 255"),
        (GOOD - 1, "float values from", r"\[0, 1\]"),
        (GOOD.astype(int), "dtype int64", "uint8"),
        (GOOD > 0.5, "dtype bool", "uint8"),
        (GOOD.astype(complex), "dtype complex128", "uint8"),
        (np.array(["a"]), "dtype", "uint8"),
        (np.zeros((0, 5)), "is empty", "at least one pixel"),
        (np.zeros((4, 5, 4)), "4 channels", "alpha channel"),
        (np.zeros((4, 5, 2)), "2 channels", "alpha channel"),
        (np.zeros((3, 50, 50)), "50 channels", "channels-first"),
        (np.zeros((2, 3, 50, 50)), "50 channels", "channels-first"),
        (np.zeros((7, 50, 50)), "50 channels", "channels last"),
        (np.zeros(5), "1 axes", "H×W"),
        (np.zeros((1, 1, 1, 1, 1)), "5 axes", "H×W"),
    ],
)
def test_bad_images(image, message, hint):
    with pytest.raises(UserError, match=message) as caught:
        check_image(image)
    assert re.search(hint, caught.value.hint)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones((5, 4), bool), "shape"),
        (np.ones((1, 1, 4, 5), bool), "shape"),
        (np.ones((4, 5)), "dtype float64"),
        (np.ones((2, 4, 5), bool), "shape"),
    ],
)
def test_bad_masks(mask, message):
    with pytest.raises(UserError, match=message):
        check_mask(mask, as_batch(GOOD)[1])


def test_a_missing_mask_is_a_plain_python_error():
    with pytest.raises(TypeError):
        silhouette(GOOD)


@pytest.mark.parametrize("seed", [-1, 1.5, "7", [1, 2], [-1], [True], object()])
def test_bad_seeds(seed):
    with pytest.raises(UserError, match="rng"):
        uniform_noise(GOOD, rng=seed)


def test_seeds_of_all_kinds():
    batch = np.stack([GOOD] * 2)
    alike = uniform_noise(batch, rng=3)
    assert np.array_equal(alike[0], alike[1])
    assert np.array_equal(alike[0], uniform_noise(GOOD, rng=np.int64(3)))
    separate = uniform_noise(batch, rng=np.array([3, 4]))
    assert np.array_equal(separate[0], alike[0])
    assert not np.array_equal(separate[0], separate[1])
    turns = uniform_noise(batch, rng=np.random.default_rng(3))
    assert np.array_equal(turns[0], alike[0])
    assert not np.array_equal(turns[0], turns[1])
    assert not np.array_equal(uniform_noise(GOOD, rng=None), uniform_noise(GOOD, rng=None))
    assert len(generators(0, 3)) == 3


def test_pil_images_and_lists_are_taken():
    from PIL import Image

    picture = Image.fromarray((GOOD * 255).astype(np.uint8))
    assert greyscale(picture).shape == (4, 5, 3)
    assert greyscale([[0.0, 1.0], [0.5, 0.2]]).shape == (2, 2)


def test_read_only_and_strided_input():
    image = np.asfortranarray(GOOD)[::2, ::-1]
    image.flags.writeable = False
    assert np.array_equal(voronoi_shuffle(image, sites=1), image)
    assert greyscale(image, alpha=0).flags.c_contiguous


def test_uint8_goes_through_without_a_change():
    every = np.arange(256, dtype=np.uint8).reshape(16, 16)
    assert np.array_equal(on_images(lambda one: one, every), every)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.uint8])
def test_results_are_clipped_to_the_range(dtype):
    top = 255 if dtype == np.uint8 else 1
    image = np.full((2, 2), top, dtype)
    assert np.all(on_images(lambda one: one * 3, image) == top)
    assert np.all(on_images(lambda one: -one, image) == 0)


def test_float64_is_computed_in_float64():
    assert as_batch(np.zeros((2, 2)))[0].dtype == np.float64
    assert as_batch(np.zeros((2, 2), np.float16))[0].dtype == np.float32


@pytest.mark.parametrize("value", [0, -3, 1.5, "8", True, None])
def test_whole_numbers(value):
    with pytest.raises(UserError, match="grid is") as caught:
        check_whole("grid", value)
    assert caught.value.hint == "accepted: a whole number ≥ 1"


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "x", True, None])
def test_numbers(value):
    with pytest.raises(UserError, match="sigma is"):
        check_number("sigma", value, low=0)


def test_choices_are_listed():
    with pytest.raises(UserError) as caught:
        check_choice("mode", "exact", ("faithful", "corrected"))
    assert caught.value.hint == "accepted: 'faithful', 'corrected'"


def test_a_missing_library_names_the_extra():
    with pytest.raises(MissingExtra, match="no_such_library"):
        optional("no_such_library.part", "the cue 'x'")


def test_second_image_must_fit():
    from cuebench.cues import blend

    with pytest.raises(UserError, match="other has shape"):
        blend(GOOD, GOOD[:2])
    with pytest.raises(UserError, match="3 channels, the image 1"):
        blend(GOOD[..., :1], GOOD)
    assert blend(np.stack([GOOD] * 3), GOOD).shape == (3, 4, 5, 3)
    assert blend(GOOD, GOOD[..., 0]).shape == GOOD.shape


NEEDS_EXTRA = {
    "cv2": ("bilateral", "mean_shift", "non_local_means", "quilting"),
    "skimage.feature": ("contours", "edges"),
}


@pytest.mark.parametrize(("library", "name"), [(lib, name) for lib, names in NEEDS_EXTRA.items() for name in names])
def test_cues_that_need_the_extra_say_so(library, name, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    function = cues.get(name)
    options = {"mask": np.ones((4, 5), bool)} if "mask" in cues.get(name).info.needs else {}
    with pytest.raises(MissingExtra, match=f"the cue '{name}' needs the extra 'image'") as caught:
        function(GOOD, **options)
    assert caught.value.hint == "pip install 'cuebench[image]'"


# Edge-enhancing diffusion, which the residuals use, has its own tests.
DIFFUSION = ("eed", "texture_residual", "texture_residual_shuffle")
CORE = [n for n in cues if not any(n in names for names in (DIFFUSION, *NEEDS_EXTRA.values()))]


@pytest.mark.parametrize("name", CORE)
def test_the_other_cues_run_on_the_core_install(name, monkeypatch):
    for library in ("cv2", "skimage", "skimage.feature", "numba"):
        monkeypatch.setitem(sys.modules, library, None)
    check_cue(name, only=["unchanged"])
