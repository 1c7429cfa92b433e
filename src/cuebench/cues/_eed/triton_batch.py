"""Edge-enhancing diffusion of a batch on a CUDA device with the Triton kernels."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Array
from cuebench.cues._eed.plan import Cycle, Plan, lead_of, momentum
from cuebench.cues._eed.scheme import Report, Scheme
from cuebench.errors import MissingExtra, UserError

try:
    import torch
    import triton
except ImportError as missing:
    raise MissingExtra("the Triton kernel of eed", "torch", missing.name or "triton") from missing

from cuebench.cues._eed import triton_kernels, triton_linear

TAPS = 5
"""Taps of the marching filters; shorter kernels are padded with zeros."""
LARGEST_GRAPH = 1 << 23
"""Values of a batch (about 55 colour images of 224×224) up to which cycles are replayed as CUDA graphs."""
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

    structure: Tile = Tile(64, 57, 2)
    tensor: Tile = Tile(128, 113, 4)
    explicit: Tile = Tile(64, 56, 1)
    linear: Tile = Tile(64, 56, 1, 1, True)
    two: Tile = Tile(32, 112, 1, 1, True)


def supports(scheme: Scheme) -> bool:
    """Tell whether the five taps of the kernels are enough."""
    return scheme.kernel_size <= TAPS


class Batch:
    """A batch N×C×H×W on the device, and the steps that change it."""

    def __init__(self, u: Any, scheme: Scheme, tiles: Tiles | None = None, *, graphs: bool | None = None) -> None:
        self.u, self.scheme, self.tiles = u.contiguous(), scheme, tiles or Tiles()
        self.n, self.channels, self.h, self.w = u.shape
        self.old, self.x, self.y, self.past = (torch.zeros_like(self.u) for _ in range(4))
        self.span = 0.0  # time that the last cycle took; 0: there was none
        self.abc = torch.empty(self.n, 3, self.h + 1, self.w + 1, device=u.device)
        self.tensor = torch.empty_like(self.abc)
        small = u.numel() <= LARGEST_GRAPH  # the launches of a large batch hide behind its work
        self.graphs: dict[Hashable, Any] | None = {} if (small if graphs is None else graphs) and u.is_cuda else None
        self.taps, self.tensor_taps = half_taps(scheme.weights), half_taps(scheme.tensor_weights)

    def _launch(self, kernel: Any, tile: Tile, cells: int, *args: Any, **constants: Any) -> None:
        columns = min(tile.columns, triton.next_power_of_2(self.w + cells))
        count = self.n * constants.get("SPLIT", 1)
        grid = (count * triton.cdiv(self.w + cells, columns), triton.cdiv(self.h + cells, tile.rows))
        kernel[grid](*args, COLUMNS=columns, num_warps=tile.warps, **constants)

    def structure(self, u: Any = None) -> None:
        """Write the structure tensor of the present state, or of another one."""
        shape = (self.h, self.w, self.tiles.structure.rows)
        rest = self.scheme.remainder / 4
        self._launch(
            triton_kernels.structure_kernel, self.tiles.structure, 1,
            self.u if u is None else u, self.abc, *shape, *self.taps, rest, C=self.channels,
        )  # fmt: skip

    def freeze(self, lead: float = 0.0) -> None:
        """Write the diffusion tensor of the state extrapolated by `lead` times the last cycle's change."""
        self.structure(torch.lerp(self.past, self.u, 1 + lead, out=self.x) if lead else None)
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

    def linear(self, push: float, step: float) -> None:
        """One linear step with the frozen tensor."""
        tile = self.tiles.linear
        self._launch(
            triton_linear.linear_kernel, tile, 0,
            self.u, self.old, self.tensor, self.h, self.w, tile.rows, self.scheme.remainder / 2, push, step,
            **self._channels(tile),
        )  # fmt: skip
        self.u, self.old = self.old, self.u

    def two(self, first: tuple[float, float], second: tuple[float, float]) -> None:
        """Two linear steps in one pass over memory."""
        tile = self.tiles.two
        self._launch(
            triton_linear.two_linear_kernel, tile, 0,
            self.u, self.old, self.x, self.y, self.tensor, self.h, self.w, tile.rows,
            self.scheme.remainder / 2, *first, *second, **self._channels(tile),
        )  # fmt: skip
        self.u, self.old, self.x, self.y = self.y, self.x, self.u, self.old

    def _channels(self, tile: Tile) -> dict[str, int]:
        c, split = (1, self.channels) if tile.split else (self.channels, 1)
        return {"C": c, "SPLIT": split, "STAGES": tile.stages}

    def cycle(self, cycle: Cycle, lead: float = 0.0) -> None:
        """Freeze the tensor and run the cycle's linear steps."""
        self.freeze(lead)
        weights = [(a - 1, a * cycle.tau) for a in momentum(cycle.steps)]
        weights[0] = (0.0, weights[0][1])  # u_{−1} = u_0, whatever the old buffer holds
        if self.graphs is not None:  # a graph needs its buffers in the same places every time
            self.past.copy_(self.u)
        for k in range(0, cycle.steps - 1, 2):
            self.two(weights[k], weights[k + 1])
            if k == 0 and self.graphs is None:
                self.past, self.x = self.x, self.past  # the start of the cycle is kept, its buffer exchanged
        if cycle.steps % 2:
            self.linear(*weights[-1])

    def advance(self, part: tuple[Cycle, ...], report: Report) -> None:
        """Run the cycles of one part."""
        for cycle, group in groupby(part):
            count = len(list(group))
            if cycle.steps == 1:
                self._explicit_steps(cycle.tau, count, report)
                continue
            for _ in range(count):
                lead = lead_of(cycle, self.span)
                self._replay((cycle, lead), partial(self.cycle, cycle, lead))
                self.span = cycle.time
                report(cycle.steps * self.n)

    def _explicit_steps(self, dt: float, count: int, report: Report) -> None:
        def bunch() -> None:
            for _ in range(BUNCH):
                self.explicit(dt)

        self.span = 0.0
        for _ in range(count // BUNCH):
            self._replay((dt, BUNCH), bunch)
            report(BUNCH * self.n)
        for _ in range(count % BUNCH):
            self.explicit(dt)
            report(self.n)

    def _replay(self, key: Hashable, work: Callable[[], None]) -> None:
        """Do the work; from the second time on as a CUDA graph, which hides the launches of small batches."""
        if self.graphs is None or key not in self.graphs:
            work()
            if self.graphs is not None:
                self.graphs[key] = None
            return
        known = self.graphs[key]
        if known is None or known[0] is not self.u:
            known = self.graphs[key] = self._capture(work)
        known[-1].replay()
        self.u, self.old, self.x, self.y = known[:-1]

    def _capture(self, work: Callable[[], None]) -> tuple[Any, ...]:
        """Record the work as a graph that leaves the state in the buffer where it began."""
        buffers = (self.u, self.old, self.x, self.y)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
            if self.u is not buffers[0]:
                buffers[0].copy_(self.u)
        self.u, self.old, self.x, self.y = buffers
        return (*buffers, graph)


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


def advance_tensor(u: Any, scheme: Scheme, plan: Plan, report: Report) -> Any:
    """Return the state of a tensor N×C×H×W on a CUDA device at the end of the plan; `u` may be overwritten."""
    if not supports(scheme):
        raise UserError(f"backend 'triton' got kernel_size={scheme.kernel_size}", "accepted there: 1, 3 or 5")
    result, fit = torch.empty_like(u), images_that_fit(u)
    with torch.cuda.device(u.device):
        for start in range(0, len(u), fit):
            state = Batch(u[start : start + fit], scheme)
            for part in plan.parts:
                state.advance(part, report)
            result[start : start + fit] = state.u
    return result


def images_that_fit(batch: Any) -> int:
    """Images whose buffers (five states, two tensors) take at most half of the free device memory."""
    free, _ = torch.cuda.mem_get_info()
    channels, height, width = batch.shape[1:]
    bytes_of_image = 4 * 6 * (channels * height * width + (height + 1) * (width + 1))
    return max(1, int(free / 2) // bytes_of_image)
