"""Robustness to corruptions (Geirhos et al. 2018): contrast, high-pass, low-pass, noise, phase noise, level by level.

Made on the fly from labelled photographs, or from images with masks: a file is decoded once for all of its pictures,
and nothing but the answers is written to disk. Used by the cue-decomposition paper to see what predicts robustness.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.labels import LabelSpace
from cuebench.metrics.relative_robustness import METRIC, relative_robustness
from cuebench.observers.preprocess import Preprocess
from cuebench.options import Option
from cuebench.protocols import correctness, imagenet_accuracy, masks
from cuebench.protocols.base import ByObserver, Protocol, ScoreOptions, View, joined
from cuebench.protocols.classes import CLASSES, with_classes
from cuebench.protocols.correctness import Qualities, Table
from cuebench.protocols.corruption_robustness.corruptions import ADDED, CLEAN, CORRECTED, LEVELS, TYPES, corruptions
from cuebench.protocols.trials import Asked, TrialRows, TrialTable
from cuebench.responses.table import Reduce, Responses
from cuebench.statistics.clustered import Sums
from cuebench.statistics.estimates import derived
from cuebench.statistics.sums import mean_estimate
from cuebench.stimuli.decomposition.cue_list import ORIGINAL
from cuebench.stimuli.decomposition.folder import CLASSIFICATION, MANIFEST, SEGMENTATION, read_set
from cuebench.tables.engine import Result
from cuebench.types import Citation, Estimate, Headline, Reference, StimulusSet

NAME, VERSION = "corruption_robustness", 3
DEFAULT = "geirhos2018"
OPTIONS: Mapping[str, Option] = {
    "levels": Option(
        DEFAULT,
        "levels of Geirhos et al. 2018, or these and the two that Fig. 3 of the cue-decomposition paper shows besides "
        "(contrast .2, low-pass σ 8)",
        choices=tuple(LEVELS),
    ),
    **masks.KEEP,
    "also": Option((), "further corruptions, beside the published ones and not in the mean", choices=tuple(ADDED)),
    **CLASSES,
}
MEANS: Mapping[str, Sequence[str]] = {
    "mean": tuple(TYPES),
    "mean_corrected": tuple(CORRECTED if kind == "phase_noise" else kind for kind in TYPES),
}
"""Mean over types of corruption → the types."""
SQUARE = "square?size=224&resize=256"
"""Recipe that cuts photographs to the usual centre square."""


def configure(protocol: Protocol, values: Mapping[str, Any]) -> Protocol:
    """Return the protocol with the chosen list of levels and the chosen classes."""
    chosen = replace(protocol, read=partial(read, levels=values["levels"], also=values["also"]))
    return masks.keeping(with_classes(chosen, values), values)


def read(data_root: Path, levels: str = DEFAULT, also: Sequence[str] = ()) -> StimulusSet:
    """Read the originals of a cue decomposition below the data root, else ``imagenet_val``, and plan the corruptions.

    The originals of a decomposition go first, so that R_cd and robustness speak of the same images.

    Parameters
    ----------
    data_root : Path
        Holds the images.
    levels : str
        Name of a list of levels.
    also : sequence of str
        Further corruptions.
    """
    sets = [name for name in (CLASSIFICATION, SEGMENTATION) if (data_root / name / MANIFEST).is_file()]
    if len(sets) > 1:
        raise UserError(
            f"{data_root} holds {sets[0]} and {sets[1]}: which images?", "move one of them to another data root"
        )
    if sets:
        images, before = read_set(data_root / sets[0], ""), ""
        images = images.only([s for s in images if s.condition == ORIGINAL])
    else:
        images, before = imagenet_accuracy.read(data_root), SQUARE
    planned = corruptions(keep_colour=_segmentation(images), levels=levels, also=also)
    stimuli = tuple(c.stimulus(s, before) for s in images for c in planned)
    missing = tuple(p.replace("stimuli", "images") for p in images.partial)
    # The notes say how the cues were made, which does not concern the originals.
    notes = () if levels == DEFAULT else (f"levels {levels}",)
    return replace(
        images, name=NAME, stimuli=stimuli, expected=images.expected * len(planned), partial=missing, notes=notes
    )


def _segmentation(stimuli: StimulusSet) -> bool:
    return any(s.mask for s in stimuli)


def reduce(stimuli: StimulusSet, labels: LabelSpace | None, keep: int | str = 0) -> Reduce:
    """Keep the answered class of a photograph, or the confusion matrix of a mask (and some of the masks)."""
    return masks.reduce(stimuli, labels, keep) if _segmentation(stimuli) else correctness.reduce(stimuli, labels)


def check(labels: LabelSpace, stimuli: StimulusSet) -> list[str]:
    """Say which classes of the images an observer cannot answer."""
    return (masks.check if _segmentation(stimuli) else correctness.check)(labels, stimuli)


def measure(responses: Responses, options: ScoreOptions) -> Result:
    """Return the relative robustness of one observer: mean, by type, by level; and the qualities it is made of."""
    result = Result()
    _add_observer(result, _qualities(responses, options))
    return result


def trial_rows(responses: Responses, options: ScoreOptions) -> list[TrialRows]:
    """Return the answer to each picture, or the mean IoU of its mask."""
    return (masks if _segmentation(responses.stimuli) else correctness).trial_rows(responses, options)


def contributions(responses: Responses, asked: Asked) -> Sums | None:
    """Return the mean relative robustness as a function of sums over images."""
    pictures = _pictures(responses)
    levels = _levels(pictures.conditions)
    kinds = MEANS.get(asked.condition, ())
    if not kinds or CLEAN not in pictures.conditions or not set(kinds) <= set(levels):
        return None
    conditions = [CLEAN, *(c for kind in kinds for c in levels[kind])]

    def robustness(qualities: Sequence[Array]) -> Array:
        of = dict(zip(conditions, qualities))
        by_kind = [relative_robustness([of[c] for c in levels[kind]], of[CLEAN]) for kind in kinds]
        return np.asarray(np.mean(by_kind, axis=0))

    return correctness.quality_sums(pictures, conditions, robustness, of_areas=_segmentation(responses.stimuli))


score = ByObserver(measure, joined)


def _pictures(responses: Responses) -> Table:
    conditions = list(dict.fromkeys(s.condition for s in responses.stimuli))
    segmentation = _segmentation(responses.stimuli)
    values = masks.areas(responses) if segmentation else correctness.correct_answers(responses)
    return correctness.table(responses, values, conditions)


def _qualities(responses: Responses, options: ScoreOptions) -> Qualities:
    pictures = _pictures(responses)
    if _segmentation(responses.stimuli):
        return Qualities(responses, masks.mean_ious(pictures), f"mIoU on {len(pictures.images):,} images")
    accuracies = correctness.accuracies(pictures)
    return Qualities(responses, accuracies, f"accuracy on {len(pictures.images):,} images")


def _levels(conditions: Iterable[str]) -> dict[str, list[str]]:
    """Return type of corruption → its conditions."""
    levels: dict[str, list[str]] = {}
    for condition in conditions:
        if condition != CLEAN:
            levels.setdefault(condition.partition("/")[0], []).append(condition)
    return levels


def _add_observer(result: Result, observer: Qualities) -> None:
    """Add the mean over types (with the published and with the corrected phase noise), types, levels and qualities."""
    qualities = observer.by_condition
    if CLEAN not in qualities:
        raise UserError(f"{observer.responses.observer} was shown no clean image", "run without --limit")
    levels = _levels(qualities)
    by_type = {kind: _relative(observer, conditions) for kind, conditions in levels.items()}
    for name, kinds in MEANS.items():
        if set(kinds) <= set(by_type):
            mean = mean_estimate([by_type[kind] for kind in kinds], METRIC.bounds)
            observer.add(result, name, "relative_robustness", mean, [c for kind in kinds for c in levels[kind]])
    for kind, estimate in by_type.items():
        observer.add(result, kind, "relative_robustness", estimate, levels[kind])
    for condition in (c for c in qualities if c != CLEAN):
        observer.add(result, condition, "relative_robustness", _relative(observer, [condition]), [condition])
    metric = "mean_iou" if _segmentation(observer.responses.stimuli) else "accuracy"
    for condition, estimate in qualities.items():
        observer.add(result, condition, metric, estimate, [condition])


def _relative(observer: Qualities, conditions: Sequence[str]) -> Estimate:
    """Return the relative robustness over some levels."""
    levels = [observer.by_condition[c] for c in conditions]
    return derived(
        lambda clean, *corrupted: relative_robustness(corrupted, clean),
        observer.by_condition[CLEAN],
        *levels,
        n=sum(level.n for level in levels),
        bounds=METRIC.bounds,
    )


_TABLE = "Heinert et al. 2025, Table VIII; 1,200 images of 16 classes"

PROTOCOL = Protocol(
    name=NAME,
    version=VERSION,
    title="Relative robustness to contrast, high-pass, low-pass, noise and phase noise",
    needs=(("masks",), ("logits",), ("decisions",)),
    read=read,
    views=(View("native", Preprocess.whole_image),),
    score=score,
    trials=TrialTable(trial_rows, value="of masks: mean IoU of the image"),
    contributions=contributions,
    check=check,
    reduce=reduce,
    metrics=("relative_robustness", "accuracy", "mean_iou"),
    options=OPTIONS,
    configure=configure,
    headline=Headline("relative_robustness", ("mean", "mean_corrected"), direction="correct"),
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
