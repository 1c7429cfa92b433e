"""The public check finds what a cue does wrong."""

import subprocess
import sys

import numpy as np
import pytest

from cuebench.cues.base import CueInfo, check_image, on_images
from cuebench.errors import UserError
from cuebench.testing import CUE_CHECKS, check_cue

PLAIN = CueInfo(kind="suppression", reference="none")
RANDOM = CueInfo(kind="suppression", reference="none", random=True)


def good(image):
    return on_images(lambda one: one * 0.5, image)


def test_a_good_cue_passes_by_name_by_function_and_from_a_file(tmp_path):
    check_cue("greyscale")
    check_cue(good, PLAIN)
    file = tmp_path / "mine.py"
    file.write_text(
        "from cuebench.cues.base import CueInfo, on_images\n"
        "@CueInfo(kind='corruption', reference='none')\n"
        "def darken(image):\n    return on_images(lambda one: one * 0.5, image)\n"
    )
    check_cue(f"python:{file}:darken")


def test_a_function_needs_its_info():
    with pytest.raises(UserError, match="without info"):
        check_cue(good)


def loses_dtype(image):
    return good(image).astype(np.float64)


def loses_shape(image):
    return good(image)[..., :1]


def leaves_range(image):
    return (check_image(image) * 3).astype(np.asarray(image).dtype)


def writes_into_its_input(image):
    check_image(image)[...] = 0
    return image


def accepts_anything(image):
    return np.asarray(image)


def depends_on_the_batch(image):
    array = check_image(image)
    return np.broadcast_to(array.mean(axis=0, keepdims=True), array.shape).astype(array.dtype).copy()


def ignores_its_seed(image, *, rng=0):
    return on_images(lambda one, rng: one * np.random.default_rng().random(), image, random=True, rng=rng)


@pytest.mark.parametrize(
    ("cue", "info", "check", "message"),
    [
        (good, CueInfo(kind="shape", reference=""), "description", "has no reference"),
        (good, RANDOM, "description", "does not take rng=; its info says otherwise"),
        (ignores_its_seed, PLAIN, "description", "takes rng=; its info says otherwise"),
        (good, CueInfo(kind="shape", reference="none", quick={"size": 3}), "description", "has no parameter 'size'"),
        (loses_dtype, PLAIN, "form", "expected dtype"),
        (loses_shape, PLAIN, "form", "expected shape"),
        (leaves_range, PLAIN, "form", "highest value"),
        (writes_into_its_input, PLAIN, "unchanged", "modifies"),
        (accepts_anything, PLAIN, "bad_input", "accepts NaN"),
        (depends_on_the_batch, PLAIN, "batch", "differs in a batch"),
        (ignores_its_seed, RANDOM, "repeats", "differs with the same seed"),
        (good, CueInfo(kind="shape", reference="none", identity={}), "identity", "differs by"),
    ],
)
def test_a_bad_cue_is_found_out(cue, info, check, message):
    with pytest.raises(AssertionError, match=message):
        check_cue(cue, info, only=[check])


def test_the_checks_are_named():
    checks = [
        "description",
        "form",
        "large",
        "unchanged",
        "repeats",
        "batch",
        "identity",
        "mask",
        "bad_input",
        "device",
    ]
    assert list(CUE_CHECKS) == checks
    with pytest.raises(UserError, match="Did you mean 'form'"):
        check_cue("greyscale", only=["forn"])


def test_python_without_assert_statements_checks_as_well():
    code = (
        "from cuebench.registry import cues; from cuebench.testing import CheckFailed, check_cue\n"
        "try: check_cue(lambda image, **options: 'not an image', cues.get('greyscale').info, only=['form'])\n"
        "except CheckFailed as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-O", "-c", code], capture_output=True, text=True, check=True)
    assert "expected an array, got str" in done.stdout
