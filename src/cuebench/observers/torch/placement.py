"""A torch module on its device: kept in evaluation mode, run without gradients in one precision and memory format."""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

from cuebench.errors import UserError
from cuebench.observers.torch.recording import Recordings, can_be_recorded

T = TypeVar("T")
PRECISIONS = ("float32", "bfloat16", "float16")
KEEP_MEMORY = "CUEBENCH_KEEP_MEMORY"
"""Environment variable; ``0`` leaves the allocator as it is."""
_DEVICES = ("cpu", "cuda", "mps", "xpu")
_ASIDE: ContextVar[bool] = ContextVar("loaded_aside", default=False)
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of malloc.h
_LARGEST = (1 << 30, 32 << 20)  # older versions of glibc refuse more than 32 MiB


class Placed:
    """A module that is ready to run.

    Parameters
    ----------
    module : nn.Module
        Moved to the device.
    device, precision : str
        ``auto``, ``cpu``, ``cuda`` …; ``float32``, ``bfloat16`` or ``float16`` (autocast).
    frozen : bool
        Nothing else uses the module. A user's own one keeps its memory format, and may be trained after it has
        answered: tensors that it keeps must not be inference tensors, which cannot be trained with.

    Attributes
    ----------
    precision : str
        What it computes with: that of its weights where no other one was asked for.
    """

    def __init__(self, module: Any, device: str, precision: str, *, frozen: bool) -> None:
        if precision not in PRECISIONS:
            raise UserError(f"unknown precision {precision!r}", f"one of {', '.join(PRECISIONS)}")
        self.device, self.frozen = pick_device(device), frozen
        self._requested_precision = precision
        self._released = _ASIDE.get() and self.device.type != "cpu"
        self.module = _evaluating(module if self._released else module.to(self.device))
        self.dtype = next((p.dtype for p in module.parameters() if p.is_floating_point()), None)
        weights_precision = str(self.dtype or "float32").removeprefix("torch.")
        self.precision = weights_precision if precision == "float32" else precision
        self.notes: tuple[str, ...] = ()
        self._size: int | None = None
        self._recordings: Recordings | None = None
        if frozen and self.device.type == "cuda" and can_be_recorded(module):
            self._recordings = Recordings()
        if self.device.type == "cpu":
            keep_freed_memory()
        # Convolutions on the CPU are up to 1.4 times as fast, a GPU's half precisions gain too; TorchScript has fixed
        # its own format.
        faster = self.device.type == "cpu" or (self.device.type == "cuda" and precision != "float32")
        self.channels_last = frozen and faster and not hasattr(module, "save_to_buffer")
        self._set_format()

    @property
    def memory(self) -> int:
        """Bytes of the weights on a device of its own; 0 in the main memory."""
        if self.device.type == "cpu":
            return 0
        if self._size is None or not self.frozen:
            tensors = (*self.module.parameters(), *self.module.buffers())
            self._size = sum(t.numel() * t.element_size() for t in tensors)
        return self._size

    def compile(self) -> None:
        """Let torch compile the module when it runs next: it is faster then, after a minute or so."""
        if self.frozen:
            self.module.compile()
            self._recordings = None

    def undo_compile(self) -> None:
        """Run the module as it was."""
        self.module._compiled_call_impl = None

    def release(self) -> None:
        """Go to the main memory; ``run`` comes back."""
        if self.device.type != "cpu":
            self.module.to("cpu")
            self._released = True
            if self._recordings is not None:  # the weights will lie elsewhere
                self._recordings = Recordings()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let the module be called inside the block: on its device, in evaluation mode, without gradients."""
        import torch

        if self._released:
            self.module.to(self.device)
            self._released = False
        if not self.frozen:
            _evaluating(self.module)  # the caller may have trained it since
        no_gradients = torch.inference_mode() if self.frozen else torch.no_grad()
        with no_gradients, autocast(self.device, self._requested_precision):
            yield

    def run(self, call: Callable[[Any], T], pixels: Any, *, fleeting: bool = False) -> T:
        """Return ``call(pixels)``, pixels being float32 N×3×H×W on any device.

        ``fleeting``: the caller copies the answer on the same stream before it asks again, and asks for the same each
        time; a GPU may then repeat what it did (``recording.py``).
        """
        with self.running():
            try:
                prepared = self._prepared(pixels)
                if fleeting and self._recordings is not None:
                    return self._recordings.run(call, prepared)
                return call(prepared)
            except RuntimeError as error:
                about_strides = "view" in str(error) and "stride" in str(error)
                if not self.channels_last or not about_strides:
                    raise
            self.channels_last = False
            self._set_format()
            if self._recordings is not None:
                self._recordings = Recordings()
            self.notes = ("contiguous memory format: the model does not work with channels last, which is faster",)
            return call(self._prepared(pixels))

    def _prepared(self, pixels: Any) -> Any:
        x = pixels.to(self.device)
        x = x if self.dtype is None or self._requested_precision != "float32" else x.to(self.dtype)
        return x.contiguous(memory_format=self._format())

    def _set_format(self) -> None:
        if self.frozen:
            self.module.to(memory_format=self._format())

    def _format(self) -> Any:
        import torch

        return torch.channels_last if self.channels_last else torch.contiguous_format


@contextmanager
def loaded_aside() -> Iterator[None]:
    """Leave networks that are loaded inside the block, by this thread, in the main memory until they are asked."""
    token = _ASIDE.set(True)
    try:
        yield
    finally:
        _ASIDE.reset(token)


ALL_GPUS = "cuda:all"
KNOWN_DEVICES = "one of auto, cpu, cuda, cuda:N, mps; several: cuda:0,cuda:1 or cuda:all"
DEVICE = re.compile("auto|cuda:all|(cpu|cuda|mps|xpu|hpu|mtia|xla|ipu|privateuseone)(:[0-9]+)?")
"""What torch may know as a device, here or elsewhere."""


def _evaluating(module: Any) -> Any:
    """Put a module into evaluation mode and return it."""
    try:
        return module.eval()
    except NotImplementedError:  # a program of torch.export was written in one mode and cannot change it
        return module


def devices_of(names: str) -> list[str]:
    """Return the devices that a user names: one, several with commas between them, or ``cuda:all``."""
    if names == ALL_GPUS:
        import torch

        return [f"cuda:{number}" for number in range(torch.cuda.device_count())] or ["cuda"]
    return devices_named(names)


def devices_named(names: str) -> list[str]:
    """Return the words of a list of devices; ``cuda:all`` is one of them."""
    return [name.strip() for name in names.split(",") if name.strip()] or ["auto"]


def unknown_device(names: str) -> UserError | None:
    """Return the error for a device that no machine has; nothing is imported to find out.

    >>> unknown_device("cuda:0,cuda:1")
    """
    wrong = next((name for name in devices_named(names) if not DEVICE.fullmatch(name)), None)
    return None if wrong is None else UserError(f"unknown device {wrong!r}", KNOWN_DEVICES)


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
        raise UserError(f"unknown device {name!r}", KNOWN_DEVICES) from None
    available = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available}.get(device.type)
    if available is not None and not available():
        raise UserError(f"device {name!r} is not available here", "use device 'auto' or 'cpu'")
    return device


@contextmanager
def autocast(device: Any, precision: str) -> Iterator[None]:
    """Run the forward pass in one precision, whatever the caller has switched on around it.

    ``float32`` is float32: an autocast around the run is switched off, and so are the reduced products of matrices
    (``torch.set_float32_matmul_precision``, TF32). The half precisions are torch's autocast. On CUDA, cuDNN computes
    float32 convolutions with 10-bit mantissas (TF32) unless it is told not to: logits of MobileNetV2 then differ from
    the CPU's by up to .009.
    """
    import torch

    with ExitStack() as stack:
        stack.enter_context(plain_numbers())
        if precision != "float32":
            stack.enter_context(torch.autocast(device.type, dtype=getattr(torch, precision)))
        elif device.type == "cuda":
            flags = torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False)
            stack.enter_context(flags)
        yield


@contextmanager
def plain_numbers() -> Iterator[None]:
    """Switch off every autocast around this block, and matrix products of less than float32."""
    import torch

    matmul = torch.get_float32_matmul_precision()
    with ExitStack() as stack:
        for kind in _DEVICES:
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        if matmul != "highest":
            torch.set_float32_matmul_precision("highest")
            stack.callback(torch.set_float32_matmul_precision, matmul)
        yield


def numeric_settings() -> dict[str, str]:
    """Return what else of torch's state decides an answer: a default type other than float32, for the fingerprint."""
    import torch

    default = torch.get_default_dtype()
    return {} if default is torch.float32 else {"default_dtype": str(default)}


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
