"""ImageNet accuracy: top-1 and top-5 on labelled photographs, the proof that a model is loaded and preprocessed right.

Not a measure of shape or texture: the first number to look at when a bias looks odd. Each model sees the photographs
with the preprocessing of its own weights (resize, centre crop), unlike the cue-conflict images, which are not resized.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cuebench.labels import LabelSpace
from cuebench.metrics.accuracy import METRIC, terms
from cuebench.protocols.base import Protocol, View, by_engine
from cuebench.protocols.classes import CLASSES, with_classes
from cuebench.statistics.ratios import Terms
from cuebench.stimuli.readers import image_folder
from cuebench.tables.decide import RANK
from cuebench.tables.engine import Quantity
from cuebench.tables.trials import Trials
from cuebench.types import Citation, Headline, Reference, StimulusSet

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


def within(k: int) -> Callable[[Trials], Terms]:
    """Return what each photograph adds to the top-k accuracy."""
    return lambda trials: terms(trials.extra[RANK] <= k)


QUANTITIES = [Quantity(METRIC, within(k), f"top{k}", kinds=("images",)) for k in TOP]

_MANIFEST = "measured on 1,000 validation photographs, shorter side 256, centre crop 224"

PROTOCOL = Protocol(
    name=NAME,
    version=VERSION,
    title="Top-1 and top-5 accuracy on ImageNet photographs",
    needs=(("logits",),),
    read=read,
    views=(View("weights", lambda preprocess: preprocess),),
    score=by_engine(QUANTITIES, needs=(RANK,)),
    quantities=QUANTITIES,
    needed_columns=(RANK,),
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
