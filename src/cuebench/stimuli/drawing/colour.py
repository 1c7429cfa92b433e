"""Colours that go together: palettes drawn in OKLCH, where equal steps look equal, and ramps between them.

Reference: B. Ottosson 2020, A perceptual color space for image processing (the constants of OKLab).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cuebench.arrays import Array, Floats

Span = tuple[float, float]
Colour = tuple[float, float, float]
Rng = np.random.Generator

_TO_LMS = np.array(
    [[1, 0.3963377774, 0.2158037573], [1, -0.1055613458, -0.0638541728], [1, -0.0894841775, -1.2914855480]]
)
_TO_RGB = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.7076147010],
    ]
)
_LUMA = np.array([0.2126, 0.7152, 0.0722], np.float32)


def rgb(lightness: Any, chroma: Any, hue: Any) -> Array:
    """Turn OKLCH (lightness 0–1, chroma 0–0.3, hue in degrees) into sRGB in [0, 1]; what is out of gamut is clipped."""
    angle = np.deg2rad(hue)
    # Very dark and very light colours of full chroma do not exist: what clipping leaves of them looks like neon.
    chroma = chroma * np.clip(1.3 - 1.7 * np.abs(np.asarray(lightness) - 0.6), 0.3, 1)
    lab = np.stack(np.broadcast_arrays(lightness, chroma * np.cos(angle), chroma * np.sin(angle)), -1)
    linear = np.clip((lab @ _TO_LMS.T) ** 3 @ _TO_RGB.T, 0, 1)
    srgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return srgb.astype(np.float32)


def palette(
    rng: Rng,
    number: int,
    *,
    hue: Span = (0, 360),
    chroma: Span = (0.02, 0.13),
    light: Span = (0.25, 0.9),
    spread: float = 50.0,
) -> Array:
    """Draw colours from dark to light, number × 3.

    Lightness is spread over ``light`` so that the structure survives without colour; the hue starts inside ``hue`` and
    drifts by up to ``spread`` degrees from the darkest to the lightest, as it does under real light.
    """
    ladder = np.linspace(0, 1, number) if number > 1 else np.array([0.5])
    step = 1 / max(number - 1, 1)
    inner = np.clip(ladder + rng.uniform(-0.18, 0.18, number) * step, 0, 1)
    hues = rng.uniform(*hue) + rng.uniform(-spread, spread) * (ladder - 0.5) + rng.uniform(-6, 6, number)
    return rgb(light[0] + inner * (light[1] - light[0]), rng.uniform(*chroma, number), hues)


def accents(rng: Rng, number: int, *, chroma: Span = (0.09, 0.17), light: Span = (0.45, 0.82)) -> Array:
    """Draw colours of clearly different hue, number × 3."""
    hues = rng.uniform(0, 360) + 360 * (np.arange(number) + rng.uniform(-0.25, 0.25, number)) / number
    lightness = np.linspace(*light, number)[rng.permutation(number)]
    return rgb(lightness, rng.uniform(*chroma, number), hues)


def ramp(field: Array, stops: Array, positions: Array | None = None) -> Array:
    """Colour a field in [0, 1] by interpolation between the stops: H×W → H×W×3."""
    where = np.linspace(0, 1, len(stops)) if positions is None else positions
    grid = np.linspace(0, 1, 1024)
    table = np.stack([np.interp(grid, where, stops[:, k]) for k in range(3)], 1).astype(np.float32)
    index = np.clip(field * 1023, 0, 1023).astype(np.int16)
    return np.asarray(table[index])


def mix(share: Array, low: Array, high: Array) -> Array:
    """Blend two colours, or two coloured images: share 0 gives ``low``, 1 gives ``high``."""
    s = share[..., None]
    return np.asarray(low + s * (high - low), np.float32)


def blend(share: Floats, low: Colour | Floats, high: Colour | Floats) -> Floats:
    """Blend two colours or coloured images in double precision; shares outside [0, 1] are clipped."""
    s = np.clip(share, 0, 1)[..., None]
    return np.asarray(low) * (1 - s) + np.asarray(high) * s


def tint(rng: Rng, colour: Colour, amount: float = 0.05) -> Colour:
    """Move a colour at random by up to ``amount`` in each channel."""
    r, g, b = np.clip(np.asarray(colour) + rng.uniform(-amount, amount, 3), 0, 1)
    return float(r), float(g), float(b)


def grey(image: Array) -> Array:
    """Return the luma of an image, stretched to a good range, in three equal channels."""
    luma = image @ _LUMA
    low, high = np.percentile(luma[::2, ::2], (1, 99))
    gain = min(0.86 / max(high - low, 1e-3), 2.2)
    middle = np.clip((low + high) / 2, 0.38, 0.62)
    stretched = middle + (luma - (low + high) / 2) * gain
    return np.repeat(stretched[..., None], 3, axis=2)
