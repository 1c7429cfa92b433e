"""NumPy's default generator (PCG64) on a device: the numbers of ``Generator.random``, all at once.

The generator multiplies a state of 128 bits by a constant and adds another, ``s ← M·s + c``, and turns each state into
a number. The k-th state is ``Mᵏ·s + (1 + M + … + Mᵏ⁻¹)·c``: with a table of both factors every number can be computed
for itself. PyTorch has no unsigned 128-bit integers, so a number is two int64 whose bits are taken as unsigned.

References
----------
.. [1] M. E. O'Neill, "PCG: a family of simple fast space-efficient statistically good algorithms for random number
   generation", Harvey Mudd College, HMC-CS-2014-0905, 2014.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
_MASK64, _MASK32 = (1 << 64) - 1, (1 << 32) - 1
_SIGN = -(1 << 63)


class Wide(NamedTuple):
    """A tensor of 128-bit integers: upper and lower half."""

    high: Any
    low: Any


def is_pcg64(rng: np.random.Generator) -> bool:
    """Tell whether a generator is NumPy's default."""
    return type(rng.bit_generator) is np.random.PCG64


def random(rngs: Sequence[np.random.Generator], count: int, device: Any) -> Any:
    """Return ``rng.random(count)`` of each generator, N×count float64 on the device; the generators move on."""
    states = []
    for rng in rngs:
        state: Any = rng.bit_generator.state
        states.append((state["state"]["state"], state["state"]["inc"]))
        rng.bit_generator.advance(count)  # type: ignore[attr-defined]
    start, step = (_wide([state[k] for state in states], device) for k in range(2))
    power, total = _table(count, device)
    state = _added(
        _multiplied(power, Wide(start.high[:, None], start.low[:, None])),
        _multiplied(total, Wide(step.high[:, None], step.low[:, None])),
    )
    mixed, turn = state.high ^ state.low, _shifted(state.high, 58)
    rotated = _shifted(mixed, turn) | torch.where(turn == 0, 0, mixed << ((64 - turn) & 63))
    return _shifted(rotated, 11).to(torch.float64) * 2.0**-53


@lru_cache(maxsize=8)
def _table(count: int, device: Any) -> tuple[Wide, Wide]:
    """Return Mᵏ and 1 + M + … + Mᵏ⁻¹ for k = 1 … count."""
    power, total, powers, totals = 1, 0, [], []
    for _ in range(count):
        total = (total + power) & ((1 << 128) - 1)
        power = power * MULTIPLIER & ((1 << 128) - 1)
        powers.append(power)
        totals.append(total)
    return _wide(powers, device), _wide(totals, device)


def _wide(values: Sequence[int], device: Any) -> Wide:
    halves = (np.array([part(v) for v in values], np.uint64) for part in (lambda v: v >> 64, lambda v: v & _MASK64))
    return Wide(*(torch.from_numpy(half.view(np.int64)).to(device) for half in halves))


def _shifted(x: Any, bits: Any) -> Any:
    """Shift to the right as an unsigned number: PyTorch's own shift repeats the sign."""
    if isinstance(bits, int):
        return (x >> bits) & ((1 << (64 - bits)) - 1)
    rest = (x >> 1) & ((1 << 63) - 1)  # the first bit apart, so that a shift by 0 works too
    return torch.where(bits == 0, x, rest >> (bits - 1).clamp(min=0))


def _multiplied(a: Wide, b: Wide) -> Wide:
    """Return a·b modulo 2¹²⁸."""
    a0, a1, b0, b1 = a.low & _MASK32, _shifted(a.low, 32), b.low & _MASK32, _shifted(b.low, 32)
    low, cross, other = a0 * b0, a0 * b1, a1 * b0
    carry = _shifted(low, 32) + (cross & _MASK32) + (other & _MASK32)
    high = a1 * b1 + _shifted(cross, 32) + _shifted(other, 32) + _shifted(carry, 32)
    return Wide(high + a.high * b.low + a.low * b.high, a.low * b.low)


def _added(a: Wide, b: Wide) -> Wide:
    """Return a + b modulo 2¹²⁸."""
    low = a.low + b.low
    carry = (low ^ _SIGN) < (a.low ^ _SIGN)
    return Wide(a.high + b.high + carry, low)
