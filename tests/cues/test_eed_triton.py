"""The Triton kernels against plain PyTorch in float64; without a CUDA device they run in Triton's interpreter."""

from __future__ import annotations

import os
from importlib.util import find_spec

import numpy as np
import pytest

if find_spec("triton") is None:
    pytest.skip("Triton comes with PyTorch's CUDA builds only", allow_module_level=True)

torch = pytest.importorskip("torch")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"  # Triton looks at it when a kernel is defined: before the imports below

from cuebench.cues._eed import torch_batch  # noqa: E402
from cuebench.cues._eed.plan import Cycle  # noqa: E402
from cuebench.cues._eed.scheme import Scheme  # noqa: E402
from cuebench.cues._eed.triton_batch import Batch, Tile, Tiles  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]
SMALL = Tiles(*[Tile(8, 4)] * 5)
OPTIONS = [{}, {"boundary": "mirror"}, {"diffusivity": "paper"}, {"orientation_smoothing": False}, {"kernel_size": 3}]
SHAPES = [(3, 5, 9), (1, 1, 1), (1, 5, 1), (3, 1, 9), (3, 40, 70)]
if DEVICE == "cpu":  # the interpreter takes seconds for what the device does in microseconds
    OPTIONS, SHAPES = OPTIONS[:2], SHAPES[:2]


def images(channels, height, width):
    return torch.from_numpy(255 * np.random.default_rng(0).random((1, channels, height, width))).to(DEVICE)


def worst(found, want):
    assert torch.isfinite(found).all()
    return float((found.double() - want).abs().max())


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_explicit_steps(options):
    u, scheme = images(3, 5, 9), Scheme(**options)
    batch = Batch(u.float(), scheme, SMALL)
    batch.x.fill_(float("nan"))
    batch.explicit(0.4)
    batch.explicit(0.4)
    want = torch_batch.explicit(torch_batch.explicit(u, scheme, 0.4), scheme, 0.4)
    assert worst(batch.u, want) < 2e-3


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cycles_of_single_and_fused_steps(shape, split):
    u, scheme = images(*shape), Scheme(boundary="mirror")
    batch = Batch(u.float(), scheme, Tiles(*[Tile(8, 4, split=split)] * 5))
    cycles = (Cycle(2, 0.45), Cycle(3, 0.45), Cycle(2, 0.4))  # past states change their buffers
    batch.advance(cycles, lambda work: None)
    *_, (want, _) = torch_batch.advance(u, scheme, cycles)
    assert worst(batch.u, want) < 2e-3
