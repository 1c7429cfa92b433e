"""A torch module that segments, as an observer; and how the outputs of its many families become class scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cuebench.errors import UserError
from cuebench.labels import LabelSpace
from cuebench.observers.masks import MaskObserver
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.fingerprint import Identity
from cuebench.observers.torch.placement import Placed


def torch_masks(
    module: Any,
    *,
    name: str,
    preprocess: Preprocess,
    labels: LabelSpace,
    call: Callable[[Any], Any] | None = None,
    device: str = "auto",
    precision: str = "float32",
    settings: Mapping[str, Any] | None = None,
    window: int = 0,
    stride: int = 0,
    notes: Sequence[str] = (),
    frozen: bool = False,
) -> MaskObserver:
    """Return the observer of a segmentation module.

    Parameters
    ----------
    module : nn.Module
        Moved to the device, kept in evaluation mode.
    name, preprocess, labels, window, stride, notes
        As in ``MaskObserver``.
    call : callable, optional
        How the module is called with a batch of pixels; default: ``module(pixels)``. See ``scores`` for what it may
        return.
    device, precision : str
        Where and how it runs.
    settings : mapping, optional
        Whatever else changes an answer; part of the fingerprint.
    frozen : bool
        Nothing else uses the module; see ``TorchObserver``.
    """
    import torch

    identifying = {"precision": precision, **(settings or {})}
    identity = Identity(module, frozen=frozen, named="fingerprint" in identifying)
    placed = Placed(module, device, precision, frozen=frozen)
    run = call or module

    def forward(pixels: np.ndarray[Any, Any]) -> Any:
        return placed.run(lambda x: scores(run(x), name), torch.from_numpy(pixels))

    return MaskObserver(
        forward,
        name=name,
        fingerprint=lambda: identity.fingerprint(identifying),
        preprocess=preprocess,
        labels=labels,
        window=window,
        stride=stride,
        notes=(*notes, *identity.notes),
        precision=placed.precision,
        placed=placed,
    )


def scores(output: Any, name: str) -> Any:
    """Return class scores N×C×h×w from what a segmentation model returns.

    A tensor is taken as it is; torchvision's models return a mapping with ``out``; those of transformers an object with
    ``logits``, or (MaskFormer, Mask2Former, OneFormer) with class and mask scores of queries, whose semantic scores are
    Σ_q softmax(class)_qc · sigmoid(mask)_q without the class "no object".
    """
    if hasattr(output, "ndim"):
        return output
    if isinstance(output, Mapping) and "out" in output:
        return output["out"]
    if getattr(output, "logits", None) is not None:
        return output.logits
    classes = getattr(output, "class_queries_logits", None)
    if classes is None:
        raise UserError(
            f"observer {name!r} returned a {type(output).__name__}, which holds no logits of pixels",
            "wrap the model in a function that returns a tensor images × classes × height × width",
        )
    import torch

    weights = classes.softmax(dim=-1)[..., :-1]
    return torch.einsum("bqc,bqhw->bchw", weights, output.masks_queries_logits.sigmoid())
