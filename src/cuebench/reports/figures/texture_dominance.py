"""Texture dominance: the textures found in the images of each class, and how well the model does on them.

Figures 8 and 10 of the paper: a point is a texture in a class, its height the share of the class's images, its colour
the accuracy (by label) or the mean confidence (by prediction) on them. Classes are sorted by their largest share.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cuebench.options import Option
from cuebench.reports.drawing import FAINT, SOFT, Drawing, heat, short_name, shorten
from cuebench.reports.figures.base import Figure
from cuebench.reports.run_data import OBSERVER, PROTOCOL, of_observer, rows

_LEFT, _WIDTH, _HIGH, _GAP, _TOP = 62, 900, 250, 150, 84
_VALUE = {"label": "accuracy", "prediction": "confidence"}


def texture_dominance(run: str | Path, *, observer: str = "", fewest: int = 1) -> Drawing:
    """Draw the scatter by label and by prediction, one above the other.

    Parameters
    ----------
    run : path
        A run folder with ``texture_association`` on labelled photographs.
    observer : str
        Whole name or a part of it; default: the first of the run.
    fewest : int
        Leave out classes with fewer images than this (a class with one image has a share of 1 by itself).
    """
    name, records = of_observer(rows(run, "groups"), observer)
    page = Drawing(_LEFT + _WIDTH + 110, _TOP + 2 * _HIGH + 2 * _GAP - 20)
    page.title = f"Textures in the classes of {short_name(name)}"
    page.text(20, 30, page.title, 17, bold=True)
    page.text(
        20, 48, "a point: images of one class with one texture; classes by the share of their main texture", 11.5, SOFT
    )
    for k, by in enumerate(_VALUE):
        _panel(page, _TOP + k * (_HIGH + _GAP), by, [r for r in records if r["by"] == by], fewest)
    return page


def _panel(page: Drawing, top: float, by: str, records: list[dict[str, Any]], fewest: int) -> None:
    groups: dict[str, list[dict[str, Any]]] = {}
    for r in records:
        groups.setdefault(r["label"], []).append(r)
    kept = {c: g for c, g in groups.items() if sum(r["n"] for r in g) >= fewest}
    order = sorted(kept, key=lambda c: (max(r["share"] for r in kept[c]), c))
    left_out = (
        f", {len(groups) - len(kept):,} with fewer than {fewest} images left out" if len(kept) < len(groups) else ""
    )
    page.text(_LEFT, top - 10, f"by {by}: {len(order):,} classes{left_out}", 12.5, bold=True)
    for k in range(5):
        y = top + _HIGH * (1 - k / 4)
        page.line(_LEFT, y, _LEFT + _WIDTH, y, FAINT)
        page.text(_LEFT - 8, y + 4, f"{k / 4:.0%}", 10.5, SOFT, anchor="end")
    step = _WIDTH / max(len(order), 1)
    for k, label in enumerate(order):
        for r in sorted(kept[label], key=lambda r: -r["share"]):
            x, y = _LEFT + (k + 0.5) * step, top + _HIGH * (1 - r["share"])
            page.circle(x, y, 2.6, heat(r["value"]), opacity=0.85)
    _names(page, top + _HIGH, order, step)
    _scale(page, top, _VALUE[by])


def _names(page: Drawing, y: float, order: list[str], step: float) -> None:
    every = max(1, -(-len(order) * 15 // _WIDTH))
    for k in range(0, len(order), every):
        page.text(_LEFT + (k + 0.5) * step + 4, y + 12, shorten(order[k], 18), 9.5, SOFT, turn=52)


def _scale(page: Drawing, top: float, what: str) -> None:
    x, height, steps = _LEFT + _WIDTH + 26, 150, 50
    page.text(x, top - 10, what, 10.5, SOFT)
    for k in range(steps):
        page.rect(x, top + height * (1 - (k + 1) / steps), 13, height / steps + 0.6, heat(k / (steps - 1)))
    for share in (0.0, 0.5, 1.0):
        page.text(x + 19, top + height * (1 - share) + 4, f"{share:.0%}", 10)


FIGURE = Figure(
    "texture_dominance",
    "Textures in the classes of a model",
    texture_dominance,
    protocol=PROTOCOL,
    options={
        "observer": OBSERVER,
        "fewest": Option(1, "leave out classes with fewer images than this", low=1),
    },
)
