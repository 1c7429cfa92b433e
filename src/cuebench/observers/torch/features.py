"""How logits, penultimate features and the outputs of further layers come out of a torch module in one forward pass.

Penultimate features are what the classifier reads: the library's own ``forward_head(pre_logits=True)`` where there is
one (timm), else the input of the last Linear or 1×1-convolution that has as many outputs as there are classes, else the
output of a layer that the user names. Maps and token sequences are averaged over their positions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from cuebench.errors import UserError, did_you_mean
from cuebench.observers.base import ObserverBase

ALL = "all"
"""Instead of names of layers: every block."""


class Outputs(NamedTuple):
    """Tensors of one forward pass; None for what was not asked for."""

    logits: Any
    features: Any


Forward = Callable[[Any, bool], Outputs]
"""``forward(x, want_features)``: the way through a module."""


class Route(NamedTuple):
    """A way through a module, and what the record says about it (empty: it gives no features)."""

    forward: Forward
    features: str


# ------------------------------------------------------------------------------------------ penultimate features


def route(
    module: Any, classes: int | None, layer: str | None = None, call: Callable[[Any], Any] | None = None
) -> Route:
    """Choose the way through a module.

    Parameters
    ----------
    module : nn.Module
        The model.
    classes : int or None
        Number of logits; None for a model without a head, whose output is its features.
    layer : str, optional
        Name of the layer whose output is wanted as features.
    call : callable, optional
        How the module is called on the pixels where ``module(x)`` is not the way.
    """
    run = call or module
    if layer:
        return Route(_hooked(module, run, layer, before=False), f"output of {layer}")
    if classes is None:
        return Route(lambda x, want: Outputs(None, as_rows(first_tensor(run(x), "features"))), "output of the model")
    if call is None and _is_timm_like(module):
        return Route(_split(module), "forward_head(pre_logits=True)")
    name = find_classifier(module, classes)
    if name is not None:
        return Route(_hooked(module, run, name, before=True), f"input of {name}")
    return Route(lambda x, want: Outputs(first_tensor(run(x)), None), "")


def find_classifier(module: Any, classes: int) -> str | None:
    """Return the name of the last Linear or 1×1-convolution with that many outputs."""
    import torch

    classifier = None
    if isinstance(module, torch.jit.ScriptModule):
        return None  # hooks do not fire inside TorchScript
    for name, part in module.named_modules():
        linear = isinstance(part, torch.nn.Linear) and part.out_features == classes
        conv = isinstance(part, torch.nn.Conv2d) and part.out_channels == classes and set(part.kernel_size) == {1}
        if linear or conv:
            classifier = name
    return classifier


def first_tensor(output: Any, key: str = "logits") -> Any:
    """Return the tensor from whatever a model returns: a tensor, an object or dict with ``key``, or a tuple."""
    if hasattr(output, "shape"):
        return output
    if isinstance(output, Mapping) and key in output:
        return output[key]
    if getattr(output, key, None) is not None:
        return getattr(output, key)
    if isinstance(output, (tuple, list)) and output:
        return first_tensor(output[0], key)
    raise UserError(
        f"the model returned {type(output).__name__}, in which there are no {key}",
        f"return a tensor, or a dict with the key {key!r}",
    )


def as_rows(tensor: Any) -> Any:
    """Return features as N×d: a map N×d×h×w or a sequence N×t×d is averaged over its positions."""
    if tensor.ndim == 4:
        return tensor.mean(dim=(2, 3))
    if tensor.ndim == 3:
        return tensor.mean(dim=1)
    return tensor.reshape(len(tensor), -1)


def _is_timm_like(module: Any) -> bool:
    head = getattr(module, "forward_head", None)
    if head is None or not hasattr(module, "forward_features"):
        return False
    try:
        return "pre_logits" in inspect.signature(head).parameters
    except (TypeError, ValueError):
        return False


def _split(module: Any) -> Forward:
    def forward(x: Any, want: bool) -> Outputs:
        if not want:
            return Outputs(module(x), None)
        trunk = module.forward_features(x)
        logits, features = module.forward_head(trunk), module.forward_head(trunk, pre_logits=True)
        return Outputs(first_tensor(logits), as_rows(first_tensor(features, "features")))

    return forward


def _hooked(module: Any, run: Callable[[Any], Any], layer: str, *, before: bool) -> Forward:
    parts = dict(module.named_modules())
    if layer not in parts:
        raise did_you_mean("layer", layer, [n for n in parts if n])
    part = parts[layer]

    def forward(x: Any, want: bool) -> Outputs:
        if not want:
            return Outputs(first_tensor(run(x)), None)
        seen: list[Any] = []
        # Set for this pass only, so that the user's module is left as it was, also when the pass fails.
        if before:
            hook = part.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
        else:
            hook = part.register_forward_hook(lambda _, args, out: seen.append(first_tensor(out, "last_hidden_state")))
        try:
            logits = first_tensor(run(x))
        finally:
            hook.remove()
        if not seen:
            raise UserError(f"layer {layer!r} took no part in the forward pass", "name another one with features=LAYER")
        return Outputs(logits, as_rows(seen[-1]))

    return forward


def script_route(module: Any) -> Route:
    """Return the way through a TorchScript module, in which Python hooks do not fire.

    Where the graph ends in a linear layer, a copy of the graph that also returns that layer's input gives the features.
    Other graphs give logits only.
    """
    import torch

    graph = module.graph.copy()
    torch._C._jit_pass_inline(graph)
    ends = [output.debugName() for output in graph.outputs()]
    last = next((n for n in graph.findAllNodes("aten::linear") if ends == [n.outputsAt(0).debugName()]), None)
    if last is None:
        return Route(lambda x, want: Outputs(first_tensor(module(x)), None), "")
    graph.registerOutput(next(iter(last.inputs())))
    graph.makeMultiOutputIntoTuple()
    both = torch._C._create_function_from_graph("forward_with_features", graph)

    def forward(x: Any, want: bool) -> Outputs:
        return Outputs(*both(module._c, x)) if want else Outputs(first_tensor(module(x)), None)

    return Route(forward, "input of the last linear layer")


# ------------------------------------------------------------------------------------------ further layers


def suggested_layers(observer: ObserverBase, most: int = 5) -> str:
    """Say which layer of an observer without features could be named, as the end of a sentence; empty: none."""
    if observer.outputs():
        return f"; name an output of the file with ?features=OUTPUT; it has {', '.join(observer.outputs())}"
    names = observer.layers()
    return f"; name a layer with ?features=LAYER, for example {', '.join(names[-most:])}" if names else ""


def blocks(module: Any) -> list[str]:
    """Return the building blocks of a module in order: its children; lists and sequences of blocks are opened.

    For a ResNet these are ``conv1``, …, ``layer1.0``, …, ``avgpool``, ``fc``: every step that a reader of the
    architecture would name, but not the parts inside a residual block.
    """
    from torch import nn

    names: list[str] = []

    def walk(part: Any, prefix: str) -> None:
        for name, child in part.named_children():
            if isinstance(child, nn.Sequential | nn.ModuleList | nn.ModuleDict) and len(child):
                walk(child, f"{prefix}{name}.")
            else:
                names.append(prefix + name)

    walk(module, "")
    return names


def check_layers(module: Any, names: Sequence[str]) -> None:
    """Raise for a layer that the module does not have, with the nearest names."""
    known = {name for name, _ in module.named_modules() if name}
    for name in names:
        if name not in known:
            raise did_you_mean("layer", name, known)


@contextmanager
def watching(module: Any, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Collect what the named layers put out while the block runs; the module is left as it was."""
    parts = dict(module.named_modules()) if names else {}
    seen: dict[str, Any] = {}

    def keep(name: str) -> Callable[[Any, Any, Any], None]:
        def hook(_: Any, __: Any, output: Any) -> None:
            seen.pop(name, None)  # a layer that is used several times stands where it was used last
            seen[name] = first_tensor(output, "last_hidden_state")

        return hook

    hooks = [parts[name].register_forward_hook(keep(name)) for name in names]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()
