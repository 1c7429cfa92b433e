"""Figures by name, and the curves of corruptions: every point of every model, mildest level first."""

from __future__ import annotations

import json

import pytest

from cuebench import cli
from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.registry import figures
from cuebench.reports.draw import draw, drawable
from cuebench.reports.drawing import Drawing
from cuebench.reports.figures.base import Figure
from cuebench.reports.run_data import scores
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
    assert {"corruption_curves", "triplet_curves", "texture_sheet"} <= set(drawable()) <= set(names)
    assert "texture_of" not in drawable()  # needs an image: cuebench texture-of


@pytest.mark.parametrize("name", list(figures))
def test_every_figure_declares_itself(name):
    figure = figures.get(name)
    assert isinstance(figure, Figure)
    assert figure.name == name
    assert figure.title
    assert figures.origin(name)
    assert all(option.about for option in figure.options.values())


def test_options_are_parsed_by_their_declaration():
    as_text = draw("texture_sheet", options={"textures": "striped,dotted", "columns": "2", "colour": "no"})
    values = {"textures": ("striped", "dotted"), "columns": 2, "colour": False}
    assert as_text.svg() == draw("texture_sheet", options=values).svg()
    assert len(as_text.shapes) == 2 + 2 * 2  # title and subtitle, a tile and a name each


@pytest.mark.parametrize(
    ("name", "run", "options", "words"),
    [
        ("corruption_curve", None, {}, "Did you mean 'corruption_curves'"),
        ("corruption_curves", None, {}, "is drawn from a run of corruption_robustness"),
        ("bias_over_training", None, {}, "is drawn from a file"),
        ("texture_of", "x.png", {}, "is drawn from Python objects"),
        ("texture_sheet", "run", {}, "is not drawn from a run"),
        ("texture_sheet", None, {"columns": "two"}, "columns='two': expected a whole number ≥ 1"),
        ("texture_sheet", None, {"colour": "perhaps"}, "colour='perhaps': expected true or false"),
        ("texture_sheet", None, {"column": "2"}, "Did you mean 'columns'"),
        ("texture_sheet", None, {"columns": "0"}, "columns='0'"),
        ("triplet_curves", "run", {"kind": "twoway"}, "kind='twoway': expected one of widest, images"),
    ],
)
def test_mistakes(name, run, options, words):
    with pytest.raises(UserError, match=words):
        draw(name, run, options)


def test_bias_over_training_shows_all_numbers_or_the_headlines(tmp_path):
    names = [f"shape_bias/16-way/class={k}" for k in range(20)] + ["shape_bias/16-way"]
    history = [
        {"epoch": e, "values": dict.fromkeys(names, 0.1 * e), "headline": {"cue_conflict": "shape_bias/16-way"}}
        for e in (0, 5)
    ]
    (tmp_path / "h.json").write_text(json.dumps(history))
    everything = draw("bias_over_training", tmp_path / "h.json")
    assert all(name.rpartition("/")[2] in everything.svg() for name in names)
    assert max(s.at[1] for s in everything.shapes if s.kind == "text") < everything.height
    headline = draw("bias_over_training", tmp_path / "h.json", {"show": "headline"})
    assert "class=" not in headline.svg()
    assert len([s for s in headline.shapes if s.kind == "circle"]) == 2 + 1  # two epochs, and the legend


def dots(run, *, radius: float = 3.0) -> Drawing:
    """Draw a dot for every number of a run."""
    page = Drawing(100, 100, "dots")
    for s in scores(run, "corruption_robustness", "accuracy"):
        page.circle(50, 100 * s.value, radius, "#000000")
    return page


MINE = Figure("dots", "A dot for every number", dots, options={"radius": Option(3.0, "pixels", low=1)})


@pytest.fixture
def forget():
    yield
    figures.added.pop("dots", None)


def test_a_figure_of_the_user_is_drawn_as_the_built_in_ones_are(run, forget):
    drawing = draw(MINE, run, {"radius": "5"})
    assert [s.at[2] for s in drawing.shapes] == [5.0] * 16
    assert "dots" in drawable()
    assert draw("dots", run).shapes[0].at[2] == 3.0  # known by its name from now on
    assert figures.summary("dots") == "A dot for every number"
    with pytest.raises(UserError, match="radius='0': expected a number ≥ 1"):
        draw("dots", run, {"radius": "0"})


def test_a_figure_in_a_file_of_the_user(run, tmp_path, forget, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(
        "from cuebench.reports.drawing import Drawing\n"
        "from cuebench.reports.figures.base import Figure\n"
        "def draw(run):\n"
        "    return Drawing(30, 20, str(run))\n"
        "FIGURE = Figure('dots', 'Nothing', draw)\n"
        "NUMBER = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    assert cli.invoke(["figure", "python:mine.py:FIGURE", str(run)]) == 0
    assert capsys.readouterr().out.strip() == "dots.svg"
    assert (tmp_path / "dots.svg").read_text().startswith("<svg")
    assert cli.invoke(["figure", "python:mine.py:NUMBER", str(run)]) != 0
    assert "is not a figure: a int without draw" in capsys.readouterr().err


def test_options_and_function_cannot_disagree():
    with pytest.raises(UserError, match=r"option 'radius' has the default 4\.0"):
        Figure("dots", "", dots, options={"radius": Option(4.0)})
    with pytest.raises(UserError, match="give dots a keyword argument size=1"):
        Figure("dots", "", dots, options={"size": Option(1)})


# ------------------------------------------------------------------------------------------- numbers of a run


def test_each_number_is_read_once_with_its_widest_interval_or_the_chosen_one(tmp_path):
    narrow, wide, other = (
        Score("p", 1, "net", condition, "m", 0.5, 0.5 - half, 0.5 + half, kind)
        for condition, half, kind in (("a", 0.1, "images"), ("a", 0.3, "two_way"), ("b", 0.2, "seeds"))
    )
    write_scores(tmp_path, [narrow, wide, other], {})
    assert scores(tmp_path, "p", "m") == [wide, other]
    assert scores(tmp_path, "p", "m", kind="images") == [narrow, other]
    with pytest.raises(UserError, match="has no x or y of protocol p"):
        scores(tmp_path, "p", "x", "y")


def test_a_run_without_corruptions(tmp_path):
    write_scores(tmp_path, [], {})
    with pytest.raises(UserError, match="cuebench run -p corruption_robustness"):
        draw("corruption_curves", tmp_path)
