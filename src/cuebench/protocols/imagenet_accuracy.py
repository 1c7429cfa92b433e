"""ImageNet accuracy: top-1 and top-5 on labelled photographs, the proof that a model is loaded and preprocessed right.

Not a measure of shape or texture: the first number to look at when a bias looks odd. Each model sees the photographs
with the preprocessing of its own weights (resize, centre crop), unlike the cue-conflict images, which are not resized.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cuebench.errors import UserError
from cuebench.labels import LabelSpace
from cuebench.metrics import accuracy
from cuebench.metrics.intervals import Clusters, ratio_intervals
from cuebench.protocols.base import Protocol, Result, ScoreOptions, View, partial_notes
from cuebench.responses.table import Responses
from cuebench.stimuli.readers import image_folder
from cuebench.types import Citation, Reference, Score, StimulusSet

NAME, VERSION = "imagenet_accuracy", 1
FOLDER = "imagenet_val"
EXPECTED = 50_000


def read(data_root: Path) -> StimulusSet:
    """Read ``data_root/imagenet_val`` (a folder for each class, or ``labels.csv``)."""
    return image_folder.read(data_root / FOLDER, expected=EXPECTED)


def check(labels: LabelSpace, stimuli: StimulusSet) -> list[str]:
    """Say which labels of the photographs are no class of the observer."""
    missing = [s.label for s in stimuli if labels.find(s.label) is None]
    names = sorted(set(missing))
    return (
        [f"{len(names):,} labels are not in it ({', '.join(names[:3])} …; {len(missing):,} stimuli)"] if names else []
    )


def score(responses: Sequence[Responses], options: ScoreOptions) -> Result:
    """Return top-1 and top-5 of every observer with an interval over images."""
    return Result([row for r in responses for row in _rows(r, options)])


def _rows(responses: Responses, options: ScoreOptions) -> list[Score]:
    if responses.labels is None:
        raise UserError(f"{responses.observer} has no label space")
    target = np.array([responses.labels.find(label) for label in responses.truth("label")], dtype=np.intp)
    ranks = accuracy.rank(responses.columns["logits"], target)
    ids = responses.truth("id")
    terms = [accuracy.terms(ranks, k) for k in (1, 5)]
    found = ratio_intervals(terms, Clusters(ids, ids, ids), "images", seed=options.seed, resamples=options.resamples)
    total = len(responses.stimuli)
    partial = partial_notes(responses.stimuli.partial)
    note = "; ".join([f"{len(responses.excluded):,} unreadable of {total:,}", *partial, *responses.notes])
    return [
        Score(
            NAME,
            VERSION,
            responses.observer,
            f"top{k}",
            "accuracy",
            accuracy.count(ranks, k).value,
            boot.interval.low,
            boot.interval.high,
            boot.interval.kind,
            len(ranks),
            total - len(ranks),
            "; ".join(filter(None, [note, boot.note])),
        )
        for k, boot in zip((1, 5), found)
    ]


_MANIFEST = "measured on 1,000 validation photographs, shorter side 256, centre crop 224"

PROTOCOL = Protocol(
    name=NAME,
    version=VERSION,
    title="Top-1 and top-5 accuracy on ImageNet photographs",
    needs=(("logits",),),
    read=read,
    views=(View("weights", lambda own: own),),
    score=score,
    check=check,
    metrics=("accuracy",),
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
