"""A model saved with torch.jit, run without its Python source.

A TorchScript file does not say how its images are to be prepared: ImageNet's usual preprocessing is assumed at
``?preprocess.size=224`` unless the options say otherwise. Features are the input of the linear layer that ends the
graph. (A TorchScript file is a program, though in a small language; load only files whose origin you know.)
"""

from __future__ import annotations

from typing import Any

from cuebench.errors import UserError
from cuebench.files import hash_file
from cuebench.labels import label_space
from cuebench.observers.adapters._options import (
    LABELS,
    NAME,
    PREPROCESS_PREFIXED,
    imagenet,
    option_values,
    overridden,
)
from cuebench.observers.base import Adapter, LoadOptions, Observer, Spec
from cuebench.observers.guess import EXPORTED, likely_spec
from cuebench.observers.preprocess import imagenet_usual
from cuebench.observers.torch.features import script_route
from cuebench.observers.torch.observer import TorchObserver
from cuebench.observers.torch.weights import existing_file

OPTIONS = {**NAME, **LABELS, **PREPROCESS_PREFIXED}


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Load one TorchScript file."""
    values = option_values(spec, OPTIONS)
    path = existing_file(spec.body, "TorchScript file")
    model = _module(str(path))
    assumed = [k for k in ("size", "resize", "mean", "std") if not spec.options.get(f"preprocess.{k}")]
    note = (f"assumed, because a TorchScript file does not say: ImageNet's {', '.join(assumed)}",) if assumed else ()
    observer = TorchObserver(
        model,
        name=values["name"] or spec.name,
        preprocess=overridden(imagenet_usual(), spec, values),
        labels=label_space(values["labels"]) if values["labels"] else imagenet(),
        device=options.device,
        precision=options.precision,
        way=script_route(model),
        settings={"file": hash_file(path).sha256},  # the program is in the file, and repr() does not show it
        notes=note,
        frozen=True,
    )
    return [observer]


def _module(path: str) -> Any:
    import torch

    try:
        return torch.jit.load(path, map_location="cpu")
    except (RuntimeError, ValueError) as error:
        if (meant := likely_spec(path)) == EXPORTED.format(path=path):
            raise UserError(f"{path} was written by torch.export, not by torch.jit", f"write {meant}") from None
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
    options=OPTIONS,
)
