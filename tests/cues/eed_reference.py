"""Edge-enhancing diffusion in plain NumPy float64, written straight from definitions.md §3: the judge of all kernels.

Nothing is rearranged, fused or shared with the package: a slip in `cuebench.cues._eed` cannot repeat itself here.
"""

from __future__ import annotations

import math

import numpy as np

SIGMA = math.sqrt(5)


def blur(field, size=5, sigma=SIGMA, halo=0):
    """Truncated, renormalised Gaussian over the last two axes, edge pixels repeated; `halo` extra pixels remain."""
    radius = size // 2
    weights = np.exp(-(np.arange(-radius, radius + 1.0) ** 2) / (2 * sigma**2))
    weights /= weights.sum()
    pad = [(0, 0)] * (field.ndim - 2) + [(radius + halo, radius + halo)] * 2
    wide = np.pad(field, pad, mode="symmetric")
    rows, columns = field.shape[-2] + 2 * halo, field.shape[-1] + 2 * halo
    wide = sum(w * wide[..., i : i + rows, :] for i, w in enumerate(weights))
    return sum(w * wide[..., i : i + columns] for i, w in enumerate(weights))


def blur_mirror(field, sign, size=5, sigma=SIGMA):
    """Blur of a dual-grid field that is mirrored about the border *line*, odd fields with their sign changed."""
    radius = size // 2
    weights = np.exp(-(np.arange(-radius, radius + 1.0) ** 2) / (2 * sigma**2))
    weights /= weights.sum()
    for axis in (0, 1):
        n = field.shape[axis]
        total = np.zeros_like(field)
        for offset, weight in zip(range(-radius, radius + 1), weights):
            index, flip = [], []
            for i in range(offset, n + offset):
                flips = 0
                while not 0 <= i < n:
                    i, flips = (-i if i < 0 else 2 * (n - 1) - i), flips + 1
                index.append(i)
                flip.append(sign**flips)
            shape = (-1, 1) if axis == 0 else (1, -1)
            total += weight * np.take(field, index, axis) * np.array(flip, float).reshape(shape)
        field = total
    return field


def tensor(u, *, alpha=0.49, kappa=1 / 15, smoothing=True, diffusivity="published", boundary="published", **gauss):
    """Diffusion tensor (A, B, C) on the (H+1)×(W+1) dual cells of u (C×H×W)."""
    v = blur(u, halo=1, **gauss)
    x1, x2 = v[:, :-1, :-1] - v[:, :-1, 1:], v[:, 1:, :-1] - v[:, 1:, 1:]
    y1, y2 = v[:, :-1, :-1] - v[:, 1:, :-1], v[:, :-1, 1:] - v[:, 1:, 1:]
    a = ((1 - alpha) / 2 * (x1**2 + x2**2) + alpha * x1 * x2).sum(0)
    c = ((1 - alpha) / 2 * (y1**2 + y2**2) + alpha * y1 * y2).sum(0)
    b = (0.25 * (x1 * y1 + x1 * y2 + x2 * y1 + x2 * y2)).sum(0)
    if smoothing and boundary == "published":
        a, b, c = blur(a, **gauss), blur(b, **gauss), blur(c, **gauss)
    elif smoothing:
        a, b, c = blur_mirror(a, 1, **gauss), blur_mirror(b, -1, **gauss), blur_mirror(c, 1, **gauss)
    matrix = np.stack([np.stack([a, b], -1), np.stack([b, c], -1)], -2)
    mu, vectors = np.linalg.eigh(matrix)
    g = 1 / np.sqrt(1 + (mu / kappa) ** 2) if diffusivity == "published" else 1 / np.sqrt(1 + mu / kappa**2)
    rebuilt = np.einsum("...ik,...k,...jk->...ij", vectors, g, vectors)
    rebuilt[mu[..., 1] - mu[..., 0] < 1e-6] = np.eye(2)
    return rebuilt[..., 0, 0], rebuilt[..., 0, 1], rebuilt[..., 1, 1]


def stencil(u, a, b, c, alpha=0.49):
    """Apply the 3×3 stencil of the definitions, cell by cell, to u (C×H×W): this is 2·div(D∇u)."""
    ap, am = alpha, 1 - alpha
    p = np.pad(u, [(0, 0), (1, 1), (1, 1)], mode="symmetric")
    n, m = u.shape[1:]

    def at(dy, dx):
        return p[:, 1 + dy : 1 + dy + n, 1 + dx : 1 + dx + m]

    cells = {k: tuple(f[y : y + n, x : x + m] for f in (a, b, c)) for k, (y, x) in CELLS.items()}
    (a0, b0, c0), (a1, b1, c1), (a2, b2, c2), (a3, b3, c3) = (cells[k] for k in ("ul", "ur", "bl", "br"))
    out = (ap * (a0 + c0) + b0) * at(-1, -1) + (ap * (a1 + c1) - b1) * at(-1, 1)
    out += (ap * (a2 + c2) - b2) * at(1, -1) + (ap * (a3 + c3) + b3) * at(1, 1)
    out += (am * (c0 + c1) - ap * (a0 + a1)) * at(-1, 0) + (am * (c2 + c3) - ap * (a2 + a3)) * at(1, 0)
    out += (am * (a0 + a2) - ap * (c0 + c2)) * at(0, -1) + (am * (a1 + a3) - ap * (c1 + c3)) * at(0, 1)
    total = a0 + c0 + a1 + c1 + a2 + c2 + a3 + c3
    return out + (-am * total - b3 + b2 + b1 - b0) * at(0, 0)


CELLS = {"ul": (0, 0), "ur": (0, 1), "bl": (1, 0), "br": (1, 1)}


def eed_reference(image, steps, tau=0.2, alpha=0.49, **options):
    """Run `steps` explicit steps on H×W×C values in [0, 255]; no clip, no stretch."""
    u = np.moveaxis(np.asarray(image, dtype=np.float64), -1, 0)
    for _ in range(steps):
        u = u + tau * stencil(u, *tensor(u, alpha=alpha, **options), alpha=alpha)
    return np.moveaxis(u, 0, -1)


def golden_input():
    """The 16×16 input of the golden values, values in [0, 255]."""
    y, x = np.mgrid[:16, :16]
    planes = [(37 * x + 11 * y) % 256, (x**2 + 3 * y**2) % 256, np.where(x < 8, 40, 200) + 30 * ((x + y) % 2)]
    return np.stack(planes, -1).astype(float)
