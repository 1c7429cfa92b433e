"""Panels with lines: axes, curves, bands and a legend, drawn with the simple shapes of ``drawing``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from cuebench.reports.drawing import FAINT, INK, SERIES, SOFT, Drawing, blend


@dataclass(frozen=True)
class Line:
    """One curve: points (x position 0…1, value), with the interval of each value where it has one."""

    name: str
    colour: str
    points: Sequence[tuple[float, float]]
    intervals: Sequence[tuple[float, float]] = ()
    dashed: bool = False


@dataclass
class Panel:
    """A plot of values between 0 and 1 with a dotted line at chance, where there is one."""

    page: Drawing
    left: float
    top: float
    width: float
    height: float
    title: str = ""
    ticks: Sequence[tuple[float, str]] = ()
    label: str = ""
    lines: list[Line] = field(default_factory=list)
    turned: bool = False
    chance: float | None = 0.5

    def x(self, share: float) -> float:
        """Return the pixel of a horizontal position between 0 and 1."""
        return self.left + 14 + share * (self.width - 28)

    def y(self, value: float) -> float:
        """Return the pixel of a value between 0 and 1."""
        return self.top + self.height * (1 - value)

    def draw(self) -> None:
        """Draw axes, then bands, then curves."""
        self._axes()
        for line in self.lines:
            self._whiskers(line)
        for line in self.lines:
            self._curve(line)

    def _axes(self) -> None:
        page = self.page
        page.text(self.left, self.top - 14, self.title, 13, bold=True)
        for k in range(0, 11, 2):
            page.line(self.left, self.y(k / 10), self.left + self.width, self.y(k / 10), FAINT)
            page.text(self.left - 8, self.y(k / 10) + 4, f"{k / 10:.1f}", 10.5, SOFT, anchor="end")
        if self.chance is not None:
            y = self.y(self.chance)
            dashes(page, self.left, y, self.left + self.width, y, SOFT, 1.2, 2, 4)
        bottom = self.top + self.height
        for share, text in self.ticks:
            if self.turned:
                page.text(self.x(share) + 3, bottom + 10, text, 9.5, SOFT, anchor="end", turn=-60)
            else:
                page.text(self.x(share), bottom + 17, text, 10.5, SOFT, anchor="middle")
        page.text(self.left + self.width / 2, bottom + 36 + 40 * self.turned, self.label, 11.5, INK, anchor="middle")

    def _whiskers(self, line: Line) -> None:
        for (share, _), (low, high) in zip(line.points, line.intervals):
            if math.isfinite(low) and math.isfinite(high):
                pale = blend(line.colour, "#ffffff", 0.55)
                self.page.line(self.x(share), self.y(low), self.x(share), self.y(high), pale, 1.4)

    def _curve(self, line: Line) -> None:
        points = [(self.x(s), self.y(v)) for s, v in line.points if math.isfinite(v)]
        for (x1, y1), (x2, y2) in pairwise(points):
            if line.dashed:
                dashes(self.page, x1, y1, x2, y2, line.colour, 1.5, 5, 4)
            else:
                self.page.line(x1, y1, x2, y2, line.colour, 2.2)
        for x, y in points:
            self.page.circle(x, y, 2.4 if line.dashed else 3.6, "#ffffff" if line.dashed else line.colour)
            if line.dashed:
                self.page.circle(x, y, 2.4, blend(line.colour, "#ffffff", 0.35))


def dashes(
    page: Drawing, x1: float, y1: float, x2: float, y2: float, colour: str, width: float, on: float, off: float
) -> None:
    """Draw a dashed line."""
    length = math.hypot(x2 - x1, y2 - y1)
    start = 0.0
    while length and start < length:
        end = min(start + on, length)
        a, b = start / length, end / length
        page.line(x1 + (x2 - x1) * a, y1 + (y2 - y1) * a, x1 + (x2 - x1) * b, y1 + (y2 - y1) * b, colour, width)
        start += on + off


def legend(page: Drawing, left: float, top: float, entries: Sequence[tuple[str, str, bool]]) -> None:
    """Draw name, colour and dashed or not, one below the other."""
    for k, (name, colour, dashed) in enumerate(entries):
        y = top + 20 * k
        if dashed:
            dashes(page, left, y - 4, left + 24, y - 4, colour, 1.6, 5, 4)
        else:
            page.line(left, y - 4, left + 24, y - 4, colour, 2.4)
            page.circle(left + 12, y - 4, 3.6, colour)
        page.text(left + 32, y, name, 11.5, INK)


def aside(number: int, series: int) -> float:
    """Return the horizontal shift of the n-th series, so that whiskers stand beside each other."""
    return 0.008 * (number - (series - 1) / 2)


def colour_of(number: int) -> str:
    """Return the colour of the n-th series."""
    return SERIES[number % len(SERIES)]
