"""Cue decomposition for semantic segmentation (Heinert et al. 2025): mIoU without texture, without shape, on originals.

The set is made from images with masks by ``cuebench make cue_decomposition``; masks move with the pixels of a shuffle.
Of every picture the confusion matrix is stored, never the logits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cuebench.errors import UserError
from cuebench.labels import label_map
from cuebench.metrics.cue_decomposition import METRICS
from cuebench.observers.preprocess import Preprocess
from cuebench.protocols import masks
from cuebench.protocols.base import Protocol, Result, ScoreOptions, View
from cuebench.protocols.correctness import Qualities, table
from cuebench.protocols.cue_decomposition import CITATION
from cuebench.protocols.cue_decomposition.scores import HEADLINE, OPTIONS, add_decomposition, configured, correlations
from cuebench.responses.table import Responses
from cuebench.stimuli.decomposition.folder import SEGMENTATION, read_set
from cuebench.types import Reference, StimulusSet

NAME, VERSION = SEGMENTATION, 1
MAKE = "make it: cuebench make cue_decomposition --source IMAGES_AND_MASKS --out DATA_ROOT"


def read(data_root: Path) -> StimulusSet:
    """Read ``data_root/cue_decomposition_segmentation``, as ``cuebench make cue_decomposition`` wrote it."""
    return read_set(data_root / NAME, MAKE)


def score(responses: Sequence[Responses], options: ScoreOptions) -> Result:
    """Return mIoU on originals and cues, S_cd and R_cd of every observer, and the IoU of every class."""
    if not responses:
        raise UserError(f"no answers to score for {NAME}")
    tables = [table(r, masks.areas(r), list(dict.fromkeys(s.condition for s in r.stimuli))) for r in responses]
    observers = [
        Qualities(r, masks.mean_ious(areas, options), f"mIoU on {len(areas.images):,} images")
        for r, areas in zip(responses, tables)
    ]
    result = Result()
    add_decomposition(result, observers, responses[0].stimuli.name, options.values)
    result.tables["correlations"] = correlations(result, options)
    for observer, areas in zip(observers, tables):
        classes = label_map(observer.responses.stimuli.targets).names
        for condition in areas.conditions:
            for name, iou in zip(classes, masks.class_ious(areas, condition, options)):
                absent = "" if iou.value == iou.value else "the class occurs in neither truth nor answers"
                observer.add(result, f"{condition}/{name}", "mean_iou", iou, {condition}, "IoU of one class", absent)
    return result


_TABLE = "Heinert et al. 2025, Table III"


def configure(values: Mapping[str, Any]) -> Protocol:
    """Return the protocol; options that cannot be used fail here, before anything is spent."""
    return configured(PROTOCOL, values)


PROTOCOL = Protocol(
    name=NAME,
    version=VERSION,
    title="Cue decomposition for semantic segmentation",
    needs=(("masks",),),
    read=read,
    views=(View("native", Preprocess.whole_image),),
    score=score,
    check=masks.check,
    reduce=masks.reduce,
    options=OPTIONS,
    configure=configure,
    metrics=(*(m.name for m in METRICS), "mean_iou"),
    headline=HEADLINE,
    reference=(
        Reference("SegFormer MiT-b4", "quality_original", "original", 0.819, f"{_TABLE}, Cityscapes"),
        Reference("SegFormer MiT-b4", "quality_shape", "eed", 0.392, f"{_TABLE}, Cityscapes"),
        Reference("SegFormer MiT-b4", "quality_texture", "voronoi", 0.400, f"{_TABLE}, Cityscapes"),
        Reference("SegFormer MiT-b4", "shape_bias_cd", "eed+voronoi H=heinert2025", 0.579, f"{_TABLE}, Cityscapes"),
        Reference("SegFormer MiT-b4", "robustness_cd", "eed+voronoi", 0.483, f"{_TABLE}, Cityscapes"),
    ),
    citation=CITATION,
)
