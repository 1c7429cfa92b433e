"""Segmenters for images without a mask: GrabCut (needs no weights), or a Hugging Face model.

A segmenter is a function ``segment(image, label) -> mask`` (uint8 H×W×3 and the class name → bool H×W). ``segmenter``
returns one by name: ``grabcut``, ``hf:MODEL`` (semantic, instance or panoptic segmentation: the segment whose label is
the class, else the largest that is not background) or ``sam:MODEL`` (promptable: the best mask at the image's centre).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cuebench.cues._check import optional
from cuebench.errors import MissingExtra, UserError
from cuebench.stimuli.refined_bias.masks import BadSource, checked

Array = np.ndarray[Any, np.dtype[Any]]
Segmenter = Callable[[Array, str], Array]
_SIDE = 320
"""GrabCut works on a copy whose longer side has this many pixels."""
_GROUND = ("background", "wall", "sky", "floor", "ground", "unlabeled")


def segmenter(name: str) -> Segmenter:
    """Return a segmenter by name; see the module."""
    scheme, _, model = name.partition(":")
    if scheme == "grabcut" and not model:
        return grabcut
    if scheme in {"hf", "sam"} and model:
        return promptable(model) if scheme == "sam" else labelled(model)
    raise UserError(f"segmenter {name!r}", "accepted: grabcut, hf:MODEL or sam:MODEL")


def grabcut(image: Array, label: str = "") -> Array:
    """Find the object in the middle of an image: GrabCut from a centred rectangle, the largest piece, holes filled.

    Parameters
    ----------
    image : uint8 array H×W×3
        A photograph with one object that does not touch the border.
    label : str
        Not used; every segmenter is given the class.
    """
    cv2 = optional("cv2", "the segmenter 'grabcut'")
    height, width = image.shape[:2]
    scale = min(1.0, _SIDE / max(height, width))
    small = cv2.resize(
        image, (max(8, round(width * scale)), max(8, round(height * scale))), interpolation=cv2.INTER_AREA
    )
    rows, columns = small.shape[:2]
    edge = max(1, round(0.04 * min(rows, columns)))
    cv2.setRNGSeed(0)
    marks, models = np.zeros((rows, columns), np.uint8), np.zeros((2, 1, 65))
    box = (edge, edge, columns - 2 * edge, rows - 2 * edge)
    cv2.grabCut(np.ascontiguousarray(small), marks, box, models[0], models[1], 6, cv2.GC_INIT_WITH_RECT)
    found = (marks == cv2.GC_FGD) | (marks == cv2.GC_PR_FGD)
    large = cv2.resize(_largest(found).astype(np.float32), (width, height), interpolation=cv2.INTER_LINEAR)
    return checked(large > 0.5)


def labelled(model: str) -> Segmenter:
    """Return the segmenter of a Hugging Face model for semantic, instance or panoptic segmentation.

    Parameters
    ----------
    model : str
        Name on the hub, or a folder with the weights.
    """
    pipe = _pipeline("image-segmentation", model)

    def segment(image: Array, label: str) -> Array:
        from PIL import Image

        found = [(str(s["label"]), np.asarray(s["mask"]) > 127) for s in pipe(Image.fromarray(image))]
        return checked(_of_class(found, label))

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

    processor, net = transformers.AutoProcessor.from_pretrained(model), transformers.AutoModel.from_pretrained(model)
    net.eval()

    def segment(image: Array, label: str) -> Array:
        height, width = image.shape[:2]
        given = processor(image, input_points=[[[width / 2, height / 2]]], return_tensors="pt")
        with torch.inference_mode():
            out = net(**given)
        masks = processor.image_processor.post_process_masks(
            out.pred_masks.cpu(), given["original_sizes"].cpu(), given["reshaped_input_sizes"].cpu()
        )
        best = int(out.iou_scores.reshape(-1).argmax())
        return checked(_largest(np.asarray(masks[0].reshape(-1, height, width)[best]) > 0))

    return segment


def _of_class(found: Sequence[tuple[str, Array]], label: str) -> Array:
    words = label.lower().replace("_", " ")
    named = [m for n, m in found if words in n.lower() or n.lower() in words]
    others = [m for n, m in found if not any(g in n.lower() for g in _GROUND)]
    if not named and not others:
        raise BadSource("the segmenter found nothing but background")
    return np.logical_or.reduce(named) if named else max(others, key=lambda m: int(m.sum()))


def _pipeline(task: str, model: str) -> Any:
    try:
        return _transformers().pipeline(task, model=model)
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"segmenter hf:{model} cannot be loaded: {str(error).splitlines()[0]}") from error


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise MissingExtra("a Hugging Face segmenter", "hf", "transformers") from error
    return transformers


def _largest(found: Array) -> Array:
    from scipy.ndimage import binary_fill_holes, binary_opening, label

    parts, count = label(binary_opening(found))
    if not count:
        raise BadSource("the segmenter found no object")
    return np.asarray(binary_fill_holes(parts == 1 + np.bincount(parts.ravel())[1:].argmax()))
