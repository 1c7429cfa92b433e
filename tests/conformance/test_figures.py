"""Every registered figure draws from a planted run, and the check finds what a figure does wrong."""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from cuebench.analyses.texture_of import TextureOf, Tie
from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.published.agree import Agreement
from cuebench.registry import figures
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import table
from cuebench.reports.picture import Picture
from cuebench.reports.vega import alt
from cuebench.runs.evaluate import evaluate
from cuebench.runs.results import read_scores, write_scores
from cuebench.testing import IDEAL, CheckFailed, check_figure
from cuebench.types import Score
from planted_runs import SOURCES

pytest.importorskip("altair", reason="figures need the extra 'report': pip install 'cuebench[report]'")

DATA = {
    "texture_association": "textures_and_photographs",
    "corruption_robustness": "photographs",
    "refined_bias": "pure_cues",
    "cue_conflict": "conflicts",
    "textured_silhouettes": "silhouettes",
    "human_alignment": "human_alignment",
}
"""Protocol → the small data root that its planted run is measured with."""
ELSEWHERE = {"segmentation_grid", "tav_layers", "texture_disagreements", "texture_judgements",
             "texture_agreement_classes"}  # fmt: skip
"""Figures that need a run with more in it: kept masks, layers, people's answers (tests/reports/test_paper_figures)."""
HISTORY = [
    {"epoch": e, "values": {"triplet_shape_bias/experiment3": v}, "low": {}, "high": {}}
    for e, v in ((0, 0.3), (1, 0.5))
]


@pytest.fixture(scope="module")
def planted_run(small_root, tmp_path_factory):
    """Return the run folder of a protocol with ideal observers, made when it is first asked for."""
    runs = {}

    def run(protocol):
        if protocol not in runs:
            root = small_root(DATA[protocol]) if protocol in DATA else None
            runs[protocol] = tmp_path_factory.mktemp(protocol) / "run"
            evaluate(IDEAL, protocol, data_root=root, out=runs[protocol], resamples=100, workers=0)
        return runs[protocol]

    return run


@pytest.mark.parametrize(
    "name",
    [n for n, figure in figures.usable() if figure.needs in ("run", "nothing") and n not in ELSEWHERE],
)
def test_figure(name, planted_run, tmp_path):
    figure = figures.get(name)
    options = {"texture_sheet": {"textures": ("woven", "fur")}, "triplet_sheet": {"trials": 1}}.get(name, {})
    if figure.needs == "nothing":
        source = None
    elif name == "accuracy_vs_bias":
        source = two_protocols(tmp_path)
    elif name in SOURCES:
        source = SOURCES[name](tmp_path)
    else:
        source = planted_run(figure.protocol or "cue_conflict")
    check_figure(name, with_layers(source) if name == "layer_profile" else source, options=options)


def with_layers(run):
    """Return a run folder in which every number of the triplets also exists for two layers."""
    rows = read_scores(run)
    layers = [replace(r, condition=f"{r.condition}/layer={n}") for r in rows for n in ("first", "second")]
    copy = run.with_name("with_layers")
    write_scores(copy, [*rows, *layers], {})
    return copy


def two_protocols(folder):
    """Return a folder of scores of six models in two protocols."""
    rows = []
    for k in range(6):
        for protocol, condition, metric in (
            ("imagenet_accuracy", "top1", "accuracy"),
            ("cue_conflict", "16-way", "shape_bias"),
        ):
            value = 0.3 + 0.1 * k
            rows.append(
                Score(protocol, 1, f"net{k}", condition, metric, value, value - 0.05, value + 0.05, "images", 99)
            )
    write_scores(folder, rows, {})
    return folder


def test_figure_of_a_training(tmp_path):
    file = tmp_path / "bias.json"
    file.write_text(json.dumps(HISTORY))
    check_figure("bias_over_training", file)


def test_figure_of_an_image():
    ties = (Tie("woven", 0.8), Tie("fur", 0.1))
    result = TextureOf("net", "woven", 0.8, ties, ties, ties, "cat", None, "it looks woven")
    image = Image.fromarray(np.full((32, 32, 3), 90, np.uint8))
    check_figure("texture_of", (result, image))


def test_figure_of_agreements():
    pairs = [Agreement("a/x", f"b/{k}", "published", 9 + k, 0.5 - k / 2, 0.1 - k / 2, 0.8 - k / 2, 0.4) for k in (0, 1)]
    check_figure("published_agreement", (pairs,))


@pytest.mark.parametrize("name", ["study_accuracy", "study_people"])
def test_figures_of_a_study(name, tmp_path):
    def row(part, over):
        ends = [{"over": text, "low": 0.6, "high": 0.9, "note": ""} for text in over]
        return {
            "measure": "accuracy",
            "task": "shape",
            "part": part,
            "value": 0.8,
            "intervals": ends,
            "n": 9,
            "people": 3,
        }

    rows = [row(part, ("people and images", "people")) for part in ("", "class=cat", "class=dog")]
    rows += [{**row(f"person=p{k}", ("images",)), "note": f"group {'AB'[k % 2]}"} for k in range(3)]
    file = tmp_path / "analysis.json"
    file.write_text(json.dumps({"rows": rows}))
    check_figure(name, file)


def test_one_thing():
    from cuebench.published.one_thing import published_structures

    check_figure("one_thing", (published_structures(),))


def test_every_figure_is_checked_here():
    other = {name for name, figure in figures.usable() if figure.needs in ("file", "objects")}
    assert other == {
        "bias_over_training",
        "texture_of",
        "published_agreement",
        "one_thing",
        "study_accuracy",
        "study_people",
    }


# ------------------------------------------------------------------------------------- what the check must find


def bars(values=(0.2, 0.7), *, title="A <chart> & more", room_used=1.0, axis=None, more=()):
    """Return a picture with one bar for each value."""
    rows = [{"name": f"<b>{k}</b>", "value": value} for k, value in enumerate(values)]

    def build(room):
        x = alt.X("value:Q", axis=axis) if axis else "value:Q"
        chart = alt.Chart(table(rows)).mark_bar().encode(x=x, y="name:N").properties(width=room * room_used, height=40)
        return alt.hconcat(chart, *more) if more else chart

    return Picture(title, build, rows)


def chart(*, size: int = 2, mode: str = "bars") -> Picture:
    """Draw bars.

    Parameters
    ----------
    size : int
        How many.
    mode : str
        What they show.
    """
    return bars([0.5] * size if mode == "bars" else [math.nan])


OPTIONS = {"size": Option(2, "how many", low=1), "mode": Option("bars", "what they show", choices=("bars",))}
GOOD = Figure("chart", "A chart", chart, needs="nothing", options=OPTIONS)


def empty_panel() -> Picture:
    """Draw bars beside nothing."""
    return bars(
        more=[alt.Chart(table([{"name": "a", "value": None}])).mark_point().encode(x="value:Q").properties(width=20)],
        room_used=0.6,
    )


def text_only() -> Picture:
    """Draw words."""
    rows = [{"text": "nothing here"}]
    return Picture("Words", lambda room: alt.Chart(table(rows)).mark_text().encode(text="text:N"), rows)


def no_data() -> Picture:
    """Draw bars and keep their data."""
    return replace(bars(), data=())


def untitled() -> Picture:
    """Draw bars without a title."""
    return bars(title="")


def clock() -> Picture:
    """Draw the time."""
    return bars([time.perf_counter_ns() % 97])


def too_wide() -> Picture:
    """Draw bars without regard to the room."""
    return replace(bars(), build=lambda room: bars().build(900))


def invalid() -> Picture:
    """Draw bars with an axis that does not exist."""
    return replace(bars(), build=lambda room: alt.Chart(table([{"x": 1}])).mark_bar().encode(x=alt.X("x:Q", sort=7)))


def from_elsewhere() -> Picture:
    """Draw the data of somebody else."""
    rows = [{"x": 1}]
    return Picture("Elsewhere", lambda room: alt.layer(
        bars().build(room), alt.Chart("http://localhost/x.json").mark_point().encode(x="x:Q")), rows)  # fmt: skip


def undocumented() -> Picture:
    return bars()


def any_run(run) -> Picture:
    """Draw bars, whatever the run is."""
    return bars()


def refuses(run) -> Picture:
    """Refuse every run."""
    raise UserError("no")


def words() -> str:
    """Return words."""
    return "<svg/>"


def other(draw, **fields):
    return Figure("other", "Another", draw, **{"needs": "nothing", **fields})


def test_a_good_figure_passes_as_object_and_from_a_file(tmp_path):
    check_figure(GOOD)
    file = tmp_path / "mine.py"
    file.write_text(
        "from cuebench.reports.figures.base import Figure\n"
        "from cuebench.reports.picture import Picture\n"
        "from cuebench.reports.vega import alt, data\n"
        "ROWS = [{'x': 1}]\n"
        "def dot():\n    '''Draw a dot.'''\n"
        "    chart = alt.Chart(data(ROWS)).mark_point().encode(x='x:Q')\n"
        "    return Picture('A dot', lambda room: chart.properties(width=room), ROWS)\n"
        "MINE = Figure('dot', 'A dot', dot, needs='nothing')\n"
    )
    check_figure(f"python:{file}:MINE")


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        (replace(GOOD, name="a chart"), "expected a name of letters"),
        (replace(GOOD, title=""), "has no title"),
        (other(undocumented), "its function has no docstring"),
        (other(chart, needs="magic"), "expected needs to be one of"),
        (other(chart, protocol="magic"), "shows the protocol 'magic'"),
        (other(chart, options={"size": Option(2)}), "option 'size' does not say"),
        (other(any_run, needs="run"), "expected an error for a run that is not there"),
        (other(refuses, needs="run"), "expected a hint for a run that is not there, got: no"),
        (other(words), "expected a Picture, got a str"),
        (other(untitled), "its picture has no title"),
        (other(no_data), "expected the data that it shows, got none"),
        (other(text_only), "expected marks in every panel, the chart has none"),
        (other(empty_panel), "expected marks in every panel, the panel 'concat_1' has none"),
        (other(invalid), "expected valid Vega-Lite"),
        (other(from_elsewhere), "expected no data from elsewhere, got"),
        (other(clock), "expected the same picture each time"),
        (other(too_wide), "expected at most 240 points, got"),
        (
            replace(GOOD, options={"mode": Option("bars", "what", choices=("bars", "nothing"))}),
            "with {'mode': 'nothing'}: expected marks",
        ),
        (chart, "expected a Figure, got a function"),
    ],
)
def test_a_broken_figure_is_found_out(figure, message):
    with pytest.raises(CheckFailed, match=message):
        check_figure(figure)


def test_a_figure_of_a_file_must_be_given_one():
    with pytest.raises(UserError, match="is drawn from file") as raised:
        check_figure("bias_over_training")
    assert raised.value.hint == "give source="
