"""Silhouettes of things with a telling outline; each function draws one with a pen."""

from __future__ import annotations

import numpy as np

from cuebench.stimuli.makers._pen import Pen


def umbrella(pen: Pen) -> None:
    """Draw an open umbrella with a hooked handle."""
    t = np.linspace(np.pi, 2 * np.pi, 40)
    pen.polygon([(0.95 * float(np.cos(a)), -0.02 + 0.8 * float(np.sin(a))) for a in t])
    for x in (-0.76, -0.38, 0.0, 0.38, 0.76):
        pen.ellipse(x, 0.0, 0.19, 0.11, cut=True)
    pen.stroke([(0, -0.95), (0, -0.7)], 0.05)
    pen.stroke([(0, -0.1), (0, 0.4), (0, 0.72), (0.05, 0.88), (0.17, 0.93), (0.28, 0.86), (0.3, 0.74)], 0.065)


def hourglass(pen: Pen) -> None:
    """Draw an hourglass in its frame."""
    pen.box(-0.62, -0.95, 0.62, -0.8)
    pen.box(-0.62, 0.8, 0.62, 0.95)
    pen.mirrored(
        [(0.42, -0.8), (0.44, -0.5), (0.3, -0.22), (0.06, 0.0), (0.3, 0.22), (0.44, 0.5), (0.42, 0.8)], curved=True
    )
    for x in (-0.54, 0.54):
        pen.stroke([(x, -0.85), (x, 0.85)], 0.06, curved=False)


def teapot(pen: Pen) -> None:
    """Draw a round teapot with spout and handle."""
    pen.ellipse(0, 0.2, 0.55, 0.48)
    pen.box(-0.32, 0.6, 0.32, 0.72)
    pen.ellipse(0, -0.26, 0.3, 0.1)
    pen.ellipse(0, -0.42, 0.09, 0.09)
    pen.polygon([(0.4, 0.42), (0.68, 0.12), (0.74, -0.22), (0.97, -0.3), (0.93, -0.16), (0.86, 0.2), (0.62, 0.5)])
    pen.stroke([(-0.45, -0.08), (-0.72, -0.2), (-0.92, 0.05), (-0.82, 0.38), (-0.48, 0.45)], 0.1)


def padlock(pen: Pen) -> None:
    """Draw a closed padlock."""
    pen.curve(
        [(-0.56, 0.0), (0, -0.04), (0.56, 0.0), (0.6, 0.42), (0.55, 0.86), (0, 0.92), (-0.55, 0.86), (-0.6, 0.42)]
    )
    pen.stroke([(-0.36, 0.1), (-0.37, -0.4), (-0.27, -0.7), (0, -0.84), (0.27, -0.7), (0.37, -0.4), (0.36, 0.1)], 0.15)
    pen.ellipse(0, 0.36, 0.09, 0.09, cut=True)
    pen.polygon([(-0.04, 0.38), (0.04, 0.38), (0.07, 0.64), (-0.07, 0.64)], cut=True)


def table_lamp(pen: Pen) -> None:
    """Draw a lamp with a shade."""
    pen.polygon([(-0.32, -0.9), (0.32, -0.9), (0.66, -0.1), (-0.66, -0.1)])
    half = [(0.06, -0.12), (0.06, 0.08), (0.2, 0.3), (0.22, 0.5), (0.1, 0.72), (0.12, 0.8), (0.34, 0.88), (0.36, 0.94)]
    pen.mirrored(half, curved=True)


def bow_tie(pen: Pen) -> None:
    """Draw a bow tie."""
    for s in (-1, 1):
        pen.curve(
            [
                (0.05 * s, -0.1),
                (0.4 * s, -0.34),
                (0.88 * s, -0.42),
                (0.94 * s, 0.0),
                (0.88 * s, 0.42),
                (0.4 * s, 0.34),
                (0.05 * s, 0.1),
            ]
        )
    pen.curve([(-0.14, -0.17), (0.14, -0.17), (0.13, 0.17), (-0.13, 0.17)])


def sunglasses(pen: Pen) -> None:
    """Draw sunglasses from the front."""
    for s in (-1, 1):
        pen.curve(
            [(0.1 * s, -0.2), (0.5 * s, -0.28), (0.93 * s, -0.24), (0.88 * s, 0.14), (0.5 * s, 0.32), (0.18 * s, 0.12)]
        )
    pen.stroke([(-0.15, -0.14), (0, -0.2), (0.15, -0.14)], 0.09)


def cowboy_hat(pen: Pen) -> None:
    """Draw a cowboy hat from the side."""
    pen.curve(
        [
            (-0.97, -0.12),
            (-0.7, 0.16),
            (0, 0.24),
            (0.7, 0.16),
            (0.97, -0.12),
            (0.86, 0.3),
            (0.45, 0.5),
            (0, 0.54),
            (-0.45, 0.5),
            (-0.86, 0.3),
        ]
    )
    pen.curve(
        [
            (-0.5, 0.3),
            (-0.44, -0.2),
            (-0.3, -0.5),
            (-0.1, -0.46),
            (0, -0.4),
            (0.1, -0.46),
            (0.3, -0.5),
            (0.44, -0.2),
            (0.5, 0.3),
            (0, 0.38),
        ]
    )


def starfish(pen: Pen) -> None:
    """Draw a starfish with five arms."""
    radius = [0.95, 0.42]
    angles = np.arange(10) * np.pi / 5 - np.pi / 2
    pen.curve([(radius[k % 2] * float(np.cos(a)), radius[k % 2] * float(np.sin(a))) for k, a in enumerate(angles)])


def pitcher(pen: Pen) -> None:
    """Draw a pitcher with lip and handle."""
    pen.curve(
        [
            (-0.42, -0.9),
            (0.2, -0.8),
            (0.22, -0.4),
            (0.4, 0.1),
            (0.36, 0.6),
            (0.2, 0.92),
            (-0.28, 0.92),
            (-0.44, 0.6),
            (-0.46, 0.1),
            (-0.3, -0.4),
            (-0.36, -0.7),
            (-0.6, -0.92),
        ]
    )
    pen.stroke([(0.2, -0.62), (0.56, -0.6), (0.68, -0.2), (0.6, 0.2), (0.34, 0.36)], 0.1)
