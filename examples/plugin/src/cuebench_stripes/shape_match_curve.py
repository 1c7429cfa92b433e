"""Shape match against the contrast of the stripes, one curve for each observer."""

from __future__ import annotations

from pathlib import Path

from cuebench.reports.drawing import SOFT, Drawing, short_name
from cuebench.reports.figures.base import Figure
from cuebench.reports.panels import Line, Panel, colour_of, legend
from cuebench.reports.run_data import scores

_WIDTH, _HEIGHT = 420, 280


def shape_match_curve(run: str | Path) -> Drawing:
    """Draw how the shape match changes with the contrast of the stripes.

    Parameters
    ----------
    run : path
        A run folder with ``striped_objects``.
    """
    numbers = scores(run, "striped_objects", "shape_match")
    observers = list(dict.fromkeys(s.observer for s in numbers))
    page = Drawing(80 + _WIDTH + 260, 110 + _HEIGHT + 70, title="Shape match behind stripes")
    page.text(30, 36, page.title, 19, bold=True)
    page.text(30, 57, "share of comparisons won by the same shape; whiskers: the widest 95 % interval", 12, SOFT)
    panel = Panel(page, 80, 100, _WIDTH, _HEIGHT, label="contrast of the stripes")
    panel.ticks = [(contrast, f"{contrast:g}") for contrast in sorted({_contrast(s.condition) for s in numbers})]
    for number, observer in enumerate(observers):
        rows = sorted((s for s in numbers if s.observer == observer), key=lambda s: _contrast(s.condition))
        points = [(_contrast(s.condition), s.value) for s in rows]
        panel.lines.append(Line(observer, colour_of(number), points, [(s.ci_low, s.ci_high) for s in rows]))
    panel.draw()
    names = [short_name(observer, observers) for observer in observers]
    legend(page, 80 + _WIDTH + 24, 116, [(name, colour_of(k), False) for k, name in enumerate(names)])
    return page


def _contrast(condition: str) -> float:
    return float(condition.removeprefix("contrast="))


FIGURE = Figure(
    name="shape_match_curve",
    title="Shape match behind stripes",
    draw=shape_match_curve,
    protocol="striped_objects",
)
