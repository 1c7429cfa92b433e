"""Cue decomposition for semantic segmentation (Heinert et al. 2025): mIoU without texture, without shape, on originals.

The set is made from images with masks by ``cuebench make cue_decomposition``; masks move with the pixels of a shuffle.
Of every picture the confusion matrix is stored, never the logits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cuebench.errors import UserError
from cuebench.labels import label_map
from cuebench.metrics.quality import class_ious
from cuebench.observers.preprocess import Preprocess
from cuebench.protocols import masks
from cuebench.protocols.base import Protocol, Result, ScoreOptions, View
from cuebench.protocols.correctness import Table
from cuebench.protocols.cue_decomposition import CITATION, correlations
from cuebench.protocols.cue_decomposition.scores import OPTIONS, Decomposition, Measured, checked
from cuebench.responses.table import Responses
from cuebench.stimuli.decomposition.folder import SEGMENTATION, read_set
from cuebench.types import Reference, Score, StimulusSet

NAME, VERSION = SEGMENTATION, 1
MAKE = "make it: cuebench make cue_decomposition --source IMAGES_AND_MASKS --out DATA_ROOT"


def read(data_root: Path) -> StimulusSet:
    """Read ``data_root/cue_decomposition_segmentation``, as ``cuebench make cue_decomposition`` wrote it."""
    return read_set(data_root / NAME, MAKE)


def score(responses: Sequence[Responses], options: ScoreOptions) -> Result:
    """Return mIoU on originals and cues, S_cd and R_cd of every observer, and the IoU of every class."""
    if not responses:
        raise UserError(f"no answers to score for {NAME}")
    found = [masks.qualities(r, options) for r in responses]
    tables = [table for table, _ in found]
    measured = [Measured(r, own, f"mIoU on {len(t.images):,} images") for r, (t, own) in zip(responses, found)]
    whole = Decomposition(NAME, VERSION, responses[0].stimuli.name, measured, options)
    rows = whole.rows()
    summary = correlations(rows, options)
    rows += [row for one, t in zip(measured, tables) for row in _class_rows(one, t, options)]
    return Result(rows, {"population": whole.population_table(), "correlations": summary})


def _class_rows(one: Measured, found: Table, options: ScoreOptions) -> Iterator[Score]:
    """Yield the IoU of every class in every condition, over all images."""
    names = label_map(one.responses.stimuli.targets).names
    for i, condition in enumerate(found.conditions):
        shown = found.shown[:, i]
        own = class_ious(found.values[:, i], shown, seed=options.seed, resamples=options.resamples)
        total = sum(s.condition == condition for s in one.responses.stimuli)
        for label, quality in zip(names, own):
            boot = quality.interval()
            absent = "" if quality.value == quality.value else "the class occurs in neither truth nor answers"
            yield Score(NAME, VERSION, one.name, f"{condition}/{label}", "mean_iou", quality.value,
                        boot.interval.low, boot.interval.high, boot.interval.kind, quality.n, total - quality.n,
                        one.note("IoU of one class", absent, boot.note))  # fmt: skip


_TABLE = "Heinert et al. 2025, Table III"


def configure(settings: Mapping[str, str]) -> Protocol:
    """Return the protocol; wrong settings fail here, before anything is spent."""
    return checked(PROTOCOL, settings)


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
    metrics=("quality_original", "quality_shape", "quality_texture", "shape_bias_cd", "robustness_cd", "mean_iou"),
    reference=(
        Reference("SegFormer MiT-b4", "quality_original", "original", 0.819, f"{_TABLE}, Cityscapes"),
        Reference("SegFormer MiT-b4", "quality_shape", "eed", 0.392, f"{_TABLE}, Cityscapes"),
        Reference("SegFormer MiT-b4", "quality_texture", "voronoi", 0.400, f"{_TABLE}, Cityscapes"),
        Reference("SegFormer MiT-b4", "shape_bias_cd", "eed+voronoi H=heinert2025", 0.579, f"{_TABLE}, Cityscapes"),
        Reference("SegFormer MiT-b4", "robustness_cd", "eed+voronoi", 0.483, f"{_TABLE}, Cityscapes"),
    ),
    citation=CITATION,
)
