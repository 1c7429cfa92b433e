"""Segmentation models of torchvision: ``torchvision:deeplabv3_resnet50?task=segmentation``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cuebench.errors import did_you_mean
from cuebench.labels import LabelSpace, label_space
from cuebench.observers.adapters import _hub
from cuebench.observers.adapters._options import initialised, overridden, space_of, torch_options
from cuebench.observers.adapters._segmentation import SEGMENTATION, windows
from cuebench.observers.base import LoadOptions, Observer, Spec
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.segmentation import torch_masks

BACKGROUND = "__background__"


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Load one segmentation model of torchvision."""
    import torch
    from torchvision import models

    known = models.list_models(module=models.segmentation)
    if spec.body not in known:
        raise did_you_mean("torchvision segmentation model", spec.body, known)
    given = torch_options(spec, options, **SEGMENTATION)
    kinds = models.get_model_weights(spec.body)
    wanted = "" if given.random else given.own["weights"]
    if wanted and wanted not in kinds.__members__:
        raise did_you_mean(f"weights of torchvision model {spec.body!r}:", wanted, [*kinds.__members__, "random"])
    weights = kinds[wanted or "DEFAULT"]
    labels = space_of(given.labels) if given.labels else _labels(weights)
    notes: tuple[str, ...]
    if given.random or given.checkpoint:
        # Without weights_backbone=None torchvision would download those of the backbone.
        own = {"weights": None, "weights_backbone": None, "num_classes": len(labels)}
        model, notes = initialised(lambda: models.get_model(spec.body, **own), given)
    else:
        file = Path(torch.hub.get_dir()) / "checkpoints" / Path(weights.url).name
        model = _hub.fetched(
            lambda: models.get_model(spec.body, weights=weights),
            f"weights {weights.name} of torchvision:{spec.body} ({weights.url})",
            offline=options.offline,
            url=weights.url,
            hint=f"put the file at {file}",
            cached=file.is_file(),
        )
        notes = (f"weights {weights.name}",)
    preprocess = overridden(_preprocess(weights), spec, given.own)
    sliding: dict[str, Any] = windows(spec, given.own, preprocess)
    observer = torch_masks(
        model,
        name=given.name,
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
