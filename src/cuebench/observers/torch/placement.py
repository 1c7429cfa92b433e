"""A torch module on its device: kept in evaluation mode, run without gradients in one precision and memory format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from cuebench.observers.torch.device import autocast, check_precision, keep_freed_memory, pick_device

T = TypeVar("T")


class Placed:
    """A module that is ready to run.

    Parameters
    ----------
    module : nn.Module
        Moved to the device.
    device, precision : str
        ``auto``, ``cpu``, ``cuda`` …; ``float32``, ``bfloat16`` or ``float16`` (autocast).
    frozen : bool
        Nobody else uses the module. A user's own one keeps its memory format, and may be trained after it has answered:
        tensors that it keeps for itself must not be inference tensors, which cannot be trained with.

    Attributes
    ----------
    precision : str
        What it computes with: that of its weights where no other one was asked for.
    """

    def __init__(self, module: Any, device: str, precision: str, *, frozen: bool) -> None:
        self.device, self._asked, self.frozen = pick_device(device), check_precision(precision), frozen
        self.module = module.to(self.device).eval()
        self.dtype = next((p.dtype for p in module.parameters() if p.is_floating_point()), None)
        own = str(self.dtype or "float32").removeprefix("torch.")
        self.precision = own if precision == "float32" else precision
        self.notes: tuple[str, ...] = ()
        self._away = False
        if self.device.type == "cpu":
            keep_freed_memory()
        # Convolutions on the CPU are up to 1.4 times as fast; TorchScript has fixed its own format.
        self.channels_last = frozen and self.device.type == "cpu" and not hasattr(module, "save_to_buffer")
        self._set_format()

    @property
    def memory(self) -> int:
        """Bytes of the weights on a device of its own; 0 in the main memory."""
        if self.device.type == "cpu":
            return 0
        tensors = (*self.module.parameters(), *self.module.buffers())
        return sum(t.numel() * t.element_size() for t in tensors)

    def release(self) -> None:
        """Go to the main memory; ``run`` comes back."""
        if self.device.type != "cpu":
            self.module.to("cpu")
            self._away = True

    def _come_back(self) -> None:
        if self._away:
            self.module.to(self.device)
            self._away = False

    def run(self, call: Callable[[Any], T], pixels: Any) -> T:
        """Return ``call(pixels)``, pixels being float32 N×3×H×W on any device."""
        import torch

        self._come_back()
        self.module.eval()  # the caller may have trained it since
        quiet = torch.inference_mode() if self.frozen else torch.no_grad()
        with quiet, autocast(self.device, self._asked):
            try:
                return call(self._ready(pixels))
            except RuntimeError as error:
                if not self.channels_last or not _is_about_strides(error):
                    raise
            self.channels_last = False
            self._set_format()
            self.notes = ("contiguous memory format: the model does not work with channels last, which is faster",)
            return call(self._ready(pixels))

    def _ready(self, pixels: Any) -> Any:
        x = pixels.to(self.device)
        x = x if self.dtype is None or self._asked != "float32" else x.to(self.dtype)
        return x.contiguous(memory_format=self._format())

    def _set_format(self) -> None:
        if self.frozen:
            self.module.to(memory_format=self._format())

    def _format(self) -> Any:
        import torch

        return torch.channels_last if self.channels_last else torch.contiguous_format


def _is_about_strides(error: RuntimeError) -> bool:
    text = str(error)
    return "view" in text and "stride" in text
