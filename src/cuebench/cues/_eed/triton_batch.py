"""Edge-enhancing diffusion of a batch on a CUDA device with the Triton kernels."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from cuebench.cues._eed.plan import Cycle, Plan, momentum
from cuebench.cues._eed.scheme import Array, Report, Scheme
from cuebench.errors import MissingExtra, UserError

try:
    import torch
    import triton
except ImportError as missing:
    raise MissingExtra("the Triton kernel of eed", "torch", missing.name or "triton") from missing

from cuebench.cues._eed import triton_kernels, triton_linear

TAPS = 5
"""Taps of the marching filters; shorter kernels are padded with zeros."""
BUNCH = 32
"""Explicit steps in one CUDA graph; even, so that the state ends in the buffer where it began."""


class Tile(NamedTuple):
    """How a kernel is cut: columns and rows of a program, its warps and load stages; `split`: one channel a program."""

    columns: int = 32
    rows: int = 56
    warps: int = 1
    stages: int = 1
    split: bool = False


class Tiles(NamedTuple):
    """Tiles of all kernels, tuned on an H200 (``benchmarks/eed_gpu.py``)."""

    structure: Tile = Tile()
    tensor: Tile = Tile()
    explicit: Tile = Tile()
    linear: Tile = Tile(rows=32)
    two: Tile = Tile()


def supports(scheme: Scheme) -> bool:
    """Whether the kernels' five taps are enough."""
    return scheme.kernel_size <= TAPS


class Batch:
    """A batch N×C×H×W on the device, and the steps that change it."""

    def __init__(self, u: Any, scheme: Scheme, tiles: Tiles | None = None, *, graphs: bool = True) -> None:
        self.u, self.scheme, self.tiles = u.contiguous(), scheme, tiles or Tiles()
        self.n, self.channels, self.h, self.w = u.shape
        self.old, self.x, self.y = (torch.zeros_like(self.u) for _ in range(3))
        self.abc = torch.empty(self.n, 3, self.h + 1, self.w + 1, device=u.device)
        self.tensor = torch.empty_like(self.abc)
        self.graphs: dict[Cycle, Any] | None = {} if graphs and u.is_cuda else None
        self.taps, self.tensor_taps = half_taps(scheme.weights), half_taps(scheme.tensor_weights)

    def _launch(self, kernel: Any, tile: Tile, cells: int, *args: Any, **constants: Any) -> None:
        columns = min(tile.columns, triton.next_power_of_2(self.w + cells))
        count = self.n * constants.get("SPLIT", 1)
        grid = (count * triton.cdiv(self.w + cells, columns), triton.cdiv(self.h + cells, tile.rows))
        kernel[grid](*args, COLUMNS=columns, num_warps=tile.warps, **constants)

    def structure(self) -> None:
        """Write the structure tensor of the present state."""
        shape = (self.h, self.w, self.tiles.structure.rows)
        rest = self.scheme.remainder / 4
        self._launch(
            triton_kernels.structure_kernel, self.tiles.structure, 1,
            self.u, self.abc, *shape, *self.taps, rest, C=self.channels,
        )  # fmt: skip

    def freeze(self) -> None:
        """Write the diffusion tensor of the present state."""
        self.structure()
        s, tile = self.scheme, self.tiles.tensor
        self._launch(
            triton_kernels.tensor_kernel, tile, 1,
            self.abc, self.tensor, self.h, self.w, tile.rows, *self.tensor_taps, s.contrast,
            MIRROR=s.mirror, PAPER=s.paper,
        )  # fmt: skip

    def explicit(self, dt: float) -> None:
        """One explicit step of length dt."""
        self.structure()
        s, tile = self.scheme, self.tiles.explicit
        self._launch(
            triton_kernels.explicit_kernel, tile, 0,
            self.u, self.abc, self.x, self.h, self.w, tile.rows, *self.tensor_taps, s.contrast, s.remainder / 2, dt,
            C=self.channels, MIRROR=s.mirror, PAPER=s.paper,
        )  # fmt: skip
        self.u, self.x = self.x, self.u

    def linear(self, now: float, step: float, before: float) -> None:
        """One linear step with the frozen tensor."""
        tile = self.tiles.linear
        self._launch(
            triton_linear.linear_kernel, tile, 0,
            self.u, self.old, self.tensor, self.h, self.w, tile.rows, self.scheme.remainder / 2, now, step, before,
            **self._channels(tile),
        )  # fmt: skip
        self.u, self.old = self.old, self.u

    def two(self, one: tuple[float, float, float], other: tuple[float, float, float]) -> None:
        """Two linear steps in one pass over memory."""
        tile = self.tiles.two
        self._launch(
            triton_linear.two_linear_kernel, tile, 0,
            self.u, self.old, self.x, self.y, self.tensor, self.h, self.w, tile.rows,
            self.scheme.remainder / 2, *one, *other, **self._channels(tile),
        )  # fmt: skip
        self.u, self.old, self.x, self.y = self.y, self.x, self.u, self.old

    def _channels(self, tile: Tile) -> dict[str, int]:
        c, split = (1, self.channels) if tile.split else (self.channels, 1)
        return {"C": c, "SPLIT": split, "STAGES": tile.stages}

    def cycle(self, cycle: Cycle) -> None:
        """Freeze the tensor and run the cycle's linear steps."""
        self.freeze()
        weights = [(a, a * cycle.tau, 1 - a) for a in momentum(cycle.steps)]
        weights[0] = (1.0, weights[0][1], 0.0)  # u_{−1} = u_0, whatever the old buffer holds
        for k in range(0, cycle.steps - 1, 2):
            self.two(weights[k], weights[k + 1])
        if cycle.steps % 2:
            self.linear(*weights[-1])

    def advance(self, part: tuple[Cycle, ...], report: Report) -> None:
        """Run the cycles of one part."""
        for cycle, group in groupby(part):
            count = len(list(group))
            bunch = BUNCH if cycle.steps == 1 else 1
            work = self._explicit_bunch if cycle.steps == 1 else self.cycle
            for _ in range(count // bunch):
                self._replay(cycle, work)
                report(bunch * cycle.steps * self.n)
            for _ in range(count % bunch):
                self.explicit(cycle.tau)
                report(self.n)

    def _explicit_bunch(self, cycle: Cycle) -> None:
        for _ in range(BUNCH):
            self.explicit(cycle.tau)

    def _replay(self, cycle: Cycle, work: Callable[[Cycle], None]) -> None:
        """Do the work; from the second time on as a CUDA graph, which hides the launches of small batches."""
        if self.graphs is None or cycle not in self.graphs:
            work(cycle)
            if self.graphs is not None:
                self.graphs[cycle] = None
            return
        buffers = (self.u, self.old, self.x, self.y)
        if self.graphs[cycle] is None or self.graphs[cycle][0] != buffers[0].data_ptr():
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                work(cycle)
                buffers[0].copy_(self.u)
            self.graphs[cycle] = (buffers[0].data_ptr(), graph, buffers)
        _, graph, buffers = self.graphs[cycle]
        graph.replay()
        self.u, self.old, self.x, self.y = buffers


def half_taps(weights: Array) -> tuple[float, float, float]:
    """Return centre, next and outer weight of a symmetric filter of at most five taps."""
    half = [float(w) for w in weights[len(weights) // 2 :]] + [0.0, 0.0]
    return half[0], half[1], half[2]


def diffuse(batch: Array, scheme: Scheme, plan: Plan, report: Report, workers: int) -> Array:
    """Run the plan on the first CUDA device; see `scheme.Backend`."""
    if not torch.cuda.is_available():
        raise UserError("backend 'triton' found no CUDA device", "use backend='auto', or 'numba' on a CPU")
    if not supports(scheme):
        raise UserError(f"backend 'triton' got kernel_size={scheme.kernel_size}", "accepted there: 1, 3 or 5")
    results = np.empty((len(plan.parts), *batch.shape), np.float32)
    fit = images_that_fit(batch)
    for start in range(0, len(batch), fit):
        images = torch.from_numpy(np.ascontiguousarray(batch[start : start + fit])).cuda()
        state = Batch(images, scheme)
        for k, part in enumerate(plan.parts):
            state.advance(part, report)
            results[k, start : start + fit] = state.u.cpu().numpy()
    return results


def images_that_fit(batch: Array) -> int:
    """Images whose buffers (four states, two tensors, one copy) take at most half of the free device memory."""
    free, _ = torch.cuda.mem_get_info()
    one = 4 * (5 * batch[0].size + 6 * (batch.shape[2] + 1) * (batch.shape[3] + 1))
    return max(1, int(free / 2) // one)
