"""Silhouettes of everyday things with a telling outline; each public drawing returns the parts of one.

All are objects of ImageNet, so that classifiers can name them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from cuebench.arrays import Floats
from cuebench.errors import did_you_mean
from cuebench.stimuli.drawing import outlines
from cuebench.stimuli.drawing.outlines import Part, Pose, box, ellipse, polygon

STEPS = 12
"""Straight pieces between two control points of a curve."""
curve = partial(outlines.curve, steps=STEPS)
line = partial(outlines.line, steps=STEPS)
mirrored = partial(outlines.mirrored, steps=STEPS)


def silhouette(name: str, pose: Pose, size: int) -> Floats:
    """Return a silhouette as coverage 0 to 1, size × size.

    Parameters
    ----------
    name : str
        One of ``DRAWINGS``.
    pose : Pose
        How it lies in the picture.
    size : int
        Width and height in pixels.
    """
    if name not in DRAWINGS:
        raise did_you_mean("everyday shape", name, DRAWINGS)
    return outlines.coverage(DRAWINGS[name](), size, pose) / 255.0


def umbrella() -> list[Part]:
    """Draw an open umbrella with a hooked handle."""
    t = np.linspace(np.pi, 2 * np.pi, 40)
    return [
        polygon(*((0.95 * float(np.cos(a)), -0.02 + 0.8 * float(np.sin(a))) for a in t)),
        *(ellipse(x, 0.0, 0.19, 0.11, cut=True) for x in (-0.76, -0.38, 0.0, 0.38, 0.76)),
        *line((0, -0.95), (0, -0.7), width=0.05),
        *line((0, -0.1), (0, 0.4), (0, 0.72), (0.05, 0.88), (0.17, 0.93), (0.28, 0.86), (0.3, 0.74), width=0.065),
    ]


def hourglass() -> list[Part]:
    """Draw an hourglass in its frame."""
    return [
        box(-0.62, -0.95, 0.62, -0.8),
        box(-0.62, 0.8, 0.62, 0.95),
        mirrored((0.42, -0.8), (0.44, -0.5), (0.3, -0.22), (0.06, 0.0), (0.3, 0.22), (0.44, 0.5), (0.42, 0.8)),
        *line((-0.54, -0.85), (-0.54, 0.85), width=0.06, curved=False),
        *line((0.54, -0.85), (0.54, 0.85), width=0.06, curved=False),
    ]


def teapot() -> list[Part]:
    """Draw a round teapot with spout and handle."""
    return [
        ellipse(0, 0.2, 0.55, 0.48),
        box(-0.32, 0.6, 0.32, 0.72),
        ellipse(0, -0.26, 0.3, 0.1),
        ellipse(0, -0.42, 0.09, 0.09),
        polygon((0.4, 0.42), (0.68, 0.12), (0.74, -0.22), (0.97, -0.3), (0.93, -0.16), (0.86, 0.2), (0.62, 0.5)),
        *line((-0.45, -0.08), (-0.72, -0.2), (-0.92, 0.05), (-0.82, 0.38), (-0.48, 0.45), width=0.1),
    ]


def padlock() -> list[Part]:
    """Draw a closed padlock."""
    return [
        curve((-0.56, 0.0), (0, -0.04), (0.56, 0.0), (0.6, 0.42), (0.55, 0.86), (0, 0.92), (-0.55, 0.86), (-0.6, 0.42)),
        *line((-0.36, 0.1), (-0.37, -0.4), (-0.27, -0.7), (0, -0.84), (0.27, -0.7), (0.37, -0.4), (0.36, 0.1),
              width=0.15),
        ellipse(0, 0.36, 0.09, 0.09, cut=True),
        polygon((-0.04, 0.38), (0.04, 0.38), (0.07, 0.64), (-0.07, 0.64), cut=True),
    ]  # fmt: skip


def table_lamp() -> list[Part]:
    """Draw a lamp with a shade."""
    return [
        polygon((-0.32, -0.9), (0.32, -0.9), (0.66, -0.1), (-0.66, -0.1)),
        mirrored((0.06, -0.12), (0.06, 0.08), (0.2, 0.3), (0.22, 0.5), (0.1, 0.72), (0.12, 0.8), (0.34, 0.88),
                 (0.36, 0.94)),
    ]  # fmt: skip


def bow_tie() -> list[Part]:
    """Draw a bow tie."""
    wing = ((0.05, -0.1), (0.4, -0.34), (0.88, -0.42), (0.94, 0.0), (0.88, 0.42), (0.4, 0.34), (0.05, 0.1))
    return [
        *(curve(*((side * x, y) for x, y in wing)) for side in (-1, 1)),
        curve((-0.14, -0.17), (0.14, -0.17), (0.13, 0.17), (-0.13, 0.17)),
    ]


def sunglasses() -> list[Part]:
    """Draw sunglasses from the front."""
    glass = ((0.1, -0.2), (0.5, -0.28), (0.93, -0.24), (0.88, 0.14), (0.5, 0.32), (0.18, 0.12))
    return [
        *(curve(*((side * x, y) for x, y in glass)) for side in (-1, 1)),
        *line((-0.15, -0.14), (0, -0.2), (0.15, -0.14), width=0.09),
    ]


def cowboy_hat() -> list[Part]:
    """Draw a cowboy hat from the side."""
    return [
        curve((-0.97, -0.12), (-0.7, 0.16), (0, 0.24), (0.7, 0.16), (0.97, -0.12), (0.86, 0.3), (0.45, 0.5), (0, 0.54),
              (-0.45, 0.5), (-0.86, 0.3)),
        curve((-0.5, 0.3), (-0.44, -0.2), (-0.3, -0.5), (-0.1, -0.46), (0, -0.4), (0.1, -0.46), (0.3, -0.5),
              (0.44, -0.2), (0.5, 0.3), (0, 0.38)),
    ]  # fmt: skip


def starfish() -> list[Part]:
    """Draw a starfish with five arms."""
    angles, radii = np.arange(10) * np.pi / 5 - np.pi / 2, (0.95, 0.42) * 5
    return [curve(*((r * float(np.cos(a)), r * float(np.sin(a))) for r, a in zip(radii, angles)))]


def pitcher() -> list[Part]:
    """Draw a pitcher with lip and handle."""
    return [
        curve((-0.42, -0.9), (0.2, -0.8), (0.22, -0.4), (0.4, 0.1), (0.36, 0.6), (0.2, 0.92), (-0.28, 0.92),
              (-0.44, 0.6), (-0.46, 0.1), (-0.3, -0.4), (-0.36, -0.7), (-0.6, -0.92)),
        *line((0.2, -0.62), (0.56, -0.6), (0.68, -0.2), (0.6, 0.2), (0.34, 0.36), width=0.1),
    ]  # fmt: skip


DRAWINGS: dict[str, Callable[[], list[Part]]] = {
    draw.__name__: draw
    for draw in (
        umbrella,
        hourglass,
        teapot,
        padlock,
        table_lamp,
        bow_tie,
        sunglasses,
        cowboy_hat,
        starfish,
        pitcher,
    )
}
"""Name → the drawing of a silhouette."""
