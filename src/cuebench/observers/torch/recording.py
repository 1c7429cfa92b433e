"""Forward passes that a GPU repeats from a recording (a CUDA graph): one launch instead of hundreds.

Python needs longer to launch the kernels of a small network than a large GPU needs to run them, and in a run the same
thread has decoded pictures to hand over as well. A recording holds the very same kernels, and is used only where it
gave the same bits as the network itself on other pictures than those it was made with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

AFTER = 8
"""Batches of one form after which the next one is recorded: a short run never waits for it."""
SPARE = 0.25
"""Share of the device's memory that must be free: a recording keeps the memory of a forward pass."""
KNOWN = frozenset(
    {"torch", "torchvision", "timm", "transformers", "open_clip", "efficientnet_lite_pytorch", "cuebench"}
)
"""Packages whose modules compute the same in every pass; a user's own code may do anything in Python."""


def can_be_recorded(module: Any) -> bool:
    """Tell whether a network consists of known code only, and nobody listens to its layers."""
    from torch.nn.modules import module as hooks

    if hooks._global_forward_hooks or hooks._global_forward_pre_hooks or hasattr(module, "save_to_buffer"):
        return False  # the last: TorchScript, which changes its code while it runs
    return all(
        type(part).__module__.partition(".")[0] in KNOWN and not (part._forward_hooks or part._forward_pre_hooks)
        for part in module.modules()
    )


class Recordings:
    """The recordings of one network, by the form of the batch."""

    def __init__(self) -> None:
        self._seen: Counter[Any] = Counter()
        self._made: dict[Any, _Recording | None] = {}

    def run(self, call: Callable[[Any], Any], x: Any) -> Any:
        """Return ``call(x)``: from a recording where there is one for batches like this.

        What a recording returns is overwritten by the next batch: it must be copied on the same stream before.
        """
        form = (tuple(x.shape), x.stride(), x.dtype)
        if form not in self._made:
            self._seen[form] += 1
            if self._seen[form] <= AFTER:
                return call(x)
            self._made[form] = _Recording.made(call, x)
        recording = self._made[form]
        return call(x) if recording is None else recording.run(x)


class _Recording:
    """A recorded pass: its input, its output, and the kernels between them."""

    def __init__(self, graph: Any, x: Any, output: Any) -> None:
        self._graph, self._x, self._output = graph, x, output

    def run(self, x: Any) -> Any:
        """Return the output for ``x``."""
        self._x.copy_(x)
        self._graph.replay()
        return self._output

    @classmethod
    def made(cls, call: Callable[[Any], Any], x: Any) -> _Recording | None:
        """Record a pass; None where that is impossible, or does not give what the network gives."""
        import torch

        free, total = torch.cuda.mem_get_info(x.device)
        if free < SPARE * total:
            return None
        inside = x.clone()
        beside = torch.cuda.Stream(x.device)
        graph = torch.cuda.CUDAGraph()
        try:
            beside.wait_stream(torch.cuda.current_stream(x.device))
            with torch.cuda.stream(beside):
                call(inside)  # libraries take the memory that they need for this stream
            torch.cuda.current_stream(x.device).wait_stream(beside)
            # Other threads wait for their answers meanwhile.
            with torch.cuda.graph(graph, pool=_pool(), stream=beside, capture_error_mode="thread_local"):
                output = call(inside)
            made = cls(graph, inside, output)
            for other in (_turned(x), 0.5 * x):
                if not _equal(made.run(other), call(other)):
                    return None
        except RuntimeError:  # a pass that waits for the device, or takes another way each time
            return None
        return made


def _turned(x: Any) -> Any:
    """Return a batch with each image in the place of the one before it."""
    # Copies only: the first use of any other operation loads its kernels, tens of MiB of main memory.
    other = x.clone()
    other[:-1].copy_(x[1:])
    other[-1:].copy_(x[:1])
    return other


def _equal(ours: Any, theirs: Any) -> bool:
    pairs = list(zip(ours, theirs)) if isinstance(ours, tuple) else [(ours, theirs)]
    return all(a is b is None or (a is not None and b is not None and a.cpu().equal(b.cpu())) for a, b in pairs)


@cache
def _pool() -> Any:
    """The memory that all recordings share: they run one after the other."""
    import torch

    return torch.cuda.graph_pool_handle()
