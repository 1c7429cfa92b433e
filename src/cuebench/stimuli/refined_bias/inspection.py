"""Automatic inspection: every cue is measured, and rejected with a reason where a number is out of bounds.

A person sees better: verdicts of people (``verdicts``) override all of this. The measures say what to look at first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.grey import WEIGHTS
from cuebench.stimuli.refined_bias.texture_cue import patch_size

_LUMINANCE = np.array(WEIGHTS)
FRAGMENT = 30


@dataclass(frozen=True)
class Limits:
    """Smallest and largest accepted value of each measure."""

    mask_area: tuple[float, float] = (0.004, 0.97)
    mask_pieces: tuple[float, float] = (0.6, 1.0)
    contour_length: tuple[float, float] = (220.0, 1e9)
    shape_entropy: tuple[float, float] = (0.05, 0.75)
    texture_in_shape: tuple[float, float] = (0.0, 0.16)
    fragments: tuple[float, float] = (0.0, 0.45)
    outside: tuple[float, float] = (0.0, 0.0)
    entropy: tuple[float, float] = (3.2, 8.0)
    contrast: tuple[float, float] = (5.0, 1e9)
    grid_energy: tuple[float, float] = (0.0, 2.2)
    outline_in_texture: tuple[float, float] = (0.0, 0.0)


REASONS: Mapping[str, tuple[str, str]] = {
    "mask_area": ("the object is tiny in its picture", "the mask leaves no surroundings"),
    "mask_pieces": ("the mask falls into pieces", ""),
    "contour_length": ("hardly any contour", ""),
    "shape_entropy": ("hardly anything is drawn", "too much is drawn"),
    "texture_in_shape": ("", "texture leaks into the shape cue"),
    "fragments": ("", "the lines are crumbs"),
    "outside": ("", "lines outside the object"),
    "entropy": ("a plain surface: no texture", ""),
    "contrast": ("a flat surface: no texture", ""),
    "grid_energy": ("", "the grid of the patches shows"),
    "outline_in_texture": ("", "the outline leaks into the texture"),
}
"""Measure → why a cue is rejected below and above the limits."""


def verdict(measures: Mapping[str, float], limits: Limits | None = None) -> str:
    """Return why a cue is rejected, with the numbers; empty where it is accepted."""
    bounds = limits or Limits()
    reasons = []
    for name, value in measures.items():
        low, high = getattr(bounds, name)
        if not low <= value <= high:
            words = REASONS[name][0 if value < low else 1]
            limit = f"at least {low:g}" if value < low else f"at most {high:g}"
            reasons.append(f"{words} ({name} {value:.3g}, {limit})")
    return "; ".join(reasons)


def mask_measures(mask: Array, area: float) -> dict[str, float]:
    """Return the part of the source image that the object covers, and the part of it that is one piece."""
    from scipy.ndimage import label

    parts, count = label(mask)
    largest = np.bincount(parts.ravel())[1:].max() if count else 0
    return {"mask_area": area, "mask_pieces": float(largest / max(mask.sum(), 1))}


def shape_measures(cue: Array, mask: Array) -> dict[str, float]:
    """Measure a shape cue: length, entropy, density of inner lines, crumbs, and lines outside the object."""
    from scipy.ndimage import binary_erosion, label

    lines = cue[..., 0] > 127
    core = binary_erosion(mask, iterations=2)
    share = float(lines.mean())
    parts, _ = label(lines, np.ones((3, 3)))
    sizes = np.bincount(parts.ravel())[1:]
    return {
        "contour_length": float(lines.sum()),
        "shape_entropy": _entropy(np.array([share, 1 - share])),
        "texture_in_shape": float((lines & core).sum() / max(mask.sum(), 1)),
        "fragments": float(sizes[sizes < FRAGMENT].sum() / max(sizes.sum(), 1)),
        "outside": float((lines & ~mask).mean()),
    }


def texture_measures(cue: Array, grid: int, source: Array, mask: Array) -> dict[str, float]:
    """Measure a texture cue.

    Parameters
    ----------
    cue : uint8 array size×size×3
        The cue.
    grid : int
        Patches along a side.
    source : int array size×size
        Flat index into the object's picture that each pixel was taken from.
    mask : bool array
        The object in that picture.
    """
    from scipy.ndimage import binary_erosion

    grey = cue @ _LUMINANCE
    counts = np.bincount(grey.astype(np.intp).ravel(), minlength=256)
    inner = binary_erosion(mask)
    return {
        "entropy": _entropy(counts / counts.sum()),
        "contrast": float(grey.std()),
        "grid_energy": grid_energy(cue, grid),
        "outline_in_texture": float(1 - inner.ravel()[source].mean()),
    }


def grid_energy(cue: Array, grid: int) -> float:
    """Return how much more the image changes across the lines of the grid than elsewhere; 1: no grid is visible.

    The mean absolute difference of neighbouring pixels along each column (row), averaged over all columns that lie at
    the same place in their cell; the largest of those places over the mean of all others, for columns and rows.
    """
    grey = cue @ _LUMINANCE
    step = patch_size(cue.shape[0], grid)[0] - patch_size(cue.shape[0], grid)[1]
    ratios = []
    for plane in (grey, grey.T):
        change = np.abs(np.diff(plane, axis=1)).mean(axis=0)
        place = np.arange(1, len(change) + 1) % step
        means = np.bincount(place, change, step) / np.maximum(np.bincount(place, minlength=step), 1)
        worst = means.argmax()
        ratios.append(means[worst] / max(float(np.delete(means, worst).mean()), 1e-9))
    return float(max(ratios))


def _entropy(parts: Array) -> float:
    """Return −Σ p·log2 p in bits."""
    positive = parts[parts > 0]
    return float(-(positive * np.log2(positive)).sum())
