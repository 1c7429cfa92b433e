"""Which backend runs: one module each, imported on first use."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from cuebench.cues._eed.scheme import Array, Backend, Scheme
from cuebench.errors import MissingExtra

DEVICES = ("cpu", "cuda")
"""Names that stand for the fastest backend on that device."""
BACKENDS = {"numba": "numba_batch", "torch": "torch_batch", "triton": "triton_batch"}


def backend_for(name: str, batch: Array, scheme: Scheme) -> Backend:
    """Return the backend of that name; ``auto``, ``cpu``, ``cuda``: the fastest that is here (there) and can do it."""
    if name in {"auto", *DEVICES}:
        name = _fastest(batch, scheme, name)
    return cast(Backend, importlib.import_module(f"cuebench.cues._eed.{BACKENDS[name]}"))


def _fastest(batch: Array, scheme: Scheme, device: str) -> str:
    if device != "cpu" and _cuda_is_here():
        from cuebench.cues._eed import triton_batch

        if triton_batch.supports(scheme):
            return "triton"
    if device != "cuda" and find_spec("numba"):
        from cuebench.cues._eed import numba_batch

        if numba_batch.supports(batch):
            return "numba"
    if find_spec("torch"):
        return "torch"
    raise MissingExtra("edge-enhancing diffusion (eed)", "image", "numba")


def _cuda_is_here() -> bool:
    """Whether Triton has a device; the driver's folder is looked at first because importing torch takes seconds."""
    if not (Path("/proc/driver/nvidia").exists() and find_spec("torch") and find_spec("triton")):
        return False
    import torch

    return bool(torch.cuda.is_available())
