"""Robustness to corruptions (Geirhos et al. 2018): contrast, high-pass, low-pass, noise, phase noise, level by level.

Made on the fly from labelled photographs, or from images with masks: a file is decoded once for all of its pictures,
and nothing but the answers is written to disk. Used by the cue-decomposition paper to see what predicts robustness.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cuebench.errors import UserError
from cuebench.labels import LabelSpace
from cuebench.metrics.quality import Quality
from cuebench.metrics.relative_robustness import by_type, mean_quality, over
from cuebench.observers.preprocess import Preprocess
from cuebench.protocols import correctness, imagenet_accuracy, masks
from cuebench.protocols.base import Protocol, Result, ScoreOptions, View
from cuebench.protocols.corruption_robustness.corruptions import CLEAN, CORRECTED, TYPES, Corruption, corruptions
from cuebench.protocols.cue_decomposition.scores import Measured
from cuebench.responses.table import Reduce, Responses
from cuebench.stimuli.decomposition.cue_list import ORIGINAL
from cuebench.stimuli.decomposition.folder import CLASSIFICATION, MANIFEST, SEGMENTATION, read_set
from cuebench.types import Citation, Reference, Score, StimulusSet

NAME, VERSION = "corruption_robustness", 1
SQUARE = "square?size=224&resize=256"


def read(data_root: Path) -> StimulusSet:
    """Read the originals of a cue decomposition below the data root, else ``imagenet_val``, and plan the corruptions.

    The originals of a decomposition go first, so that R_cd and robustness speak of the same images.
    """
    made = [name for name in (CLASSIFICATION, SEGMENTATION) if (data_root / name / MANIFEST).is_file()]
    if len(made) > 1:
        raise UserError(f"{data_root} holds {made[0]} and {made[1]}: which images?", "give each a data root of its own")
    before = ""
    if made:
        images = read_set(data_root / made[0], "")
        images = images.only([s for s in images if s.condition == ORIGINAL])
    else:
        images, before = imagenet_accuracy.read(data_root), SQUARE
    planned = corruptions(keep_colour=_segmentation(images))
    stimuli = tuple(c.stimulus(s, before) for s in images for c in planned)
    partial = tuple(p.replace("stimuli", "images") for p in images.partial)
    return replace(images, name=NAME, stimuli=stimuli, expected=images.expected * len(planned), partial=partial,
                   notes=())  # fmt: skip  # how cues were made is nothing to originals


def _segmentation(stimuli: StimulusSet) -> bool:
    return any(s.mask for s in stimuli)


def reduce(stimuli: StimulusSet, labels: LabelSpace | None) -> Reduce:
    """Keep the answered class of a photograph, or the confusion matrix of a mask."""
    return (masks.reduce if _segmentation(stimuli) else correctness.reduce)(stimuli, labels)


def check(labels: LabelSpace, stimuli: StimulusSet) -> list[str]:
    """Say which classes of the images an observer cannot answer."""
    return (masks.check if _segmentation(stimuli) else correctness.check)(labels, stimuli)


def score(responses: Sequence[Responses], options: ScoreOptions) -> Result:
    """Return the relative robustness: mean, by type, by level; and the qualities it is made of."""
    if not responses:
        raise UserError(f"no answers to score for {NAME}")
    return Result([row for one in responses for row in _rows(one, options)])


def _rows(responses: Responses, options: ScoreOptions) -> Iterator[Score]:
    segmentation = _segmentation(responses.stimuli)
    one = _measured(responses, options, segmentation)
    planned = {c.condition: c for c in corruptions(keep_colour=segmentation) if c.condition in one.qualities}
    if CLEAN not in one.qualities:
        raise UserError(f"{responses.observer} was shown no clean image", "run without --limit")
    clean = one.qualities[CLEAN]
    levels = {name: over(q, clean) for name, q in one.qualities.items() if name != CLEAN}
    yield from _summary(one, levels, planned)
    for name, found in levels.items():
        yield _row(one, name, "relative_robustness", found)
    metric = "mean_iou" if segmentation else "accuracy"
    for name, found in one.qualities.items():
        yield _row(one, name, metric, found)


def _measured(responses: Responses, options: ScoreOptions, segmentation: bool) -> Measured:
    if segmentation:
        (found, own), measure = masks.qualities(responses, options), "mIoU"
    else:
        conditions = list(dict.fromkeys(s.condition for s in responses.stimuli))
        (found, own), measure = correctness.qualities(responses, options, conditions), "accuracy"
    return Measured(responses, own, f"{measure} on {len(found.images):,} images")


def _summary(one: Measured, levels: Mapping[str, Quality], planned: Mapping[str, Corruption]) -> Iterator[Score]:
    """Yield the mean over types (with the published and with the corrected phase noise), then every type."""
    kinds: dict[str, list[Quality]] = {}
    for name, found in levels.items():
        kinds.setdefault(planned[name].kind, []).append(found)
    types = by_type(kinds)
    if set(TYPES) <= set(types):
        yield _row(one, "mean", "relative_robustness", mean_quality([types[t] for t in TYPES]))
    corrected = [t if t != "phase_noise" else CORRECTED for t in TYPES]
    if set(corrected) <= set(types):
        yield _row(one, "mean_corrected", "relative_robustness", mean_quality([types[t] for t in corrected]))
    for name, found in types.items():
        yield _row(one, name, "relative_robustness", found)


def _row(one: Measured, condition: str, metric: str, found: Quality) -> Score:
    boot = found.interval()
    stimuli = one.responses.stimuli
    total = sum(_counts(s.condition, condition) for s in stimuli)
    return Score(NAME, VERSION, one.name, condition, metric, found.value, boot.interval.low, boot.interval.high,
                 boot.interval.kind, found.n, total - found.n, one.note(boot.note))  # fmt: skip


def _counts(own: str, condition: str) -> bool:
    """Tell whether a picture belongs to what a row speaks of."""
    kind = own.partition("/")[0]
    if condition == "mean":
        return kind in TYPES
    if condition == "mean_corrected":
        return kind == CORRECTED or (kind in TYPES and kind != "phase_noise")
    return condition in {own, kind}


_TABLE = "Heinert et al. 2025, Table VIII; 1,200 images of 16 classes"

PROTOCOL = Protocol(
    name=NAME,
    version=VERSION,
    title="Relative robustness to contrast, high-pass, low-pass, noise and phase noise",
    needs=(("masks",), ("logits",), ("decisions",)),
    read=read,
    views=(View("native", Preprocess.whole_image),),
    score=score,
    check=check,
    reduce=reduce,
    metrics=("relative_robustness", "accuracy", "mean_iou"),
    reference=(
        Reference("ResNet101", "relative_robustness", "contrast", 0.826, _TABLE),
        Reference("ResNet101", "relative_robustness", "high_pass", 0.532, _TABLE),
        Reference("ResNet101", "relative_robustness", "low_pass", 0.616, _TABLE),
        Reference("ResNet101", "relative_robustness", "uniform_noise", 0.877, _TABLE),
        Reference("ResNet101", "relative_robustness", "phase_noise", 0.475, _TABLE),
        Reference("ResNet101", "relative_robustness", "mean", 0.665, _TABLE),
    ),
    citation=Citation(
        text="Geirhos, Medina Temme, Rauber, Schütt, Bethge & Wichmann (2018). Generalisation in humans and deep "
        "neural networks. NeurIPS.",
        bibtex="""@inproceedings{geirhos2018generalisation,
  title     = {Generalisation in humans and deep neural networks},
  author    = {Robert Geirhos and Carlos R. Medina Temme and Jonas Rauber and Heiko H. Sch{\\"u}tt and
               Matthias Bethge and Felix A. Wichmann},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2018}
}""",
        url="https://arxiv.org/abs/1808.08750",
        licence="the photographs' own: ImageNet terms of access, research use",
    ),
)
