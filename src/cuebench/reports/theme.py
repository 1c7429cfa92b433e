"""How all figures look: one palette in which every colour has one meaning, fonts and sizes for print, light and dark.

One unit of a figure is a point (1/72 inch): a text of 7 is 7 points high in print. Colours of cues and the order of the
observers' colours are told apart by people who cannot tell red from green (Okabe & Ito 2008; Tol 2021, "muted"); marks
differ as well, so that a figure survives a grey printer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

Width = Literal["column", "page"]
WIDTHS: Mapping[str, float] = {"column": 240.0, "page": 504.0}
"""Width of a whole figure in points: a column of a two-column page (3.33 inches) and a page (7 inches)."""

FONT = "Helvetica, Arial, Liberation Sans, Arimo, Nimbus Sans, DejaVu Sans Condensed, sans-serif"
"""The first of them that there is: metrically alike, but for the last with a name, which is in nearly every Linux."""
SIZES = {"title": 9.5, "subtitle": 7.5, "label": 7.0, "footnote": 6.5}
"""Sizes of the fonts in points."""

PAPER, INK, SOFT, FAINT = "#ffffff", "#1f2328", "#5b6470", "#dfe2e7"
"""Background; text and people; axes and second-rank text; grid lines."""
SHAPE, TEXTURE, NEUTRAL, PEOPLE = "#0072b2", "#d55e00", "#8a929c", INK
"""Shape, texture, chance and everything that takes no side, people."""
CONDITIONS = ("#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#5d3a9b", "#a0522d")
"""Series that are neither observers nor shape nor texture: conditions of one observer, kinds of answers."""
OBSERVERS = ("#332288", "#44aa99", "#cc6677", "#999933", "#88ccee", "#882255", "#117733", "#aa4499", "#ddaa33")
"""Models, in the order of the run."""
MARKS = ("circle", "square", "triangle-up", "cross", "triangle-down")
"""Marks of models, in the same order; five marks and nine colours make 45 different pairs."""
PEOPLE_MARK, IDEAL_MARK = "diamond", "triangle-right"
HEAT = ("#f7f7f2", "#b8dcc9", "#5fb3b3", "#2b7a9b", "#1f4479", "#14163f")
"""Nothing … much: lightness falls evenly, so that the order survives in grey and for the colour-blind."""
DIVERGING = (TEXTURE, "#f2b48a", "#f4f4f2", "#8fbfdd", SHAPE)
"""Texture … neither … shape."""

DARK = {
    PAPER: "#16191d",
    INK: "#e9ecf0",
    SOFT: "#a5adb8",
    FAINT: "#353b44",
    SHAPE: "#4aa8e0",
    TEXTURE: "#f08a3c",
    CONDITIONS[0]: "#2fc79a",
    CONDITIONS[4]: "#a98ae0",
    CONDITIONS[5]: "#d08a5a",
    "#332288": "#8f86e8",
    "#882255": "#c9679a",
    "#117733": "#4fae6e",
}
"""Colour on white → colour on black, where the first cannot be seen there."""


_LABEL = {"labelFont": FONT, "labelFontSize": SIZES["label"], "labelColor": SOFT}
_TITLE = {"titleFont": FONT, "titleFontSize": SIZES["label"], "titleColor": INK, "titleFontWeight": "normal"}
_HEADING = {
    "font": FONT,
    "fontSize": SIZES["title"],
    "fontWeight": "bold",
    "color": INK,
    "subtitleFont": FONT,
    "subtitleFontSize": SIZES["subtitle"],
    "subtitleColor": SOFT,
    "subtitlePadding": 2.5,
    "subtitleLineHeight": 9.5,
    "lineHeight": 11.5,
    "anchor": "start",
    "frame": "bounds",
    "offset": 7,
}
FOOTNOTE = {
    "orient": "bottom",
    "anchor": "start",
    "frame": "bounds",
    "offset": 4,
    "fontSize": SIZES["footnote"],
    "fontWeight": "normal",
    "color": SOFT,
    "lineHeight": 8,
}
_AXIS = {
    "gridColor": FAINT,
    "gridWidth": 0.6,
    "domainColor": NEUTRAL,
    "domainWidth": 0.6,
    "tickColor": NEUTRAL,
    "tickSize": 2.5,
    "tickWidth": 0.6,
    "labelPadding": 2,
    "titlePadding": 4,
    "labelOverlap": "parity",
}
_LEGEND = {
    "labelColor": INK,
    "symbolSize": 26,
    "symbolStrokeWidth": 1,
    "rowPadding": 1.5,
    "columnPadding": 8,
    "titlePadding": 3,
    "gradientThickness": 7,
    "gradientLength": 80,
    "offset": 8,
    "labelLimit": 0,
}
_HEADER = {"labelColor": INK, "labelFontWeight": "bold", "labelPadding": 3, "labelAnchor": "start", "title": None}


def config() -> dict[str, Any]:
    """Return the Vega-Lite configuration of all figures, on white."""
    return {
        "background": PAPER,
        "font": FONT,
        "padding": 2,
        "view": {"stroke": None},
        "title": _HEADING,
        "axis": {**_LABEL, **_TITLE, **_AXIS},
        "header": {**_LABEL, **_HEADER},
        "legend": {**_LABEL, **_TITLE, **_LEGEND},
        "concat": {"spacing": 14},
        "facet": {"spacing": 14},
        "text": {"font": FONT, "fontSize": SIZES["label"], "color": INK},
        "point": {"filled": True, "size": 24, "opacity": 1, "strokeWidth": 0.6},
        "line": {"strokeWidth": 1.2},
        "rule": {"strokeWidth": 0.8},
        "bar": {"opacity": 1},
    }


def in_dark(spec: Any) -> Any:
    """Return a specification for a dark background: the same, with the colours of `DARK`.

    >>> in_dark({"color": "#0072b2", "title": "a"})
    {'color': '#4aa8e0', 'title': 'a'}
    """
    return json.loads(_ANY.sub(lambda match: f'"{DARK[match[1]]}"', json.dumps(spec, ensure_ascii=False)))


_ANY = re.compile(f'"({"|".join(DARK)})"')
