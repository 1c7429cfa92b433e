"""Cues by name: options typed by the signature, and errors of other people's cues that name the cue."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest

from cuebench.cues.base import CueInfo
from cuebench.cues.by_name import call, name_in_workers, options_of, parse_options
from cuebench.errors import UserError
from cuebench.registry import cues, sources

IMAGE = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
FILE = '''
"""Cues of a user."""
import numpy as np
from cuebench.cues.base import CueInfo, on_images

@CueInfo(kind="corruption", reference="none")
def darken(image, *, by: float = 0.5):
    """Darken an image."""
    return on_images(lambda pixels: pixels * by, image)

@CueInfo(kind="corruption", reference="none")
def breaks(image):
    """Raise."""
    raise ZeroDivisionError("by nothing")

@CueInfo(kind="corruption", reference="none")
def floats(image):
    """Return another dtype."""
    return np.zeros(image.shape)

@CueInfo(kind="corruption", reference="none")
def strict(image, *, level=1):
    """Refuse everything."""
    from cuebench.errors import UserError
    raise UserError(f"level is {level}", "none is accepted")
'''


@pytest.fixture
def file(tmp_path):
    (tmp_path / "mine.py").write_text(FILE)
    return f"python:{tmp_path / 'mine.py'}"


def parsed(name, **texts):
    return parse_options(cues.get(name), texts, f"cue {name!r}")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("contrast", {"level": "1"}, 1.0),
        ("contrast", {"keep_colour": "yes"}, True),
        ("voronoi_shuffle", {"sites": "8"}, 8),
        ("high_pass", {"sigma": "Infinity"}, math.inf),
        ("edges", {"method": "sobel"}, "sobel"),
        ("gaussian_blur", {"sigma": "none"}, None),
        ("gaussian_blur", {"sigma": "2"}, 2.0),
        ("patch_rotation", {"angles": "0,90"}, [0, 90]),
        ("patch_rotation", {"angles": (0, 90)}, (0, 90)),
        ("channel_shuffle", {"order": "[2, 1, 0]"}, [2, 1, 0]),
        ("composite", {"position": "random"}, "random"),
        ("composite", {"position": "3,4"}, [3, 4]),
        ("composite", {"background": "0.5"}, 0.5),
        ("chain", {"cues": '["greyscale", ["contrast", {"level": 0.5}]]'}, ["greyscale", ["contrast", {"level": 0.5}]]),
        ("eed", {"diffusivity": "paper"}, "paper"),
        ("texture_residual", {"steps": "4"}, 4),
    ],
)
def test_texts_become_what_the_signature_declares(name, text, value):
    result = parsed(name, **text)[next(iter(text))]
    assert (result, type(result)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("contrast", {"lvel": "1"}, r"unknown option of cue 'contrast': 'lvel'. Did you mean 'level'"),
        ("contrast", {"level": "dark"}, r"option of cue 'contrast': level='dark': expected a number"),
        ("contrast", {"keep_colour": "ture"}, "expected true or false"),
        ("voronoi_shuffle", {"sites": "3.5"}, "expected a whole number"),
        ("gaussian_blur", {"sigma": "wide"}, "expected none, or a number"),
        ("patch_rotation", {"angles": "left,right"}, "expected whole numbers separated by commas"),
        ("eed", {"diffusivity": "papers"}, "expected one of published, paper"),
        ("texture_residual", {"step": "4"}, "Did you mean 'steps'"),
        ("voronoi_shuffle", {"rng": "1"}, "unknown option"),
        ("eed", {"progress": "x"}, "unknown option"),
    ],
)
def test_unknown_names_and_wrong_types_say_what_is_accepted(name, text, message):
    with pytest.raises(UserError, match=message):
        parsed(name, **text)


def test_all_wrong_values_are_reported_at_once():
    with pytest.raises(UserError, match="2 problems") as caught:
        parsed("contrast", level="x", keep_colour="y")
    assert "level='x'" in caught.value.message
    assert "keep_colour='y'" in caught.value.message


def test_every_cue_accepts_its_defaults_and_published_levels():
    for name, function in cues.usable():
        for key, option in options_of(function).items():
            assert parse_options(function, {key: option.default}, name)[key] == option.default
        for key, levels in function.info.levels.items():
            for level in levels:
                assert parse_options(function, {key: level}, name)[key] == level


def test_a_step_of_a_recipe_needs_what_the_function_needs():
    with pytest.raises(UserError, match="cue 'composite' needs mask"):
        parse_options(cues.get("composite"), {"alpha": "1"}, "cue 'composite'", recipe=True)
    with pytest.raises(UserError, match="source 'texture' needs name"):
        parse_options(sources.get("texture"), {"size": "64"}, "source 'texture'", recipe=True)
    mask = np.ones((4, 4), bool)
    assert parse_options(cues.get("composite"), {"mask": mask}, "cue", recipe=True)["mask"] is mask
    with pytest.raises(UserError, match="expected a number"):
        parse_options(cues.get("composite"), {"mask": mask, "alpha": mask}, "cue", recipe=True)


def test_functions_without_annotations_are_typed_by_their_defaults():
    def plain(picture, *, level=0.5, name="a", more=None, **rest):
        return picture

    texts = {"level": "1", "name": "2", "more": "[1]", "other": "3"}
    assert parse_options(plain, texts, "cue") == {"level": 1.0, "name": "2", "more": [1], "other": 3}


def test_a_cue_of_a_file(file):
    assert np.array_equal(call(f"{file}:darken", IMAGE, by=0.0), np.zeros_like(IMAGE))
    assert name_in_workers(f"{file}:darken") == f"{file}:darken"
    with pytest.raises(UserError, match="Did you mean 'by'"):
        parse_options(cues.get(f"{file}:darken"), {"bye": "1"}, "cue")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("breaks", r"cue 'python:.*mine.py:breaks' failed: ZeroDivisionError: by nothing"),
        ("floats", r"floats' returned \(4, 4, 3\) float64; expected an array \(4, 4, 3\) uint8"),
        ("strict", "level is 1"),
    ],
)
def test_a_cue_of_the_user_that_fails_is_a_user_error(file, name, message):
    with pytest.raises(UserError, match=message):
        call(f"{file}:{name}", IMAGE)


def test_a_bug_of_a_built_in_cue_is_not_hidden(monkeypatch):
    module = importlib.import_module("cuebench.cues.contrast")
    monkeypatch.setattr(module, "as_grey", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        call("contrast", IMAGE)


def test_an_object_of_this_session_has_no_name_in_workers():
    @CueInfo(kind="corruption", reference="none")
    def session_cue(image):
        return image

    try:
        assert name_in_workers(cues.resolve(session_cue)) == ""
    finally:
        cues.added.pop("session_cue", None)
    assert name_in_workers("contrast") == "contrast"


@pytest.mark.parametrize(("cue", "options"), [
    ("gaussian_blur", {"sigma": 1e300}),
    ("gaussian_blur", {"sigma": 1e-300}),
    ("contours", {"sigma": 1e300}),
    ("composite", {"size": 1e-300}),
    ("bilateral", {"diameter": 10**9}),
    ("bilateral", {"diameter": 10**20}),
])  # fmt: skip
def test_options_beyond_all_bounds_are_an_error_that_names_cue_and_options(cue: str, options: dict[str, Any]) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    images = (picture, picture) if "other" in cues.get(cue).info.needs else (picture,)
    masks = {"mask": picture[..., 0] > 127} if "mask" in cues.get(cue).info.needs else {}
    with pytest.raises(UserError) as caught:
        call(cue, *images, **masks, **options)
    (name,) = options
    assert name in caught.value.message
    assert caught.value.hint
