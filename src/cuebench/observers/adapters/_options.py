"""The options that adapters share: ``?weights=random&seed=0&checkpoint=FILE&labels=…&preprocess.resize=256``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from cuebench.errors import UserError
from cuebench.labels import LabelSpace, label_space
from cuebench.observers.base import LoadOptions, Spec
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.weights import built, fit_file

PREPROCESS = ("size", "resize", "crop", "interpolation", "mean", "std", "scale", "centre")
_NAMED = {f"preprocess.{key}": "" for key in PREPROCESS}


class TorchOptions(NamedTuple):
    """What every adapter of torch models accepts, parsed."""

    name: str
    random: bool
    seed: int
    checkpoint: str
    ema: bool | None
    labels: str
    features: str | None
    own: Mapping[str, str]


def torch_options(spec: Spec, options: LoadOptions, **own: str) -> TorchOptions:
    """Parse the options of a spec; ``own`` are the adapter's further ones with their defaults."""
    common = {"name": "", "weights": "", "seed": "", "checkpoint": "", "ema": "", "labels": "", "features": ""}
    given = spec.take(**{**common, **own, **_NAMED})
    random = given["weights"] == "random"
    if random and given["checkpoint"]:
        raise UserError(f"observer {spec.text!r} has both weights=random and checkpoint=", "give one of the two")
    seed = whole(spec, "seed", given["seed"]) if given["seed"] else options.seed
    ema = _truth(spec, "ema", given["ema"]) if given["ema"] else None
    if ema is not None and not given["checkpoint"] and spec.scheme != "checkpoint":
        raise UserError(
            f"observer {spec.text!r} has ema= but no checkpoint=", "ema= chooses among the weights of a file"
        )
    features = given["features"] or None
    return TorchOptions(
        given["name"] or spec.name, random, seed, given["checkpoint"], ema, given["labels"], features, given
    )


def initialised(make: Callable[[], Any], given: TorchOptions) -> tuple[Any, tuple[str, ...]]:
    """Build a module with the random weights or the checkpoint that the options ask for, and say so."""
    model = built(make, given.seed)
    if given.random:
        return model, (f"random weights, seed {given.seed}",)
    return model, fit_file(model, given.checkpoint, given.ema)


def only_random(spec: Spec, weights: str) -> None:
    """Refuse values of ``weights=`` that an adapter without named weights cannot know."""
    if weights not in {"", "random"}:
        raise UserError(f"observer {spec.text!r}: weights={weights!r} is not known", "only weights=random is")


def overridden(base: Preprocess, spec: Spec, options: Mapping[str, str], prefix: str = "preprocess.") -> Preprocess:
    """Return the preprocessing with what the user's options change; the record says that they did."""
    given = {key: options[prefix + key] for key in PREPROCESS if options.get(prefix + key)}
    if not given:
        return base
    source = f"{base.source}; {', '.join(sorted(given))} by the user"
    values = {key: _value(spec, prefix + key, key, text) for key, text in given.items()}
    return replace(base, **values, source=source)


def space_of(labels: str, default: str | LabelSpace = "imagenet1k") -> LabelSpace:
    """Return the label space that the option names, or the default."""
    return label_space(labels or default)


def whole(spec: Spec, key: str, text: str) -> int:
    """Parse a whole number."""
    try:
        return int(text)
    except ValueError:
        raise UserError(f"observer {spec.text!r}: {key}={text!r} is not a whole number") from None


def truth(spec: Spec, key: str, given: TorchOptions) -> bool:
    """Parse a yes-or-no option of the adapter's own."""
    return _truth(spec, key, given.own[key])


def _value(spec: Spec, option: str, key: str, text: str) -> Any:
    if key in {"interpolation", "centre"}:
        return text
    if key == "crop":
        return _truth(spec, option, text)
    if key in {"size", "resize"}:
        sides = [whole(spec, option, t) for t in text.replace("x", ",").split(",")]
        return sides[0] if len(sides) == 1 else tuple(sides[:2])
    numbers = _numbers(spec, option, text)
    return numbers[0] if key == "scale" else tuple(numbers * 3 if len(numbers) == 1 else numbers)


def _truth(spec: Spec, option: str, text: str) -> bool:
    known = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if text.lower() not in known:
        raise UserError(f"observer {spec.text!r}: {option}={text!r}", "true or false")
    return known[text.lower()]


def _numbers(spec: Spec, option: str, text: str) -> list[float]:
    try:
        return [float(t) for t in text.split(",")]
    except ValueError:
        raise UserError(
            f"observer {spec.text!r}: {option}={text!r} is not a list of numbers", "e.g. 0.485,0.456,0.406"
        ) from None
