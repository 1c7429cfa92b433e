"""Any classifier of torchvision, with its published weights, a checkpoint, or random weights.

Preprocessing comes from the weights' own ``transforms()``; random weights and checkpoints take the geometry of the
model's first published weights that fit the network's input size, unless the options say otherwise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cuebench.errors import did_you_mean
from cuebench.labels import LabelSpace, label_space
from cuebench.observers.adapters import _hub, _segment_torchvision
from cuebench.observers.adapters._options import TORCH, TorchOptions, initialised, overridden, torch_options
from cuebench.observers.adapters._segmentation import SEGMENTATION, is_segmentation
from cuebench.observers.base import Adapter, LoadOptions, Observer, Spec
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.observer import TorchObserver
from cuebench.observers.torch.torchvision_import import import_torchvision
from cuebench.observers.verify_preprocess import same_input
from cuebench.options import Option

OPTIONS = {
    **TORCH,
    "weights": Option("", "name of published weights such as IMAGENET1K_V1 (default: the best), or random"),
    **SEGMENTATION,
}


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Load one classifier of torchvision."""
    import_torchvision()
    parsed = torch_options(spec, options, OPTIONS)
    if is_segmentation(spec, parsed.values):
        return _segment_torchvision.load(spec, options, parsed)
    check_name(spec.body)
    weights = chosen_weights(spec.body, parsed)
    model, notes = module_of(spec.body, parsed, weights, options.offline)
    if parsed.random or parsed.checkpoint:
        weights = fitting_weights(spec.body, model)
    observer = TorchObserver(
        model,
        name=parsed.name,
        preprocess=overridden(preprocess_of(weights), spec, parsed.values),
        labels=parsed.labels or label_space_of(weights),
        device=options.device,
        precision=options.precision,
        features=parsed.features,
        notes=notes,
        frozen=True,
    )
    return [observer]


def module_of(
    name: str, parsed: TorchOptions, weights: Any, offline: bool, **architecture: Any
) -> tuple[Any, tuple[str, ...]]:
    """Build a model with the weights that the options ask for; return it with the notes for the record.

    Parameters
    ----------
    name : str
        Name of the model.
    parsed : TorchOptions
        Random weights, a checkpoint, or neither.
    weights : WeightsEnum
        The published weights, used where it is neither.
    offline : bool
        Never use the network.
    **architecture
        Further arguments of the architecture, for random weights and checkpoints.
    """
    import torch
    from torchvision import models

    if parsed.random or parsed.checkpoint:
        # GoogLeNet and Inception have extra heads for training, which a published state dict may lack.
        arguments = {"weights": None, **parsed.classes, **architecture}
        return initialised(lambda: models.get_model(name, **arguments), parsed)
    file = Path(torch.hub.get_dir()) / "checkpoints" / Path(weights.url).name
    model = _hub.fetched(
        lambda: models.get_model(name, weights=weights),
        f"weights {weights.name} of torchvision:{name} ({weights.url})",
        offline=offline,
        url=weights.url,
        hint=f"put the file at {file}",
        cached=file.is_file(),
    )
    return model, (f"weights {weights.name}",)


def check_name(name: str) -> None:
    """Raise for a name that is not a classifier of torchvision."""
    known = classifiers()
    if name not in known:
        raise did_you_mean("torchvision classifier", name, known)


def classifiers() -> list[str]:
    """Return the names of torchvision's image classifiers."""
    from torchvision import models

    return [n for n in models.list_models(module=models) if not n.startswith("quantized_")]


def fitting_weights(name: str, model: Any) -> Any:
    """Return the first weights that were published for a model and have the input size of this network.

    Most networks take any size. A vision transformer takes the one that it was built for: ``vit_h_14`` is built for 224
    pixels, and its first weights are for 518.
    """
    from torchvision import models

    check_name(name)
    published = list(models.get_model_weights(name))
    size = getattr(model, "image_size", None)
    return next((w for w in published if size is None or w.transforms().crop_size == [size]), published[0])


def preprocess_of(weights: Any) -> Preprocess:
    """Return the preprocessing of published weights, checked against their own transform."""
    transform = weights.transforms()
    resize, crop = list(transform.resize_size), list(transform.crop_size)
    ours = Preprocess(
        size=crop[0] if len(crop) == 1 else (crop[0], crop[1]),
        resize=resize[0] if len(resize) == 1 else (resize[0], resize[1]),
        interpolation=transform.interpolation.value,
        mean=tuple(transform.mean),
        std=tuple(transform.std),
        source=f"torchvision's {weights}",
    )
    return same_input(ours, lambda image: transform(image).numpy(), f"torchvision's {weights}")


def label_space_of(weights: Any) -> LabelSpace:
    """Return the classes of published weights: ImageNet-1k, or the names that the weights carry."""
    names = weights.meta.get("categories", ())
    return label_space("imagenet1k") if len(names) in {0, 1000} else LabelSpace(str(weights), tuple(names))


def chosen_weights(name: str, parsed: TorchOptions) -> Any:
    """Return the published weights that the options name; for random weights and checkpoints the first ones."""
    from torchvision import models

    published, wanted = models.get_model_weights(name), parsed.values["weights"]
    if parsed.random or parsed.checkpoint:
        return next(iter(published))
    if wanted and wanted not in published.__members__:
        raise did_you_mean(f"weights of torchvision model {name!r}:", wanted, [*published.__members__, "random"])
    return published[wanted or "DEFAULT"]


ADAPTER = Adapter(
    load,
    form="torchvision:MODEL[?weights=IMAGENET1K_V1 | ?checkpoint=FILE | ?weights=random&seed=N][&preprocess.resize=N…]"
    "[&task=segmentation&window=512&stride=341]",
    extra="torch",
    packages=("torch", "torchvision"),
    examples=(
        "torchvision:resnet50?weights=IMAGENET1K_V1",
        "torchvision:alexnet?weights=random&seed=0",
        "torchvision:deeplabv3_resnet50?task=segmentation",
    ),
    options=OPTIONS,
)
