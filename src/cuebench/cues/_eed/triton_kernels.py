# Triton reads the annotations of a kernel: nothing but tl.constexpr may stand there.
# ruff: noqa: ANN001
# mypy: disable-error-code="no-untyped-def"
"""Batched kernels of edge-enhancing diffusion for CUDA (Triton).

Every program owns a strip of columns and *marches* down a segment of rows. What the stencil needs of the rows above
stays in registers: a finished row of a five-tap vertical filter costs five multiply-adds and no second read. So each
plane is read about once from device memory; neighbours in x come from the L1 cache.

Planes are float32, N×C×H×W; tensors are N×3×(H+1)×(W+1), rows A, B, C or P, Q, R (see `numba_kernels.diffusion_row`).
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _fold(i, n, whole: tl.constexpr):
    """Index of a mirrored signal: edge sample repeated, or (`whole`) mirrored about the edge sample."""
    period = 2 * n - 2 if whole else 2 * n
    i = (i + 4 * period) % period
    return tl.where(i < n, i, (2 * n - 2 if whole else 2 * n - 1) - i)


@triton.jit
def _sign(i, n, whole: tl.constexpr):
    """−1 where a mirrored odd field changes its sign."""
    period = 2 * n - 2
    return tl.where((i + 4 * period) % period < n, 1.0, -1.0) if whole else tl.where(i == i, 1.0, 1.0)


@triton.jit
def _pair(row, c0, c1, c2, c3, c4, c5, w0, w1, w2):
    """Horizontal filter at two neighbouring columns."""
    l1, l2, l3, l4 = tl.load(row + c1), tl.load(row + c2), tl.load(row + c3), tl.load(row + c4)
    left = w2 * (tl.load(row + c0) + l4) + w1 * (l1 + l3) + w0 * l2
    right = w2 * (l1 + tl.load(row + c5)) + w1 * (l2 + l4) + w0 * l3
    return left, right


@triton.jit
def _odd_pair(row, c0, c1, c2, c3, c4, c5, s0, s1, s4, s5, w0, w1, w2):
    """`_pair` of a field that is odd about the border: s are the signs of the columns that may lie outside."""
    l1, l2, l3, l4 = s1 * tl.load(row + c1), tl.load(row + c2), tl.load(row + c3), s4 * tl.load(row + c4)
    left = w2 * (s0 * tl.load(row + c0) + l4) + w1 * (l1 + l3) + w0 * l2
    right = w2 * (l1 + s5 * tl.load(row + c5)) + w1 * (l2 + l4) + w0 * l3
    return left, right


@triton.jit
def _march(p0, p1, p2, p3, h, w0, w1, w2):
    """Give row h to the four unfinished rows of a vertical filter; the first of them is finished."""
    return p0 + w2 * h, p1 + w1 * h, p2 + w0 * h, p3 + w1 * h, w2 * h


@triton.jit
def _haar(ul, ur, ll, lr, rest):
    """Structure tensor of one channel in a cell."""
    down, up = lr - ul, ur - ll
    sx, sy = 0.5 * (down + up), 0.5 * (down - up)
    t = (ul + lr) - (ur + ll)
    q = rest * t * t
    return sx * sx + q, sx * sy, sy * sy + q


@triton.jit
def _diffusion(a, b, c, kappa, PAPER: tl.constexpr):
    """Diffusion tensor (P, Q, R) in diagonal coordinates from the structure tensor (a, b, c)."""
    m, d = 0.5 * (a + c), 0.5 * (a - c)
    r = tl.sqrt(d * d + b * b)
    if PAPER:
        y1, y2 = tl.maximum(m - r, 0.0) / (kappa * kappa), (m + r) / (kappa * kappa)
    else:
        z1, z2 = (m - r) / kappa, (m + r) / kappa
        y1, y2 = z1 * z1, z2 * z2
    g1, g2 = tl.rsqrt(1.0 + y1), tl.rsqrt(1.0 + y2)
    same = r < 0.5e-6
    mean = tl.where(same, 0.5, 0.25 * (g1 + g2))
    turn = tl.where(same, 0.0, 0.25 * (g2 - g1) / tl.where(same, 1.0, r))
    return mean + turn * b, turn * d, mean - turn * b


@triton.jit
def _flux(ul, ur, ll, lr, p, q, r, rest):
    """Diagonal fluxes e, f and the remainder of one cell."""
    s1, s2 = lr - ul, ur - ll
    return p * s1 + q * s2, q * s1 + r * s2, rest * (p + r) * ((ul + lr) - (ur + ll))


@triton.jit
def _row(
    ul, um, ur, ll, lm, lr,
    p0, q0, r0, p1, q1, r1, rest,
):  # fmt: skip
    """What the two cells between two rows give to the pixel above and to the pixel below them."""
    e0, f0, t0 = _flux(ul, um, ll, lm, p0, q0, r0, rest)
    e1, f1, t1 = _flux(um, ur, lm, lr, p1, q1, r1, rest)
    return (t0 - f0) + (e1 - t1), (f1 + t1) - (e0 + t0)


@triton.jit
def _four(zero):
    return zero, zero, zero, zero


@triton.jit
def _three(row, a, b, c):
    return tl.load(row + a), tl.load(row + b), tl.load(row + c)


@triton.jit(do_not_specialize=["H", "W", "segment"])
def structure_kernel(
    u_at, out_at, H, W, segment, w0, w1, w2, rest, C: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """Structure tensor A, B, C of the smoothed image, summed over the channels, before its own smoothing."""
    blocks = tl.cdiv(W + 1, COLUMNS)
    image = (tl.program_id(0) // blocks).to(tl.int64)
    x = (tl.program_id(0) % blocks) * COLUMNS + tl.arange(0, COLUMNS)
    y0 = tl.program_id(1) * segment
    y1 = tl.minimum(y0 + segment, H + 1)
    inside = x <= W
    c0, c1, c2 = _fold(x - 3, W, False), _fold(x - 2, W, False), _fold(x - 1, W, False)
    c3, c4, c5 = _fold(x, W, False), _fold(x + 1, W, False), _fold(x + 2, W, False)
    u_at += image * C * H * W
    out_at += image * 3 * (H + 1) * (W + 1)
    zero = tl.zeros([COLUMNS], tl.float32)
    # unfinished rows of channel 1, left and right column
    a0, a1, a2, a3 = _four(zero)
    b0, b1, b2, b3 = _four(zero)
    c_0, c_1, c_2, c_3 = _four(zero)
    d0, d1, d2, d3 = _four(zero)
    e0, e1, e2, e3 = _four(zero)
    f0, f1, f2, f3 = _four(zero)
    # the finished rows above
    al, ar, bl, br = _four(zero)
    cl, cr = zero, zero
    for r in range(y0 - 3, y1 + 2):
        row = u_at + _fold(r, H, False) * W
        left, right = _pair(row, c0, c1, c2, c3, c4, c5, w0, w1, w2)
        vl, a0, a1, a2, a3 = _march(a0, a1, a2, a3, left, w0, w1, w2)
        vr, b0, b1, b2, b3 = _march(b0, b1, b2, b3, right, w0, w1, w2)
        xx, xy, yy = _haar(al, ar, vl, vr, rest)
        al, ar = vl, vr
        if C == 3:
            left, right = _pair(row + H * W, c0, c1, c2, c3, c4, c5, w0, w1, w2)
            vl, c_0, c_1, c_2, c_3 = _march(c_0, c_1, c_2, c_3, left, w0, w1, w2)
            vr, d0, d1, d2, d3 = _march(d0, d1, d2, d3, right, w0, w1, w2)
            px, pxy, py = _haar(bl, br, vl, vr, rest)
            bl, br = vl, vr
            left, right = _pair(row + 2 * H * W, c0, c1, c2, c3, c4, c5, w0, w1, w2)
            vl, e0, e1, e2, e3 = _march(e0, e1, e2, e3, left, w0, w1, w2)
            vr, f0, f1, f2, f3 = _march(f0, f1, f2, f3, right, w0, w1, w2)
            qx, qxy, qy = _haar(cl, cr, vl, vr, rest)
            cl, cr = vl, vr
            xx, xy, yy = xx + px + qx, xy + pxy + qxy, yy + py + qy
        y = r - 2
        keep = inside & (x * 0 + y >= y0)
        to = out_at + y * (W + 1) + x
        size = (H + 1) * (W + 1)
        tl.store(to, xx, mask=keep)
        tl.store(to + size, xy, mask=keep)
        tl.store(to + 2 * size, yy, mask=keep)


@triton.jit(do_not_specialize=["H", "W", "segment"])
def tensor_kernel(
    abc_at, out_at, H, W, segment, w0, w1, w2, kappa, MIRROR: tl.constexpr, PAPER: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """Diffusion tensor P, Q, R of every cell from the structure tensor, which is smoothed on the way."""
    blocks = tl.cdiv(W + 1, COLUMNS)
    image = (tl.program_id(0) // blocks).to(tl.int64)
    x = (tl.program_id(0) % blocks) * COLUMNS + tl.arange(0, COLUMNS)
    y0 = tl.program_id(1) * segment
    y1 = tl.minimum(y0 + segment, H + 1)
    inside = x <= W
    n, size = W + 1, (H + 1) * (W + 1)
    c0, c1, c2 = _fold(x - 2, n, MIRROR), _fold(x - 1, n, MIRROR), _fold(x, n, MIRROR)
    c3, c4 = _fold(x + 1, n, MIRROR), _fold(x + 2, n, MIRROR)
    s0, s1, s3, s4 = _sign(x - 2, n, MIRROR), _sign(x - 1, n, MIRROR), _sign(x + 1, n, MIRROR), _sign(x + 2, n, MIRROR)
    abc_at += image * 3 * size
    out_at += image * 3 * size
    zero = tl.zeros([COLUMNS], tl.float32)
    a0, a1, a2, a3 = _four(zero)
    b0, b1, b2, b3 = _four(zero)
    d0, d1, d2, d3 = _four(zero)
    for r in range(y0 - 2, y1 + 2):
        row = abc_at + _fold(r, H + 1, MIRROR) * n
        h = w2 * (tl.load(row + c0) + tl.load(row + c4)) + w1 * (tl.load(row + c1) + tl.load(row + c3))
        a, a0, a1, a2, a3 = _march(a0, a1, a2, a3, h + w0 * tl.load(row + c2), w0, w1, w2)
        row += size
        h = w2 * (s0 * tl.load(row + c0) + s4 * tl.load(row + c4))
        h += w1 * (s1 * tl.load(row + c1) + s3 * tl.load(row + c3)) + w0 * tl.load(row + c2)
        b, b0, b1, b2, b3 = _march(b0, b1, b2, b3, h * _sign(r, H + 1, MIRROR), w0, w1, w2)
        row += size
        h = w2 * (tl.load(row + c0) + tl.load(row + c4)) + w1 * (tl.load(row + c1) + tl.load(row + c3))
        c, d0, d1, d2, d3 = _march(d0, d1, d2, d3, h + w0 * tl.load(row + c2), w0, w1, w2)
        p, q, s = _diffusion(a, b, c, kappa, PAPER)
        y = r - 2
        keep = inside & (x * 0 + y >= y0)
        to = out_at + y * n + x
        tl.store(to, p, mask=keep)
        tl.store(to + size, q, mask=keep)
        tl.store(to + 2 * size, s, mask=keep)


@triton.jit(do_not_specialize=["H", "W", "segment"])
def explicit_kernel(
    u_at, abc_at, out_at, H, W, segment, w0, w1, w2, kappa, rest, dt,
    C: tl.constexpr, MIRROR: tl.constexpr, PAPER: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """One explicit step from the image and its structure tensor; the diffusion tensor never leaves the registers."""
    blocks = tl.cdiv(W, COLUMNS)
    image = (tl.program_id(0) // blocks).to(tl.int64)
    x = (tl.program_id(0) % blocks) * COLUMNS + tl.arange(0, COLUMNS)
    y0 = tl.program_id(1) * segment
    y1 = tl.minimum(y0 + segment, H)
    inside = x < W
    n, size, plane = W + 1, (H + 1) * (W + 1), H * W
    c0, c1, c2 = _fold(x - 2, n, MIRROR), _fold(x - 1, n, MIRROR), _fold(x, n, MIRROR)
    c3, c4, c5 = _fold(x + 1, n, MIRROR), _fold(x + 2, n, MIRROR), _fold(x + 3, n, MIRROR)
    s0, s1, s4, s5 = _sign(x - 2, n, MIRROR), _sign(x - 1, n, MIRROR), _sign(x + 2, n, MIRROR), _sign(x + 3, n, MIRROR)
    xm = tl.minimum(x, W - 1)
    xl, xr = tl.maximum(xm - 1, 0), tl.minimum(x + 1, W - 1)
    abc_at += image * 3 * size
    u_at += image * C * plane
    out_at += image * C * plane
    zero = tl.zeros([COLUMNS], tl.float32)
    a0, a1, a2, a3 = _four(zero)
    b0, b1, b2, b3 = _four(zero)
    d0, d1, d2, d3 = _four(zero)
    e0, e1, e2, e3 = _four(zero)
    f0, f1, f2, f3 = _four(zero)
    g0, g1, g2, g3 = _four(zero)
    low0, low1, low2 = zero, zero, zero
    for r in range(y0 - 2, y1 + 3):
        row = abc_at + _fold(r, H + 1, MIRROR) * n
        left, right = _pair(row, c0, c1, c2, c3, c4, c5, w0, w1, w2)
        a, a0, a1, a2, a3 = _march(a0, a1, a2, a3, left, w0, w1, w2)
        e, e0, e1, e2, e3 = _march(e0, e1, e2, e3, right, w0, w1, w2)
        if MIRROR:
            left, right = _odd_pair(row + size, c0, c1, c2, c3, c4, c5, s0, s1, s4, s5, w0, w1, w2)
            left, right = left * _sign(r, H + 1, MIRROR), right * _sign(r, H + 1, MIRROR)
        else:
            left, right = _pair(row + size, c0, c1, c2, c3, c4, c5, w0, w1, w2)
        b, b0, b1, b2, b3 = _march(b0, b1, b2, b3, left, w0, w1, w2)
        f, f0, f1, f2, f3 = _march(f0, f1, f2, f3, right, w0, w1, w2)
        left, right = _pair(row + 2 * size, c0, c1, c2, c3, c4, c5, w0, w1, w2)
        d, d0, d1, d2, d3 = _march(d0, d1, d2, d3, left, w0, w1, w2)
        g, g0, g1, g2, g3 = _march(g0, g1, g2, g3, right, w0, w1, w2)
        y = r - 2  # the cells between rows y − 1 and y
        if y >= y0:
            pl, ql, rl = _diffusion(a, b, d, kappa, PAPER)
            pr, qr, rr = _diffusion(e, f, g, kappa, PAPER)
            above, below = tl.maximum(y - 1, 0) * W, tl.minimum(y, H - 1) * W
            keep = inside & (x * 0 + y > y0)
            to = out_at + (y - 1) * W + x
            t1, t2, t3 = _three(u_at + above, xl, xm, xr)
            l1, l2, l3 = _three(u_at + below, xl, xm, xr)
            up, down = _row(t1, t2, t3, l1, l2, l3, pl, ql, rl, pr, qr, rr, rest)
            tl.store(to, t2 + dt * (low0 + up), mask=keep)
            low0 = down
            if C == 3:
                t1, t2, t3 = _three(u_at + plane + above, xl, xm, xr)
                l1, l2, l3 = _three(u_at + plane + below, xl, xm, xr)
                up, down = _row(t1, t2, t3, l1, l2, l3, pl, ql, rl, pr, qr, rr, rest)
                tl.store(to + plane, t2 + dt * (low1 + up), mask=keep)
                low1 = down
                t1, t2, t3 = _three(u_at + 2 * plane + above, xl, xm, xr)
                l1, l2, l3 = _three(u_at + 2 * plane + below, xl, xm, xr)
                up, down = _row(t1, t2, t3, l1, l2, l3, pl, ql, rl, pr, qr, rr, rest)
                tl.store(to + 2 * plane, t2 + dt * (low2 + up), mask=keep)
                low2 = down
