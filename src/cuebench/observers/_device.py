"""Where a torch model runs, and in which precision."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from cuebench.errors import UserError

PRECISIONS = ("float32", "bfloat16", "float16")


def pick_device(name: str = "auto") -> Any:
    """Return the torch device of that name; ``auto`` takes cuda, else mps, else cpu."""
    import torch

    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f"unknown device {name!r}", "one of auto, cpu, cuda, cuda:N, mps") from None
    there = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available}.get(device.type)
    if there is not None and not there():
        raise UserError(f"device {name!r} is not available here", "use device 'auto' or 'cpu'")
    return device


def check_precision(name: str) -> str:
    """Return the name if it is a precision that cuebench knows."""
    if name not in PRECISIONS:
        raise UserError(f"unknown precision {name!r}", f"one of {', '.join(PRECISIONS)}")
    return name


def autocast(device: Any, precision: str) -> AbstractContextManager[Any]:
    """Return the context of the forward pass: torch's autocast for the half precisions, and float32 that is float32.

    On CUDA, cuDNN computes float32 convolutions with 10-bit mantissas (TF32) unless it is told not to: logits of
    MobileNetV2 then differ from the CPU's by up to .009.
    """
    import torch

    if precision == "float32":
        if device.type != "cuda":
            return nullcontext()
        return torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False)
    return torch.autocast(device.type, dtype=getattr(torch, precision))
