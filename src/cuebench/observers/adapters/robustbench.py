"""Adversarially trained models of RobustBench by name: ``robustbench:Salman2020Do_R50``; the package must be there.

Weights are fetched by RobustBench itself (Google Drive) into ``?weights_dir=``; a file that lies there is used without
a network. Its models normalise their input themselves; resize and crop are those that RobustBench evaluates them with,
checked against its own transform.
"""

from __future__ import annotations

from typing import Any

from cuebench.errors import UserError, did_you_mean
from cuebench.labels import LabelSpace
from cuebench.observers.adapters import _hub
from cuebench.observers.adapters._options import (
    FEATURES,
    LABELS,
    NAME,
    PREPROCESS_PREFIXED,
    imagenet,
    overridden,
    torch_options,
)
from cuebench.observers.adapters.suite import WEIGHTS, weights_folder
from cuebench.observers.base import Adapter, LoadOptions, Observer, Spec
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.observer import TorchObserver
from cuebench.observers.torch.torchvision_import import import_torchvision
from cuebench.observers.verify_preprocess import same_input
from cuebench.options import Option

CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
OPTIONS = {
    **NAME,
    "dataset": Option("imagenet", "data set that it was trained on", choices=("imagenet", "cifar10", "cifar100")),
    "threat_model": Option("Linf", "threat model that it was trained for", choices=("Linf", "L2", "corruptions")),
    "weights_dir": Option("", f"folder of the weights; default: that of {WEIGHTS}, or ~/.cache/cuebench/weights"),
    **LABELS,
    **FEATURES,
    **PREPROCESS_PREFIXED,
}


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Load one model of the zoo."""
    parsed = torch_options(spec, options, OPTIONS)
    import_torchvision()
    from robustbench.data import get_preprocessing
    from robustbench.model_zoo import model_dicts
    from robustbench.model_zoo.enums import BenchmarkDataset, ThreatModel
    from robustbench.utils import load_model

    dataset, threat = BenchmarkDataset(parsed.values["dataset"]), ThreatModel(parsed.values["threat_model"])
    zoo = model_dicts[dataset].get(threat, {})
    if spec.body not in zoo:
        raise did_you_mean(f"RobustBench model for {dataset.value} and {threat.value}:", spec.body, zoo)
    folder = weights_folder(parsed.values["weights_dir"]) / "robustbench"
    file = folder / dataset.value / threat.value / f"{spec.body}.pt"
    model = _hub.fetched(
        lambda: load_model(spec.body, model_dir=folder, dataset=dataset, threat_model=threat),
        f"weights of robustbench:{spec.body}",
        offline=options.offline,
        url="https://drive.google.com",
        hint=f"put the file at {file}",
    )
    transform = get_preprocessing(dataset, threat, spec.body, None)
    observer = TorchObserver(
        model,
        name=parsed.name,
        preprocess=overridden(_preprocess(transform, dataset.value, spec.body), spec, parsed.values),
        labels=parsed.labels or _labels(spec, dataset.value),
        device=options.device,
        precision=options.precision,
        features=parsed.features,
        notes=(f"RobustBench, {threat.value}, trained on {dataset.value}",),
        frozen=True,
    )
    return [observer]


def _preprocess(transform: Any, dataset: str, name: str) -> Preprocess:
    """Translate RobustBench's transform, a list of Resize, CenterCrop and ToTensor; the network does the rest."""
    size: int | tuple[int, int] = 224 if dataset == "imagenet" else 32
    resize: int | tuple[int, int] | None = None
    interpolation, crop = "bilinear", False
    for step in transform.transforms:
        kind = type(step).__name__
        if kind == "Resize":
            sides = step.size if isinstance(step.size, int) else tuple(step.size)
            resize = sides if isinstance(sides, int) else sides[0] if len(sides) == 1 else (sides[0], sides[1])
            interpolation = str(step.interpolation.value)
        elif kind == "CenterCrop":
            size, crop = (int(step.size[0]), int(step.size[1])), True
    if not crop and isinstance(resize, tuple):
        size = resize
    ours = Preprocess(
        size=size,
        resize=resize if crop or resize is None else size,
        crop=crop or resize is None,
        interpolation=interpolation,  # type: ignore[arg-type]
        mean=(0.0, 0.0, 0.0),
        std=(1.0, 1.0, 1.0),
        source=f"RobustBench's for {name}",
    )
    if dataset != "imagenet":  # its images are 32 × 32 already: nothing is resized there, and here everything is
        return ours.whole_image()
    return same_input(ours, lambda image: transform(image).numpy(), f"robustbench:{name}")


def _labels(spec: Spec, dataset: str) -> LabelSpace:
    if dataset == "imagenet":
        return imagenet()
    if dataset == "cifar10":
        return LabelSpace("cifar10", CIFAR10)
    raise UserError(f"observer {spec.text!r}: the classes of {dataset} are not known here", "name them: labels=FILE")


ADAPTER = Adapter(
    load,
    form="robustbench:MODEL[?threat_model=Linf|L2|corruptions][&dataset=imagenet|cifar10|cifar100][&weights_dir=DIR]",
    packages=("torch", "torchvision", "robustbench"),
    install="pip install robustbench (it pins an old timm: use an environment of its own)",
    examples=("robustbench:Salman2020Do_R50", "robustbench:Hendrycks2020Many?threat_model=corruptions"),
    options=OPTIONS,
)
