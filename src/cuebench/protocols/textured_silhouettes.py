"""Textured silhouettes, classified: cue conflict on the pictures of experiment 1 of the developmental triplets.

Footnote 3 of Tartaglini et al. 2022: the same pictures, whose background fades to white, shown to classifiers and
decided as in cue conflict: the class of the shape, the class of the texture, or neither among 16. Beside ``triplets``
it shows what the procedure changes and what the stimuli do.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cuebench.labels import label_map
from cuebench.observers.preprocess import Preprocess
from cuebench.protocols import cue_conflict
from cuebench.protocols.base import Protocol, View, by_engine
from cuebench.protocols.classes import CLASSES, with_classes
from cuebench.protocols.cue_conflict import RATIOS
from cuebench.protocols.triplets import PROTOCOL as TRIPLETS
from cuebench.protocols.triplets.stimuli import ALPHAS, EXPERIMENTS, textured_silhouettes
from cuebench.statistics.intervals import KINDS
from cuebench.tables.engine import first_space
from cuebench.types import Axis, Headline, StimulusSet

NAME, VERSION = "textured_silhouettes", 2
CONDITIONS = tuple(f"alpha={alpha:.1f}" for alpha in ALPHAS)


def read(data_root: Path) -> StimulusSet:
    """Plan every picture of every image in conflict, from ``cue_conflict/stimuli`` and ``cue_conflict/silhouettes``."""
    root = Path(data_root)
    pictures = textured_silhouettes(root, EXPERIMENTS["1"])
    targets = cue_conflict.read(root).targets
    return replace(_renamed(pictures), name=NAME, targets=targets)


def _renamed(pictures: StimulusSet) -> StimulusSet:
    """Name pictures ``cat1-dog2|alpha=0.4``: those of one image stay together."""
    stimuli = []
    for s in pictures:
        condition = s.condition.partition("/")[2]
        stimuli.append(replace(s, id=f"{s.id.partition('/')[0]}|{condition}", condition=condition))
    return replace(pictures, stimuli=tuple(stimuli))


QUANTITIES = [q._replace(condition="{condition}", about=first_space, kinds=KINDS) for q in RATIOS]

PROTOCOL = Protocol(
    name=NAME,
    version=VERSION,
    title="Textured silhouettes: cue conflict with a background that fades out",
    needs=(("logits",), ("decisions",)),
    read=read,
    views=(View("native", Preprocess.whole_image),),
    score=by_engine(QUANTITIES),
    quantities=QUANTITIES,
    check=cue_conflict.check,
    targets=label_map(cue_conflict.TARGETS).names,
    metrics=tuple(q.metric.name for q in RATIOS),
    options=CLASSES,
    configure=with_classes,
    headline=Headline(
        metric="shape_bias",
        conditions=("alpha=1.0", "alpha=*"),
        direction="shape",
        neutral=0.5,
        plane=(Axis("shape_accuracy", ("alpha=1.0", "alpha=*")), Axis("texture_accuracy", ("alpha=1.0", "alpha=*"))),
    ),
    citation=TRIPLETS.citation,
)
