"""Where a torch model runs, and in which precision."""

from __future__ import annotations

import ctypes
import os
import platform
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from cuebench.errors import UserError

PRECISIONS = ("float32", "bfloat16", "float16")
KEEP_MEMORY = "CUEBENCH_KEEP_MEMORY"
"""Environment variable; ``0`` leaves the allocator as it is."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of malloc.h
_LARGEST = (1 << 30, 32 << 20)  # older versions of glibc refuse more than 32 MiB


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


@cache
def keep_freed_memory() -> bool:
    """Tell glibc to keep freed memory for the next allocation; return whether it does. Done once for a process.

    A forward pass on the CPU takes and frees tensors of many megabytes. glibc gives each of them back to the kernel and
    asks for zeroed pages for the next one: a third to a half of the CPU time of EfficientNet-Lite0 was such faults.
    The price: memory once taken is returned when the process ends (Lite0, 32 images: 1.03 instead of 0.88 GB).
    """
    if os.environ.get(KEEP_MEMORY, "1") == "0" or platform.libc_ver()[0] != "glibc":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    kept = bool(mallopt(_TRIM_THRESHOLD, (1 << 31) - 1))
    return any(mallopt(_MMAP_THRESHOLD, size) for size in _LARGEST) and kept
