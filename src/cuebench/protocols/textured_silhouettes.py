"""Textured silhouettes, classified: cue conflict on the pictures of experiment 1 of the developmental triplets.

Footnote 3 of Tartaglini et al. 2022: the same pictures, whose background fades to white, shown to classifiers and
decided as in cue conflict: the class of the shape, the class of the texture, or neither among 16. Beside ``triplets``
it shows what the procedure changes and what the stimuli do.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from cuebench.arrays import Array
from cuebench.labels import label_map
from cuebench.labels.decisions import Codes, decided, named
from cuebench.metrics.cue_conflict import (
    Outcomes,
    decided_fraction,
    outcomes,
    shape_accuracy,
    shape_bias,
    texture_accuracy,
)
from cuebench.observers.preprocess import Preprocess
from cuebench.protocols import cue_conflict
from cuebench.protocols.base import ByObserver, Protocol, Result, ScoreOptions, View, joined
from cuebench.protocols.classes import CLASSES, with_classes
from cuebench.protocols.trials import Asked, TrialRows, TrialTable, class_names, cue_outcomes
from cuebench.protocols.triplets import PROTOCOL as TRIPLETS
from cuebench.protocols.triplets.stimuli import ALPHAS, EXPERIMENTS, textured_silhouettes
from cuebench.responses.table import Responses
from cuebench.statistics.clustered import Sums
from cuebench.statistics.estimates import ratio_estimates
from cuebench.statistics.intervals import KINDS, Clusters
from cuebench.types import Axis, Headline, IntervalKind, StimulusSet

NAME, VERSION = "textured_silhouettes", 2
RATIOS = (shape_bias, shape_accuracy, texture_accuracy, decided_fraction)
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


def _codes(responses: Responses) -> tuple[Codes, Codes, Codes]:
    """Return answer, shape and texture of each row as positions among the classes of the stimuli."""
    names = label_map(responses.stimuli.targets).names
    columns = responses.columns
    if cue_conflict.AMONG_TARGETS in columns:
        answers = columns[cue_conflict.AMONG_TARGETS].astype(np.intp)
    else:
        answers = decided(columns["decisions"], label_map(responses.stimuli.targets), responses.labels)
    return answers, named(responses.truth("shape"), names), named(responses.truth("texture"), names)


def trial_rows(responses: Responses, options: ScoreOptions) -> list[TrialRows]:
    """Return a row for each picture: the answer among the classes of the stimuli, and which cue it names."""
    responses = responses.condensed(cue_conflict.condense(responses.stimuli, responses.labels))
    answers, shape, texture = _codes(responses)
    names = label_map(responses.stimuli.targets).names
    columns = {
        "decision": class_names(answers, names),
        "outcome": cue_outcomes(answers, shape, texture),
        "correct": answers == shape,
    }
    return [TrialRows(responses.truth("condition"), np.arange(len(responses)), columns)]


def contributions(responses: Responses, asked: Asked) -> Sums | None:
    """Return the shape bias of one α as a ratio of sums over pictures."""
    rows = responses.truth("condition") == asked.condition
    if not rows.any():
        return None
    assert shape_bias.terms is not None
    condensed = responses.condensed(cue_conflict.condense(responses.stimuli, responses.labels))
    outcome = outcomes(*(codes[rows] for codes in _codes(condensed)))
    sources: dict[IntervalKind, Array] = {
        "shape_sources": responses.clusters("shape_source")[rows],
        "texture_sources": responses.clusters("texture_source")[rows],
        **({} if responses.subjects is None else {"subjects": responses.subjects[rows]}),
    }
    images = np.array([s.image for s in responses.stimuli])[responses.stimulus[rows]]
    return Sums.of_ratio(shape_bias.terms(outcome), images, sources)


def measure(responses: Responses, options: ScoreOptions) -> Result:
    """Return shape bias, both accuracies and the decided share of one observer for every α."""
    answers, shape, texture = _codes(responses)
    condition = responses.truth("condition")
    result = Result()
    for alpha in CONDITIONS:
        rows = condition == alpha
        shown = sum(s.condition == alpha for s in responses.stimuli)
        if not shown:
            continue
        outcome: Outcomes = outcomes(answers[rows], shape[rows], texture[rows])
        clusters = Clusters(*(responses.truth(field)[rows] for field in ("id", "shape_source", "texture_source")))
        terms = [metric.terms(outcome) for metric in RATIOS if metric.terms]
        estimates = ratio_estimates(terms, clusters, KINDS)
        undecided = int((~outcome.decided).sum())
        for metric, estimate in zip(RATIOS, estimates):
            missing = {"undecided": undecided if metric is shape_bias else 0, "unanswered": shown - int(rows.sum())}
            result.add(responses, alpha, metric.name, estimate.excluding(missing))
    return result


PROTOCOL = Protocol(
    name=NAME,
    version=VERSION,
    title="Textured silhouettes: cue conflict with a background that fades out",
    needs=(("logits",), ("decisions",)),
    read=read,
    views=(View("native", Preprocess.whole_image),),
    score=ByObserver(measure, joined, cue_conflict.condense),
    trials=TrialTable(trial_rows),
    contributions=contributions,
    check=cue_conflict.check,
    targets=label_map(cue_conflict.TARGETS).names,
    metrics=tuple(metric.name for metric in RATIOS),
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
