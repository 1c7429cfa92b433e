"""Triplet curves: shape bias against background, size and place, models and their random initialisations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cuebench.options import Option
from cuebench.reports.drawing import SOFT, Drawing, short_name
from cuebench.reports.figures.base import Figure
from cuebench.reports.panels import Line, Panel, aside, colour_of, legend
from cuebench.reports.run_data import scores
from cuebench.types import Score

_W, _H, _GAP = 330, 250, 78
_RANDOM = "/random_initialisation"
_WHISKERS = {
    "widest": "the widest interval of each number",
    "images": "new images (anchors)",
    "shape_sources": "new shapes",
    "texture_sources": "new textures",
    "two_way": "new shapes and new textures",
}
PANELS = (
    (
        "Experiment 1: textured silhouettes",
        "experiment1/alpha={}",
        (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
        "background taken away (alpha)",
    ),
    ("Experiment 2: silhouettes, aligned", "experiment2/size={}/aligned", (0.2, 0.4, 0.6, 0.8, 1.0), "size"),
    ("Experiment 2: silhouettes, unaligned", "experiment2/size={}/unaligned", (0.2, 0.4, 0.6, 0.8, 1.0), "size"),
    ("Experiment 3: novel objects, aligned", "experiment3/size={}/aligned", (0.2, 0.4, 0.6, 0.8, 1.0), "size"),
    ("Experiment 3: novel objects, unaligned", "experiment3/size={}/unaligned", (0.2, 0.4, 0.6, 0.8, 1.0), "size"),
)
"""The five plots of the paper's figures 3 and 4."""


def triplet_curves(run: str | Path, *, kind: str = "widest") -> Drawing:
    """Draw shape bias over the conditions of the three experiments, with dashed lines for random initialisations.

    Parameters
    ----------
    run : path
        A run folder with ``triplets``.
    kind : str
        Interval of the whiskers: ``widest``, ``images`` (anchors), ``shape_sources``, ``texture_sources`` or
        ``two_way`` (new shapes and new textures).
    """
    numbers = scores(run, "triplets", "triplet_shape_bias", kind=kind)
    names = [o for o in dict.fromkeys(s.observer for s in numbers) if "#random" not in o]
    by = {(s.observer, s.condition): s for s in numbers}
    shown = [p for p in PANELS if any((o, p[1].format(f"{x:.1f}")) in by for o in names for x in p[2])]
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    page = Drawing(80 + columns * (_W + _GAP) + 150 * (rows == 1), 104 + rows * (_H + 96))
    page.title = "Triplet shape bias"
    page.text(30, 36, page.title, 19, bold=True)
    share = "share of triplets in which the same shape is more similar than the same texture"
    page.text(30, 57, f"{share}; whiskers: 95 %, {_WHISKERS[kind]}", 12, SOFT)
    for k, panel in enumerate(shown):
        _panel(page, k, columns, panel, names, by)
    entries = [(short_name(o, names), colour_of(i), False) for i, o in enumerate(names)]
    if any(s.condition.endswith(_RANDOM) for s in numbers):
        entries += [("random initialisations (mean)", "#6b7280", True)]
    spare = len(shown) % columns
    left = 80 + spare * (_W + _GAP) if spare else 80 + columns * (_W + _GAP)
    legend(page, left, 110 + (rows - 1) * (_H + 96), entries)
    if not spare:
        page.width = max(page.width, left + 220)
    return page


def _panel(
    page: Drawing,
    k: int,
    columns: int,
    panel: tuple[str, str, Sequence[float], str],
    names: Sequence[str],
    by: dict[tuple[str, str], Score],
) -> None:
    title, form, values, label = panel
    plot = Panel(page, 80 + k % columns * (_W + _GAP), 104 + k // columns * (_H + 96), _W, _H, title, label=label)
    places = [i / (len(values) - 1) for i in range(len(values))]
    plot.ticks = [(p, f"{v:.1f}" if "alpha" in form else f"{v:.0%}") for p, v in zip(places, values)]
    for number, observer in enumerate(names):
        for suffix in (_RANDOM, ""):
            rows = [(p, by.get((observer, form.format(f"{v:.1f}") + suffix))) for p, v in zip(places, values)]
            placed = [(p, s) for p, s in rows if s is not None]
            shift = aside(number, len(names))
            points, intervals = [(p + shift, s.value) for p, s in placed], [(s.ci_low, s.ci_high) for _, s in placed]
            plot.lines.append(Line(observer, colour_of(number), points, () if suffix else intervals, bool(suffix)))
    plot.draw()


FIGURE = Figure(
    "triplet_curves",
    "Triplet shape bias",
    triplet_curves,
    protocol="triplets",
    options={"kind": Option("widest", "interval of the whiskers", choices=tuple(_WHISKERS))},
)
