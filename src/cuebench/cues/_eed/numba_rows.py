"""Row kernels of edge-enhancing diffusion for one CPU core (Numba).

All rows live in one flat float32 scratch, ``STRIDE`` apart. The stride is a compile-time constant on purpose: LLVM then
knows that the rows of one group cannot overlap, needs few run-time alias checks, and vectorises every loop below. It is
no multiple of 4 KiB, so neighbouring rows do not fight for the same sets of the L1 cache.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cuebench.errors import MissingExtra

try:
    import numba
except ImportError as missing:  # pragma: no cover - numba is in the dev environment
    raise MissingExtra("the Numba kernel of eed", "image", "numba") from missing

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
F = TypeVar("F", bound=Callable[..., Any])


def _cache_folder_is_writable() -> bool:
    folder = Path(__file__).parent / "__pycache__"
    return os.access(folder if folder.exists() else folder.parent, os.W_OK)


if not _cache_folder_is_writable() and not numba.config.CACHE_DIR:  # pragma: no cover - read-only installs
    numba.config.CACHE_DIR = str(Path(tempfile.gettempdir()) / f"cuebench-numba-{os.getuid()}")


def kernel(function: F) -> F:
    """Compile without the GIL and keep the machine code on disk."""
    return numba.njit(nogil=True, fastmath=True, cache=True, boundscheck=False, error_model="numpy")(function)


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
def fold_sign(index: int, n: int, whole: bool) -> float:
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
def structure_row(s: Any, top: int, bottom: int, channels: int, n: int, rest: float) -> None:
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
def diffusion_row(s: Any, n: int, kappa: float, paper: bool) -> None:
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
def flux_row(s: Any, u: Any, top: int, bottom: int, n: int, rest: float) -> None:
    """Diagonal fluxes e, f and the remainder q of n cells between rows `top` and `bottom` of u (with its halo)."""
    p, e = first(PQR), first(EFQ)
    for x in range(np.uint64(n)):
        ul, ur, ll, lr = u[top, x], u[top, x + I1], u[bottom, x], u[bottom, x + I1]
        s1, s2 = lr - ul, ur - ll
        pp, qq, rr = s[p + x], s[p + S1 + x], s[p + S2 + x]
        s[e + x] = pp * s1 + qq * s2
        s[e + S1 + x] = qq * s1 + rr * s2
        s[e + S2 + x] = rest * (pp + rr) * ((ul + lr) - (ur + ll))
