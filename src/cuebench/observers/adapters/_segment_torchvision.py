"""Segmentation models of torchvision: ``torchvision:deeplabv3_resnet50?task=segmentation``."""

from __future__ import annotations

from typing import Any

from cuebench.errors import did_you_mean
from cuebench.labels import LabelSpace, label_space
from cuebench.observers.adapters._options import TorchOptions, overridden
from cuebench.observers.adapters._segmentation import windows
from cuebench.observers.base import LoadOptions, Observer, Spec
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.segmentation import torch_masks

BACKGROUND = "__background__"


def load(spec: Spec, options: LoadOptions, parsed: TorchOptions) -> list[Observer]:
    """Load one segmentation model of torchvision."""
    from torchvision import models

    from cuebench.observers.adapters.torchvision import module_of

    known = models.list_models(module=models.segmentation)
    if spec.body not in known:
        raise did_you_mean("torchvision segmentation model", spec.body, known)
    published = models.get_model_weights(spec.body)
    wanted = "" if parsed.random else parsed.values["weights"]
    if wanted and wanted not in published.__members__:
        raise did_you_mean(f"weights of torchvision model {spec.body!r}:", wanted, [*published.__members__, "random"])
    weights = published[wanted or "DEFAULT"]
    labels = parsed.labels or _labels(weights)
    # Without weights_backbone=None torchvision would download those of the backbone.
    architecture = {"weights_backbone": None, "num_classes": len(labels)}
    model, notes = module_of(spec.body, parsed, weights, options.offline, **architecture)
    preprocess = overridden(_preprocess(weights), spec, parsed.values)
    sliding: dict[str, Any] = windows(spec, parsed.values, preprocess)
    observer = torch_masks(
        model,
        name=parsed.name,
        preprocess=preprocess,
        labels=labels,
        device=options.device,
        precision=options.precision,
        notes=notes,
        frozen=True,
        **sliding,
    )
    return [observer]


def _preprocess(weights: Any) -> Preprocess:
    transform = weights.transforms()
    side = int(next(iter(transform.resize_size)))
    return Preprocess(
        size=side,
        resize=(side, side),
        crop=False,
        interpolation=transform.interpolation.value,
        mean=tuple(transform.mean),
        std=tuple(transform.std),
        source=f"torchvision's {weights}, as a square",
    )


def _labels(weights: Any) -> LabelSpace:
    names = tuple(weights.meta["categories"])
    return label_space("voc21") if names[0] == BACKGROUND and len(names) == 21 else LabelSpace(str(weights), names)
