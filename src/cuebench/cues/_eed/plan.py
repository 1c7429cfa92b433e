"""Steps that reach a diffusion time: explicit steps, or cycles of linear steps with a frozen tensor.

A *cycle* freezes the diffusion tensor and runs n steps of the fast semi-iterative scheme (FSI) [1]_::

    u_{k+1} = u_k + (a_k − 1)(u_k − u_{k−1}) + a_k τ L u_k,   a_k = (4k + 2)/(2k + 3),   u_{−1} = u_0,   k = 0 … n − 1

which advances time by τ·n(n+1)/3 and is stable for τ ≤ 2/ρ(L): n steps go as far as n²/3 explicit ones.

A tensor that is frozen at the start of a cycle is half a cycle late on average. So it is taken from the state
extrapolated by ``LEAD`` of the coming cycle, u + LEAD·(u − u of one cycle ago). And the tensor changes fastest at the
beginning, so the first cycles are a *ramp*: one in nine, ``RAMP`` at most, each ``RISE`` times as long as the one
before. The others grow in ``STAGES`` stages to ``GROWTH`` times their first length. Stability is untouched: a step with
*any* frozen tensor does not increase the L2 norm.

The ramp is what large faint regions need (smoke, sky): whether such a region merges with its neighbour hangs on the
first few units of time, when noise disappears and the tensor of a long first cycle is that of the noise. At T = 6553.6
with 72 cycles and about as many linear steps, crops of a rocket before smoke reached 43.4, 43.9, 44.4 and 44.9 dB
without a ramp (growth 8, lead 0.3; those four of 1,200 missed 45 dB) and reach 57 to 65 dB with it. What is then worst
are fine regular textures (gravel, grass), which like long cycles at the end less: growth 4 and lead 0.4 give them 47.0
instead of 45.3 dB. A lead of 0.5 loses what the ramp won.

References
----------
.. [1] D. Hafner, P. Ochs, J. Weickert, M. Reißel, S. Grewenig, "FSI schemes: fast semi-iterative solvers for PDEs and
   optimisation methods", GCPR 2016. :doi:`10.1007/978-3-319-45886-1_8`
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

LEAD = 0.4
"""How far ahead of a cycle's start its tensor is taken, in cycles."""
RAMP = 8
"""Most cycles of the ramp."""
RISE = 1.6
"""How many times longer each cycle of the ramp is than the one before."""
GROWTH = 4.0
"""How many times longer the last cycles are than the first after the ramp."""
STAGES = 8
"""Steps of that growth; cycles of one stage are equal, so that a GPU can replay them."""


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


def lead_of(cycle: Cycle, span: float) -> float:
    """Return by how many times the last cycle's change to extrapolate; `span`: its time, 0 if there was none."""
    return LEAD * cycle.time / span if span else 0.0


def cycle_of(time: float, longest: float) -> Cycle:
    """Return the shortest cycle that advances `time` with steps of at most `longest`.

    >>> cycle_of(102.4, 0.5).steps
    25
    """
    if time <= longest:
        return Cycle(1, time)
    steps = max(2, math.ceil((math.sqrt(1 + 12 * time / longest) - 1) / 2 - 1e-9))
    return Cycle(steps, 3 * time / (steps * (steps + 1)))


def explicit_plan(times: Sequence[float], step: float) -> Plan:
    """Return explicit steps of at most `step` to each of the rising `times`."""
    parts = []
    for start, end in pairwise((0.0, *times)):
        count = max(1, math.ceil((end - start) / step - 1e-6))
        parts.append((Cycle(1, (end - start) / count),) * count)
    return Plan(tuple(parts))


def cycle_plan(times: Sequence[float], cycles: int, longest: float, horizon: float | None = None) -> Plan:
    """Return growing cycles with linear steps of at most `longest` to each of the rising `times`.

    `cycles` of them would reach the `horizon` (default: the last time); a part that ends within a cycle shortens it.
    """
    lengths = stage_lengths(cycles, horizon or times[-1])
    ends = list(accumulate(count * length for count, length in lengths))
    return Plan(tuple(tuple(_cycle_part(a, b, lengths, ends, longest)) for a, b in pairwise((0.0, *times))))


def stage_lengths(cycles: int, time: float) -> list[tuple[int, float]]:
    """Return (number of cycles, length of each) of the ramp and the stages, whose sum is `time`.

    >>> [count for count, _ in stage_lengths(20, 100.0)]
    [1, 1, 2, 2, 2, 3, 2, 2, 2, 3]
    """
    ramp = min(RAMP, cycles // 9)
    rest = cycles - ramp
    stages = min(STAGES, rest)
    counts = [1] * ramp + [rest * (s + 1) // stages - rest * s // stages for s in range(stages)]
    grown = [RISE**-k for k in range(ramp, 0, -1)] + [GROWTH ** (s / max(1, stages - 1)) for s in range(stages)]
    first = time / sum(count * g for count, g in zip(counts, grown))
    return [(count, first * g) for count, g in zip(counts, grown)]


def _cycle_part(
    start: float, end: float, lengths: Sequence[tuple[int, float]], ends: Sequence[float], longest: float
) -> Iterator[Cycle]:
    """Yield the cycles between two times: in each stage the fewest equal ones, none longer than the stage's."""
    for (_, length), begin, finish in zip(lengths, (0.0, *ends), (*ends[:-1], math.inf)):
        time = min(end, finish) - max(start, begin)
        if time > 1e-9 * length:
            count = max(1, math.ceil(time / length - 1e-6))
            yield from (cycle_of(time / count, longest),) * count
