"""How logits and penultimate features come out of a torch module in one forward pass.

Penultimate features are what the classifier reads: the library's own ``forward_head(pre_logits=True)`` where there is
one (timm), else the input of the last Linear or 1×1-convolution that has as many outputs as there are classes, else the
output of a layer that the user names. Maps and token sequences are averaged over their positions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from cuebench.errors import UserError, did_you_mean


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
    return Route(_plain(run), "")


def find_classifier(module: Any, classes: int) -> str | None:
    """Return the name of the last Linear or 1×1-convolution with that many outputs."""
    import torch

    found = None
    if isinstance(module, torch.jit.ScriptModule):
        return None  # hooks do not fire inside TorchScript
    for name, part in module.named_modules():
        linear = isinstance(part, torch.nn.Linear) and part.out_features == classes
        conv = isinstance(part, torch.nn.Conv2d) and part.out_channels == classes and set(part.kernel_size) == {1}
        if linear or conv:
            found = name
    return found


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


def _plain(run: Callable[[Any], Any]) -> Forward:
    return lambda x, want: Outputs(first_tensor(run(x)), None)


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
