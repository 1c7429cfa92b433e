"""Reading several layers of a torch module in one forward pass, and saying which layers there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

from cuebench.errors import UserError, did_you_mean
from cuebench.observers.base import Observer
from cuebench.observers.torch.features import first_tensor

ALL = "all"


@runtime_checkable
class Layered(Protocol):
    """An observer whose inner layers can be read."""

    def reading(self, names: Sequence[str]) -> Observer:
        """Return the observer, answering also with ``features:NAME`` for each layer."""
        ...


def reading_layers(observer: Observer, names: Sequence[str]) -> Observer:
    """Ask an observer for further layers; people and ideal observers, who have none, are left as they are."""
    if isinstance(observer, Layered):
        return observer.reading(names)
    if observer.kind == "model":
        raise UserError(
            f"{observer.name} has no layers that can be named",
            "layers are read from torch models; name one output of an ONNX file with ?features=OUTPUT",
        )
    return observer


def could_serve(observer: Observer, most: int = 5) -> str:
    """Say which layer of an observer without features could serve, as the end of a sentence; empty: none is known."""
    outputs = getattr(observer, "outputs", None)
    if callable(outputs):
        return f"; name an output of the file with ?features=OUTPUT; it has {', '.join(outputs())}"
    layers = getattr(observer, "layers", None)
    names = list(layers()) if callable(layers) else []
    return f"; name a layer with ?features=LAYER, for example {', '.join(names[-most:])}" if names else ""


def blocks(module: Any) -> list[str]:
    """Return the building blocks of a module in order: its children; lists and sequences of blocks are opened.

    For a ResNet these are ``conv1``, …, ``layer1.0``, …, ``avgpool``, ``fc``: every step that a reader of the
    architecture would name, but not the parts inside a residual block.
    """
    from torch import nn

    found: list[str] = []

    def walk(part: Any, prefix: str) -> None:
        for name, child in part.named_children():
            if isinstance(child, nn.Sequential | nn.ModuleList | nn.ModuleDict) and len(child):
                walk(child, f"{prefix}{name}.")
            else:
                found.append(prefix + name)

    walk(module, "")
    return found


def check_layers(module: Any, names: Sequence[str]) -> None:
    """Raise for a layer that the module does not have, with the nearest names."""
    known = {name for name, _ in module.named_modules() if name}
    for name in names:
        if name not in known:
            raise did_you_mean("layer", name, known)


@contextmanager
def watching(module: Any, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Collect what the named layers put out while the block runs; the module is left as it was."""
    parts = dict(module.named_modules())
    seen: dict[str, Any] = {}
    hooks = [parts[name].register_forward_hook(_keeping(seen, name)) for name in names]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def _keeping(seen: dict[str, Any], name: str) -> Any:
    def keep(_: Any, __: Any, output: Any) -> None:
        seen.pop(name, None)  # a layer that is used several times stands where it was used last
        seen[name] = first_tensor(output, "last_hidden_state")

    return keep
