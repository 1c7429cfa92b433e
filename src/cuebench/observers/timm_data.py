"""What timm's configuration says about images and classes, in our terms."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from cuebench.errors import UserError
from cuebench.labels import LabelSpace, label_space
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.torchvision_import import import_torchvision
from cuebench.observers.verify_preprocess import same_input


def preprocess_of(model: Any, *, test_size: bool = False) -> Preprocess:
    """Return the preprocessing that a timm model's weights were evaluated with, checked against timm's own transform.

    Parameters
    ----------
    model : nn.Module
        With ``pretrained_cfg``.
    test_size : bool
        Use the larger size that some weights are best tested at, instead of the one they were trained at.
    """
    import_torchvision()
    from timm.data import create_transform, resolve_model_data_config

    config = resolve_model_data_config(model, use_test_size=test_size)
    ours = _translate(config)
    transform = create_transform(**config, is_training=False)
    return same_input(ours, lambda image: transform(image).numpy(), "timm's model")


def is_embedding(model: Any) -> bool:
    """Tell whether a timm model's outputs are an embedding of the image instead of classes: the tower of a CLIP.

    So it is where the architecture itself is published with a number of outputs that is no known set of classes.
    """
    from timm import get_pretrained_cfg
    from timm.data import infer_imagenet_subset

    config = getattr(model, "pretrained_cfg", None) or {}
    published = get_pretrained_cfg(str(config.get("architecture") or ""), allow_unregistered=True)
    count = int(model.num_classes)
    if not count or count in {1000, 1001} or config.get("label_names") or published is None:
        return False
    return int(published.num_classes) == count and infer_imagenet_subset(model) is None


def label_space_of(model: Any) -> LabelSpace | None:
    """Return the classes of a timm model's head, from its number of logits; None for a model without classes."""
    from timm.data import ImageNetInfo, infer_imagenet_subset

    config = getattr(model, "pretrained_cfg", None) or {}
    if not int(model.num_classes) or is_embedding(model):
        return None
    if config.get("label_names"):
        return LabelSpace(str(config.get("tag") or "timm"), tuple(map(str, config["label_names"])))
    count = int(model.num_classes)
    if count == 1000:
        return label_space("imagenet1k")
    if count == 1001:
        return with_background(label_space("imagenet1k"))
    subset = infer_imagenet_subset(model)
    if subset is None:
        raise UserError(
            f"this model has {count} classes, and timm does not say which",
            "pass ?labels=FILE (JSON or CSV with one name for each logit)",
        )
    info = ImageNetInfo(subset)
    return LabelSpace(subset, tuple(info.label_descriptions()), tuple(info.label_names()))


def with_background(space: LabelSpace) -> LabelSpace:
    """Return the space with the class 0 ``background`` that TensorFlow's ImageNet heads have."""
    return LabelSpace(f"{space.name}+background", ("background", *space.names), ("background", *space.ids))


def _translate(config: dict[str, Any]) -> Preprocess:
    height, width = config["input_size"][-2:]
    sides = [math.floor(side / config["crop_pct"]) for side in (height, width)]
    mode = config.get("crop_mode", "center")
    if mode == "border" or (mode == "center" and sides[0] != sides[1]):
        raise UserError(
            f"timm's crop mode {mode!r} for the input {height}×{width} pads the image, which Preprocess does not",
            "override it, e.g. ?preprocess.resize=256&preprocess.crop=true",
        )
    ours = Preprocess(
        size=(height, width),
        resize=(sides[0], sides[1]) if mode == "squash" else sides[0],
        interpolation=config["interpolation"] if config["interpolation"] != "random" else "bilinear",
        mean=tuple(config["mean"]),
        std=tuple(config["std"]),
        source="timm's configuration of these weights",
    )
    return replace(ours, size=height) if height == width else ours
