"""Object masks from Hugging Face models: semantic, instance or panoptic segmentation, or promptable (SAM)."""

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
        pipe = _transformers().pipeline("image-segmentation", model=model)
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"segmenter hf:{model} cannot be loaded: {str(error).splitlines()[0]}") from error

    def segment(image: Array, label: str) -> Array:
        from PIL import Image

        segments = [(str(s["label"]), np.asarray(s["mask"]) > 127) for s in pipe(Image.fromarray(image))]
        return _of_class(segments, label)

    return segment


def promptable(model: str) -> Segmenter:
    """Return the segmenter of a promptable Hugging Face model (SAM): one point, the middle of the image.

    Parameters
    ----------
    model : str
        Name on the hub, or a folder with the weights.
    """
    transformers = _transformers()
    import torch

    # A repository's own code is never run.
    processor = transformers.AutoProcessor.from_pretrained(model, trust_remote_code=False)
    net = transformers.AutoModel.from_pretrained(model, trust_remote_code=False)
    net.eval()

    def segment(image: Array, label: str) -> Array:
        height, width = image.shape[:2]
        inputs = processor(image, input_points=[[[width / 2, height / 2]]], return_tensors="pt")
        with torch.inference_mode():
            out = net(**inputs)
        masks = processor.image_processor.post_process_masks(
            out.pred_masks.cpu(), inputs["original_sizes"].cpu(), inputs["reshaped_input_sizes"].cpu()
        )
        best = int(out.iou_scores.reshape(-1).argmax())
        return np.asarray(masks[0].reshape(-1, height, width)[best]) > 0

    return segment


def _of_class(segments: Sequence[tuple[str, Array]], label: str) -> Array:
    """Return the union of the segments of a class, else the largest segment that is not background."""
    words = label.lower().replace("_", " ")
    named = [m for n, m in segments if words in n.lower() or n.lower() in words]
    others = [m for n, m in segments if not any(g in n.lower() for g in _GROUND)]
    if not named and not others:
        raise UserError("the segmenter found nothing but background")
    return np.logical_or.reduce(named) if named else max(others, key=lambda m: int(m.sum()))


def _transformers() -> Any:
    try:
        import_torchvision()
        import transformers
    except ImportError as error:
        raise MissingExtra("a Hugging Face segmenter", "hf", "transformers") from error
    return transformers
