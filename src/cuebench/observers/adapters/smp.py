"""Models of segmentation_models_pytorch: ``smp:unet?encoder=resnet34&checkpoint=FILE&labels=FILE``, or a repository.

The body is an architecture (Unet, DeepLabV3Plus, FPN, PSPNet, UPerNet, Segformer …) whose weights are a checkpoint, or
a repository of the hub or folder that ``save_pretrained`` wrote. The library trains no classes of its own, so
``labels=`` says what they are. Its models take RGB/255 with ImageNet's mean and standard deviation, unless the encoder
was trained otherwise: then say so with ``preprocess.mean=`` and ``preprocess.std=``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cuebench.errors import UserError, did_you_mean
from cuebench.labels import LabelSpace
from cuebench.observers.adapters._hub import from_repository
from cuebench.observers.adapters._options import (
    TORCH,
    TorchOptions,
    initialised,
    overridden,
    torch_options,
    with_option,
)
from cuebench.observers.adapters._segmentation import SEGMENTATION, windows
from cuebench.observers.base import Adapter, LoadOptions, Observer, Spec
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.segmentation import torch_masks
from cuebench.observers.torch.torchvision_import import import_torchvision
from cuebench.options import Option

SIDE = 512
OPTIONS = {
    **{name: option for name, option in TORCH.items() if name != "features"},
    "encoder": Option("resnet34", "encoder of an architecture, e.g. resnet50, mit_b2, tu-convnext_tiny"),
    **{name: option for name, option in SEGMENTATION.items() if name != "task"},
}


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Load one segmentation model."""
    import_torchvision()
    parsed = torch_options(spec, options, OPTIONS)
    labels = _labels(spec, parsed)
    model, notes = _model(spec, options, parsed, labels)
    preprocess = overridden(
        Preprocess(SIDE, (SIDE, SIDE), crop=False, source="ImageNet's mean and std, whole image"), spec, parsed.values
    )
    sliding: dict[str, Any] = windows(spec, parsed.values, preprocess)
    observer = torch_masks(
        model,
        name=parsed.name,
        preprocess=preprocess,
        labels=labels,
        call=lambda pixels: _logits(model(pixels)),
        device=options.device,
        precision=options.precision,
        notes=notes,
        frozen=True,
        **sliding,
    )
    return [observer]


def _model(spec: Spec, options: LoadOptions, parsed: TorchOptions, labels: LabelSpace) -> tuple[Any, tuple[str, ...]]:
    import segmentation_models_pytorch as smp

    if "/" in spec.body or Path(spec.body).expanduser().is_dir():
        if parsed.random or parsed.checkpoint:
            raise UserError(
                f"observer {spec.text!r}: a repository has its own weights", "leave weights= and checkpoint= out"
            )
        wanted = f"segmentation model {spec.body!r} (config.json, model.safetensors)"
        return from_repository(spec.body, wanted, options.offline, smp.from_pretrained), ()
    known = sorted(smp.MODEL_ARCHITECTURES_MAPPING)
    if spec.body.lower() not in known:
        raise did_you_mean("architecture of segmentation_models_pytorch", spec.body, known)
    if not (parsed.random or parsed.checkpoint):
        raise UserError(
            f"observer {spec.text!r} has no weights: the library publishes those of encoders only",
            f"name the file of a trained model: {with_option(spec, 'checkpoint=FILE')}; or weights=random",
        )
    arguments = {"encoder_name": parsed.values["encoder"], "encoder_weights": None, "classes": len(labels)}
    return initialised(lambda: _created(smp, spec.body, arguments), parsed)


def _created(smp: Any, architecture: str, arguments: dict[str, Any]) -> Any:
    try:
        return smp.create_model(architecture, **arguments)
    except KeyError:
        known = [*smp.encoders.get_encoder_names(), "tu-NAME (timm)"]
        raise did_you_mean("encoder of segmentation_models_pytorch", arguments["encoder_name"], known) from None


def _logits(output: Any) -> Any:
    return output[0] if isinstance(output, tuple) else output  # with an auxiliary head: (masks, labels)


def _labels(spec: Spec, parsed: TorchOptions) -> LabelSpace:
    if parsed.labels is None:
        raise UserError(
            f"observer {spec.text!r}: nothing says what its classes are",
            f"{with_option(spec, 'labels=ade20k')}, cityscapes, voc21, or a file with their names",
        )
    return parsed.labels


ADAPTER = Adapter(
    load,
    form="smp:ARCHITECTURE?encoder=NAME&checkpoint=FILE&labels=… | smp:REPOSITORY|FOLDER?labels=…"
    "[&window=512&stride=341][&preprocess.size=N…]",
    extra="segmentation",
    packages=("torch", "torchvision", "segmentation_models_pytorch"),
    examples=("smp:smp-hub/segformer-b0-512x512-ade-160k?labels=ade20k", "smp:unet?weights=random&labels=voc21"),
    options=OPTIONS,
)
