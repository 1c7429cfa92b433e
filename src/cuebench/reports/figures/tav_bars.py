"""TAV bars: the strongest texture–class pairs of a model with their intervals (figure 7 of the paper)."""

from __future__ import annotations

import math
from pathlib import Path

from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.reports.drawing import FAINT, INK, SERIES, SOFT, Drawing, short_name, shorten
from cuebench.reports.figures.base import Figure
from cuebench.reports.run_data import OBSERVER, PROTOCOL, choose_observer, scores
from cuebench.types import Score

_ROW, _LEFT, _WIDTH, _TOP = 17, 250, 420, 74


def tav_bars(run: str | Path, *, observer: str = "", number: int = 50) -> Drawing:
    """Draw the pairs with the largest TAV as bars, with their 95 % intervals over pictures.

    Parameters
    ----------
    run : path
        A run folder with ``texture_association``.
    observer : str
        Whole name or a part of it; default: the first of the run.
    number : int
        How many pairs; a run keeps the 50 strongest.
    """
    of_pairs = [s for s in scores(run, PROTOCOL, "texture_association") if s.condition.startswith("pair/")]
    if not of_pairs:
        raise UserError(f"{run} has no texture that is tied to a class", "were the textures shown? see run.json")
    name = choose_observer((s.observer for s in of_pairs), observer)
    pairs = [s for s in of_pairs if s.observer == name][:number]
    page = Drawing(_LEFT + _WIDTH + 70, _TOP + len(pairs) * _ROW + 40)
    page.title = f"Strongest texture associations of {short_name(name)}"
    page.text(20, 30, page.title, 17, bold=True)
    page.text(20, 48, "texture → class, texture association value, 95 % interval over pictures", 11.5, SOFT)
    top = _ceiling(max(max(s.value, s.ci_high if math.isfinite(s.ci_high) else 0) for s in pairs))
    _axis(page, len(pairs), top)
    textures = list(dict.fromkeys(_names(s)[0] for s in pairs))
    for k, score in enumerate(pairs):
        _bar(page, k, score, SERIES[textures.index(_names(score)[0]) % len(SERIES)], top)
    return page


def _names(score: Score) -> tuple[str, str]:
    _, texture, label = score.condition.split("/", 2)
    return texture.removeprefix("texture=").replace("_", " "), label.removeprefix("class=")


def _ceiling(value: float) -> float:
    """Return the end of the axis: the next of a few round numbers."""
    return next((n for n in (0.05, 0.1, 0.2, 0.3, 0.5, 0.75) if value <= n), 1.0)


def _axis(page: Drawing, count: int, top: float) -> None:
    bottom = _TOP + count * _ROW
    for k in range(6):
        x = _LEFT + _WIDTH * k / 5
        page.line(x, _TOP - 4, x, bottom + 4, FAINT)
        page.text(x, bottom + 18, f"{top * k / 5:.2f}", 10.5, SOFT, anchor="middle")


def _bar(page: Drawing, k: int, score: Score, colour: str, top: float) -> None:
    texture, label = _names(score)
    unit = _WIDTH / top
    y = _TOP + k * _ROW
    page.text(_LEFT - 10, y + 12, f"{texture} → {shorten(label, 24)}", 11, anchor="end")
    page.rect(_LEFT, y + 3, max(unit * score.value, 1), _ROW - 6, colour)
    if math.isfinite(score.ci_low):
        low, high, middle = _LEFT + unit * score.ci_low, _LEFT + unit * score.ci_high, y + _ROW / 2
        page.line(low, middle, high, middle, INK, 1.1)
        for x in (low, high):
            page.line(x, middle - 3, x, middle + 3, INK, 1.1)
    page.text(_LEFT + _WIDTH + 12, y + 12, f"{score.value:.3f}", 10.5, SOFT)


FIGURE = Figure(
    "tav_bars",
    "Strongest texture associations",
    tav_bars,
    protocol=PROTOCOL,
    options={
        "observer": OBSERVER,
        "number": Option(50, "how many pairs", low=1),
    },
)
