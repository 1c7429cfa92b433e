"""A checkpoint of the user's own in a known architecture; tensors only, code in a pickle is refused.

``checkpoint:FILE?arch=torchvision:mobilenet_v2``, ``?arch=timm:NAME`` or ``?arch=python:module:factory``. The file is
safetensors or ``torch.save`` of a state dict; of one with several the moving average is taken, or with ``?ema=false``
the weights themselves. A head of your own classes needs their names, ``?labels=FILE``. The file does not say how its
images are to be prepared. Assumed are, unless the options say otherwise: what timm has configured for the architecture;
what the first weights that torchvision published for it want, with the centre of an odd border rounded down; and for a
factory without a ``preprocess`` ImageNet's usual. The record lists all of it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from cuebench.errors import UserError, did_you_mean
from cuebench.labels import LabelSpace
from cuebench.observers.adapters._options import (
    CHECKPOINT,
    FEATURES,
    LABELS,
    NAME,
    PREPROCESS_PREFIXED,
    imagenet,
    initialised,
    overridden,
    torch_options,
    with_option,
)
from cuebench.observers.adapters.python import code_of_factory, factory_of
from cuebench.observers.base import Adapter, LoadOptions, Observer, Spec
from cuebench.observers.load import require
from cuebench.observers.preprocess import Preprocess, imagenet_usual
from cuebench.observers.torch.observer import TorchObserver
from cuebench.observers.torch.torchvision_import import import_torchvision, repaired
from cuebench.observers.torch.weights import existing_file
from cuebench.observers.wrap import carried_preprocess
from cuebench.options import Option

SOURCES = "torchvision:NAME, timm:NAME or python:MODULE:FACTORY"
OPTIONS = {
    "arch": Option("", f"architecture of the weights: {SOURCES}"),
    **NAME,
    **{key: option for key, option in CHECKPOINT.items() if key != "checkpoint"},
    **LABELS,
    **FEATURES,
    **PREPROCESS_PREFIXED,
}


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Load one checkpoint."""
    parsed = torch_options(spec, options, OPTIONS)._replace(checkpoint=spec.body)
    existing_file(spec.body, "checkpoint")
    arch = parsed.values["arch"]
    classes = 1000 if parsed.labels is None else len(parsed.labels)
    own_code: AbstractContextManager[dict[str, str]]
    own_code = code_of_factory(arch.removeprefix("python:")) if arch.startswith("python:") else nullcontext({})
    with own_code as source:
        model, notes = initialised(lambda: _architecture(spec, arch, classes), parsed)
    base = _preprocess(arch, model)
    if base is not getattr(model, "preprocess", None):
        assumed = {k: v for k, v in base.describe().items() if not spec.options.get(f"preprocess.{k}")}
        listed = ", ".join(f"{key} {value}" for key, value in assumed.items())
        notes += (f"assumed, because a checkpoint does not say ({base.source}): {listed}",) if listed else ()
    model_labels = getattr(model, "labels", None)
    observer = TorchObserver(
        model,
        name=parsed.name,
        preprocess=overridden(base, spec, parsed.values),
        labels=parsed.labels or (model_labels if isinstance(model_labels, LabelSpace) else imagenet()),
        device=options.device,
        precision=options.precision,
        features=parsed.features,
        settings=source,
        notes=notes,
        frozen=True,
    )
    return [observer]


def _architecture(spec: Spec, arch: str, classes: int) -> Any:
    source, _, name = arch.partition(":")
    if not name:
        raise UserError(
            f"{spec.body} holds weights, which do not say what network they belong to",
            f"{with_option(spec, 'arch=SOURCE:NAME')}, where SOURCE:NAME is one of {SOURCES}",
        )
    if source == "torchvision":
        import_torchvision()
        from torchvision import models

        from cuebench.observers.adapters import torchvision

        torchvision.check_name(name)
        return models.get_model(name, weights=None, num_classes=classes)
    if source == "timm":
        require(f"arch=timm:{name}", "torch", ("timm",))
        import_torchvision()
        from timm import create_model

        from cuebench.observers.adapters import timm

        timm.check_name(name)
        return create_model(name, pretrained=False, num_classes=classes)
    if source == "python":
        return repaired(lambda: factory_of(name)())
    raise did_you_mean("architecture source", source, ["torchvision", "timm", "python"])


def _preprocess(arch: str, model: Any) -> Preprocess:
    if arch.startswith("timm:"):
        from cuebench.observers.timm_data import preprocess_of

        return preprocess_of(model)
    if arch.startswith("torchvision:"):
        from cuebench.observers.adapters import torchvision

        import_torchvision()
        # With the centre rounded down, files of such weights have the accuracies that are known of them
        # (docs/real_models.md); torchvision's own rule misses them by some tenths of a percent.
        published = torchvision.fitting_weights(arch.partition(":")[2], model)
        return replace(torchvision.preprocess_of(published), centre="down")
    return carried_preprocess(model) or imagenet_usual()


ADAPTER = Adapter(
    load,
    form="checkpoint:FILE?arch=torchvision:NAME|timm:NAME|python:MODULE:FACTORY[&ema=true|false][&labels=…][&preprocess.resize=N…]",
    extra="torch",
    packages=("torch", "safetensors"),
    examples=("checkpoint:mobilenet_v2.safetensors?arch=torchvision:mobilenet_v2",),
    options=OPTIONS,
)
