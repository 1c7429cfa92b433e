"""Pixels to a GPU and answers back, without waiting: copies run beside the forward pass of the batch before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from cuebench.arrays import Array, Pixels
from cuebench.observers.base import Batch

MAKES_CUES = frozenset({"cuda"})
"""Kinds of device on which pictures are finished: on the CPU the processes that decode do it, all at once."""


def on_device(batch: Batch, device: Any) -> Any:
    """Return the images of a batch as uint8 N×H×W×3 on a device; networks that share images share the copy.

    Images that are not finished (``SharedImages.render``) are finished there, once for all networks.
    """
    assert batch.images is not None
    if batch.shared is None:
        copy = _copy(batch.images if batch.images.flags.writeable else batch.images.copy(), device)
        _wait_for_copies(device, copy)
        return copy
    key = str(device)
    if key not in batch.shared.copies:
        copy = _copy(batch.shared.memory, device)
        if device.type == "cuda":
            batch.shared.copying.append(_end_of_copies(device))
        if batch.shared.render is not None:
            _wait_for_copies(device, copy)
            copy = batch.shared.render(copy)
        batch.shared.copies[key] = copy
    copy = batch.shared.copies[key]
    _wait_for_copies(device, copy)
    return copy[batch.first : batch.first + len(batch.images)]


def _copy(images: Pixels, device: Any) -> Any:
    import torch

    tensor = torch.from_numpy(np.ascontiguousarray(images))
    if device.type != "cuda":
        return tensor.to(device)
    with torch.cuda.stream(_copying(str(device))):
        return tensor.to(device, non_blocking=True)


def _end_of_copies(device: Any) -> Callable[[], object]:
    """Return what waits for the copies that were begun so far; the thread that waits sleeps."""
    import torch

    event = torch.cuda.Event(blocking=True)
    event.record(_copying(str(device)))
    return event.synchronize


def _wait_for_copies(device: Any, copy: Any) -> None:
    """Let the forward pass begin after the copy, and keep the copy's memory until the pass has ended."""
    if device.type == "cuda":
        import torch

        current = torch.cuda.current_stream(device)
        current.wait_stream(_copying(str(device)))
        copy.record_stream(current)


@cache
def _copying(device: str) -> Any:
    """The stream that copies to a device."""
    import torch

    return torch.cuda.Stream(device)


def to_host(tensors: Mapping[str, Any]) -> Callable[[], dict[str, Array]]:
    """Begin to copy tensors to the main memory; what is returned waits for them and returns arrays."""
    import torch

    # A copy on the CPU, too: a network may use the memory of its output again for the next batch.
    copies = {name: tensor.to("cpu", non_blocking=tensor.is_cuda, copy=True) for name, tensor in tensors.items()}
    events = []
    for device in {tensor.device for tensor in tensors.values() if tensor.is_cuda}:
        event = torch.cuda.Event(blocking=True)  # the thread that waits sleeps
        event.record(torch.cuda.current_stream(device))
        events.append(event)

    def wait() -> dict[str, Array]:
        for event in events:
            event.synchronize()
        return {name: copy.numpy() for name, copy in copies.items()}

    return wait
