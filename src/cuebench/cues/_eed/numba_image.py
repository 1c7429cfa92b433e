"""Edge-enhancing diffusion of one image on one CPU core: the explicit step, and cycles with a frozen tensor.

A sweep goes down the image once. Smoothed rows, structure tensor and diffusion tensor live only as long as the stencil
needs them, in ring buffers that stay in the L1 cache; the step itself is done in place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cuebench.cues._eed.numba_rows import (
    ABC,
    EFQ,
    I1,
    LOW,
    PQR,
    RINGS,
    S1,
    S2,
    TMP,
    V,
    blur_row,
    diffusion_row,
    extend,
    first,
    flux_row,
    fold,
    fold_sign,
    kernel,
    mix_rows,
    structure_row,
)


@kernel
def mirror_frame(plane: Any) -> None:
    """Repeat the edge pixels of one channel in its one-pixel frame."""
    h, w = plane.shape[0] - 2, plane.shape[1] - 2
    for y in range(h):
        plane[y + 1, 0], plane[y + 1, w + 1] = plane[y + 1, 1], plane[y + 1, w]
    for x in range(w + 2):
        plane[0, x], plane[h + 1, x] = plane[1, x], plane[h, x]


@kernel
def smooth_rows(s: Any, u: Any, y: int, w: Any) -> None:
    """Blur row y of every channel horizontally into its ring."""
    channels, n, taps = u.shape[0], u.shape[2] - 2, len(w)
    at = first(TMP)
    for c in range(channels):
        for x in range(np.uint64(n)):
            s[at + x] = u[c, y + 1, x + I1]
        extend(s, TMP, n, taps // 2, False, False)
        blur_row(s, TMP, RINGS + c * taps + y % taps, n, w)


@kernel
def smoothed_rows(s: Any, y: int, h: int, channels: int, n: int, w: Any, rows: Any) -> None:
    """Finish the Gaussian of row y (all channels) with one pixel around it, in the half of V that y % 2 names."""
    taps = len(w)
    for c in range(channels):
        for k in range(taps):
            rows[k] = RINGS + c * taps + fold(y + k - taps // 2, h, False) % taps
        target = V + 3 * (y % 2) + c
        mix_rows(s, rows, w, target, n)
        extend(s, target, n, 1, False, False)


@kernel
def structure_rows(
    s: Any, y: int, h: int, channels: int, n: int, rest: float, w2: Any, mirror: bool, ring: int
) -> None:
    """Structure tensor of the cells above row y, blurred horizontally into the tensor's ring."""
    top, bottom = V + 3 * ((y - 1) % 2 if y > 0 else 0), V + 3 * (y % 2 if y < h else (h - 1) % 2)
    structure_row(s, top, bottom, channels, n + 1, rest)
    taps = len(w2)
    for k in range(3):
        extend(s, ABC + k, n + 1, taps // 2, mirror, k == 1)
        blur_row(s, ABC + k, ring + 3 * (y % taps) + k, n + 1, w2)


@kernel
def tensor_rows(
    s: Any, y: int, h: int, n: int, w2: Any, mirror: bool, ring: int, kappa: float, paper: bool, rows: Any, signed: Any
) -> None:
    """Diffusion tensor of the cells above row y, from the tensor's ring."""
    taps = len(w2)
    for k in range(3):
        for i in range(taps):
            at = y + i - taps // 2
            rows[i] = ring + 3 * (fold(at, h + 1, mirror) % taps) + k
            signed[i] = w2[i] * (fold_sign(at, h + 1, mirror) if k == 1 else np.float32(1.0))
        mix_rows(s, rows[:taps], signed[:taps], ABC + k, n + 1)
    diffusion_row(s, n + 1, kappa, paper)


@kernel
def explicit_row(s: Any, plane: Any, y: int, h: int, c: int, dt: float, rest: float) -> None:
    """Add the fluxes of the cells above row y of one channel, which completes row y − 1 of the step, in place."""
    n = plane.shape[1] - 2
    flux_row(s, plane, y, y + 1, n + 1, rest)
    e, low = first(EFQ), first(LOW + c)
    f, q = e + S1, e + S2
    if y > 0:
        for x in range(np.uint64(n)):
            plane[y, x + I1] += dt * (s[low + x] + s[q + x] - s[f + x] + s[e + x + I1] - s[q + x + I1])
    if y < h:
        for x in range(np.uint64(n)):
            s[low + x] = s[f + x + I1] + s[q + x + I1] - s[e + x] - s[q + x]


@kernel
def explicit_sweep(
    u: Any, s: Any, tensor: Any, w: Any, w2: Any, kappa: float, alpha: float, paper: bool, mirror: bool, dt: float
) -> None:
    """One sweep over u (C×(H+2)×(W+2)): an explicit step of length dt, or (dt = 0) only the tensor, into `tensor`."""
    channels, h, n = u.shape[0], u.shape[1] - 2, u.shape[2] - 2
    radius, radius2 = len(w) // 2, len(w2) // 2
    rows, signed = np.empty(64, np.int64), np.empty(64, np.float32)
    ring = RINGS + channels * len(w)
    rest = np.float32(0.25) * (np.float32(1.0) - np.float32(2.0) * alpha)
    for r in range(h + radius + radius2 + 1):
        if r < h:
            smooth_rows(s, u, r, w)
        y = r - radius
        if 0 <= y < h:
            smoothed_rows(s, y, h, channels, n, w, rows)
        if 0 <= y <= h:
            structure_rows(s, y, h, channels, n, rest, w2, mirror, ring)
        y -= radius2
        if y < 0:
            continue
        tensor_rows(s, y, h, n, w2, mirror, ring, kappa, paper, rows, signed)
        if dt > 0:
            for c in range(channels):
                explicit_row(s, u[c], y, h, c, dt, np.float32(2.0) * rest)
        else:
            for k in range(3):
                at = first(PQR + k)
                for x in range(np.uint64(n + 1)):
                    tensor[k, y, x] = s[at + x]
    if dt > 0:
        for c in range(channels):
            mirror_frame(u[c])


@kernel
def linear_flux(s: Any, u: Any, tensor: Any, y: int, rest: float) -> None:
    """Fluxes of the cells above row y of one channel with a tensor that is kept in memory; see ``flux_row``."""
    e, n = first(EFQ), np.uint64(u.shape[1] - 1)
    for x in range(n):
        ul, ur, ll, lr = u[y, x], u[y, x + I1], u[y + 1, x], u[y + 1, x + I1]
        p, q, r = tensor[0, y, x], tensor[1, y, x], tensor[2, y, x]
        s1, s2 = lr - ul, ur - ll
        s[e + x] = p * s1 + q * s2
        s[e + S1 + x] = q * s1 + r * s2
        s[e + S2 + x] = rest * (p + r) * ((ul + lr) - (ur + ll))


@kernel
def linear_sweep(u: Any, old: Any, s: Any, tensor: Any, now: float, step: float, before: float, rest: float) -> None:
    """old ← now·u + step·Lu + before·old for one channel (both with their frame), L with the given tensor."""
    h, n = u.shape[0] - 2, np.uint64(u.shape[1] - 2)
    e, low = first(EFQ), first(LOW)
    f, q = e + S1, e + S2
    for y in range(h + 1):
        linear_flux(s, u, tensor, y, rest)
        if y > 0:
            for x in range(n):
                flux = s[low + x] + s[q + x] - s[f + x] + s[e + x + I1] - s[q + x + I1]
                old[y, x + I1] = now * u[y, x + I1] + before * old[y, x + I1] + step * flux
        for x in range(n):
            s[low + x] = s[f + x + I1] + s[q + x + I1] - s[e + x] - s[q + x]
    mirror_frame(old)


@kernel
def cycle(u: Any, old: Any, s: Any, tensor: Any, alpha: float, steps: int, tau: float) -> None:
    """FSI cycle of `steps` linear steps on every channel, in place; channel by channel, which keeps the data in L2."""
    rest = np.float32(0.5) * (np.float32(1.0) - np.float32(2.0) * alpha)
    for c in range(u.shape[0]):
        a, b = u[c], old[c]
        b[:] = a
        for k in range(steps):
            now = np.float32((4.0 * k + 2.0) / (2.0 * k + 3.0))
            linear_sweep(a, b, s, tensor, now, now * tau, np.float32(1.0) - now, rest)
            a, b = b, a
        if steps % 2:
            u[c][:] = old[c]
