"""A checkpoint of the user's own in a known architecture; tensors only, code in a pickle is refused.

``checkpoint:FILE?arch=torchvision:mobilenet_v2``, ``?arch=timm:NAME`` or ``?arch=python:module:factory``. The file is
safetensors or ``torch.save`` of a state dict; of one with several the moving average is taken, or with ``?ema=false``
the weights themselves. The file does not say how its images are to be prepared. Assumed are, unless the options say
otherwise: what timm has configured for the architecture; what the first weights that torchvision published for it want,
with the centre of an odd border rounded down; and for a factory without a ``preprocess`` ImageNet's usual. The record
lists all of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cuebench.errors import UserError, did_you_mean
from cuebench.labels import LabelSpace
from cuebench.observers.adapters._options import TorchOptions, initialised, overridden, space_of, torch_options
from cuebench.observers.adapters.python import factory_of, source_of
from cuebench.observers.base import Adapter, LoadOptions, Observer, Spec
from cuebench.observers.load import require
from cuebench.observers.preprocess import Preprocess, imagenet_usual
from cuebench.observers.torch.observer import TorchObserver
from cuebench.observers.torch.torchvision_import import import_torchvision
from cuebench.observers.torch.weights import existing_file

_FORMS = "torchvision:NAME, timm:NAME or python:MODULE:FACTORY"


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Load one checkpoint."""
    given = torch_options(spec, options, arch="")
    if given.checkpoint or given.own["weights"]:
        raise UserError(f"observer {spec.text!r}: the checkpoint is the weights", "leave checkpoint= and weights= out")
    existing_file(spec.body, "checkpoint")
    arch, classes = given.own["arch"], _classes(given)
    model, notes = initialised(lambda: _architecture(spec, arch, classes), given._replace(checkpoint=spec.body))
    base = _preprocess(arch, model)
    assumed = () if base is getattr(model, "preprocess", None) else _assumed(base, given)
    observer = TorchObserver(
        model,
        name=given.name,
        preprocess=overridden(base, spec, given.own),
        labels=_labels(given, model),
        device=options.device,
        precision=options.precision,
        features=given.features,
        settings=source_of(arch.removeprefix("python:")) if arch.startswith("python:") else {},
        notes=(*notes, *assumed),
        frozen=True,
    )
    return [observer]


def _architecture(spec: Spec, arch: str, classes: int) -> Any:
    source, _, name = arch.partition(":")
    if not name:
        raise UserError(f"observer {spec.text!r} needs ?arch=", _FORMS)
    if source == "torchvision":
        return _from_torchvision(name, classes)
    if source == "timm":
        return _from_timm(name, classes)
    if source == "python":
        return factory_of(name)()
    raise did_you_mean("architecture source", source, ["torchvision", "timm", "python"])


def _from_torchvision(name: str, classes: int) -> Any:
    import_torchvision()
    from torchvision import models

    from cuebench.observers.adapters.torchvision import check_name

    check_name(name)
    return models.get_model(name, weights=None, num_classes=classes)


def _from_timm(name: str, classes: int) -> Any:
    require(f"arch=timm:{name}", "torch", ("timm",))
    import_torchvision()
    import timm

    from cuebench.observers.adapters.timm import check_name

    check_name(name)
    return timm.create_model(name, pretrained=False, num_classes=classes)


def _classes(given: TorchOptions) -> int:
    # The user's label space says how many classes there are; without one it is ImageNet's thousand.
    return len(space_of(given.labels)) if given.labels else 1000


def _preprocess(arch: str, model: Any) -> Preprocess:
    if arch.startswith("timm:"):
        from cuebench.observers.timm_data import preprocess_of

        return preprocess_of(model)
    if arch.startswith("torchvision:"):
        from cuebench.observers.adapters import torchvision

        import_torchvision()
        # With the centre rounded down, files of such weights have the accuracies that are known of them
        # (docs/real_models.md); torchvision's own rule misses them by some tenths of a percent.
        published = torchvision.first_weights(arch.partition(":")[2])
        return replace(torchvision.preprocess_of(published), centre="down")
    own = getattr(model, "preprocess", None)
    return own if isinstance(own, Preprocess) else imagenet_usual()


def _assumed(base: Preprocess, given: TorchOptions) -> tuple[str, ...]:
    """Return the note of everything about the images that the user has not said."""
    values = {k: v for k, v in base.describe().items() if not given.own[f"preprocess.{k}"]}
    said = ", ".join(f"{key} {value}" for key, value in values.items())
    return (f"assumed, because a checkpoint does not say ({base.source}): {said}",) if said else ()


def _labels(given: TorchOptions, model: Any) -> LabelSpace:
    own = getattr(model, "labels", None)
    return own if isinstance(own, LabelSpace) and not given.labels else space_of(given.labels)


ADAPTER = Adapter(
    load,
    form="checkpoint:FILE?arch=torchvision:NAME|timm:NAME|python:MODULE:FACTORY[&ema=true|false][&labels=…][&preprocess.resize=N…]",
    extra="torch",
    packages=("torch", "safetensors"),
    examples=("checkpoint:mobilenet_v2.safetensors?arch=torchvision:mobilenet_v2",),
)
