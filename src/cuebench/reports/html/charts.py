"""The figures of a report: those that fit its protocols, as still pictures and as descriptions for the browser."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cuebench.reports.html.material import Material


@dataclass(frozen=True)
class Chart:
    """A figure of the page.

    ``still`` is an SVG as a data address: what is seen first, on paper, and without JavaScript. ``key`` names the
    Vega-Lite description in ``Charts.specs`` that takes its place.
    """

    key: str
    caption: str
    alt: str
    still: str = ""
    width: int = 0
    height: int = 0
    wide: bool = False


@dataclass
class Charts:
    """The figures of a report by section, with what the browser needs to draw them."""

    overview: list[Chart] = field(default_factory=list)
    people: list[Chart] = field(default_factory=list)
    protocols: dict[str, list[Chart]] = field(default_factory=dict)
    specs: dict[str, Any] = field(default_factory=dict)
    dark: dict[str, Any] = field(default_factory=dict)
    script: str = ""


def make_charts(material: Material) -> Charts:
    """Draw the figures that fit the runs."""
    return Charts()
