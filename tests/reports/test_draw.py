"""Figures by name, their options, and the curves of corruptions: every point of every model, mildest level first."""

from __future__ import annotations

import json

import pytest

from cuebench import cli
from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.registry import figures
from cuebench.reports import vega
from cuebench.reports.draw import draw, drawable
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import table
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import scores
from cuebench.reports.vega import alt
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
    picture = draw("corruption_curves", run)
    spec = picture.unfitted(480, 504)
    assert sum(marks["symbol"] for marks in vega.drawn(spec).values()) == 2 * 7
    assert len(vega.drawn(spec)) == len(LEVELS)
    order = {r["condition"]: r["position"] for r in picture.data}
    assert order["contrast/level=1"] < order["contrast/level=0.5"] < order["contrast/level=0.1"]
    assert order["high_pass/sigma=inf"] < order["high_pass/sigma=0.4"]
    assert order["uniform_noise/width=0"] < order["uniform_noise/width=0.3"]
    assert {r["name"] for r in picture.data} == {"one", "two"}


def test_the_command_line(run, tmp_path, capsys):
    target = tmp_path / "made" / "curves.png"
    call = ["figure", "corruption_curves", str(run), "--out", str(target), "--width", "column", "--json"]
    assert cli.invoke(call) == 0
    data = tmp_path / "made" / "curves.data.csv"
    assert json.loads(capsys.readouterr().out) == {
        "figure": "corruption_curves", "file": str(target), "data": str(data)
    }  # fmt: skip
    assert target.read_bytes().startswith(b"\x89PNG")
    assert len(data.read_text().splitlines()) == 1 + 2 * 7


def test_listed_figures_can_be_drawn(capsys):
    assert cli.invoke(["list", "figures", "--json"]) == 0
    names = [r["name"] for r in json.loads(capsys.readouterr().out)]
    assert {"corruption_curves", "triplet_curves", "texture_sheet", "shape_bias"} <= set(drawable()) <= set(names)
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
    assert as_text.unfitted(200, 240) == draw("texture_sheet", options=values).unfitted(200, 240)
    assert [r["texture"] for r in as_text.data] == ["striped", "dotted"]


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
    history[1]["values"]["decided_fraction/16-way"] = 0.5
    (tmp_path / "h.json").write_text(json.dumps(history))
    usual = draw("bias_over_training", tmp_path / "h.json")
    assert {r["number"] for r in usual.data} == set(names)
    everything = draw("bias_over_training", tmp_path / "h.json", {"show": "all"})
    assert {r["number"] for r in everything.data} == {*names, "decided_fraction/16-way"}
    headline = draw("bias_over_training", tmp_path / "h.json", {"show": "headline"})
    assert [(r["number"], r["epoch"]) for r in headline.data] == [("shape_bias/16-way", 0), ("shape_bias/16-way", 5)]


def dots(run, *, size: float = 3.0) -> Picture:
    """Draw a dot for every number of a run."""
    rows = [{"value": s.value, "size": size} for s in scores(run, "corruption_robustness", "accuracy")]
    return Picture("Dots", lambda room: alt.Chart(table(rows)).mark_point().encode(x="value:Q"), rows)


MINE = Figure("dots", "A dot for every number", dots, options={"size": Option(3.0, "points", low=1)})


@pytest.fixture
def forget():
    yield
    figures.added.pop("dots", None)


def test_a_figure_of_the_user_is_drawn_as_the_built_in_ones_are(run, forget):
    assert [r["size"] for r in draw(MINE, run, {"size": "5"}).data] == [5.0] * 16
    assert "dots" in drawable()
    assert draw("dots", run).data[0]["size"] == 3.0  # known by its name from now on
    assert figures.summary("dots") == "A dot for every number"
    with pytest.raises(UserError, match="size='0': expected a number ≥ 1"):
        draw("dots", run, {"size": "0"})


def test_a_figure_in_a_file_of_the_user(run, tmp_path, forget, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(
        "from cuebench.reports.figures.base import Figure\n"
        "from cuebench.reports.picture import Picture\n"
        "def draw(run):\n"
        "    return Picture(str(run), None, [{'x': 1}])\n"
        "FIGURE = Figure('dots', 'Nothing', draw)\n"
        "NUMBER = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    assert cli.invoke(["figure", "python:mine.py:FIGURE", str(run), "--out", "dots.csv"]) == 0
    assert capsys.readouterr().out.strip() == "dots.csv"
    assert (tmp_path / "dots.csv").read_text() == "x\n1\n"
    assert cli.invoke(["figure", "python:mine.py:NUMBER", str(run)]) != 0
    assert "is not a figure: a int without draw" in capsys.readouterr().err


def test_options_and_function_cannot_disagree():
    with pytest.raises(UserError, match=r"option 'size' has the default 4\.0"):
        Figure("dots", "", dots, options={"size": Option(4.0)})
    with pytest.raises(UserError, match="give dots a keyword argument radius=1"):
        Figure("dots", "", dots, options={"radius": Option(1)})


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


def test_several_runs_are_drawn_together_unless_they_have_the_same_observer(run, tmp_path):
    other = tmp_path / "other"
    write_scores(other, [row("three", f"contrast/level={level:g}", 0.4) for level in (0.1, 0.5, 1)], {})
    assert {r["name"] for r in draw("corruption_curves", [run, other]).data} == {"one", "two", "three"}
    with pytest.raises(UserError, match="lite:one has scores of corruption_robustness in"):
        draw("corruption_curves", [run, write_copy(run, tmp_path / "copy")])


def write_copy(run, folder):
    write_scores(folder, [row("lite:one", "contrast/level=1", 0.4)], {})
    return folder


def test_a_run_without_corruptions(tmp_path):
    write_scores(tmp_path, [], {})
    with pytest.raises(UserError, match="cuebench run -p corruption_robustness"):
        draw("corruption_curves", tmp_path)
