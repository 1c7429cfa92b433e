"""A model saved with torch.jit, run without its Python source.

A TorchScript file does not say how its images are to be prepared: ImageNet's usual preprocessing is assumed at
``?preprocess.size=224`` unless the options say otherwise. Features are the input of the linear layer that ends the
graph. (A TorchScript file is a program, though in a small language; load only files whose origin you know.)
"""

from __future__ import annotations

from typing import Any

from cuebench.errors import UserError
from cuebench.observers.adapters._options import overridden, space_of, torch_options
from cuebench.observers.base import Adapter, LoadOptions, Observer, Spec
from cuebench.observers.preprocess import imagenet_usual
from cuebench.observers.torch.observer import TorchObserver
from cuebench.observers.torch.script import script_route
from cuebench.observers.torch.weights import existing_file, hash_file


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Load one TorchScript file."""
    given = torch_options(spec, options)
    if given.own["weights"] or given.checkpoint or given.features:
        raise UserError(
            f"observer {spec.text!r}: a TorchScript file fixes its weights", "accepted: name, labels, preprocess.*"
        )
    path = existing_file(spec.body, "TorchScript file")
    model, labels = _module(str(path)), space_of(given.labels)
    assumed = [k for k in ("size", "resize", "mean", "std") if not given.own[f"preprocess.{k}"]]
    note = (f"assumed, because a TorchScript file does not say: ImageNet's {', '.join(assumed)}",) if assumed else ()
    observer = TorchObserver(
        model,
        name=given.name,
        preprocess=overridden(imagenet_usual(), spec, given.own),
        labels=labels,
        device=options.device,
        precision=options.precision,
        way=script_route(model),
        settings={"file": hash_file(path)},  # the program is in the file, and repr() does not show it
        notes=note,
        frozen=True,
    )
    return [observer]


def _module(path: str) -> Any:
    import torch

    try:
        return torch.jit.load(path, map_location="cpu")
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"{path} is not a TorchScript file: {(str(error).splitlines() or [''])[0][:200]}",
            "save it with torch.jit.script(model).save(FILE); a state dict is loaded by checkpoint:FILE?arch=…",
        ) from None


ADAPTER = Adapter(
    load,
    form="torchscript:FILE[?labels=…][&preprocess.size=N&preprocess.mean=…]",
    extra="torch",
    packages=("torch",),
    examples=("torchscript:model.pt", "torchscript:model.pt?labels=classes.json&preprocess.size=64"),
)
