"""Novel closed shapes: smooth, angular, concave and with holes; nothing that a network was trained to name.

They are drawn by hand and called by words like those that children are taught.

>>> mask("dax", 64).shape
(64, 64)
>>> len(names()) >= 16
True
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from cuebench.arrays import Pixels
from cuebench.errors import did_you_mean
from cuebench.stimuli.drawing.outlines import Part, brush, coverage, curve, disc, polygon

VERSION = 1
"""A change of any pixel is a new version: pictures of two versions must never be mixed."""


class Shape(NamedTuple):
    """A novel shape: what kind it is, and its parts in the order of drawing."""

    kind: str
    parts: tuple[Part, ...]


def names(kind: str = "") -> list[str]:
    """Return the names of all shapes in the order of the catalogue, or of one kind: smooth, angular, concave, holes."""
    return [name for name, shape in SHAPES.items() if kind in ("", shape.kind)]


def kind(name: str) -> str:
    """Return what kind of shape it is."""
    return _shape(name).kind


@lru_cache(maxsize=256)
def mask(name: str, size: int = 224) -> Pixels:
    """Return a shape as coverage 0 to 255, size × size (read-only); the same bytes on every machine."""
    filled = coverage(_shape(name).parts, size)
    filled.flags.writeable = False
    return filled


def _shape(name: str) -> Shape:
    if name not in SHAPES:
        raise did_you_mean("shape", name, SHAPES)
    return SHAPES[name]


SHAPES: dict[str, Shape] = {
    # smooth: a closed curve without corners
    "blicket": Shape(
        "smooth",
        (
            curve(
                (-0.85, 0.1),
                (-0.6, -0.62),
                (0.05, -0.55),
                (0.45, -0.95),
                (0.92, -0.5),
                (0.62, 0.1),
                (0.7, 0.78),
                (-0.05, 0.9),
                (-0.4, 0.5),
            ),
        ),
    ),
    "fep": Shape(
        "smooth",
        (
            curve(
                (0.75, -0.95),
                (0.62, -0.4),
                (0.75, 0.1),
                (0.55, 0.72),
                (-0.1, 0.95),
                (-0.72, 0.6),
                (-0.7, -0.05),
                (-0.2, -0.3),
                (0.2, -0.55),
                (0.38, -0.85),
            ),
        ),
    ),
    "toma": Shape(
        "smooth",
        (
            curve(
                (0.0, -0.32),
                (0.34, -0.92),
                (0.86, -0.72),
                (0.78, -0.12),
                (0.34, 0.16),
                (0.42, 0.62),
                (0.1, 0.96),
                (-0.28, 0.72),
                (-0.24, 0.24),
                (-0.78, 0.3),
                (-0.96, -0.16),
                (-0.62, -0.5),
            ),
        ),
    ),
    "wug": Shape(
        "smooth",
        (
            curve(
                (-0.97, -0.2),
                (-0.5, -0.42),
                (0.0, -0.3),
                (0.5, -0.46),
                (0.97, -0.1),
                (0.8, 0.32),
                (0.3, 0.3),
                (-0.2, 0.5),
                (-0.75, 0.4),
            ),
        ),
    ),
    # angular: straight edges, few dents
    "zav": Shape(
        "angular",
        (polygon((-0.97, 0.5), (-0.62, -0.3), (0.05, -0.22), (0.5, -0.95), (0.62, -0.12), (0.97, 0.3), (0.3, 0.85)),),
    ),
    "krix": Shape(
        "angular",
        (
            polygon(
                (-0.85, -0.75),
                (0.2, -0.95),
                (0.05, -0.35),
                (0.92, -0.25),
                (0.5, 0.3),
                (0.75, 0.95),
                (-0.35, 0.8),
                (-0.12, 0.2),
                (-0.8, 0.2),
            ),
        ),
    ),
    "dax": Shape(
        "angular",
        (
            polygon(
                (-0.9, -0.82),
                (0.2, -0.82),
                (0.2, -0.25),
                (0.92, -0.25),
                (0.92, 0.35),
                (0.42, 0.35),
                (0.42, 0.88),
                (-0.32, 0.88),
                (-0.32, 0.1),
                (-0.9, 0.1),
            ),
        ),
    ),
    "tiv": Shape(
        "angular",
        (
            polygon(
                (-0.95, -0.6),
                (0.0, -0.45),
                (0.55, -0.97),
                (0.5, -0.05),
                (0.97, 0.65),
                (0.08, 0.3),
                (-0.4, 0.95),
                (-0.45, 0.05),
            ),
        ),
    ),
    # concave: deep dents, arms and hooks
    "gorp": Shape(
        "concave",
        (
            *brush(
                (-0.62, -0.8),
                (-0.68, 0.1),
                (-0.3, 0.66),
                (0.35, 0.6),
                (0.62, 0.05),
                (0.55, -0.35),
                width=(0.34, 0.36, 0.5, 0.5, 0.4, 0.52),
            ),
        ),
    ),
    "snee": Shape(
        "concave",
        (
            *brush(
                (-0.62, -0.55),
                (-0.1, -0.78),
                (0.5, -0.55),
                (0.42, -0.08),
                (-0.25, 0.1),
                (-0.5, 0.5),
                (0.0, 0.82),
                (0.7, 0.6),
                width=(0.6, 0.36, 0.26, 0.24, 0.26, 0.3, 0.26, 0.2),
            ),
        ),
    ),
    "pim": Shape(
        "concave",
        (
            disc(-0.1, 0.5, 0.62, 0.42),
            *brush((-0.4, 0.4), (-0.62, -0.2), (-0.4, -0.75), width=(0.3, 0.26, 0.48)),
            *brush((0.3, 0.5), (0.72, 0.2), (0.78, -0.45), width=(0.36, 0.28, 0.2)),
        ),
    ),
    "luma": Shape(
        "concave",
        (
            disc(-0.1, 0.05, 0.85),
            disc(0.32, -0.1, 0.64, cut=True),
            disc(0.62, 0.6, 0.32),
            *brush((-0.15, -0.62), (0.3, -0.76), (0.75, -0.42), width=(0.3, 0.22, 0.32)),
        ),
    ),
    "vox": Shape(
        "concave",
        (
            polygon(
                (-0.85, -0.9),
                (0.8, -0.9),
                (0.8, -0.42),
                (-0.3, -0.42),
                (-0.3, -0.12),
                (0.35, 0.08),
                (-0.3, 0.3),
                (-0.3, 0.45),
                (0.95, 0.45),
                (0.6, 0.92),
                (-0.85, 0.92),
            ),
        ),
    ),
    # with holes
    "ruk": Shape(
        "holes",
        (
            curve((-0.9, 0.2), (-0.55, -0.75), (0.25, -0.9), (0.9, -0.35), (0.72, 0.5), (0.05, 0.9), (-0.6, 0.8)),
            disc(0.22, -0.22, 0.36, cut=True),
        ),
    ),
    "zorb": Shape(
        "holes",
        (
            polygon((-0.95, 0.0), (-0.45, -0.85), (0.55, -0.85), (0.95, 0.05), (0.4, 0.88), (-0.55, 0.8)),
            polygon((-0.42, 0.42), (0.05, -0.55), (0.5, 0.35), cut=True),
        ),
    ),
    "bim": Shape(
        "holes",
        (
            curve(
                (-0.95, -0.1),
                (-0.62, -0.66),
                (-0.05, -0.3),
                (0.45, -0.4),
                (0.96, -0.05),
                (0.82, 0.62),
                (0.2, 0.5),
                (-0.2, 0.78),
                (-0.7, 0.55),
            ),
            disc(-0.5, -0.08, 0.26, 0.3, cut=True),
            polygon((0.2, 0.2), (0.42, -0.14), (0.74, 0.24), cut=True),
        ),
    ),
    "nalf": Shape(
        "holes",
        (
            disc(0.0, 0.12, 0.6),
            *brush((-0.3, -0.3), (-0.62, -0.85), width=(0.3, 0.22)),
            *brush((0.4, -0.2), (0.86, -0.45), width=(0.34, 0.2)),
            *brush((0.15, 0.5), (0.3, 0.93), width=(0.4, 0.2)),
            disc(-0.04, 0.14, 0.34, cut=True),
        ),
    ),
    "quon": Shape(
        "holes",
        (
            polygon((-0.88, -0.55), (0.3, -0.92), (0.9, -0.3), (0.72, 0.9), (-0.7, 0.75)),
            polygon((-0.6, -0.38), (0.05, -0.58), (0.02, 0.1), (-0.56, 0.1), cut=True),
            polygon((0.28, 0.0), (0.6, -0.15), (0.48, 0.62), (-0.1, 0.55), cut=True),
        ),
    ),
    "hib": Shape(
        "holes",
        (
            *brush((-0.72, 0.6), (-0.4, 0.3), (0.0, 0.12), (0.1, -0.25), width=(0.5, 0.26, 0.3, 0.4)),
            disc(0.2, -0.4, 0.58, 0.5),
            disc(0.34, -0.48, 0.26, 0.2, cut=True),
            *brush((0.02, 0.1), (0.42, 0.62), (0.15, 0.86), width=(0.3, 0.26, 0.26)),
        ),
    ),
    "yorn": Shape(
        "concave",
        (
            *brush((-0.85, -0.5), (-0.3, -0.2), (0.2, -0.35), (0.85, -0.75), width=(0.34, 0.4, 0.4, 0.28)),
            *brush((0.0, -0.3), (0.12, 0.3), (-0.1, 0.8), width=(0.36, 0.34, 0.5)),
        ),
    ),
}
