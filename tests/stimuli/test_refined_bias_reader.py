"""Reading REFINED-BIAS folders, and the data check."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from cuebench.errors import UserError
from cuebench.stimuli.readers.refined_bias import facts, parse, read
from cuebench.stimuli.refined_bias.check import defects, summary
from cuebench.types import Stimulus, StimulusSet


def save(path, value=0, size=224, mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((size, size), value, np.uint8)).convert(mode).save(path)


def test_names():
    result = parse("32x32_brain_coral_299")
    assert (result.texture, result.texture_source, facts(result)) == ("brain_coral", "brain_coral_299", {"patch": "32"})
    assert parse("soccer_ball_0").shape == "soccer_ball"
    for bad in ("balloon", "4x8_tiger_1", "_3", "4x4_tiger", "3_4"):
        assert parse(bad) is None, bad
    assert parse("tiger_1", "texture") is None
    assert parse("4x4_tiger_1", "shape") is None


def test_a_folder(tmp_path):
    save(tmp_path / "refined_bias_shape" / "clock" / "clock_1.png", 1)
    save(tmp_path / "refined_bias_texture" / "tiger" / "8x8_tiger_0.png", 2, mode="L")
    stimuli = read(tmp_path, expected=6000)
    assert [(s.id, s.shape, s.texture, s.condition) for s in stimuli] == [
        ("8x8_tiger_0", "", "tiger", "patch=8&mode=L"),
        ("clock_1", "clock", "", ""),
    ]
    assert stimuli.partial == ("2 of 6,000 stimuli",)
    assert all(len(s.sha256) == 64 and s.width == 224 for s in stimuli)


def test_one_cue_alone_is_partial(tmp_path):
    save(tmp_path / "refined_bias_shape" / "clock" / "clock_1.png")
    assert read(tmp_path).partial == ("no texture cues",)


def test_a_made_set_knows_its_size(tmp_path):
    save(tmp_path / "refined_bias_shape" / "clock" / "clock_1.png")
    (tmp_path / "made.json").write_text(json.dumps({"count": 3}))
    assert read(tmp_path).partial[0] == "1 of 3 stimuli"
    (tmp_path / "made.json").write_text("{}")
    with pytest.raises(UserError, match="not a record"):
        read(tmp_path)


def test_all_problems_at_once(tmp_path):
    save(tmp_path / "refined_bias_shape" / "clock" / "mouse_1.png")
    save(tmp_path / "refined_bias_shape" / "clock" / "clock.png")
    save(tmp_path / "refined_bias_texture" / "tiger" / "tiger_1.png")
    save(tmp_path / "refined_bias_texture" / "loose.png")
    (tmp_path / "refined_bias_texture" / "tiger" / "4x4_tiger_2.png").write_bytes(b"")
    with pytest.raises(UserError) as error:
        read(tmp_path)
    for part in ("5 problems", "says class 'mouse'", "not <class>_<i>", "<G>x<G>", "0 folders deep", "empty"):
        assert part in error.value.message


def test_nothing_there(tmp_path):
    with pytest.raises(UserError, match="no stimuli found"):
        read(tmp_path)
    with pytest.raises(UserError, match="does not exist"):
        read(tmp_path / "nowhere")


def test_defects_of_every_kind():
    size, a = {"width": 224, "height": 224}, "a" * 64
    stimuli = StimulusSet(
        "x",
        (
            Stimulus("book_1", "p1", a, shape="book", **size),
            Stimulus("book_2", "p2", a, shape="book", **size),
            Stimulus("clock_1", "p3", "b" * 64, width=129, height=129, shape="clock"),
            Stimulus("clock_2", "p4", "c" * 64, shape="clock", condition="mode=L", **size),
            Stimulus("ipod_1", "p5", "d" * 64, shape="ipod", **size),
            Stimulus("mouse_1", "p6", "d" * 64, shape="mouse", **size),
        ),
    )
    result = defects(stimuli)
    assert [(d.stimulus, d.kind) for d in result] == [
        ("book_2", "duplicate"),
        ("clock_1", "size"),
        ("clock_2", "greyscale"),
        ("ipod_1", "label"),
        ("mouse_1", "label"),
    ]
    assert "the same bytes as p1" in result[0].detail
    assert summary(result, 6) == "1 not 224×224, 1 greyscale, 1 duplicates, 2 ambiguous copies (5 of 6 files)"
    assert summary([], 6) == "no defect in 6 files"
