"""The options that adapters share, declared once: ``?weights=random&seed=0&checkpoint=FILE&preprocess.resize=256``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, get_args

from cuebench import options as option_parser
from cuebench.errors import UserError
from cuebench.labels import LabelSpace, label_space
from cuebench.observers.base import LoadOptions, Spec
from cuebench.observers.preprocess import Centre, Fit, Interpolation, Preprocess
from cuebench.observers.torch.weights import IGNORE, REFUSE, built, fit_file
from cuebench.options import Option

NAME: Mapping[str, Option] = {"name": Option("", "name of the observer; default: the spec, or the name of its file")}
LABELS: Mapping[str, Option] = {
    "labels": Option("", "classes of the logits in their order: a built-in label space, or a JSON or CSV file")
}
PREPROCESS: Mapping[str, Option] = {
    "size": Option((), "input size in pixels: SIDE or HEIGHTxWIDTH", item=int, lengths=(1, 2), low=1),
    "resize": Option((), "resize before the crop: SHORTER_SIDE or HEIGHTxWIDTH", item=int, lengths=(1, 2), low=1),
    "crop": Option(True, "crop the centre after resizing; default: as the weights were evaluated"),
    "interpolation": Option("", "filter for resizing", choices=get_args(Interpolation)),
    "mean": Option((), "mean that is subtracted, for all channels or for each", item=float, lengths=(1, 3)),
    "std": Option((), "divisor after the mean is subtracted, for all channels or for each", item=float, lengths=(1, 3)),
    "scale": Option(1 / 255, "factor of the pixel values, before the mean is subtracted; default: that of the weights"),
    "fit": Option("", "segmentation: images of many sizes in the input", choices=get_args(Fit)),
    "centre": Option("", "rounding of the crop's position where the border is odd", choices=get_args(Centre)),
}
"""Changes of the preprocessing; without them it is that of the weights."""
PREPROCESS_PREFIXED: Mapping[str, Option] = {f"preprocess.{key}": option for key, option in PREPROCESS.items()}
RANDOM = "random"
CHECKPOINT: Mapping[str, Option] = {
    "seed": Option(0, "seed of random weights; default: the seed of the run"),
    "checkpoint": Option("", "file with weights of your own: safetensors, or a state dict saved by torch"),
    "ema": Option(True, "of a checkpoint with both: the moving average of the weights, or the weights themselves"),
    "extra": Option(REFUSE, "keys of a checkpoint that the architecture does not have", choices=(REFUSE, IGNORE)),
}
FEATURES: Mapping[str, Option] = {
    "features": Option("", "layer whose output is the features; default: the input of the classifier")
}
TORCH: Mapping[str, Option] = {
    **NAME,
    "weights": Option("", "random weights instead of the published ones", choices=(RANDOM,)),
    **CHECKPOINT,
    **LABELS,
    **FEATURES,
    **PREPROCESS_PREFIXED,
}
"""What every adapter of torch models accepts."""


class TorchOptions(NamedTuple):
    """The parsed options of a torch model; ``values`` holds all of them by name."""

    name: str
    random: bool
    seed: int
    checkpoint: str
    ema: bool | None
    extra: str
    labels: LabelSpace | None
    features: str | None
    values: Mapping[str, Any]

    @property
    def classes(self) -> dict[str, int]:
        """``num_classes`` of the architecture where the user has named the classes; empty: the architecture's own."""
        return {} if self.labels is None else {"num_classes": len(self.labels)}


def option_values(spec: Spec, declared: Mapping[str, Option]) -> dict[str, Any]:
    """Return every declared option with its value; an empty text stands for the default.

    Raises
    ------
    UserError
        For unknown options and values that do not fit, with the spec in the message.
    """
    texts = {key: text for key, text in spec.options.items() if text or key not in declared}
    return option_parser.parse(declared, texts, f"observer {spec.text!r}")


def torch_options(spec: Spec, run: LoadOptions, declared: Mapping[str, Option] = TORCH) -> TorchOptions:
    """Parse the options of a torch model.

    Parameters
    ----------
    spec : Spec
        The observer as the user wrote it.
    run : LoadOptions
        Its seed is the default.
    declared : mapping of str to Option
        The options of the adapter.
    """
    values = option_values(spec, declared)
    checkpoint = values.get("checkpoint", "")
    random = values.get("weights") == RANDOM
    if random and checkpoint:
        raise UserError(f"observer {spec.text!r} has both weights=random and checkpoint=", "give one of the two")
    if spec.options.get("ema") and not checkpoint and spec.scheme != "checkpoint":
        raise UserError(
            f"observer {spec.text!r} has ema= but no checkpoint=", "ema= chooses among the weights of a file"
        )
    return TorchOptions(
        name=values["name"] or spec.name,
        random=random,
        seed=values["seed"] if spec.options.get("seed") else run.seed,
        checkpoint=checkpoint,
        ema=values["ema"] if spec.options.get("ema") else None,
        extra=values.get("extra", REFUSE),
        labels=label_space(values["labels"]) if values["labels"] else None,
        features=values.get("features") or None,
        values=values,
    )


def initialised(make: Callable[[], Any], parsed: TorchOptions) -> tuple[Any, tuple[str, ...]]:
    """Build a module with random weights or those of a checkpoint; return it with the notes for the record."""
    model = built(make, parsed.seed)
    if parsed.random:
        return model, (f"random weights, seed {parsed.seed}",)
    return model, fit_file(model, parsed.checkpoint, parsed.ema, parsed.extra)


def overridden(base: Preprocess, spec: Spec, values: Mapping[str, Any], prefix: str = "preprocess.") -> Preprocess:
    """Return the preprocessing with the changes that the spec asks for; ``source`` names them."""
    changes = {key: values[prefix + key] for key in PREPROCESS if spec.options.get(prefix + key)}
    if not changes:
        return base
    source = f"{base.source}; {', '.join(sorted(changes))} by the user"
    for key in {"size", "resize", "mean", "std"} & set(changes):
        if len(changes[key]) == 1:
            changes[key] = changes[key] * 3 if key in {"mean", "std"} else changes[key][0]
    return replace(base, **changes, source=source)


def with_option(spec: Spec, option: str) -> str:
    """Return the text of a spec with another option, for hints."""
    return f"{spec.text}{'&' if '?' in spec.text else '?'}{option}"


def imagenet() -> LabelSpace:
    """Return the label space of models that do not name their classes."""
    return label_space("imagenet1k")
