"""Which steps reach a diffusion time: explicit steps, or cycles of linear steps with a frozen tensor.

A *cycle* freezes the diffusion tensor and runs n steps of the fast semi-iterative scheme (FSI) [1]_::

    u_{k+1} = a_k (u_k + τ L u_k) + (1 − a_k) u_{k−1},   a_k = (4k + 2)/(2k + 3),   u_{−1} = u_0,   k = 0 … n − 1

which advances time by τ·n(n+1)/3 and is stable for τ ≤ 2/ρ(L): n steps go as far as n²/3 explicit ones.

References
----------
.. [1] D. Hafner, P. Ochs, J. Weickert, M. Reißel, S. Grewenig, "FSI schemes: fast semi-iterative solvers for PDEs and
   optimisation methods", GCPR 2016. :doi:`10.1007/978-3-319-45886-1_8`
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Cycle(NamedTuple):
    """`steps` linear steps of length `tau` with one tensor; one step alone is an explicit step of length `tau`."""

    steps: int
    tau: float

    @property
    def time(self) -> float:
        """Diffusion time that the cycle advances."""
        return self.tau if self.steps == 1 else self.tau * self.steps * (self.steps + 1) / 3


class Plan(NamedTuple):
    """Cycles in parts; the state at the end of each part is a result."""

    parts: tuple[tuple[Cycle, ...], ...]

    @property
    def work(self) -> int:
        """Number of steps, the unit of progress."""
        return sum(cycle.steps for part in self.parts for cycle in part)


def momentum(steps: int) -> list[float]:
    """Return the weights a_k of a cycle."""
    return [(4 * k + 2) / (2 * k + 3) for k in range(steps)]


def cycle_of(time: float, longest: float) -> Cycle:
    """Return the shortest cycle that advances `time` with steps of at most `longest`.

    >>> cycle_of(102.4, 0.5).steps
    25
    """
    if time <= longest:
        return Cycle(1, time)
    steps = max(2, math.ceil((math.sqrt(1 + 12 * time / longest) - 1) / 2 - 1e-9))
    return Cycle(steps, 3 * time / (steps * (steps + 1)))
