"""What is started first: decoding processes and the import of torch, while stimuli are read and models are found."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from cuebench.observers.base import Observer
from cuebench.observers.torch.placement import devices_of, pick_device
from cuebench.registry import adapters
from cuebench.responses.engines import LOCAL
from cuebench.responses.pictures import DecodePool, check_workers
from cuebench.runs.record import RunOptions

WITHOUT_PIXELS = frozenset({"recorded", "ideal"})
"""Sources of observers that look at no pixels: no decoding process is started for them."""


def start_decoders(wanted: Sequence[str | Observer], options: RunOptions, tell: Callable[[str], None]) -> DecodePool:
    """Start the decoding processes, then to import torch: both go on while stimuli are read and models are loaded."""
    workers = check_workers(options.workers) if options.engine == LOCAL else 0
    schemes = {o.partition(":")[0] for o in wanted if isinstance(o, str)}
    pixels = not schemes <= WITHOUT_PIXELS or any(not isinstance(o, str) and o.preprocess is not None for o in wanted)
    pool = DecodePool(workers if pixels else 0, tell=tell)
    sources = [adapters.get(scheme) for scheme in schemes & set(adapters.names())] if "torch" not in sys.modules else []
    if any("torch" in source.packages for source in sources):
        # Not a daemon thread: one that is cut off in C++ at the end of the program aborts the process.
        threading.Thread(target=_warm_up, args=(options.device, options.precision)).start()
    return pool


def _warm_up(device: str, precision: str) -> None:
    """Import torch, and let a GPU load the libraries that nearly every network needs."""
    with suppress(Exception):  # whatever is wrong with it is said where it is needed
        import torch

        where = pick_device(devices_of(device)[0])
        if where.type != "cuda":
            return
        with torch.inference_mode():
            x = torch.zeros(8, 8, 16, 16, device=where).to(memory_format=torch.channels_last)
            kernels = torch.zeros(8, 8, 3, 3, device=where)
            with torch.autocast("cuda", dtype=getattr(torch, precision), enabled=precision != "float32"):
                torch.nn.functional.conv2d(x, kernels).mean((2, 3)) @ kernels[..., 0, 0]
            torch.cuda.synchronize(where)
