"""Object masks from Hugging Face models for semantic, instance or panoptic segmentation; loading of such models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import MissingExtra, UserError
from cuebench.observers.torch.torchvision_import import import_torchvision
from cuebench.stimuli.masks.base import Segmenter

_GROUND = ("background", "wall", "sky", "floor", "ground", "unlabeled")


def labelled(model: str) -> Segmenter:
    """Return the segmenter of a Hugging Face model for semantic, instance or panoptic segmentation.

    Parameters
    ----------
    model : str
        Name on the hub, or a folder with the weights.
    """
    try:
        pipe = transformers_module().pipeline("image-segmentation", model=model)
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"segmenter hf:{model} cannot be loaded: {str(error).splitlines()[0]}") from error

    def segment(image: Array, label: str) -> Array:
        from PIL import Image

        segments = [(str(s["label"]), np.asarray(s["mask"]) > 127) for s in pipe(Image.fromarray(image))]
        return _of_class(segments, label)

    return segment


def _of_class(segments: Sequence[tuple[str, Array]], label: str) -> Array:
    """Return the union of the segments of a class, else the largest segment that is not background."""
    words = label.lower().replace("_", " ")
    named = [m for n, m in segments if words in n.lower() or n.lower() in words]
    others = [m for n, m in segments if not any(g in n.lower() for g in _GROUND)]
    if not named and not others:
        raise UserError("the segmenter found nothing but background")
    return np.logical_or.reduce(named) if named else max(others, key=lambda m: int(m.sum()))


def transformers_module() -> Any:
    """Import transformers after what it needs; without it, say how to install it."""
    try:
        import_torchvision()
        import transformers
    except ImportError as error:
        raise MissingExtra("a Hugging Face segmenter", "hf", "transformers") from error
    return transformers


def loaded(spec: str, model: str, processor: Any, network: Any) -> tuple[Any, Any]:
    """Load a processor and a network by their automatic classes; the network in evaluation mode.

    Parameters
    ----------
    spec : str
        The segmenter as the user has named it, for messages.
    model : str
        Name on the hub, or a folder with the weights.
    processor, network : classes
        ``AutoProcessor`` and an ``AutoModelFor…``.
    """
    try:
        # A repository's own code is never run.
        parts = [kind.from_pretrained(model, trust_remote_code=False) for kind in (processor, network)]
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"segmenter {spec} cannot be loaded: {str(error).splitlines()[0]}") from error
    return parts[0], parts[1].eval()
