"""Cue decomposition (Heinert et al. 2025): quality on images without texture, without shape, and on the originals.

The set is made from your own labelled images by ``cuebench make cue_decomposition``. S_cd is given for two populations
of models: those of this run, and the 43 published ones. Cue-conflict candidates of the same set are scored beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cuebench.errors import UserError
from cuebench.labels import SUBSET
from cuebench.labels.decisions import NONE
from cuebench.metrics.cue_conflict import Outcomes, outcomes, shape_bias, texture_accuracy
from cuebench.metrics.cue_decomposition import METRICS
from cuebench.observers.preprocess import Preprocess
from cuebench.protocols import correctness
from cuebench.protocols.base import ByObserver, Protocol, ScoreOptions, View
from cuebench.protocols.classes import CLASSES, with_classes
from cuebench.protocols.correctness import Qualities
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
from cuebench.statistics.estimates import ratio_estimates
from cuebench.statistics.intervals import KINDS, Clusters
from cuebench.stimuli.decomposition.conflicts import PREFIX
from cuebench.stimuli.decomposition.folder import CLASSIFICATION, read_set
from cuebench.tables.engine import Result
from cuebench.tables.trials import NO_ANSWER, OTHER
from cuebench.types import Citation, Reference, StimulusSet

NAME, VERSION = CLASSIFICATION, 3
DATASET = "imagenet"
"""Which of the published populations S_cd is compared with."""
CONFLICT_METRICS = (shape_bias, texture_accuracy)
"""What is measured of the cue-conflict candidates."""
MAKE = "make it: cuebench make cue_decomposition --source IMAGES --out DATA_ROOT"


def read(data_root: Path) -> StimulusSet:
    """Read ``data_root/cue_decomposition``, as ``cuebench make cue_decomposition`` wrote it."""
    return read_set(data_root / NAME, MAKE)


def configure(protocol: Protocol, values: Mapping[str, Any]) -> Protocol:
    """Return the protocol with the chosen population and the chosen classes."""
    return with_classes(configured(protocol, values), values)


class Measured(NamedTuple):
    """What is kept of one observer: its qualities, and its numbers of cue-conflict candidates."""

    qualities: Qualities
    conflicts: Result


def measure(responses: Responses, options: ScoreOptions) -> Measured:
    """Measure the qualities of one observer, and the cue-conflict candidates."""
    conflicts = Result()
    _add_conflicts(conflicts, responses, options)
    return Measured(_qualities(responses, options), conflicts)


def together(everyone: Sequence[Measured], options: ScoreOptions) -> Result:
    """Return Q_O, Q_S, Q_T, S_cd and R_cd of every observer, and the cue-conflict candidates."""
    if not everyone:
        raise UserError(f"no answers to score for {NAME}")
    result = Result()
    add_decomposition(result, [m.qualities for m in everyone], DATASET, options.values)
    for measured in everyone:
        result.extend(measured.conflicts)
    result.tables["correlations"] = correlations(result, options)
    return result


def contributions(responses: Responses, asked: Asked) -> Sums | None:
    """Return S_cd as a function of sums over images."""
    return sums_of(_correct(responses), asked)


score = ByObserver(measure, together)


def _correct(responses: Responses) -> correctness.Table:
    conditions = [c for c in dict.fromkeys(s.condition for s in responses.stimuli) if not c.startswith(PREFIX)]
    return correctness.table(responses, correctness.correct_answers(responses), conditions)


def _qualities(responses: Responses, options: ScoreOptions) -> Qualities:
    correct = _correct(responses)
    classes = Path(responses.stimuli.targets.partition(SUBSET)[0]).stem or (
        responses.labels.name if responses.labels else ""
    )
    measure = f"accuracy among {classes}" if classes else "accuracy"
    return Qualities(responses, needed(correctness.accuracies(correct)), measure)


def _add_conflicts(result: Result, responses: Responses, options: ScoreOptions) -> None:
    """Add shape bias and texture accuracy of every cue-conflict candidate (Table II)."""
    ids, conditions = responses.truth("id"), responses.truth("condition")
    names = [c for c in dict.fromkeys(conditions.tolist()) if c.startswith(PREFIX)]
    if not names:
        return
    given, shape, texture = correctness.answers_and_truth(responses, "shape", "texture")
    trials = outcomes(given, shape, texture)
    nothing = given == ("" if given.dtype.kind in "OU" else NONE)
    clusters = Clusters(*(responses.clusters(field) for field in ("id", "shape_source", "texture_source")))
    for name in names:
        rows = conditions == name
        candidates = Outcomes(*(part[rows] for part in trials))
        terms = [metric.terms(candidates) for metric in CONFLICT_METRICS if metric.terms]
        estimates = ratio_estimates(terms, clusters.only(rows), KINDS)
        answers, asked = int(rows.sum()), [s.id for s in responses.stimuli if s.condition == name]
        people = int(np.unique(ids[rows], return_counts=True)[1].max())  # answers to one stimulus: 1 unless pooled
        unreadable = sum(i in responses.excluded for i in asked) * people
        for metric, estimate in zip(CONFLICT_METRICS, estimates):
            unread = int((nothing & rows).sum())
            undecided = answers - estimate.n  # 0 for an accuracy, which counts all answers
            outside = {
                OTHER: max(0, undecided - unread),
                NO_ANSWER: min(unread, undecided),
                "unreadable": unreadable,
                "unanswered": len(asked) * people - answers - unreadable,
            }
            result.add(responses, name, metric.name, estimate.excluding(outside).noting(f"{answers:,} candidates"))


_TABLE = "Heinert et al. 2025, Table VIII; EED and Voronoi on 1,200 images of 16 classes"

CITATION = Citation(
    text="Heinert, Gottwald, Mütze & Rottmann (2025). Shape Bias and Robustness Evaluation via Cue Decomposition for "
    "Image Classification and Segmentation.",
    bibtex="""@article{heinert2025shape,
  title  = {Shape Bias and Robustness Evaluation via Cue Decomposition for Image Classification and Segmentation},
  author = {Edgar Heinert and Thomas Gottwald and Annika M{\\"u}tze and Matthias Rottmann},
  year   = {2025}
}""",
    url="https://arxiv.org/abs/2503.12453",
    licence="the images' own",
)


PROTOCOL = Protocol(
    name=NAME,
    version=VERSION,
    title="Cue decomposition: shape bias and robustness without conflicting cues",
    needs=(("logits",), ("decisions",)),
    read=read,
    views=(View("native", Preprocess.whole_image),),
    score=score,
    trials=TrialTable(correctness.trial_rows),
    contributions=contributions,
    check=correctness.check,
    metrics=(*(m.name for m in METRICS), *(m.name for m in CONFLICT_METRICS)),
    headline=HEADLINE,
    reference=(
        Reference("ResNet101", "quality_original", "original", 0.989, _TABLE),
        Reference("ResNet101", "quality_shape", "eed", 0.326, _TABLE),
        Reference("ResNet101", "quality_texture", "voronoi", 0.848, _TABLE),
        Reference(
            "ResNet101",
            "shape_bias_cd",
            "eed+voronoi H=heinert2025",
            0.360,
            f"{_TABLE}; printed .363, which follows from s = .573, not from the table's own .584",
        ),
        Reference("ResNet101", "robustness_cd", "eed+voronoi", 0.593, _TABLE),
        Reference("EVA02 L", "robustness_cd", "eed+voronoi", 0.957, _TABLE),
    ),
    reduce=correctness.reduce,
    options={**OPTIONS, **CLASSES},
    configure=configure,
    citation=CITATION,
)
