"""Figures by name, and the curves of corruptions: every point of every model, mildest level first."""

from __future__ import annotations

import json

import pytest

from cuebench import cli
from cuebench.errors import UserError
from cuebench.reports.draw import draw, drawable
from cuebench.runs.results import write_scores
from cuebench.types import Score

LEVELS = {
    "contrast/level=": (0.1, 0.5, 1.0),
    "uniform_noise/width=": (0.0, 0.3),
    "high_pass/sigma=": (0.4, float("inf")),
}


def row(observer, condition, value):
    return Score(
        "corruption_robustness", 1, observer, condition, "accuracy", value, value - 0.05, value + 0.05, "images", 9
    )


@pytest.fixture
def run(tmp_path):
    rows = [row(o, "clean", 0.9) for o in ("lite:one", "two")]
    for observer in ("lite:one", "two"):
        for form, levels in LEVELS.items():
            worse_with_level = form.startswith("uniform")
            for i, level in enumerate(levels):
                rows.append(row(observer, f"{form}{level:g}", 0.8 - 0.2 * i if worse_with_level else 0.2 + 0.2 * i))
    write_scores(tmp_path, rows, {})
    return tmp_path


def test_every_point_is_drawn_and_the_mildest_level_is_first(run):
    drawing = draw("corruption_curves", run)
    dots = [s for s in drawing.shapes if s.kind == "circle" and s.at[2] == 3.6]
    assert len(dots) == 2 * 7 + 2  # every point, and two in the legend
    words = [s.text for s in drawing.shapes if s.kind == "text"]
    assert words.index("1") < words.index("0.5") < words.index("0.1")
    assert words.index("none") < words.index("0.4", words.index("high pass") + 7)  # behind the ticks of the axis
    assert words.index("0", words.index("uniform noise")) < words.index("0.3")


def test_the_command_line(run, tmp_path, capsys):
    target = tmp_path / "made" / "curves.png"
    assert cli.invoke(["figure", "corruption_curves", str(run), "--out", str(target), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"figure": "corruption_curves", "file": str(target)}
    assert target.read_bytes().startswith(b"\x89PNG")


def test_listed_figures_can_be_drawn(capsys):
    assert cli.invoke(["list", "figures", "--json"]) == 0
    names = [r["name"] for r in json.loads(capsys.readouterr().out)]
    assert names == drawable()
    assert {"corruption_curves", "triplet_curves", "texture_sheet"} <= set(names)
    assert "texture_of" not in names  # needs an image: cuebench texture-of


def test_options_are_text_of_the_right_kind():
    assert len(draw("texture_sheet", options={"textures": "striped,dotted", "columns": "2"}).shapes) < 20


@pytest.mark.parametrize(
    ("name", "run", "options", "words"),
    [
        ("corruption_curve", None, {}, "Did you mean 'corruption_curves'"),
        ("corruption_curves", None, {}, "is drawn from a run"),
        ("texture_sheet", None, {"columns": "two"}, "expected a int"),
        ("texture_sheet", None, {"colour": "perhaps"}, "expected a bool"),
        ("texture_sheet", None, {"column": "2"}, "Did you mean 'columns'"),
        ("texture_sheet", None, {"columns": "0"}, "columns is 0"),
    ],
)
def test_mistakes(name, run, options, words):
    with pytest.raises(UserError, match=words):
        draw(name, run, options)


def test_a_run_without_corruptions(tmp_path):
    write_scores(tmp_path, [], {})
    with pytest.raises(UserError, match="has no corruptions"):
        draw("corruption_curves", tmp_path)
