"""Silhouettes of eight plain things, classes of the 16 of Geirhos et al. 2019; each function returns the parts of one.

They are the shapes of the toy world (``cuebench.stimuli.toy_world``): simple enough to be told apart at 64 pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from cuebench.arrays import Floats
from cuebench.errors import did_you_mean
from cuebench.stimuli.drawing import outlines
from cuebench.stimuli.drawing.outlines import Part, Pose, box, ellipse, polygon

STEPS = 10
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
        raise did_you_mean("plain shape", name, DRAWINGS)
    return outlines.coverage(DRAWINGS[name](), size, pose) / 255.0


def airplane() -> list[Part]:
    """Draw an airliner from above, nose up."""
    return [
        mirrored((0.0, -0.97), (0.1, -0.8), (0.13, -0.5), (0.13, 0.4), (0.07, 0.8), (0.0, 0.95)),
        polygon((0.0, -0.34), (0.95, 0.22), (0.95, 0.36), (0.0, 0.12), (-0.95, 0.36), (-0.95, 0.22)),
        polygon((0.0, 0.55), (0.38, 0.82), (0.38, 0.93), (0.0, 0.82), (-0.38, 0.93), (-0.38, 0.82)),
        *(ellipse(x, y, 0.06, 0.15) for x, y in ((-0.42, 0.0), (0.42, 0.0))),
    ]


def bicycle() -> list[Part]:
    """Draw a bicycle from the side."""
    wheels = ((-0.54, 0.34), (0.54, 0.34))
    rims = [
        part
        for x, y in wheels
        for part in (ellipse(x, y, 0.42, 0.42), ellipse(x, y, 0.32, 0.32, cut=True), ellipse(x, y, 0.08, 0.08))
    ]
    tubes = [
        [wheels[0], (-0.26, -0.24), (0.38, -0.24), (0.0, 0.34), wheels[0]],
        [(-0.3, -0.42), (-0.26, -0.24), (0.0, 0.34)],
        [wheels[1], (0.36, -0.34), (0.3, -0.5), (0.52, -0.54)],
    ]
    return [
        *rims,
        *(part for path in tubes for part in line(*path, width=0.1, curved=False)),
        ellipse(-0.32, -0.46, 0.17, 0.07),
    ]


def boat() -> list[Part]:
    """Draw a sailing boat."""
    return [
        polygon((-0.92, 0.42), (0.92, 0.42), (0.6, 0.86), (-0.62, 0.86)),
        box(-0.05, -0.95, 0.05, 0.45),
        polygon((0.12, -0.86), (0.76, 0.3), (0.12, 0.3)),
        polygon((-0.12, -0.6), (-0.66, 0.3), (-0.12, 0.3)),
    ]


def bottle() -> list[Part]:
    """Draw a wine bottle."""
    return [
        mirrored((0.14, -0.95), (0.15, -0.45), (0.2, -0.28), (0.4, -0.02), (0.42, 0.3), (0.42, 0.88), (0.36, 0.95)),
        box(-0.19, -0.95, 0.19, -0.8),
    ]


def car() -> list[Part]:
    """Draw a car from the side."""
    return [
        polygon((-0.95, 0.04), (-0.6, -0.02), (-0.36, -0.42), (0.28, -0.42), (0.6, 0.0), (0.95, 0.08), (0.95, 0.4),
                (-0.95, 0.4)),
        polygon((-0.44, -0.02), (-0.28, -0.3), (-0.06, -0.3), (-0.06, -0.02), cut=True),
        polygon((0.06, -0.02), (0.06, -0.3), (0.22, -0.3), (0.42, -0.02), cut=True),
        *(ellipse(x, 0.4, 0.23, 0.23) for x in (-0.52, 0.54)),
        *(ellipse(x, 0.4, 0.09, 0.09, cut=True) for x in (-0.52, 0.54)),
    ]  # fmt: skip


def chair() -> list[Part]:
    """Draw a chair from the side and a little from the front."""
    return [
        polygon((-0.5, -0.95), (-0.34, -0.95), (-0.3, 0.0), (-0.46, 0.0)),
        polygon((0.02, -0.95), (0.18, -0.95), (0.14, 0.0), (-0.02, 0.0)),
        *(box(-0.44, y, 0.1, y + 0.14) for y in (-0.86, -0.52)),
        polygon((-0.46, -0.08), (0.16, -0.08), (0.58, 0.16), (0.58, 0.3), (-0.12, 0.3), (-0.46, 0.1)),
        *(box(x, top, x + 0.13, bottom) for x, top, bottom in ((-0.46, 0.0, 0.72), (-0.12, 0.2, 0.95),
                                                               (0.45, 0.2, 0.95), (0.12, 0.2, 0.7))),
    ]  # fmt: skip


def clock() -> list[Part]:
    """Draw an alarm clock with two bells and open hands."""
    return [
        *line((-0.4, 0.6), (-0.56, 0.92), width=0.13, curved=False),
        *line((0.4, 0.6), (0.56, 0.92), width=0.13, curved=False),
        *(ellipse(x, -0.58, 0.27, 0.22) for x in (-0.44, 0.44)),
        box(-0.06, -0.92, 0.06, -0.5),
        ellipse(0.0, 0.14, 0.68, 0.68),
        box(-0.05, -0.32, 0.05, 0.18, cut=True),
        polygon((-0.03, 0.1), (0.34, 0.3), (0.3, 0.38), (-0.05, 0.2), cut=True),
    ]


def knife() -> list[Part]:
    """Draw a kitchen knife, its point up and its edge to the left."""
    return [
        polygon((0.1, -0.97), (0.14, 0.22), (-0.2, 0.22), (-0.24, -0.1), (-0.16, -0.5), (-0.02, -0.84)),
        polygon((0.13, 0.26), (0.17, 0.9), (0.05, 0.97), (-0.08, 0.9), (-0.06, 0.26)),
        box(-0.24, 0.2, 0.17, 0.29),
    ]


DRAWINGS: dict[str, Callable[[], list[Part]]] = {
    draw.__name__: draw for draw in (airplane, bicycle, boat, bottle, car, chair, clock, knife)
}
"""Name → the drawing of a silhouette."""
