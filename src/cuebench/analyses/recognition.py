"""The statistics of the REFINED-BIAS paper as functions of a scores table.

Correlation with accuracy (Fig. 8, 9), agreement with a proxy (Fig. H), intervals (Table D), distorted predictions
(Fig. I), and the choice of classes that balances both cues. Class-wise accuracies of people and models (Fig. 3b, 4, 7)
are in ``class_wise`` and ``class_agreement``, the gap of difficulty (A.4) in ``difficulty``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cuebench.analyses.balance import Balance, balance
from cuebench.errors import UserError, did_you_mean
from cuebench.metrics.refined_bias import CUES, IMAGE_VALUES
from cuebench.protocols.headline import headline_column, headline_of
from cuebench.statistics.correlations import Correlation, correlate
from cuebench.types import Axis, Score

REFINED_BIAS, CUE_CONFLICT, ACCURACY = "refined_bias", "cue_conflict", "imagenet_accuracy"


class IntervalRow(NamedTuple):
    """A row of the paper's Table D: lower end, value and upper end of both sensitivities."""

    observer: str
    shape: tuple[float, float, float]
    texture: tuple[float, float, float]


class Distortion(NamedTuple):
    """How many images are correct among all classes, and among the classes of the stimulus set only."""

    observer: str
    protocol: str
    cue: str
    full: int
    restricted: int

    @property
    def distorted(self) -> int:
        """Images that are correct only because the other classes were removed."""
        return self.restricted - self.full


def accuracy_correlation(
    scores: Sequence[Score], axis: Axis | None = None, accuracy: Mapping[str, float] | None = None
) -> Correlation:
    """Return Pearson's correlation of a metric of REFINED-BIAS with the in-domain accuracy, over models.

    Parameters
    ----------
    scores : sequence of Score
        Rows of ``refined_bias``, and of ``imagenet_accuracy`` where ``accuracy`` is not given.
    axis : Axis, optional
        The metric and its conditions; default: the headline of the protocol.
    accuracy : mapping of observer to float, optional
        Top-1 on ordinary images; default: ``in_domain(scores)``.
    """
    column = headline_column(scores, REFINED_BIAS, axis)
    of_accuracy = in_domain(scores) if accuracy is None else accuracy
    shared = [o for o in column.rows if o in of_accuracy] if column else []
    if column is None or not shared:
        raise UserError(
            "no observer has both a score of refined_bias and an accuracy",
            "run both protocols for the same models: cuebench run -p refined_bias -p imagenet_accuracy …",
        )
    x, y = [column.rows[o].value for o in shared], [of_accuracy[o] for o in shared]
    return correlate(x, y, method="pearson", how="fisher")


def in_domain(scores: Sequence[Score]) -> dict[str, float]:
    """Return observer → accuracy on ordinary photographs, the headline of ``imagenet_accuracy``."""
    column = headline_column(scores, ACCURACY)
    return {o: row.value for o, row in column.rows.items()} if column else {}


def by_class(scores: Sequence[Score], observer: str, metric: str, condition: str = "faithful") -> dict[str, float]:
    """Return class → value of a metric of one observer."""
    start = f"{condition}/class="
    return {
        s.condition.removeprefix(start): s.value
        for s in scores
        if (s.protocol, s.observer, s.metric) == (REFINED_BIAS, observer, metric) and s.condition.startswith(start)
    }


def proxy_agreement(
    cue: Sequence[Score], proxy: Sequence[Score], metric: str, condition: str = "faithful"
) -> dict[str, Correlation]:
    """Return observer → Kendall's τ between class-wise values on a cue and on its proxy (Fig. H).

    Parameters
    ----------
    cue, proxy : sequences of Score
        Rows of two runs of ``refined_bias``: on the cues, and on a set made in another way (quilted textures).
    metric : str
        ``shape_top1`` or ``texture_top1``.
    condition : str
        ``faithful`` or ``native``.
    """
    correlations = {}
    for observer in dict.fromkeys(s.observer for s in cue):
        on_cue, on_proxy = (by_class(rows, observer, metric, condition) for rows in (cue, proxy))
        shared = sorted(set(on_cue) & set(on_proxy))
        if len(shared) >= 3:
            x, y = [on_cue[c] for c in shared], [on_proxy[c] for c in shared]
            correlations[observer] = correlate(x, y, method="kendall", how="fisher")
    if not correlations:
        raise UserError(
            f"no observer has {metric} for three classes in both tables",
            "run refined_bias for the same model on the cues and on the proxies, with the same classes",
        )
    return correlations


def interval_table(scores: Sequence[Score], condition: str = "faithful", kind: str = "images") -> list[IntervalRow]:
    """Return lower end, value and upper end of both sensitivities for every observer (Table D)."""
    plane = headline_of(REFINED_BIAS).plane
    assert plane is not None
    shape, texture = (
        {
            s.observer: (s.ci_low, s.value, s.ci_high)
            for s in scores
            if (s.protocol, s.metric, s.condition, s.ci_kind) == (REFINED_BIAS, axis.metric, condition, kind)
        }
        for axis in plane
    )
    missing = (math.nan, math.nan, math.nan)
    return [IntervalRow(o, cells, texture.get(o, missing)) for o, cells in shape.items()]


def distortions(scores: Sequence[Score]) -> list[Distortion]:
    """Return the counts of Fig. I: of REFINED-BIAS (``distorted_prediction``) and of cue conflict (both label spaces).

    For REFINED-BIAS, top-1 among all classes is compared with the classes of the set; for cue conflict, 1000-way with
    16-way decisions.
    """
    rows = []
    cells = {(s.observer, s.condition, s.metric): s for s in scores if s.protocol == REFINED_BIAS}
    for (observer, condition, metric), score in cells.items():
        view, separator, cue = condition.partition("/cue=")
        top1 = cells.get((observer, view, f"{cue}_top1"))
        if metric == "distorted_prediction" and separator and top1 is not None:
            full = round(top1.value * top1.n)
            restricted = full + round(score.value * score.n)
            rows.append(Distortion(observer, f"{REFINED_BIAS} {view}", cue, full, restricted))
    for cue, axis in zip(CUES, headline_of(CUE_CONFLICT).plane or ()):
        few = headline_column(scores, CUE_CONFLICT, axis)
        others = [s for s in scores if few and s.condition != few.condition]
        all_classes = headline_column(others, CUE_CONFLICT, Axis(axis.metric, ("*-way",)))
        if few is None or all_classes is None:
            continue
        for observer, score in few.rows.items():
            if observer in all_classes.rows:
                other = all_classes.rows[observer]
                counts = round(other.value * other.n), round(score.value * score.n)
                rows.append(Distortion(observer, CUE_CONFLICT, cue, *counts))
    return rows


def balanced(
    scores: Sequence[Score],
    classes: int,
    *,
    measure: str = "sensitivity",
    condition: str = "faithful",
    by: str = "models",
    people: Collection[str] = (),
) -> Balance:
    """Choose classes so that both cues are equally recognisable for the panel of observers in a scores table.

    Parameters
    ----------
    scores : sequence of Score
        Rows of ``refined_bias``; every observer is a member of the panel.
    classes : int
        Number of classes of each cue.
    measure : str
        ``sensitivity``, ``top1`` or ``top5``. People have given one answer to each image: ``top1``.
    condition : str
        ``faithful`` or ``native``, of models; people see the image as it is.
    by : str
        Whose recognition counts: ``models``, ``people``, or ``both`` with the same weight for either group.
    people : collection of str
        Observers that are people; all others count as models.
    """
    if measure not in IMAGE_VALUES:
        raise did_you_mean("measure", measure, IMAGE_VALUES)
    if by not in PANELS:
        raise did_you_mean("panel", by, PANELS)
    if by != "models" and measure != "top1":
        raise UserError(f"people have no {measure}: it needs a rank among all classes", "choose --measure top1")
    observers = list(dict.fromkeys(s.observer for s in scores))
    groups = {"models": [o for o in observers if o not in people], "people": [o for o in observers if o in people]}
    chosen = [groups[name] for name in (("models", "people") if by == "both" else (by,))]
    if not all(chosen):
        raise UserError(f"nobody to choose by: the run has no {'people or no models' if by == 'both' else by}",
                        "add them: cuebench run -p refined_bias -o MODEL -o recorded:FILE …")  # fmt: skip
    means = {}
    for cue in CUES:
        of_groups = [
            _group_means([_values(scores, o, f"{cue}_{measure}", condition, o in people) for o in group])
            for group in chosen
        ]
        shared = sorted(set.intersection(*(set(v) for v in of_groups)))
        means[cue] = {c: float(np.mean([v[c] for v in of_groups])) for c in shared}
    return balance(means["shape"], means["texture"], classes)


PANELS = ("models", "people", "both")


def _values(scores: Sequence[Score], observer: str, metric: str, condition: str, person: bool) -> dict[str, float]:
    """Return class → value; of a person in whichever view the answers were recorded."""
    if not person:
        return by_class(scores, observer, metric, condition)
    views = dict.fromkeys(s.condition.partition("/class=")[0] for s in scores if s.observer == observer)
    return {c: v for view in views for c, v in by_class(scores, observer, metric, view).items()}


def _group_means(values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return class → mean over the members of a group, for the classes that all of them have."""
    shared = sorted(set.intersection(*(set(v) for v in values)))
    return {c: float(np.mean([v[c] for v in values])) for c in shared}
