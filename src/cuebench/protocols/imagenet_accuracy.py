"""ImageNet accuracy: top-1 and top-5 on labelled photographs, the proof that a model is loaded and preprocessed right.

Not a measure of shape or texture: the first number to look at when a bias looks odd. Each model sees the photographs
with the preprocessing of its own weights (resize, centre crop), unlike the cue-conflict images, which are not resized.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.labels import LabelSpace
from cuebench.metrics.accuracy import rank, terms
from cuebench.protocols.base import ByObserver, Protocol, Result, ScoreOptions, View, joined
from cuebench.protocols.classes import CLASSES, with_classes
from cuebench.protocols.trials import Asked, TrialRows, TrialTable, top_answers
from cuebench.responses.table import Reduce, Responses
from cuebench.statistics.clustered import Sums
from cuebench.statistics.estimates import ratio_estimates
from cuebench.statistics.intervals import Clusters
from cuebench.stimuli.readers import image_folder
from cuebench.types import Citation, Headline, Reference, Stimulus, StimulusSet

NAME, VERSION = "imagenet_accuracy", 2
FOLDER = "imagenet_val"
EXPECTED = 50_000
TOP = (1, 5)


def read(data_root: Path) -> StimulusSet:
    """Read ``data_root/imagenet_val`` (a folder for each class, or ``labels.csv``)."""
    return image_folder.read(data_root / FOLDER, expected=EXPECTED)


def check(labels: LabelSpace, stimuli: StimulusSet) -> list[str]:
    """Say which labels of the photographs are no class of the observer."""
    missing = [s.label for s in stimuli if labels.find(s.label) is None]
    if not missing:
        return []
    names = sorted(set(missing))
    return [f"{len(names):,} labels are not in it ({', '.join(names[:3])} …; {len(missing):,} stimuli)"]


def condense(stimuli: StimulusSet, labels: LabelSpace | None) -> Reduce:
    """Keep of the logits the rank of the right class."""

    def ranked(columns: Mapping[str, Array], shown: Sequence[Stimulus]) -> dict[str, Array]:
        if labels is None:
            return dict(columns)
        target = np.array([labels.find(s.label) for s in shown], dtype=np.intp)
        return {"rank": rank(columns["logits"], target).astype(np.int32)}

    return ranked


def measure(answers: Responses, options: ScoreOptions) -> Result:
    """Return top-1 and top-5 of one observer with an interval over images."""
    if answers.labels is None:
        raise UserError(f"{answers.observer} has no label space")
    result = Result()
    images = answers.clusters("id")
    hits = [terms(answers.columns["rank"] <= k) for k in TOP]
    estimates = ratio_estimates(hits, Clusters(images, images, images), ("images",))
    for k, estimate in zip(TOP, estimates):
        excluded = {"unreadable": len(answers.stimuli) - estimate.n}
        result.add(answers, f"top{k}", "accuracy", estimate.excluding(excluded))
    return result


def trial_rows(responses: Responses, options: ScoreOptions) -> list[TrialRows]:
    """Return the first answer to each photograph, and the rank of the right class."""
    ranks = responses.condensed(condense(responses.stimuli, responses.labels)).columns["rank"]
    columns = {"decision": top_answers(responses), "correct": ranks <= 1, "rank": ranks}
    return [TrialRows("top1", np.arange(len(responses)), columns)]


def contributions(answers: Responses, asked: Asked) -> Sums | None:
    """Return the accuracy as a ratio of sums over photographs."""
    within = {f"top{k}": k for k in TOP}.get(asked.condition)
    return None if within is None else Sums.of_ratio(terms(answers.columns["rank"] <= within), answers.truth("id"))


score = ByObserver(measure, joined, condense)


_MANIFEST = "measured on 1,000 validation photographs, shorter side 256, centre crop 224"

PROTOCOL = Protocol(
    name=NAME,
    version=VERSION,
    title="Top-1 and top-5 accuracy on ImageNet photographs",
    needs=(("logits",),),
    read=read,
    views=(View("weights", lambda preprocess: preprocess),),
    score=score,
    trials=TrialTable(trial_rows),
    contributions=contributions,
    check=check,
    options=CLASSES,
    configure=with_classes,
    metrics=("accuracy",),
    headline=Headline("accuracy", ("top1",), direction="correct"),
    reference=(
        Reference("SqueezeNet 1.1", "accuracy", "top1", 0.553, _MANIFEST),
        Reference("MobileNetV2", "accuracy", "top1", 0.689, _MANIFEST),
        Reference("EfficientNet-Lite0", "accuracy", "top1", 0.735, _MANIFEST),
    ),
    citation=Citation(
        text="Russakovsky et al. (2015). ImageNet Large Scale Visual Recognition Challenge. IJCV 115.",
        bibtex="""@article{russakovsky2015imagenet,
  title   = {{ImageNet} Large Scale Visual Recognition Challenge},
  author  = {Olga Russakovsky and Jia Deng and Hao Su and others},
  journal = {International Journal of Computer Vision},
  volume  = {115},
  year    = {2015}
}""",
        url="https://www.image-net.org",
        licence="ImageNet terms of access, research use",
    ),
)
