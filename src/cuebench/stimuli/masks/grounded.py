"""Object masks from the name of the class: a text-prompted detector finds the box, Segment Anything the mask in it.

This is Grounded SAM (Ren et al. 2024, arXiv:2401.14159), which Kim et al. 2026 segment their photographs with, put
together from two Hugging Face models: ``grounded:DETECTOR+SAM``, for example
``grounded:IDEA-Research/grounding-dino-tiny+facebook/sam-vit-base``. ``?threshold=0.3`` sets the least confidence.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.options import Option, parse
from cuebench.stimuli.masks.base import BadSource, Segmenter
from cuebench.stimuli.masks.sam import load_sam
from cuebench.stimuli.masks.transformers import loaded, transformers_module

OPTIONS = {"threshold": Option(0.3, "least confidence of the detector in its best box", low=0, high=1)}
FORM = "grounded:DETECTOR+SAM, e.g. grounded:IDEA-Research/grounding-dino-tiny+facebook/sam-vit-base"


class Detection(NamedTuple):
    """A box (left, top, right, bottom; in pixels) and the confidence that it holds the named object."""

    box: tuple[float, float, float, float]
    score: float


def grounded(text: str) -> Segmenter:
    """Return the segmenter that looks for the class by its name.

    Parameters
    ----------
    text : str
        ``DETECTOR+SAM``, both a name on the hub or a folder with weights, and ``?threshold=…`` if wanted.
    """
    models, _, options = text.partition("?")
    detector_name, _, sam_name = models.partition("+")
    if not detector_name or not sam_name:
        raise UserError(f"segmenter grounded:{text}: two models are needed", FORM)
    settings = dict(part.partition("=")[::2] for part in options.split("&") if part)
    threshold = parse(OPTIONS, settings, f"segmenter grounded:{models}")["threshold"]
    transformers = transformers_module()
    spec = f"grounded:{models}"
    processor, detector = loaded(
        spec, detector_name, transformers.AutoProcessor, transformers.AutoModelForZeroShotObjectDetection
    )
    sam = load_sam(sam_name, f"grounded:{detector_name}+")

    def segment(image: Array, label: str) -> Array:
        best = detect(processor, detector, image, prompt(label))
        if best is None or best.score < threshold:
            seen = f"the best box has confidence {best.score:.2f}" if best else "no box at all"
            raise BadSource(f"the detector found no {label.replace('_', ' ')!r}: {seen}, threshold {threshold:g}")
        return sam.mask_in(image, best.box)

    return segment


def prompt(label: str) -> str:
    """Return what the detector is asked for; Grounding DINO wants lower case and a full stop.

    >>> prompt("Soccer_ball")
    'a soccer ball.'
    """
    return f"a {label.replace('_', ' ').strip().lower()}."


def detect(processor: Any, detector: Any, image: Array, text: str) -> Detection | None:
    """Return the most confident box for a text, or None."""
    import torch

    by_tokens = not detector.config.model_type.startswith("owl")  # Grounding DINO; OWL takes lists of phrases
    inputs = processor(images=np.array(image), text=[text] if by_tokens else [[text]], return_tensors="pt")
    with torch.inference_mode():
        out = detector(**inputs)
    tokens = {"input_ids": inputs["input_ids"], "text_threshold": 0.0} if by_tokens else {}
    (detections,) = processor.post_process_grounded_object_detection(
        out, threshold=0.0, target_sizes=[image.shape[:2]], **tokens
    )
    if not len(detections["scores"]):
        return None
    best = int(detections["scores"].argmax())
    left, top, right, bottom = (float(v) for v in detections["boxes"][best])
    return Detection((left, top, right, bottom), float(detections["scores"][best]))
