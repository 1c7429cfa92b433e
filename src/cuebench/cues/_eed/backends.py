"""Choose the backend of the diffusion: a module for each, imported on first use."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from cuebench.arrays import Array
from cuebench.cues._eed.plan import Plan
from cuebench.cues._eed.scheme import Backend, Report, Scheme
from cuebench.errors import MissingExtra, UserError

DEVICES = ("cpu", "cuda")
"""Names that stand for the fastest backend on that device."""
BACKENDS = ("numba", "torch", "triton")


def backend_for(name: str, batch: Array, scheme: Scheme) -> Backend:
    """Return a backend by name; ``auto``, ``cpu``, ``cuda``: the fastest that can do the work here (on that device)."""
    if name in {"auto", *DEVICES}:
        name = _fastest(batch, scheme, name)
    if name == "numba":
        from cuebench.cues._eed import numba_batch

        return cast(Backend, numba_batch)
    if name == "triton":
        from cuebench.cues._eed import triton_batch

        return cast(Backend, triton_batch)
    from cuebench.cues._eed import torch_batch

    return cast(Backend, torch_batch)


def advance_tensor(name: str, planes: Any, scheme: Scheme, plan: Plan, report: Report, workers: int) -> Any:
    """Run a plan of one part on a float32 tensor N×C×H×W in [0, 255], on its own device; return the new state.

    On a CUDA device Triton does the work, on the CPU Numba, elsewhere (and where those cannot) PyTorch.
    """
    on_cuda = planes.device.type == "cuda"
    accepted = {"auto", "torch", *(("cuda", "triton") if on_cuda else ()), *(("cpu", "numba") if planes.is_cpu else ())}
    if name not in accepted:
        what = f"backend is {name!r}, the tensor lies on {planes.device}"
        raise UserError(what, f"accepted there: {', '.join(sorted(accepted))}")
    if name != "torch" and on_cuda and find_spec("triton"):
        from cuebench.cues._eed import triton_batch

        if name == "triton" or triton_batch.supports(scheme):
            return triton_batch.advance_tensor(planes, scheme, plan, report)
    if name != "torch" and planes.is_cpu:
        import torch

        backend = backend_for("cpu" if name == "auto" else name, planes.numpy(), scheme)
        return torch.from_numpy(backend.diffuse(planes.numpy(), scheme, plan, report, workers)[-1])
    from cuebench.cues._eed import torch_batch

    return torch_batch.advance_tensor(planes, scheme, plan, report)


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
    """Tell whether Triton has a device; the driver's folder is checked first, as importing torch takes seconds."""
    if not (Path("/proc/driver/nvidia").exists() and find_spec("torch") and find_spec("triton")):
        return False
    import torch

    return bool(torch.cuda.is_available())
