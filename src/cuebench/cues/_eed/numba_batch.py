"""Edge-enhancing diffusion of a batch on CPU cores: one image for each thread, results independent of their number."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues._eed import numba_kernels as kernels
from cuebench.cues._eed.plan import Cycle, Plan, lead_of
from cuebench.cues._eed.scheme import Report, Scheme
from cuebench.errors import UserError

BUNCH = 256
"""Explicit steps between two reports of progress."""


class Image:
    """One image C×H×W with its frame, its work space and the steps that change it."""

    def __init__(self, planes: Array, scheme: Scheme) -> None:
        self.u = np.pad(planes.astype(np.float32), [(0, 0), (1, 1), (1, 1)], mode="edge")
        self.old, self.past, self.ahead = (np.empty_like(self.u) for _ in range(3))
        self.span = 0.0  # time that the last cycle took; 0: there was none
        self.tensor = np.empty((3, self.u.shape[1] - 1, self.u.shape[2] - 1), np.float32)
        taps, tensor_taps = scheme.weights.astype(np.float32), scheme.tensor_weights.astype(np.float32)
        rows = kernels.scratch_rows(len(planes), len(taps), len(tensor_taps))
        self.scratch = np.empty(rows * kernels.STRIDE, np.float32)
        self.alpha = np.float32(scheme.alpha)
        self.settings = (taps, tensor_taps, np.float32(scheme.contrast), self.alpha, scheme.paper, scheme.mirror)

    @property
    def planes(self) -> Array:
        """The state without its frame."""
        return self.u[:, 1:-1, 1:-1]

    def explicit(self, dt: float, count: int) -> None:
        """`count` explicit steps of length dt."""
        kernels.explicit_steps(self.u, self.scratch, self.tensor, *self.settings, np.float32(dt), count)
        self.span = 0.0

    def cycle(self, cycle: Cycle) -> None:
        """Linear steps with the tensor of a state a little ahead of the present one."""
        if not self.span:
            self.past[:] = self.u
        kernels.look_ahead(self.u, self.past, self.ahead, np.float32(lead_of(cycle, self.span)))
        kernels.explicit_sweep(self.ahead, self.scratch, self.tensor, *self.settings, np.float32(0))
        kernels.cycle(self.u, self.old, self.scratch, self.tensor, self.alpha, cycle.steps, np.float32(cycle.tau))
        self.span = cycle.time

    def advance(self, part: tuple[Cycle, ...], report: Report) -> None:
        """Run the cycles of one part."""
        for cycle, group in groupby(part):
            count = len(list(group))
            bunch = BUNCH if cycle.steps == 1 else 1
            for start in range(0, count, bunch):
                now = min(bunch, count - start)
                if cycle.steps == 1:
                    self.explicit(cycle.tau, now)
                else:
                    self.cycle(cycle)
                report(now * cycle.steps)


def diffuse(batch: Array, scheme: Scheme, plan: Plan, report: Report, workers: int) -> Array:
    """Run the plan in `workers` threads; see `scheme.Backend`."""
    if not supports(batch):
        raise UserError(f"backend 'numba' got an image {batch.shape[-1]} pixels wide", f"accepted: ≤ {kernels.WIDEST}")
    results = np.empty((len(plan.parts), *batch.shape), np.float32)

    def run(k: int) -> None:
        image = Image(batch[k], scheme)
        for i, part in enumerate(plan.parts):
            image.advance(part, report)
            results[i, k] = image.planes

    in_threads(run, len(batch), workers)
    return results


def supports(batch: Array) -> bool:
    """Tell whether the work space is wide enough for the images."""
    return batch.shape[-1] <= kernels.WIDEST


def in_threads(run: Any, count: int, workers: int) -> None:
    """Call run(0 … count − 1); the kernels release the GIL, so threads suffice."""
    if workers == 1 or count == 1:
        for k in range(count):
            run(k)
        return
    with ThreadPoolExecutor(min(workers, count)) as pool:
        for _ in pool.map(run, range(count)):
            pass
