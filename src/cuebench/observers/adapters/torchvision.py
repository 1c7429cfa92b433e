"""Any classifier of torchvision, with its published weights, a checkpoint, or random weights.

Preprocessing comes from the weights' own ``transforms()``; random weights and checkpoints take the geometry of the
model's first published weights unless the options say otherwise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cuebench.errors import did_you_mean
from cuebench.labels import LabelSpace, label_space
from cuebench.observers.adapters import _hub, _segment_torchvision
from cuebench.observers.adapters._options import TorchOptions, initialised, overridden, space_of, torch_options
from cuebench.observers.adapters._segmentation import SEGMENTATION, is_segmentation
from cuebench.observers.adapters._verify import same_input
from cuebench.observers.base import Adapter, LoadOptions, Observer, Spec
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.observer import TorchObserver
from cuebench.observers.torch.torchvision_import import import_torchvision


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Load one classifier of torchvision."""
    import_torchvision()
    if is_segmentation(spec, {**SEGMENTATION, **spec.options}):
        return _segment_torchvision.load(spec, options)
    given = torch_options(spec, options, task="")
    weights = _weights(spec.body, given)
    model, notes = module_of(spec.body, given, weights, options.offline)
    observer = TorchObserver(
        model,
        name=given.name,
        preprocess=overridden(preprocess_of(weights), spec, given.own),
        labels=space_of(given.labels) if given.labels else label_space_of(weights),
        device=options.device,
        precision=options.precision,
        features=given.features,
        notes=notes,
        frozen=True,
    )
    return [observer]


def module_of(name: str, given: TorchOptions, weights: Any, offline: bool) -> tuple[Any, tuple[str, ...]]:
    """Build a classifier and give it the weights that were asked for."""
    from torchvision import models

    check_name(name)
    if given.random or given.checkpoint:
        # GoogLeNet and Inception have extra heads for training, which a published state dict may lack.
        return initialised(lambda: models.get_model(name, weights=None), given)
    file = _cache_folder() / Path(weights.url).name
    return _hub.fetched(
        lambda: models.get_model(name, weights=weights),
        f"weights {weights.name} of torchvision:{name} ({weights.url})",
        offline=offline,
        url=weights.url,
        hint=f"put the file at {file}",
        cached=file.is_file(),
    ), (f"weights {weights.name}",)


def check_name(name: str) -> None:
    """Raise for a name that is not a classifier of torchvision."""
    known = classifiers()
    if name not in known:
        raise did_you_mean("torchvision classifier", name, known)


def classifiers() -> list[str]:
    """Return the names of torchvision's image classifiers."""
    from torchvision import models

    return [n for n in models.list_models(module=models) if not n.startswith("quantized_")]


def first_weights(name: str) -> Any:
    """Return the first weights that were published for a model."""
    from torchvision import models

    check_name(name)
    return next(iter(models.get_model_weights(name)))


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


def _weights(name: str, given: TorchOptions) -> Any:
    from torchvision import models

    check_name(name)
    kinds = models.get_model_weights(name)
    wanted = given.own["weights"]
    if given.random or given.checkpoint:
        return first_weights(name)
    if wanted and wanted not in kinds.__members__:
        raise did_you_mean(f"weights of torchvision model {name!r}:", wanted, [*kinds.__members__, "random"])
    return kinds[wanted or "DEFAULT"]


def _cache_folder() -> Path:
    import torch

    return Path(torch.hub.get_dir()) / "checkpoints"


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
)
