"""Corruption curves: accuracy, or mIoU, of every observer at every level of every corruption."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cuebench.reports.drawing import SOFT, Drawing, short_name
from cuebench.reports.figures.base import Figure
from cuebench.reports.panels import Line, Panel, aside, colour_of, legend
from cuebench.reports.run_data import scores
from cuebench.types import Score

PROTOCOL = "corruption_robustness"
_W, _H, _GAP, _COLUMNS = 330, 230, 70, 3
_LABELS = {
    "contrast": "contrast, share that is left",
    "high_pass": "standard deviation of the filter, pixels",
    "low_pass": "standard deviation of the filter, pixels",
    "uniform_noise": "width of the noise",
    "phase_noise": "width of the shifts, degrees",
    "phase_noise_corrected": "width of the shifts, degrees",
}


def corruption_curves(run: str | Path) -> Drawing:
    """Draw the quality at every level, mildest first, one panel for each corruption.

    Parameters
    ----------
    run : path
        A run folder with ``corruption_robustness``.
    """
    numbers = scores(run, PROTOCOL, "accuracy", "mean_iou")
    names = list(dict.fromkeys(s.observer for s in numbers))
    by = {(s.observer, s.condition): s for s in numbers}
    levels: dict[str, list[str]] = {}
    for condition in dict.fromkeys(s.condition for s in numbers if "/" in s.condition):
        levels.setdefault(condition.partition("/")[0], []).append(condition)
    rows = -(-len(levels) // _COLUMNS)
    page = Drawing(90 + _COLUMNS * (_W + _GAP) + 130, 100 + rows * (_H + 96))
    page.title = "Robustness to corruptions"
    page.text(30, 36, page.title, 19, bold=True)
    quality = "accuracy" if numbers[0].metric == "accuracy" else "mIoU"
    page.text(30, 57, f"{quality} by level, mildest first; whiskers: 95 % over images", 12, SOFT)
    for k, (kind, conditions) in enumerate(levels.items()):
        _panel(page, k, kind, conditions, names, by)
    entries = [(short_name(o, names), colour_of(i), False) for i, o in enumerate(names)]
    legend(page, 60 + _COLUMNS * (_W + _GAP), 110, entries)
    return page


def _panel(
    page: Drawing,
    k: int,
    kind: str,
    conditions: Sequence[str],
    names: Sequence[str],
    by: dict[tuple[str, str], Score],
) -> None:
    left, top = 80 + k % _COLUMNS * (_W + _GAP), 104 + k // _COLUMNS * (_H + 96)
    title = kind.replace("_", " ").replace(" corrected", ", corrected")
    plot = Panel(page, left, top, _W, _H, title, label=_LABELS.get(kind, "level"), chance=None)
    ordered = _mildest_first(conditions, names, by)
    places = [i / max(1, len(ordered) - 1) for i in range(len(ordered))]
    plot.ticks = [(p, c.partition("=")[2].replace("inf", "none")) for p, c in zip(places, ordered)]
    for number, observer in enumerate(names):
        placed = [(p, by[observer, c]) for p, c in zip(places, ordered) if (observer, c) in by]
        shift = aside(number, len(names))
        points, whiskers = [(p + shift, s.value) for p, s in placed], [(s.ci_low, s.ci_high) for _, s in placed]
        plot.lines.append(Line(observer, colour_of(number), points, whiskers))
    plot.draw()


def _mildest_first(conditions: Sequence[str], names: Sequence[str], by: dict[tuple[str, str], Score]) -> list[str]:
    """Sort by level, with the end first at which images are recognised better (contrast falls, noise grows)."""
    ordered = sorted(conditions, key=lambda c: float(c.partition("=")[2]))

    def mean(condition: str) -> float:
        return sum(by[o, condition].value for o in names if (o, condition) in by)

    return ordered[::-1] if mean(ordered[-1]) > mean(ordered[0]) else ordered


FIGURE = Figure("corruption_curves", "Robustness to corruptions", corruption_curves, protocol=PROTOCOL)
