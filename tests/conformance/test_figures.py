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
from cuebench.registry import figures
from cuebench.reports.drawing import FAINT, Drawing
from cuebench.reports.figures.base import Figure
from cuebench.reports.panels import Line, Panel
from cuebench.runs.evaluate import evaluate
from cuebench.runs.results import read_scores, write_scores
from cuebench.testing import IDEAL, CheckFailed, check_figure

DATA = {
    "texture_association": "textures_and_photographs",
    "corruption_robustness": "photographs",
    "human_alignment": "human_alignment",
}
"""Protocol → the small data root that its planted run is measured with."""
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


@pytest.mark.parametrize("name", [name for name, figure in figures.usable() if figure.needs in ("run", "nothing")])
def test_figure(name, planted_run):
    figure = figures.get(name)
    source = planted_run(figure.protocol) if figure.needs == "run" else None
    options = {"textures": ("woven", "fur")} if name == "texture_sheet" else {}
    check_figure(name, with_layers(source) if name == "layer_profile" else source, options=options)


def with_layers(run):
    """Return a run folder in which every number of the triplets also exists for two layers."""
    rows = read_scores(run)
    layers = [replace(r, condition=f"{r.condition}/layer={n}") for r in rows for n in ("first", "second")]
    copy = run.with_name("with_layers")
    write_scores(copy, [*rows, *layers], {})
    return copy


def test_figure_of_a_training(tmp_path):
    file = tmp_path / "bias.json"
    file.write_text(json.dumps(HISTORY))
    check_figure("bias_over_training", file)


def test_figure_of_an_image():
    ties = (Tie("woven", 0.8), Tie("fur", 0.1))
    result = TextureOf("net", "woven", 0.8, ties, ties, ties, "cat", None, "it looks woven")
    image = Image.fromarray(np.full((32, 32, 3), 90, np.uint8))
    check_figure("texture_of", (result, image))


def test_every_figure_is_checked_here():
    other = {name for name, figure in figures.usable() if figure.needs in ("file", "objects")}
    assert other == {"bias_over_training", "texture_of"}


# ------------------------------------------------------------------------------------- what the check must find


def square(*, side: int = 20, mode: str = "blue") -> Drawing:
    """Draw a square.

    Parameters
    ----------
    side : int
        In pixels.
    mode : str
        Its colour.
    """
    page = Drawing(60, 60, title="A <square> & more")
    page.text(5, 10, "A <square> & more")
    page.rect(5, 20, side, side, {"blue": "#2f6fdb", "red": "#d1495b", "grey": FAINT}[mode])
    return page


OPTIONS = {"side": Option(20, "in pixels", low=1), "mode": Option("blue", "colour", choices=("blue", "red"))}
GOOD = Figure("square", "A square", square, needs="nothing", options=OPTIONS)


def panel(points):
    """Return a function that draws a panel with these points."""

    def draw() -> Drawing:
        """Draw a panel."""
        page = square()
        plot = Panel(page, 10, 10, 40, 40, title="A panel")
        plot.lines.append(Line("x", "#2f6fdb", points))
        plot.draw()
        return page

    return draw


def axes_only() -> Drawing:
    """Draw axes."""
    page = Drawing(60, 60)
    page.line(5, 5, 5, 50)
    page.text(5, 10, "nothing here")
    return page


def nowhere() -> Drawing:
    """Draw a square at no place."""
    page = square()
    page.rect(math.nan, 1, 1, 1, "#2f6fdb")
    return page


def clock() -> Drawing:
    """Draw the time."""
    page = square()
    page.text(5, 50, str(time.perf_counter_ns()))
    return page


def no_size() -> Drawing:
    """Draw on no paper."""
    page = square()
    page.width = 0
    return page


def undocumented() -> Drawing:
    return square()


def any_run(run) -> Drawing:
    """Draw a square, whatever the run is."""
    return square()


def refuses(run) -> Drawing:
    """Refuse every run."""
    raise UserError("no")


def other(draw, **fields):
    return Figure("other", "Another", draw, **{"needs": "nothing", **fields})


def test_a_good_figure_passes_as_object_and_from_a_file(tmp_path):
    check_figure(GOOD)
    check_figure(other(panel([(0.5, 0.5)])))
    file = tmp_path / "mine.py"
    file.write_text(
        "from cuebench.reports.drawing import Drawing\nfrom cuebench.reports.figures.base import Figure\n"
        "def dot():\n    '''Draw a dot.'''\n    page = Drawing(9, 9)\n"
        "    page.circle(4, 4, 3, '#2f6fdb')\n    return page\n"
        "MINE = Figure('dot', 'A dot', dot, needs='nothing')\n"
    )
    check_figure(f"python:{file}:MINE")


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        (replace(GOOD, name="a square"), "expected a name of letters"),
        (replace(GOOD, title=""), "has no title"),
        (other(undocumented), "its function has no docstring"),
        (other(square, needs="magic"), "expected needs to be one of"),
        (other(square, protocol="magic"), "shows the protocol 'magic'"),
        (other(square, options={"side": Option(20)}), "option 'side' does not say"),
        (other(any_run, needs="run"), "expected an error for a run that is not there"),
        (other(refuses, needs="run"), "expected a hint for a run that is not there, got: no"),
        (other(lambda: "<svg/>"), "its function has no docstring"),
        (other(axes_only), "expected marks, got nothing but text and axes"),
        (other(nowhere), "expected finite coordinates, got a rect"),
        (other(panel([])), "expected a curve in every panel, the one titled 'A panel' is empty"),
        (other(panel([(0.1, math.nan)])), "the one titled 'A panel' is empty"),
        (other(clock), "expected the same SVG each time"),
        (other(no_size), "expected a width and a height above 0"),
        (
            replace(GOOD, options={"mode": Option("blue", "colour", choices=("blue", "grey"))}),
            "with {'mode': 'grey'}: expected marks",
        ),
        (square, "expected a Figure, got a function"),
    ],
)
def test_a_broken_figure_is_found_out(figure, message):
    with pytest.raises(CheckFailed, match=message):
        check_figure(figure)


def test_a_figure_of_a_file_must_be_given_one():
    with pytest.raises(UserError, match="is drawn from file") as raised:
        check_figure("bias_over_training")
    assert raised.value.hint == "give source="
