"""Texture confidence: how sure models are of an object where only a texture is shown (figure 6 of the paper)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cuebench.reports.drawing import FAINT, SERIES, SOFT, Drawing, short_name
from cuebench.reports.figures.base import Figure
from cuebench.reports.run_data import PROTOCOL, rows

_LEFT, _WIDTH, _HIGH, _TOP, _GAP = 62, 620, 92, 78, 26


def texture_confidence(run: str | Path) -> Drawing:
    """Draw a histogram of top-1 confidence on texture pictures for each observer of a run."""
    records = rows(run, "confidence")
    observers = list(dict.fromkeys(str(r["observer"]) for r in records))
    page = Drawing(_LEFT + _WIDTH + 40, _TOP + len(observers) * (_HIGH + _GAP) + 30)
    page.title = "Confidence on pictures of textures"
    page.text(20, 30, page.title, 17, bold=True)
    page.text(20, 48, "share of the pictures by the probability of the top-1 class", 11.5, SOFT)
    for k, observer in enumerate(observers):
        counts = [r for r in records if r["observer"] == observer]
        _histogram(page, _TOP + k * (_HIGH + _GAP), counts, short_name(observer, observers), SERIES[k % len(SERIES)])
    bottom = _TOP + len(observers) * (_HIGH + _GAP)
    for k in range(6):
        page.text(_LEFT + _WIDTH * k / 5, bottom + 2, f"{k / 5:.1f}", 10.5, SOFT, anchor="middle")
    return page


def _histogram(page: Drawing, top: float, records: list[dict[str, Any]], name: str, colour: str) -> None:
    total = sum(r["count"] for r in records) or 1
    most = max(r["count"] for r in records) / total
    page.line(_LEFT, top + _HIGH, _LEFT + _WIDTH, top + _HIGH, FAINT)
    for r in records:
        height = _HIGH * 0.9 * r["count"] / total / (most or 1)
        page.rect(_LEFT + _WIDTH * r["low"], top + _HIGH - height, _WIDTH * (r["high"] - r["low"]) - 1, height, colour)
    page.text(_LEFT + _WIDTH, top + 12, name, 12, bold=True, anchor="end")
    page.text(_LEFT - 8, top + _HIGH * 0.1 + 4, f"{most:.0%}", 10, SOFT, anchor="end")


FIGURE = Figure("texture_confidence", "Confidence on pictures of textures", texture_confidence, protocol=PROTOCOL)
