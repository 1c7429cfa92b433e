"""Silhouettes of things with a telling outline; each function draws one with a pen."""

from __future__ import annotations

import numpy as np

from cuebench.stimuli.makers._pen import Pen


def wine_bottle(pen: Pen) -> None:
    """Draw a bottle with a long neck."""
    half = [(0.09, -0.98), (0.1, -0.86), (0.085, -0.8), (0.095, -0.45), (0.13, -0.32), (0.25, -0.18), (0.29, -0.02)]
    pen.mirrored([*half, (0.295, 0.4), (0.29, 0.92), (0.26, 0.97)], curved=True)


def umbrella(pen: Pen) -> None:
    """Draw an open umbrella with a hooked handle."""
    t = np.linspace(np.pi, 2 * np.pi, 40)
    pen.polygon([(0.95 * float(np.cos(a)), -0.02 + 0.8 * float(np.sin(a))) for a in t])
    for x in (-0.76, -0.38, 0.0, 0.38, 0.76):
        pen.ellipse(x, 0.0, 0.19, 0.11, cut=True)
    pen.stroke([(0, -0.95), (0, -0.7)], 0.05)
    pen.stroke([(0, -0.1), (0, 0.4), (0, 0.72), (0.05, 0.88), (0.17, 0.93), (0.28, 0.86), (0.3, 0.74)], 0.065)


def mushroom(pen: Pen) -> None:
    """Draw a mushroom with a round cap."""
    pen.curve(
        [
            (-0.85, 0.02),
            (-0.78, -0.35),
            (-0.45, -0.72),
            (0, -0.83),
            (0.45, -0.72),
            (0.78, -0.35),
            (0.85, 0.02),
            (0, 0.12),
        ]
    )
    pen.mirrored([(0.2, 0.0), (0.18, 0.35), (0.22, 0.65), (0.3, 0.82), (0.22, 0.92)], curved=True)


def hourglass(pen: Pen) -> None:
    """Draw an hourglass in its frame."""
    pen.box(-0.62, -0.95, 0.62, -0.8)
    pen.box(-0.62, 0.8, 0.62, 0.95)
    pen.mirrored(
        [(0.42, -0.8), (0.44, -0.5), (0.3, -0.22), (0.06, 0.0), (0.3, 0.22), (0.44, 0.5), (0.42, 0.8)], curved=True
    )
    for x in (-0.54, 0.54):
        pen.stroke([(x, -0.85), (x, 0.85)], 0.06, curved=False)


def hammer(pen: Pen) -> None:
    """Draw a claw hammer."""
    pen.polygon([(-0.08, -0.55), (0.08, -0.55), (0.1, 0.95), (-0.1, 0.95)])
    pen.polygon(
        [
            (0.05, -0.86),
            (0.38, -0.82),
            (0.38, -0.86),
            (0.58, -0.86),
            (0.58, -0.48),
            (0.38, -0.48),
            (0.38, -0.54),
            (0.05, -0.5),
        ]
    )
    pen.curve(
        [
            (0.1, -0.86),
            (-0.2, -0.88),
            (-0.5, -0.72),
            (-0.68, -0.42),
            (-0.45, -0.6),
            (-0.2, -0.62),
            (-0.1, -0.5),
            (0.1, -0.5),
        ]
    )


def teapot(pen: Pen) -> None:
    """Draw a round teapot with spout and handle."""
    pen.ellipse(0, 0.2, 0.55, 0.48)
    pen.box(-0.32, 0.6, 0.32, 0.72)
    pen.ellipse(0, -0.26, 0.3, 0.1)
    pen.ellipse(0, -0.42, 0.09, 0.09)
    pen.polygon([(0.4, 0.42), (0.68, 0.12), (0.74, -0.22), (0.97, -0.3), (0.93, -0.16), (0.86, 0.2), (0.62, 0.5)])
    pen.stroke([(-0.45, -0.08), (-0.72, -0.2), (-0.92, 0.05), (-0.82, 0.38), (-0.48, 0.45)], 0.1)


def goblet(pen: Pen) -> None:
    """Draw a goblet on a stem."""
    half = [
        (0.46, -0.92),
        (0.52, -0.5),
        (0.46, -0.15),
        (0.25, 0.1),
        (0.07, 0.24),
        (0.06, 0.55),
        (0.09, 0.74),
        (0.4, 0.88),
    ]
    pen.mirrored([*half, (0.42, 0.94)], curved=True)


def acoustic_guitar(pen: Pen) -> None:
    """Draw a guitar standing upright."""
    half = [
        (0.06, -0.06),
        (0.24, -0.04),
        (0.33, 0.12),
        (0.26, 0.3),
        (0.28, 0.38),
        (0.44, 0.56),
        (0.42, 0.82),
        (0.24, 0.97),
        (0, 0.98),
    ]
    pen.mirrored(half, curved=True)
    pen.box(-0.055, -0.75, 0.055, 0.1)
    pen.polygon([(-0.07, -0.72), (-0.11, -0.98), (0.11, -0.98), (0.07, -0.72)])
    for y in (-0.92, -0.85, -0.78):
        pen.stroke([(-0.15, y), (0.15, y)], 0.035, curved=False)
    pen.ellipse(0, 0.3, 0.11, 0.11, cut=True)


def padlock(pen: Pen) -> None:
    """Draw a closed padlock."""
    pen.curve(
        [(-0.56, 0.0), (0, -0.04), (0.56, 0.0), (0.6, 0.42), (0.55, 0.86), (0, 0.92), (-0.55, 0.86), (-0.6, 0.42)]
    )
    pen.stroke([(-0.36, 0.1), (-0.37, -0.4), (-0.27, -0.7), (0, -0.84), (0.27, -0.7), (0.37, -0.4), (0.36, 0.1)], 0.15)
    pen.ellipse(0, 0.36, 0.09, 0.09, cut=True)
    pen.polygon([(-0.04, 0.38), (0.04, 0.38), (0.07, 0.64), (-0.07, 0.64)], cut=True)


def vase(pen: Pen) -> None:
    """Draw a bellied vase."""
    half = [
        (0.3, -0.95),
        (0.2, -0.8),
        (0.18, -0.6),
        (0.38, -0.3),
        (0.52, 0.08),
        (0.46, 0.5),
        (0.28, 0.82),
        (0.26, 0.95),
    ]
    pen.mirrored(half, curved=True)


def table_lamp(pen: Pen) -> None:
    """Draw a lamp with a shade."""
    pen.polygon([(-0.32, -0.9), (0.32, -0.9), (0.66, -0.1), (-0.66, -0.1)])
    half = [(0.06, -0.12), (0.06, 0.08), (0.2, 0.3), (0.22, 0.5), (0.1, 0.72), (0.12, 0.8), (0.34, 0.88), (0.36, 0.94)]
    pen.mirrored(half, curved=True)


def balloon(pen: Pen) -> None:
    """Draw a hot-air balloon with its basket."""
    half = [(0.0, -0.96), (0.42, -0.86), (0.68, -0.5), (0.66, -0.14), (0.42, 0.26), (0.2, 0.5)]
    pen.mirrored(half, curved=True)
    pen.box(-0.17, 0.72, 0.17, 0.95)
    for x in (-0.16, 0.16):
        pen.stroke([(x, 0.48), (x * 0.9, 0.75)], 0.025, curved=False)


def coffee_mug(pen: Pen) -> None:
    """Draw a mug with a handle."""
    pen.polygon([(-0.62, -0.65), (0.4, -0.65), (0.4, 0.7), (0.32, 0.76), (-0.54, 0.76), (-0.62, 0.7)])
    pen.stroke([(0.38, -0.42), (0.68, -0.42), (0.82, -0.05), (0.7, 0.35), (0.38, 0.45)], 0.13)


def airliner(pen: Pen) -> None:
    """Draw an airliner from above."""
    pen.mirrored([(0, -0.97), (0.07, -0.86), (0.09, -0.7), (0.09, 0.6), (0.03, 0.95)], curved=True)
    pen.mirrored([(0.07, -0.28), (0.95, 0.3), (0.95, 0.42), (0.07, 0.14)])
    pen.mirrored([(0.05, 0.62), (0.38, 0.84), (0.38, 0.93), (0.05, 0.84)])
    for x in (-0.38, 0.38):
        pen.ellipse(x, -0.08, 0.05, 0.13)


def violin(pen: Pen) -> None:
    """Draw a violin standing upright."""
    half = [
        (0.05, -0.1),
        (0.22, -0.1),
        (0.29, 0.08),
        (0.19, 0.25),
        (0.17, 0.4),
        (0.27, 0.52),
        (0.37, 0.7),
        (0.3, 0.9),
        (0, 0.96),
    ]
    pen.mirrored(half, curved=True)
    pen.box(-0.045, -0.8, 0.045, 0.0)
    pen.ellipse(0.0, -0.88, 0.09, 0.09)
    for y in (-0.76, -0.68):
        pen.stroke([(-0.14, y), (0.14, y)], 0.035, curved=False)


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


def wooden_spoon(pen: Pen) -> None:
    """Draw a spoon with a long handle."""
    pen.ellipse(0, -0.62, 0.24, 0.35)
    pen.polygon([(-0.05, -0.35), (0.05, -0.35), (0.065, 0.96), (-0.065, 0.96)])


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
    radius = [0.95, 0.34]
    angles = np.arange(10) * np.pi / 5 - np.pi / 2
    pen.curve([(radius[k % 2] * float(np.cos(a)), radius[k % 2] * float(np.sin(a))) for k, a in enumerate(angles)])


def great_white_shark(pen: Pen) -> None:
    """Draw a shark from the side."""
    pen.curve(
        [
            (-0.95, 0.05),
            (-0.55, -0.18),
            (-0.05, -0.24),
            (0.45, -0.1),
            (0.78, -0.02),
            (0.78, 0.06),
            (0.4, 0.16),
            (-0.1, 0.24),
            (-0.6, 0.2),
        ]
    )
    pen.polygon([(-0.2, -0.2), (0.06, -0.62), (0.1, -0.6), (0.1, -0.18)])
    pen.polygon([(0.72, 0.0), (0.97, -0.45), (0.9, 0.02), (0.95, 0.34), (0.72, 0.06)])
    pen.polygon([(-0.3, 0.2), (-0.08, 0.62), (-0.02, 0.6), (-0.05, 0.2)])
    pen.polygon([(0.38, 0.14), (0.52, 0.3), (0.54, 0.1)])


def revolver(pen: Pen) -> None:
    """Draw a revolver from the side."""
    pen.polygon([(-0.95, -0.42), (0.1, -0.42), (0.1, -0.18), (-0.95, -0.22)])
    pen.polygon([(0.05, -0.5), (0.5, -0.48), (0.62, -0.34), (0.55, -0.05), (0.05, -0.02)])
    pen.ellipse(0.22, -0.26, 0.24, 0.2)
    pen.curve([(0.4, -0.2), (0.62, -0.34), (0.72, 0.1), (0.92, 0.6), (0.6, 0.66), (0.42, 0.2)])
    pen.stroke([(0.05, -0.05), (0.1, 0.2), (0.32, 0.2), (0.4, 0.0)], 0.05)
    pen.polygon([(0.5, -0.4), (0.62, -0.62), (0.72, -0.6), (0.62, -0.34)])


def parachute(pen: Pen) -> None:
    """Draw a parachute with its lines."""
    t = np.linspace(np.pi, 2 * np.pi, 40)
    pen.polygon([(0.92 * float(np.cos(a)), -0.2 + 0.72 * float(np.sin(a))) for a in t])
    for x in (-0.69, -0.23, 0.23, 0.69):
        pen.ellipse(x, -0.19, 0.23, 0.1, cut=True)
    for x in (-0.9, -0.46, 0.0, 0.46, 0.9):
        pen.stroke([(x, -0.22), (0, 0.72)], 0.02, curved=False)
    pen.ellipse(0, 0.62, 0.06, 0.07)
    pen.box(-0.06, 0.66, 0.06, 0.95)


def wall_clock(pen: Pen) -> None:
    """Draw a clock face."""
    pen.ellipse(0, 0, 0.92, 0.92)
    pen.ellipse(0, 0, 0.8, 0.8, cut=True)
    for k in range(12):
        a = k * np.pi / 6
        pen.ellipse(0.68 * float(np.cos(a)), 0.68 * float(np.sin(a)), 0.06, 0.06)
    pen.stroke([(0, 0), (0.28, -0.3)], 0.08, curved=False)
    pen.stroke([(0, 0), (-0.3, -0.48)], 0.06, curved=False)


def folding_chair(pen: Pen) -> None:
    """Draw a chair seen from the side and a little from the front."""
    pen.box(-0.5, -0.95, -0.36, 0.1)
    pen.box(0.3, -0.95, 0.44, 0.1)
    for y in (-0.9, -0.62, -0.34):
        pen.box(-0.5, y, 0.44, y + 0.15)
    pen.polygon([(-0.5, 0.0), (0.44, 0.0), (0.62, 0.2), (-0.62, 0.2)])
    for x0, x1 in ((-0.56, -0.6), (0.56, 0.6), (-0.36, -0.38), (0.36, 0.38)):
        pen.stroke([(x0, 0.15), (x1, 0.92)], 0.1, curved=False)


def sock(pen: Pen) -> None:
    """Draw a sock from the side."""
    pen.curve(
        [
            (-0.42, -0.92),
            (0.08, -0.92),
            (0.1, -0.3),
            (0.14, 0.2),
            (0.5, 0.42),
            (0.78, 0.62),
            (0.7, 0.88),
            (0.3, 0.9),
            (-0.1, 0.72),
            (-0.45, 0.5),
            (-0.46, 0.1),
            (-0.4, -0.4),
        ]
    )


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


def yawl(pen: Pen) -> None:
    """Draw a sailing boat."""
    pen.polygon([(-0.8, 0.58), (0.8, 0.58), (0.55, 0.88), (-0.6, 0.88)])
    pen.box(-0.04, -0.95, 0.02, 0.6)
    pen.polygon([(0.08, -0.88), (0.72, 0.46), (0.08, 0.46)])
    pen.polygon([(-0.1, -0.7), (-0.1, 0.46), (-0.66, 0.46)])
