"""Edge-enhancing diffusion of a batch in plain PyTorch: any device, any kernel size; yardstick of the fused kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues._eed.plan import Cycle, Plan, lead_of, momentum
from cuebench.cues._eed.scheme import Report, Scheme
from cuebench.errors import MissingExtra

try:
    import torch
except ImportError as missing:  # pragma: no cover - torch is in the dev environment
    raise MissingExtra("the PyTorch kernel of eed", "torch", "torch") from missing


def folded(n: int, radius: int, whole: bool) -> tuple[Array, Array]:
    """Indices of a mirrored signal of n samples with `radius` more on both sides, and the signs of an odd one."""
    period = max(1, 2 * n - 2 if whole else 2 * n)
    index = np.arange(-radius, n + radius) % period
    return np.where(index < n, index, (2 * n - 2 if whole else 2 * n - 1) - index), np.where(index < n, 1.0, -1.0)


def extend(x: Any, radius: int, axis: int, whole: bool = False, odd: bool = False) -> Any:
    """Mirror `radius` samples at both ends of an axis."""
    index, sign = folded(x.shape[axis], radius, whole)
    wide = x.index_select(axis % x.ndim, torch.as_tensor(index, device=x.device))
    if odd and whole:
        signs = torch.as_tensor(sign, dtype=x.dtype, device=x.device)
        wide = wide * (signs if axis % x.ndim == x.ndim - 1 else signs[:, None])
    return wide


def blur(x: Any, weights: Array, whole: bool = False, odd: bool = False) -> Any:
    """Separable filter over the last two axes."""
    radius = len(weights) // 2
    for axis in (-2, -1) if radius else ():
        wide, n = extend(x, radius, axis, whole, odd), x.shape[axis]
        x = float(weights[0]) * wide.narrow(axis, 0, n)
        for k in range(1, len(weights)):
            x = x.add(wide.narrow(axis, k, n), alpha=float(weights[k]))
    return x


def corners(u: Any) -> tuple[Any, Any, Any, Any]:
    """Return the pixels at the four corners of every cell, edge pixels repeated."""
    wide = extend(extend(u, 1, -1), 1, -2)
    return wide[..., :-1, :-1], wide[..., :-1, 1:], wide[..., 1:, :-1], wide[..., 1:, 1:]


def tensor(u: Any, scheme: Scheme) -> tuple[Any, Any, Any]:
    """Diffusion tensor (P, Q, R) in diagonal coordinates (see `numba_kernels.diffusion_row`), N×1×(H+1)×(W+1)."""
    ul, ur, ll, lr = corners(blur(u, scheme.weights))
    down, up, t = lr - ul, ur - ll, ul + lr - ur - ll
    sx, sy, t = (down + up) / 2, (down - up) / 2, (scheme.remainder / 4) * t * t
    fields = ((sx * sx + t).sum(1, True), (sx * sy).sum(1, True), (sy * sy + t).sum(1, True))
    a, b, c = (blur(f, scheme.tensor_weights, scheme.mirror, odd) for f, odd in zip(fields, (False, True, False)))
    m, d = (a + c) / 2, (a - c) / 2
    r = torch.sqrt(d * d + b * b)
    if scheme.paper:
        y1, y2 = ((m - r).clamp(min=0) / scheme.contrast**2, (m + r) / scheme.contrast**2)
    else:
        y1, y2 = ((m - r) / scheme.contrast) ** 2, ((m + r) / scheme.contrast) ** 2
    g1, g2 = torch.rsqrt(1 + y1), torch.rsqrt(1 + y2)
    same = r < 0.5e-6
    mean = torch.where(same, 0.5, (g1 + g2) / 4)
    turn = torch.where(same, 0.0, (g2 - g1) / (4 * r))
    return mean + turn * b, turn * d, mean - turn * b


def operator(u: Any, field: tuple[Any, Any, Any], scheme: Scheme) -> Any:
    """Return Lu = div(D∇u)."""
    p, q, r = field
    ul, ur, ll, lr = corners(u)
    s1, s2 = lr - ul, ur - ll
    e, f = p * s1 + q * s2, q * s1 + r * s2
    t = (scheme.remainder / 2) * (p + r) * (ul + lr - ur - ll)
    low, high = f + t, e - t
    return low[..., :-1, 1:] - (e + t)[..., :-1, :-1] + (t - f)[..., 1:, :-1] + high[..., 1:, 1:]


def explicit(u: Any, scheme: Scheme, dt: float) -> Any:
    """One explicit step of length dt."""
    return u + dt * operator(u, tensor(u, scheme), scheme)


def run_cycle(u: Any, scheme: Scheme, cycle: Cycle, ahead: Any = None) -> Any:
    """Run the linear steps of a cycle with the tensor of the state `ahead`, or of the present one."""
    field, old = tensor(u if ahead is None else ahead, scheme), u
    for a in momentum(cycle.steps):
        u, old = u + (a - 1) * (u - old) + (a * cycle.tau) * operator(u, field, scheme), u
    return u


def advance(u: Any, scheme: Scheme, cycles: Iterable[Cycle]) -> Iterator[tuple[Any, Cycle]]:
    """Run cycle after cycle; yield the state after each."""
    past, span = u, 0.0
    for cycle in cycles:
        if cycle.steps == 1:
            u, span = explicit(u, scheme, cycle.tau), 0.0
        else:
            ahead = u + lead_of(cycle, span) * (u - past)
            past, u, span = u, run_cycle(u, scheme, cycle, ahead), cycle.time
        yield u, cycle


def advance_tensor(u: Any, scheme: Scheme, plan: Plan, report: Report) -> Any:
    """Return the state of a tensor N×C×H×W at the end of the plan."""
    for u, cycle in advance(u, scheme, chain.from_iterable(plan.parts)):  # noqa: B020 - the state replaces the start
        report(cycle.steps * len(u))
    return u


def diffuse(batch: Array, scheme: Scheme, plan: Plan, report: Report, workers: int, device: str | None = None) -> Array:
    """Run the plan on the GPU if there is one; see `scheme.Backend`."""
    u = torch.from_numpy(np.ascontiguousarray(batch))
    u = u.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    ends = np.cumsum([len(part) for part in plan.parts])
    results = []
    with torch.inference_mode():
        states = advance(u, scheme, chain.from_iterable(plan.parts))
        for k, (state, cycle) in enumerate(states, 1):
            report(cycle.steps * len(batch))
            results += [state.cpu().numpy()] * int(np.sum(ends == k))
    return np.stack(results)
