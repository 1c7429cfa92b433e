"""A checkpoint of the user's own in a known architecture; tensors only, code in a pickle is refused.

``checkpoint:FILE?arch=torchvision:mobilenet_v2``, ``?arch=timm:NAME`` or ``?arch=python:module:factory``. The file is
safetensors or ``torch.save`` of a state dict. It does not say how its images are to be prepared: a timm architecture
brings its own configuration, the others take ImageNet's usual preprocessing unless the options say otherwise.
"""

from __future__ import annotations

from typing import Any

from cuebench.errors import UserError, did_you_mean
from cuebench.labels import LabelSpace
from cuebench.observers._options import TorchOptions, overridden, space_of, torch_options
from cuebench.observers._torchvision import import_torchvision
from cuebench.observers._weights import built, existing_file, fit, read_state_dict
from cuebench.observers.base import Adapter, LoadOptions, Observer, Spec
from cuebench.observers.load import require
from cuebench.observers.preprocess import Preprocess, imagenet_usual
from cuebench.observers.torch_observer import TorchObserver

_FORMS = "torchvision:NAME, timm:NAME or python:MODULE:FACTORY"


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Load one checkpoint."""
    given = torch_options(spec, options, arch="")
    if given.checkpoint or given.own["weights"]:
        raise UserError(f"observer {spec.text!r}: the checkpoint is the weights", "leave checkpoint= and weights= out")
    state = read_state_dict(existing_file(spec.body, "checkpoint"))
    classes = _classes(given)
    model = built(lambda: _architecture(spec, given.own["arch"], classes), given.seed)
    notes = fit(model, state, spec.body)
    base = _preprocess(given.own["arch"], model)
    assumed = (
        [k for k in ("resize", "mean", "std") if not given.own[f"preprocess.{k}"]] if "usual" in base.source else []
    )
    note = (f"assumed, because a checkpoint does not say: ImageNet's {', '.join(assumed)}",) if assumed else ()
    observer = TorchObserver(
        model,
        name=given.name,
        preprocess=overridden(base, spec, given.own),
        labels=_labels(given, model),
        device=options.device,
        precision=options.precision,
        features=given.features,
        notes=(*notes, *note),
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
        from cuebench.observers.adapters.python import factory_of

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
        from cuebench.observers._timm_data import preprocess_of

        return preprocess_of(model)
    own = getattr(model, "preprocess", None)
    return own if isinstance(own, Preprocess) else imagenet_usual()


def _labels(given: TorchOptions, model: Any) -> LabelSpace:
    own = getattr(model, "labels", None)
    return own if isinstance(own, LabelSpace) and not given.labels else space_of(given.labels)


ADAPTER = Adapter(
    load,
    form="checkpoint:FILE?arch=torchvision:NAME|timm:NAME|python:MODULE:FACTORY[&labels=…][&preprocess.resize=N…]",
    extra="torch",
    packages=("torch", "safetensors"),
    examples=("checkpoint:mobilenet_v2.safetensors?arch=torchvision:mobilenet_v2",),
)
