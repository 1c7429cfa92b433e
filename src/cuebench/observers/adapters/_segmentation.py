"""The options of segmentation models in an observer's spec: ``?task=segmentation&window=512&stride=341``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuebench.errors import UserError
from cuebench.observers.base import Spec
from cuebench.observers.preprocess import Preprocess
from cuebench.options import Option

SEGMENTATION: Mapping[str, Option] = {
    "task": Option("classification", "what the model does", choices=("classification", "segmentation")),
    "window": Option(0, "segmentation: side of a sliding window in pixels; 0: the whole image at once", low=0),
    "stride": Option(0, "segmentation: step of the window in pixels; 0: the side of the window", low=0),
}


def is_segmentation(spec: Spec, values: Mapping[str, Any]) -> bool:
    """Tell whether a spec asks for masks; options of windows without them are an error."""
    segmentation: bool = values["task"] == "segmentation"
    if not segmentation and (values["window"] or values["stride"]):
        raise UserError(f"observer {spec.text!r} has a window, but is no segmentation", "add task=segmentation")
    return segmentation


def windows(spec: Spec, values: Mapping[str, Any], preprocess: Preprocess) -> dict[str, int]:
    """Return window and stride; 0: the whole image at once.

    Raises
    ------
    UserError
        The window covers the whole input, so that it would not slide: the input must be made larger first.
    """
    window, (height, width) = values["window"], preprocess.hw
    if window >= max(height, width):
        option = "size" if "size" in values else "preprocess.size"
        raise UserError(
            f"observer {spec.text!r}: a window of {window} covers the whole input of {height}×{width} pixels",
            f"set the size at which images are shown, e.g. {option}=1024x2048, or leave the window out",
        )
    return {"window": window, "stride": values["stride"]}
