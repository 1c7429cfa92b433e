# Triton reads the annotations of a kernel: nothing but tl.constexpr may stand there.
# ruff: noqa: ANN001
# mypy: disable-error-code="no-untyped-def"
"""Linear steps with a frozen tensor for CUDA (Triton): one step, or two in one pass over memory.

old ← u + push·(u − old) + step·Lu. The step alone moves 12 planes for a colour image (u, old and the tensor
in, old out). Two steps at once move 15 instead of 24: the row in between is computed at three columns by every thread
and stays in registers, so nothing but the two results is written.

With ``SPLIT = 3`` and ``C = 1`` a program takes one channel of a colour image: fewer registers, more programs at once,
and the tensor comes from the L2 cache for two of three channels.
"""

from __future__ import annotations

import triton
import triton.language as tl

from cuebench.cues._eed.triton_kernels import _four, _row, _three


@triton.jit
def _one(u_at, old_at, below, xl, xm, xr, t0, t1, t2, low, p0, q0, r0, p1, q1, r1, rest, push, step, keep):
    """One channel, one row: finish the pixel above the cells, return the row read and what is left for the next."""
    l0, l1, l2 = _three(u_at + below, xl, xm, xr)
    up, down = _row(t0, t1, t2, l0, l1, l2, p0, q0, r0, p1, q1, r1, rest)
    old = tl.load(old_at, mask=keep, other=0.0)
    tl.store(old_at, t1 + push * (t1 - old) + step * (low + up), mask=keep)
    return l0, l1, l2, down


@triton.jit(do_not_specialize=["H", "W", "segment"])
def linear_kernel(
    u_at, old_at, tensor_at, H, W, segment, rest, push, step,
    C: tl.constexpr, SPLIT: tl.constexpr, COLUMNS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """One linear step, in place in `old`."""
    blocks = tl.cdiv(W, COLUMNS)
    image = (tl.program_id(0) // blocks).to(tl.int64)
    x = (tl.program_id(0) % blocks) * COLUMNS + tl.arange(0, COLUMNS)
    y0 = tl.program_id(1) * segment
    y1 = tl.minimum(y0 + segment, H)
    n, size, plane = W + 1, (H + 1) * (W + 1), H * W
    xm = tl.minimum(x, W - 1)
    xl, xr = tl.maximum(xm - 1, 0), tl.minimum(x + 1, W - 1)
    u_at += image * C * plane
    old_at += image * C * plane + x
    tensor_at += image // SPLIT * 3 * size + xm
    zero = tl.zeros([COLUMNS], tl.float32)
    above = u_at + tl.maximum(y0 - 1, 0) * W
    a0, a1, a2 = _three(above, xl, xm, xr)
    b0, b1, b2, c0 = _four(zero)
    c1, c2 = zero, zero
    if C == 3:
        b0, b1, b2 = _three(above + plane, xl, xm, xr)
        c0, c1, c2 = _three(above + 2 * plane, xl, xm, xr)
    low0, low1, low2 = zero, zero, zero
    for y in tl.range(y0, y1 + 1, num_stages=STAGES):
        row = tensor_at + y * n
        p0, q0, r0 = tl.load(row), tl.load(row + size), tl.load(row + 2 * size)
        p1, q1, r1 = tl.load(row + 1), tl.load(row + size + 1), tl.load(row + 2 * size + 1)
        below, to = tl.minimum(y, H - 1) * W, old_at + (y - 1) * W
        keep = (x < W) & (x * 0 + y > y0)
        a0, a1, a2, low0 = _one(
            u_at, to, below, xl, xm, xr, a0, a1, a2, low0, p0, q0, r0, p1, q1, r1, rest, push, step, keep
        )
        if C == 3:
            v, to = u_at + plane, to + plane
            b0, b1, b2, low1 = _one(
                v, to, below, xl, xm, xr, b0, b1, b2, low1, p0, q0, r0, p1, q1, r1, rest, push, step, keep
            )
            v, to = v + plane, to + plane
            c0, c1, c2, low2 = _one(
                v, to, below, xl, xm, xr, c0, c1, c2, low2, p0, q0, r0, p1, q1, r1, rest, push, step, keep
            )


@triton.jit
def _five(row, x0, x1, x2, x3, x4):
    return tl.load(row + x0), tl.load(row + x1), tl.load(row + x2), tl.load(row + x3), tl.load(row + x4)


@triton.jit
def _two(
    u_at, old_at, first_at, second_at, y, y0, y1, H, W, x, x0, x1, x2, x3, x4,
    t0, t1, t2, t3, t4, la, lb, lc, ma, mb, mc, low, past,
    p0, q0, r0, p1, q1, r1, p2, q2, r2, p3, q3, r3, pa, qa, ra, pb, qb, rb, rest, push1, step1, push2, step2,
):  # fmt: skip
    """One channel, one row of two steps. t: row y − 1 of u at five columns; m: row y − 2 after the first step."""
    ys = x * 0 + y
    l0, l1, l2, l3, l4 = _five(u_at + tl.minimum(y, H - 1) * W, x0, x1, x2, x3, x4)
    above = tl.minimum(tl.maximum(y - 1, 0), H - 1) * W
    oa, ob, oc = _three(old_at + above, x1, x2, x3)
    up, da = _row(t0, t1, t2, l0, l1, l2, p0, q0, r0, p1, q1, r1, rest)
    na = t1 + push1 * (t1 - oa) + step1 * (la + up)
    up, db = _row(t1, t2, t3, l1, l2, l3, p1, q1, r1, p2, q2, r2, rest)
    nb = t2 + push1 * (t2 - ob) + step1 * (lb + up)
    up, dc = _row(t2, t3, t4, l2, l3, l4, p2, q2, r2, p3, q3, r3, rest)
    nc = t3 + push1 * (t3 - oc) + step1 * (lc + up)
    na, nc = tl.where(x == 0, nb, na), tl.where(x == W - 1, nb, nc)
    tl.store(first_at + (y - 1) * W + x, nb, mask=(x < W) & (ys > y0) & (ys <= y1))
    # Outside the image, the row after the first step is a copy of the edge row.
    na, nb, nc = tl.where(ys > H, ma, na), tl.where(ys > H, mb, nb), tl.where(ys > H, mc, nc)
    ma, mb, mc = tl.where(ys == 1, na, ma), tl.where(ys == 1, nb, mb), tl.where(ys == 1, nc, mc)
    up, down = _row(ma, mb, mc, na, nb, nc, pa, qa, ra, pb, qb, rb, rest)
    result = mb + push2 * (mb - past) + step2 * (low + up)
    tl.store(second_at + (y - 2) * W + x, result, mask=(x < W) & (ys >= y0 + 2))
    return l0, l1, l2, l3, l4, da, db, dc, na, nb, nc, down, t2


@triton.jit(do_not_specialize=["H", "W", "segment"])
def two_linear_kernel(
    u_at, old_at, first_at, second_at, tensor_at, H, W, segment, rest, push1, step1, push2, step2,
    C: tl.constexpr, SPLIT: tl.constexpr, COLUMNS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Two linear steps: `first` and `second` receive the states after the first and after the second one."""
    blocks = tl.cdiv(W, COLUMNS)
    image = (tl.program_id(0) // blocks).to(tl.int64)
    x = (tl.program_id(0) % blocks) * COLUMNS + tl.arange(0, COLUMNS)
    y0 = tl.program_id(1) * segment
    y1 = tl.minimum(y0 + segment, H)
    n, size, plane = W + 1, (H + 1) * (W + 1), H * W
    x2 = tl.minimum(x, W - 1)
    x0, x1, x3, x4 = tl.maximum(x2 - 2, 0), tl.maximum(x2 - 1, 0), tl.minimum(x + 1, W - 1), tl.minimum(x + 2, W - 1)
    left, right = tl.maximum(x2 - 1, 0) - x2, tl.minimum(x2 + 2, W) - x2  # cells of the columns beside the pixel's own
    base = image * C * plane
    tensor_at += image // SPLIT * 3 * size + x2
    zero = tl.zeros([COLUMNS], tl.float32)
    start = tl.maximum(y0 - 1, 0)
    above = u_at + base + tl.maximum(start - 1, 0) * W
    t0, t1, t2, t3, t4 = _five(above, x0, x1, x2, x3, x4)
    v0, v1, v2, v3 = _four(zero)
    v4, w0, w1, w2 = _four(zero)
    w3, w4 = zero, zero
    if C == 3:
        v0, v1, v2, v3, v4 = _five(above + plane, x0, x1, x2, x3, x4)
        w0, w1, w2, w3, w4 = _five(above + 2 * plane, x0, x1, x2, x3, x4)
    ta, tb, tc, tm = _four(zero)
    tn, to, tlow, tpast = _four(zero)
    va, vb, vc, vm = _four(zero)
    vn, vo, vlow, vpast = _four(zero)
    wa, wb, wc, wm = _four(zero)
    wn, wo, wlow, wpast = _four(zero)
    pa, qa, ra, pb = _four(zero)
    qb, rb = zero, zero
    for y in tl.range(start, y1 + 2, num_stages=STAGES):
        row = tensor_at + tl.minimum(y, H) * n
        p0, q0, r0 = tl.load(row + left), tl.load(row + size + left), tl.load(row + 2 * size + left)
        p1, q1, r1 = tl.load(row), tl.load(row + size), tl.load(row + 2 * size)
        p2, q2, r2 = tl.load(row + 1), tl.load(row + size + 1), tl.load(row + 2 * size + 1)
        p3, q3, r3 = tl.load(row + right), tl.load(row + size + right), tl.load(row + 2 * size + right)
        t0, t1, t2, t3, t4, ta, tb, tc, tm, tn, to, tlow, tpast = _two(
            u_at + base, old_at + base, first_at + base, second_at + base, y, y0, y1, H, W, x, x0, x1, x2, x3, x4,
            t0, t1, t2, t3, t4, ta, tb, tc, tm, tn, to, tlow, tpast,
            p0, q0, r0, p1, q1, r1, p2, q2, r2, p3, q3, r3, pa, qa, ra, pb, qb, rb,
            rest, push1, step1, push2, step2,
        )  # fmt: skip
        if C == 3:
            at = base + plane
            v0, v1, v2, v3, v4, va, vb, vc, vm, vn, vo, vlow, vpast = _two(
                u_at + at, old_at + at, first_at + at, second_at + at, y, y0, y1, H, W, x, x0, x1, x2, x3, x4,
                v0, v1, v2, v3, v4, va, vb, vc, vm, vn, vo, vlow, vpast,
                p0, q0, r0, p1, q1, r1, p2, q2, r2, p3, q3, r3, pa, qa, ra, pb, qb, rb,
                rest, push1, step1, push2, step2,
            )  # fmt: skip
            at += plane
            w0, w1, w2, w3, w4, wa, wb, wc, wm, wn, wo, wlow, wpast = _two(
                u_at + at, old_at + at, first_at + at, second_at + at, y, y0, y1, H, W, x, x0, x1, x2, x3, x4,
                w0, w1, w2, w3, w4, wa, wb, wc, wm, wn, wo, wlow, wpast,
                p0, q0, r0, p1, q1, r1, p2, q2, r2, p3, q3, r3, pa, qa, ra, pb, qb, rb,
                rest, push1, step1, push2, step2,
            )  # fmt: skip
        pa, qa, ra, pb, qb, rb = p1, q1, r1, p2, q2, r2
