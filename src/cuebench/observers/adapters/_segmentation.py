"""The options of segmentation models in an observer's spec: ``?task=segmentation&window=512&stride=341``."""

from __future__ import annotations

from collections.abc import Mapping

from cuebench.errors import UserError
from cuebench.observers.adapters._options import whole
from cuebench.observers.base import Spec
from cuebench.observers.preprocess import Preprocess

SEGMENTATION = {"task": "", "window": "", "stride": ""}
TASKS = ("", "classification", "segmentation")


def is_segmentation(spec: Spec, given: Mapping[str, str]) -> bool:
    """Tell whether a spec asks for masks; options of windows without them are an error."""
    if given["task"] not in TASKS:
        raise UserError(f"observer {spec.text!r}: task={given['task']!r}", "classification (default) or segmentation")
    segmentation = given["task"] == "segmentation"
    if not segmentation and (given["window"] or given["stride"]):
        raise UserError(f"observer {spec.text!r} has a window, but is no segmentation", "add task=segmentation")
    return segmentation


def windows(spec: Spec, given: Mapping[str, str], preprocess: Preprocess) -> dict[str, int]:
    """Return window and stride as numbers; 0: the whole image at once.

    A window that covers the whole input would slide nowhere: then the input must be made larger first.
    """
    found = {key: whole(spec, key, given[key]) if given[key] else 0 for key in ("window", "stride")}
    height, width = preprocess.hw
    if found["window"] >= max(height, width):
        option = "size" if "size" in given else "preprocess.size"
        raise UserError(
            f"observer {spec.text!r}: a window of {found['window']} covers the whole input of {height}×{width} pixels",
            f"say how large images are shown, e.g. {option}=1024x2048, or leave the window out",
        )
    return found
