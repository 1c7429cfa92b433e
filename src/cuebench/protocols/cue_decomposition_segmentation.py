"""Cue decomposition for semantic segmentation (Heinert et al. 2025): mIoU without texture, without shape, on originals.

The set is made from images with masks by ``cuebench make cue_decomposition``; masks move with the pixels of a shuffle.
Of every picture the confusion matrix is stored, never the logits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cuebench.errors import UserError
from cuebench.labels import label_map
from cuebench.metrics.cue_decomposition import METRICS
from cuebench.observers.preprocess import Preprocess
from cuebench.protocols import masks
from cuebench.protocols.base import ByObserver, Protocol, ScoreOptions, View
from cuebench.protocols.classes import OF_MASKS
from cuebench.protocols.correctness import Qualities, Table, table
from cuebench.protocols.cue_decomposition import CITATION
from cuebench.protocols.cue_decomposition.scores import (
    HEADLINE,
    OPTIONS,
    add_decomposition,
    configured,
    correlations,
    needed,
)
from cuebench.protocols.cue_decomposition.scores import contributions as sums_of
from cuebench.protocols.trials import Asked, TrialTable
from cuebench.responses.table import Responses
from cuebench.statistics.clustered import Sums
from cuebench.stimuli.decomposition.folder import SEGMENTATION, read_set
from cuebench.tables.engine import Result
from cuebench.types import Reference, StimulusSet

NAME, VERSION = SEGMENTATION, 3
ENOUGH = 50
"""Images from which on the interval of a mean IoU held the truth in 93 to 97 % of studies (docs/intervals.md)."""
MAKE = "make it: cuebench make cue_decomposition --source IMAGES_AND_MASKS --out DATA_ROOT"


def read(data_root: Path) -> StimulusSet:
    """Read ``data_root/cue_decomposition_segmentation``, as ``cuebench make cue_decomposition`` wrote it."""
    return read_set(data_root / NAME, MAKE)


def configure(protocol: Protocol, values: Mapping[str, Any]) -> Protocol:
    """Return the protocol with the chosen population, and with the masks that are to be kept."""
    return masks.keeping(configured(protocol, values), values)


class Measured(NamedTuple):
    """What is kept of one observer: its mIoU by condition, and the IoU of every class."""

    qualities: Qualities
    classes: Result


def measure(responses: Responses, options: ScoreOptions) -> Measured:
    """Measure the mIoU of one observer in every condition, and the IoU of every class."""
    areas = _areas(responses)
    observer = qualities(responses, areas)
    classes = Result()
    names = label_map(responses.stimuli.targets).names
    for condition in areas.conditions:
        for name, iou in zip(names, masks.class_ious(areas, condition)):
            absent = "" if iou.value == iou.value else "the class occurs in neither truth nor answers"
            observer.add(classes, f"{condition}/{name}", "mean_iou", iou, {condition}, "IoU of one class", absent)
    return Measured(observer, classes)


def qualities(responses: Responses, areas: Table | None = None) -> Qualities:
    """Return the mIoU of one observer in every condition that S_cd and R_cd are made from."""
    areas = _areas(responses) if areas is None else areas
    number = len(areas.images)
    few = f"; fewer than {ENOUGH} images: no 95 % interval" if number < ENOUGH else ""
    return Qualities(responses, needed(masks.mean_ious(areas)), f"mIoU on {number:,} images{few}")


def _areas(responses: Responses) -> Table:
    return table(responses, masks.areas(responses), list(dict.fromkeys(s.condition for s in responses.stimuli)))


def contributions(responses: Responses, asked: Asked) -> Sums | None:
    """Return S_cd as a function of sums over images."""
    return sums_of(_areas(responses), asked, of_areas=True)


def together(everyone: Sequence[Measured], options: ScoreOptions) -> Result:
    """Return mIoU on originals and cues, S_cd and R_cd of every observer, and the IoU of every class."""
    if not everyone:
        raise UserError(f"no answers to score for {NAME}")
    result = Result()
    observers = [m.qualities for m in everyone]
    add_decomposition(result, observers, observers[0].responses.stimuli.name, options.values)
    result.tables["correlations"] = correlations(result, options)
    for measured in everyone:
        result.extend(measured.classes)
    return result


score = ByObserver(measure, together)


_TABLE = "Heinert et al. 2025, Table III"


PROTOCOL = Protocol(
    name=NAME,
    version=VERSION,
    title="Cue decomposition for semantic segmentation",
    needs=(("masks",),),
    read=read,
    views=(View("native", Preprocess.whole_image),),
    score=score,
    trials=TrialTable(masks.trial_rows, value="mean IoU of the image"),
    contributions=contributions,
    check=masks.check,
    reduce=masks.reduce,
    options={**OPTIONS, **masks.KEEP},
    without={"classes": OF_MASKS},
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
