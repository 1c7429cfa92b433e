"""What a user hands to ``wrap`` and to the callback is checked at once: a wrong argument would fail hours later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cuebench.errors import UserError
from cuebench.observers.function_preprocess import by_function
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.verify_preprocess import same_input
from cuebench.options import check_types

ELSE = (
    "pass cuebench.Preprocess(size=224, resize=256, mean=(…), std=(…)), a transform of torchvision, or a function that "
    "takes a PIL image and returns numbers 3×height×width"
)
_SILENT = frozenset({"ToTensor", "PILToTensor", "ToImage", "ToDtype", "ConvertImageDtype"})
"""Transforms of torchvision that turn a picture into numbers in [0, 1], as ``Preprocess`` does."""


@dataclass(frozen=True)
class _Wrap:
    """Types of what ``wrap`` is given beside the model."""

    name: str | None
    fingerprint: str | None
    features: str | None
    precision: str
    task: str
    window: int
    stride: int


def check_wrap(given: Mapping[str, Any]) -> None:
    """Refuse arguments of ``wrap`` that are of another type, and a name that nothing can be called by."""
    check_types(given, _Wrap, "wrap")
    name = given["name"]
    if name is not None and (not name.strip() or name != name.encode(errors="replace").decode()):
        what = "is no text that can be written to a file" if name.strip() else "is empty"
        raise UserError(f"name={name!r} {what}", "leave it out, or give the name that tables and figures show")


def as_preprocess(given: Any, named: str = "") -> Preprocess:
    """Return the preprocessing that a user gave, in whatever form.

    Parameters
    ----------
    given : Preprocess, transform of torchvision, or callable
        A transform that a ``Preprocess`` can express is translated, after both have made the same numbers of test
        pictures. Any other callable takes a PIL image and returns numbers 3×H×W (`FunctionPreprocess`).
    named : str
        What identifies a callable in the cache; empty: what it holds and the code that it runs.
    """
    if isinstance(given, Preprocess):
        return given
    if translated := translation(given):
        return translated
    if callable(given) and not isinstance(given, type):
        return by_function(given, named)
    shown = repr(given).partition("\n")[0]
    shown = shown if len(shown) <= 60 else f"{shown[:57]}…"
    raise UserError(f"preprocess is {shown} ({type(given).__name__}), no Preprocess", ELSE)


def translation(transform: Any) -> Preprocess | None:
    """Return the ``Preprocess`` that does exactly what a transform of torchvision does; None where there is none."""
    values = _of_preset(transform) or _of_steps(transform)
    if not values or not callable(transform):
        return None
    try:
        return same_input(Preprocess(**values, source=f"{type(transform).__name__} of torchvision"), transform, "it")
    except Exception:  # noqa: BLE001 - somebody else's code; whoever calls it next reports what is wrong
        return None


def _of_preset(transform: Any) -> dict[str, Any]:
    """Return the values of what ``weights.transforms()`` returns."""
    crop, resize, mean, std = (getattr(transform, name, None) for name in ("crop_size", "resize_size", "mean", "std"))
    if not all(isinstance(values, (list, tuple)) for values in (crop, resize, mean, std)):
        return {}
    sides = {"size": _side(crop), "resize": _side(resize)}
    return {**sides, **_filter(transform), "mean": _numbers(mean), "std": _numbers(std)}


def _of_steps(transform: Any) -> dict[str, Any]:
    """Return the values of ``Compose([Resize, CenterCrop, ToTensor, Normalize])``; empty with any other step."""
    steps = getattr(transform, "transforms", None)
    if not isinstance(steps, (list, tuple)):
        return {}
    by_kind = {type(step).__name__: step for step in steps}
    if set(by_kind) - _SILENT - {"Resize", "CenterCrop", "Normalize"} or len(by_kind) < len(steps):
        return {}
    resize, crop, normal = (by_kind.get(kind) for kind in ("Resize", "CenterCrop", "Normalize"))
    side = None if resize is None else _side(resize.size)
    if side is None or (crop is None and not isinstance(side, tuple)):
        return {}
    values = (
        {"size": side, "resize": side, "crop": False} if crop is None else {"size": _side(crop.size), "resize": side}
    )
    mean, std = (_numbers(normal.mean), _numbers(normal.std)) if normal is not None else ((0, 0, 0), (1, 1, 1))
    return {**values, **_filter(resize), "mean": mean, "std": std}


def _side(size: Any) -> Any:
    """Return a size as ``Preprocess`` takes it: one number for the shorter side, or height and width."""
    if not isinstance(size, Sequence):
        return size
    return size[0] if len(size) == 1 else tuple(size)


def _filter(step: Any) -> dict[str, str]:
    """Return the filter of a step where it is not the usual one."""
    name = getattr(getattr(step, "interpolation", None), "value", "bilinear")
    return {} if name == "bilinear" else {"interpolation": name}


def _numbers(values: Any) -> tuple[float, ...]:
    return tuple(round(float(value), 6) for value in values)
