"""Parameters of edge-enhancing diffusion, checked, and the contract of its backends."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from cuebench.arrays import Array
from cuebench.cues._eed.plan import Plan
from cuebench.cues.parameters import check_choice, check_number
from cuebench.errors import UserError

Diffusivity = Literal["published", "paper"]
Boundary = Literal["published", "mirror"]
Report = Callable[[int], None]
WIDEST_KERNEL = 29


@dataclass(frozen=True)
class Scheme:
    """Space discretisation; see `cuebench.cues.eed` for the meaning of the fields."""

    kernel_size: int = 5
    sigma: float = math.sqrt(5)
    contrast: float = 1 / 15
    alpha: float = 0.49
    orientation_smoothing: bool = True
    diffusivity: Diffusivity = "published"
    boundary: Boundary = "published"

    def __post_init__(self) -> None:
        if self.kernel_size not in range(1, WIDEST_KERNEL + 1, 2):
            raise UserError(f"kernel_size is {self.kernel_size!r}", f"accepted: odd, from 1 to {WIDEST_KERNEL}")
        check_number("sigma", self.sigma, above=0)
        check_number("contrast", self.contrast, above=0)
        check_number("alpha", self.alpha, low=0, high=0.5)
        check_choice("diffusivity", self.diffusivity, ("published", "paper"))
        check_choice("boundary", self.boundary, ("published", "mirror"))

    @property
    def weights(self) -> Array:
        """Taps of the Gaussian: truncated and renormalised."""
        offsets = np.arange(self.kernel_size) - self.kernel_size // 2
        taps = np.exp(-(offsets**2) / (2 * self.sigma**2))
        return taps / taps.sum()

    @property
    def tensor_weights(self) -> Array:
        """Taps of the filter of the structure tensor: the same, or one tap without orientation smoothing."""
        return self.weights if self.orientation_smoothing else np.ones(1)

    @property
    def remainder(self) -> float:
        """Weight 1 − 2α of the mixed difference."""
        return 1 - 2 * self.alpha

    @property
    def paper(self) -> bool:
        """Diffusivity as printed in the paper."""
        return self.diffusivity == "paper"

    @property
    def mirror(self) -> bool:
        """Tensor mirrored about the border line."""
        return self.boundary == "mirror"

    @property
    def longest_step(self) -> float:
        r"""Stability bound of a step's length.

        Half differences of a cell are orthonormal, so a cell's energy is at most max(1, 2(1−2α)) times the sum of its
        squared corners; each pixel is a corner of four cells: ρ(L) ≤ 4·max(1, 2(1−2α)), and a step may be 2/ρ.
        """
        return 0.5 / max(1.0, 2 * self.remainder)


class Backend(Protocol):
    """Contract of the module of a backend."""

    def diffuse(self, batch: Array, scheme: Scheme, plan: Plan, report: Report, workers: int) -> Array:
        """Return the states S×N×C×H×W of an N×C×H×W float32 batch in [0, 255] at the ends of the plan's S parts."""
        ...
