"""The statistics of the REFINED-BIAS paper as functions of a scores table.

Correlation with accuracy (Fig. 8, 9), agreement with a proxy (Fig. H), intervals (Table D), distorted predictions
(Fig. I), recognisability for people and models (Fig. 4, 7), and the choice of classes that balances both cues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cuebench.analyses.balance import Balance, balance
from cuebench.analyses.families import values_of
from cuebench.errors import UserError
from cuebench.statistics.correlations import Correlation, correlate
from cuebench.types import Score

CUES = ("shape", "texture")


class IntervalRow(NamedTuple):
    """A row of the paper's Table D."""

    observer: str
    shape: tuple[float, float, float]
    texture: tuple[float, float, float]


class Distortion(NamedTuple):
    """How many images are right in the full label space, and with all other classes filtered out."""

    observer: str
    protocol: str
    cue: str
    full: int
    restricted: int

    @property
    def distorted(self) -> int:
        """Images that only the filter makes right."""
        return self.restricted - self.full


class Recognition(NamedTuple):
    """How well a class' cue is recognised by a group of observers: the mean, and how many observers it is of."""

    cue: str
    label: str
    people: float
    models: float
    n_people: int
    n_models: int


def accuracy_correlation(
    scores: Sequence[Score], metric: str, accuracy: Mapping[str, float], condition: str = "faithful"
) -> Correlation:
    """Return Pearson's correlation of a metric with the in-domain accuracy, over models.

    Parameters
    ----------
    scores : sequence of Score
        Rows of ``refined_bias``.
    metric : str
        A sensitivity or preference.
    accuracy : mapping of observer to float
        Top-1 on ordinary images; see ``in_domain``.
    condition : str
        ``faithful`` or ``native``.
    """
    own = values_of(scores, metric, condition)
    both = [o for o in own if o in accuracy]
    return correlate([own[o] for o in both], [accuracy[o] for o in both], method="pearson", how="fisher")


def in_domain(scores: Sequence[Score]) -> dict[str, float]:
    """Return observer → top-1 of the protocol ``imagenet_accuracy``."""
    return {s.observer: s.value for s in scores if (s.protocol, s.condition) == ("imagenet_accuracy", "top1")}


def by_class(scores: Sequence[Score], observer: str, metric: str, condition: str = "faithful") -> dict[str, float]:
    """Return class → value of one observer's metric."""
    start = f"{condition}/class="
    return {
        s.condition.removeprefix(start): s.value
        for s in scores
        if s.observer == observer and s.metric == metric and s.condition.startswith(start)
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
    found = {}
    for observer in dict.fromkeys(s.observer for s in cue):
        one, other = by_class(cue, observer, metric, condition), by_class(proxy, observer, metric, condition)
        both = sorted(set(one) & set(other))
        if len(both) >= 3:
            found[observer] = correlate(
                [one[c] for c in both], [other[c] for c in both], method="kendall", how="fisher"
            )
    if not found:
        raise UserError(f"no observer has {metric} for three classes in both tables")
    return found


def interval_table(scores: Sequence[Score], condition: str = "faithful", kind: str = "images") -> list[IntervalRow]:
    """Return lower end, value and upper end of both sensitivities for every observer (Table D)."""
    cells = {
        (s.observer, s.metric): (s.ci_low, s.value, s.ci_high)
        for s in scores
        if (s.condition, s.ci_kind) == (condition, kind)
    }
    observers = dict.fromkeys(o for o, m in cells if m == "shape_sensitivity")
    nothing = (float("nan"),) * 3
    return [
        IntervalRow(o, cells[o, "shape_sensitivity"], cells.get((o, "texture_sensitivity"), nothing)) for o in observers
    ]


def distortions(scores: Sequence[Score]) -> list[Distortion]:
    """Return the counts of Fig. I: of REFINED-BIAS (``distorted_prediction``) and of cue conflict (partial, full)."""
    found = []
    at = {(s.protocol, s.observer, s.condition, s.metric): s for s in scores}
    for (protocol, observer, condition, metric), s in at.items():
        if metric == "distorted_prediction" and "/cue=" in condition:
            view, _, cue = condition.partition("/cue=")
            top1 = at.get((protocol, observer, view, f"{cue}_top1"))
            if top1 is not None:
                full = round(top1.value * top1.n)
                found.append(Distortion(observer, f"{protocol} {view}", cue, full, full + round(s.value * s.n)))
        if protocol == "cue_conflict" and condition == "partial" and metric in ("shape_accuracy", "texture_accuracy"):
            other = at.get((protocol, observer, "full", metric))
            if other is not None and other.value == other.value:
                counts = round(other.value * other.n), round(s.value * s.n)
                found.append(Distortion(observer, protocol, metric.removesuffix("_accuracy"), *counts))
    return found


def recognition(scores: Sequence[Score], people: Sequence[str], condition: str = "faithful") -> list[Recognition]:
    """Return for every class of each cue how well people and models recognise it (top-1; Fig. 4 and 7).

    Parameters
    ----------
    scores : sequence of Score
        Rows of ``refined_bias`` of people and models.
    people : sequence of str
        Observers that are people; all others count as models.
    condition : str
        Condition of the models; people have their own (they see the image as it is).
    """
    rows = []
    for cue in CUES:
        cells: dict[str, dict[bool, list[float]]] = {}
        for s in scores:
            view, found, label = s.condition.partition("/class=")
            person = s.observer in people
            if s.metric == f"{cue}_top1" and found and (person or view == condition):
                cells.setdefault(label, {True: [], False: []})[person].append(s.value)
        rows += [
            Recognition(cue, label, _mean(own[True]), _mean(own[False]), len(own[True]), len(own[False]))
            for label, own in sorted(cells.items())
        ]
    return rows


def balanced(
    scores: Sequence[Score], classes: int, *, measure: str = "sensitivity", condition: str = "faithful"
) -> Balance:
    """Choose classes so that both cues are equally recognisable for the panel of observers in a scores table.

    Parameters
    ----------
    scores : sequence of Score
        Rows of ``refined_bias``; every observer is a member of the panel.
    classes : int
        How many for each cue.
    measure : str
        ``sensitivity``, ``top1`` or ``top5``.
    condition : str
        ``faithful`` or ``native``.
    """
    panel = list(dict.fromkeys(s.observer for s in scores))
    means = {}
    for cue in CUES:
        values = [by_class(scores, o, f"{cue}_{measure}", condition) for o in panel]
        shared = sorted(set.intersection(*(set(v) for v in values))) if values else []
        means[cue] = {c: float(np.mean([v[c] for v in values])) for c in shared}
    return balance(means["shape"], means["texture"], classes)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")
