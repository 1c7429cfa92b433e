"""Edge-enhancing diffusion of one image on one CPU core (Numba): the explicit step, and cycles with a frozen tensor.

A sweep goes down the image once. Smoothed rows, structure tensor and diffusion tensor live only as long as the stencil
needs them, in ring buffers that stay in the L1 cache; the step itself is done in place.

All kernels are in one file because Numba's cache on disk looks at the time stamp of the caller's file only.

All rows live in one flat float32 scratch, ``STRIDE`` apart. The stride is a compile-time constant on purpose: LLVM then
knows that the rows of one group cannot overlap, needs few run-time alias checks, and vectorises every loop below. It is
no multiple of 4 KiB, so neighbouring rows do not fight for the same sets of the L1 cache.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np

from cuebench.compiled import compiled
from cuebench.errors import MissingExtra

if find_spec("numba") is None:  # pragma: no cover - numba is in the dev environment
    raise MissingExtra("the Numba kernel of eed", "image", "numba")

STRIDE = 16384 + 240
"""Floats from one scratch row to the next."""
PAD = 16
"""Floats before the first pixel of a row: room for the widest kernel's halo (radius ≤ 15)."""
WIDEST = STRIDE - 2 * PAD - 2
"""The widest image the scratch can hold."""
TALLEST_KERNEL = 2 * PAD - 3

# Indices are unsigned: Numba then leaves out the code for negative indices, which would keep LLVM from vectorising.
I1, I2, I3, I4, S1, S2 = (np.uint64(i) for i in (1, 2, 3, 4, STRIDE, 2 * STRIDE))

# Scratch rows, by group: names are row numbers, `ring` groups hold one row for each tap of the kernel.
TMP, V, ABC, PQR, EFQ, LOW, RINGS = 0, 1, 7, 10, 13, 16, 19
Real = float | np.floating[Any]
F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile without the GIL and keep the machine code on disk."""
    return compiled(function, nogil=True, fastmath=True, boundscheck=False, error_model="numpy")


def scratch_rows(channels: int, taps: int, tensor_taps: int) -> int:
    """Number of scratch rows for an image with `channels` (1 or 3) channels."""
    return RINGS + channels * taps + 3 * tensor_taps


@kernel
def fold(index: int, n: int, whole: bool) -> int:
    """Index inside 0 … n−1 of a mirrored signal: edge sample repeated, or (`whole`) mirrored about the edge sample."""
    if whole:
        if n == 1:
            return 0
        index = index % (2 * n - 2)
        return index if index < n else 2 * n - 2 - index
    index = index % (2 * n)
    return index if index < n else 2 * n - 1 - index


@kernel
def fold_sign(index: int, n: int, whole: bool) -> Real:
    """−1 where a mirrored odd field changes its sign, for ``fold`` of the same arguments."""
    if not whole or n == 1:
        return np.float32(1.0)
    return np.float32(1.0) if index % (2 * n - 2) < n else np.float32(-1.0)


@kernel
def extend(s: Any, row: int, n: int, radius: int, whole: bool, odd: bool) -> None:
    """Write `radius` mirrored samples on both sides of a scratch row of n samples."""
    at = row * STRIDE + PAD
    for k in range(1, radius + 1):
        left, right = s[at + fold(-k, n, whole)], s[at + fold(n - 1 + k, n, whole)]
        if odd:
            left, right = left * fold_sign(-k, n, whole), right * fold_sign(n - 1 + k, n, whole)
        s[at - k], s[at + n - 1 + k] = left, right


@kernel
def first(row: int) -> Any:
    """Index of the first pixel of a scratch row, unsigned."""
    return np.uint64(row * STRIDE + PAD)


@kernel
def blur_row(s: Any, source: int, target: int, n: int, w: Any) -> None:
    """Convolve a row that has its halo with the taps w."""
    taps = len(w)
    at, to = first(source) - np.uint64(taps // 2), first(target)
    if taps == 5:
        w0, w1, w2 = w[0], w[1], w[2]
        for x in range(np.uint64(n)):
            s[to + x] = w0 * (s[at + x] + s[at + x + I4]) + w1 * (s[at + x + I1] + s[at + x + I3]) + w2 * s[at + x + I2]
        return
    for x in range(np.uint64(n)):
        s[to + x] = w[0] * s[at + x]
    for k in range(1, taps):
        for x in range(np.uint64(n)):
            s[to + x] += w[k] * s[at + x + np.uint64(k)]


@kernel
def mix_rows(s: Any, rows: Any, w: Any, target: int, n: int) -> None:
    """Sum of w[k] · (scratch row rows[k])."""
    to = first(target)
    if len(w) == 5:
        r0, r1, r2 = first(rows[0]), first(rows[1]), first(rows[2])
        r3, r4 = first(rows[3]), first(rows[4])
        w0, w1, w2, w3, w4 = w[0], w[1], w[2], w[3], w[4]
        for x in range(np.uint64(n)):
            s[to + x] = w0 * s[r0 + x] + w1 * s[r1 + x] + w2 * s[r2 + x] + w3 * s[r3 + x] + w4 * s[r4 + x]
        return
    for x in range(np.uint64(n)):
        s[to + x] = np.float32(0.0)
    for k in range(len(w)):
        at = first(rows[k])
        for x in range(np.uint64(n)):
            s[to + x] += w[k] * s[at + x]


@kernel
def structure_row(s: Any, top: int, bottom: int, channels: int, n: int, rest: Real) -> None:
    """Structure tensor of n cells between two smoothed rows (first channel each), summed over the channels."""
    a, t, b = first(ABC), first(top), first(bottom)
    half = np.float32(0.5)
    for c in range(channels):
        for x in range(np.uint64(n)):
            ul, ur, ll, lr = s[t + x - I1], s[t + x], s[b + x - I1], s[b + x]
            down, up = lr - ul, ur - ll
            sx, sy = half * (down + up), half * (down - up)
            q = (ul + lr) - (ur + ll)
            q = rest * q * q
            if c == 0:
                s[a + x], s[a + S1 + x], s[a + S2 + x] = sx * sx + q, sx * sy, sy * sy + q
            else:
                s[a + x] += sx * sx + q
                s[a + S1 + x] += sx * sy
                s[a + S2 + x] += sy * sy + q
        t += S1
        b += S1


@kernel
def diffusion_row(s: Any, n: int, kappa: Real, paper: bool) -> None:
    """Turn the smoothed structure tensor (rows ABC) into the diffusion tensor in diagonal coordinates (rows PQR).

    P = (a+2b+c)/4, Q = (a−c)/4, R = (a−2b+c)/4: with the diagonal differences s1 = lr−ul and s2 = ur−ll the flux is
    e = P·s1 + Q·s2, f = Q·s1 + R·s2, which is fewer operations than with a, b, c.
    """
    a, p = first(ABC), first(PQR)
    half, one, tiny = np.float32(0.5), np.float32(1.0), np.float32(0.5e-6)
    k1, k2 = one / kappa, one / (kappa * kappa)
    for x in range(np.uint64(n)):
        m, d = half * (s[a + x] + s[a + S2 + x]), half * (s[a + x] - s[a + S2 + x])
        b = s[a + S1 + x]
        r = np.sqrt(d * d + b * b)
        z1, z2 = m - r, m + r
        if paper:
            y1, y2 = max(z1, np.float32(0.0)) * k2, z2 * k2
        else:
            y1, y2 = z1 * k1 * z1 * k1, z2 * k1 * z2 * k1
        g1, g2 = one / np.sqrt(one + y1), one / np.sqrt(one + y2)
        same = r < tiny
        mean = half if same else np.float32(0.25) * (g1 + g2)
        turn = np.float32(0.0) if same else np.float32(0.25) * (g2 - g1) / r
        s[p + x] = mean + turn * b
        s[p + S1 + x] = turn * d
        s[p + S2 + x] = mean - turn * b


@kernel
def flux_row(s: Any, u: Any, top: int, bottom: int, n: int, rest: Real) -> None:
    """Diagonal fluxes e, f and the remainder q of n cells between rows `top` and `bottom` of u (with its halo)."""
    p, e = first(PQR), first(EFQ)
    for x in range(np.uint64(n)):
        ul, ur, ll, lr = u[top, x], u[top, x + I1], u[bottom, x], u[bottom, x + I1]
        s1, s2 = lr - ul, ur - ll
        pp, qq, rr = s[p + x], s[p + S1 + x], s[p + S2 + x]
        s[e + x] = pp * s1 + qq * s2
        s[e + S1 + x] = qq * s1 + rr * s2
        s[e + S2 + x] = rest * (pp + rr) * ((ul + lr) - (ur + ll))


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
def structure_rows(s: Any, y: int, h: int, channels: int, n: int, rest: Real, w2: Any, mirror: bool, ring: int) -> None:
    """Structure tensor of the cells above row y, blurred horizontally into the tensor's ring."""
    top, bottom = V + 3 * ((y - 1) % 2 if y > 0 else 0), V + 3 * (y % 2 if y < h else (h - 1) % 2)
    structure_row(s, top, bottom, channels, n + 1, rest)
    taps = len(w2)
    for k in range(3):
        extend(s, ABC + k, n + 1, taps // 2, mirror, k == 1)
        blur_row(s, ABC + k, ring + 3 * (y % taps) + k, n + 1, w2)


@kernel
def tensor_rows(
    s: Any, y: int, h: int, n: int, w2: Any, mirror: bool, ring: int, kappa: Real, paper: bool, rows: Any, signed: Any
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
def explicit_row(s: Any, plane: Any, y: int, h: int, c: int, dt: Real, rest: Real) -> None:
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
    u: Any, s: Any, tensor: Any, w: Any, w2: Any, kappa: Real, alpha: Real, paper: bool, mirror: bool, dt: Real
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
def linear_flux(s: Any, u: Any, tensor: Any, y: int, rest: Real) -> None:
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
def linear_sweep(u: Any, old: Any, s: Any, tensor: Any, push: Real, step: Real, rest: Real) -> None:
    """old ← u + push·(u − old) + step·Lu for one channel (both with their frame), L with the given tensor."""
    h, n = u.shape[0] - 2, np.uint64(u.shape[1] - 2)
    e, low = first(EFQ), first(LOW)
    f, q = e + S1, e + S2
    for y in range(h + 1):
        linear_flux(s, u, tensor, y, rest)
        if y > 0:
            for x in range(n):
                flux = s[low + x] + s[q + x] - s[f + x] + s[e + x + I1] - s[q + x + I1]
                here = u[y, x + I1]
                old[y, x + I1] = here + push * (here - old[y, x + I1]) + step * flux
        for x in range(n):
            s[low + x] = s[f + x + I1] + s[q + x + I1] - s[e + x] - s[q + x]
    mirror_frame(old)


@kernel
def cycle(u: Any, old: Any, s: Any, tensor: Any, alpha: Real, steps: int, tau: Real) -> None:
    """FSI cycle of `steps` linear steps on every channel, in place; channel by channel, which keeps the data in L2."""
    rest = np.float32(0.5) * (np.float32(1.0) - np.float32(2.0) * alpha)
    for c in range(u.shape[0]):
        a, b = u[c], old[c]
        b[:] = a
        for k in range(steps):
            weight = np.float32((4.0 * k + 2.0) / (2.0 * k + 3.0))
            linear_sweep(a, b, s, tensor, weight - np.float32(1.0), weight * tau, rest)
            a, b = b, a
        if steps % 2:
            u[c][:] = old[c]


@kernel
def explicit_steps(
    u: Any,
    s: Any,
    tensor: Any,
    w: Any,
    w2: Any,
    kappa: Real,
    alpha: Real,
    paper: bool,
    mirror: bool,
    dt: Real,
    count: int,
) -> None:
    """`count` explicit steps of length dt."""
    for _ in range(count):
        explicit_sweep(u, s, tensor, w, w2, kappa, alpha, paper, mirror, dt)


@kernel
def look_ahead(u: Any, past: Any, ahead: Any, lead: Real) -> None:
    """ahead ← u + lead·(u − past), then past ← u."""
    a, b, c = u.reshape(-1), past.reshape(-1), ahead.reshape(-1)
    for i in range(np.uint64(len(a))):
        c[i] = a[i] + lead * (a[i] - b[i])
        b[i] = a[i]
