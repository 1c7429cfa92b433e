"""Object masks from a promptable Hugging Face model (Segment Anything): the object at a point, or in a box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.stimuli.masks.base import Segmenter
from cuebench.stimuli.masks.transformers import loaded, transformers_module

_FIRST_GENERATION = ("sam", "sam_hq")
"""Model types whose points are given as image × point × 2; later ones have objects in between."""


@dataclass(frozen=True)
class Sam:
    """A promptable model and its processor."""

    processor: Any
    network: Any

    def mask_at(self, image: Array, x: float, y: float) -> Array:
        """Return the best mask of the object at a point, bool H×W."""
        first = self.network.config.model_type in _FIRST_GENERATION
        return self._best(image, input_points=[[[x, y]]] if first else [[[[x, y]]]])

    def mask_in(self, image: Array, box: tuple[float, float, float, float]) -> Array:
        """Return the best mask of the object in a box (left, top, right, bottom), bool H×W."""
        return self._best(image, input_boxes=[[list(box)]])

    def _best(self, image: Array, **prompt: Any) -> Array:
        import torch

        inputs = self.processor(images=np.array(image), return_tensors="pt", **prompt)
        with torch.inference_mode():
            out = self.network(**inputs)
        sizes = [inputs[name] for name in ("original_sizes", "reshaped_input_sizes") if name in inputs]
        masks = self.processor.post_process_masks(out.pred_masks.cpu(), *sizes)[0]
        best = int(out.iou_scores.reshape(-1).argmax())
        return np.asarray(masks.reshape(-1, *image.shape[:2])[best]) > 0


def load_sam(model: str, scheme: str = "sam") -> Sam:
    """Load a promptable model.

    Parameters
    ----------
    model : str
        Name on the hub, or a folder with the weights.
    scheme : str
        How the user has named the segmenter, for messages.
    """
    transformers = transformers_module()
    return Sam(*loaded(f"{scheme}:{model}", model, transformers.AutoProcessor, transformers.AutoModelForMaskGeneration))


def promptable(model: str) -> Segmenter:
    """Return the segmenter of a promptable model: the best mask at the middle of the image, whatever the class is."""
    sam = load_sam(model)

    def segment(image: Array, label: str) -> Array:
        height, width = image.shape[:2]
        return sam.mask_at(image, width / 2, height / 2)

    return segment
