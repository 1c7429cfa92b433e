"""From decisions to numbers and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cuebench.arrays import Array
from cuebench.interval_methods import SEEDS
from cuebench.metrics.triplet_bias_gain import triplet_bias_gain
from cuebench.metrics.triplet_shape_bias import shared_terms, terms
from cuebench.metrics.triplets import Similarity, Tally
from cuebench.protocols.base import ScoreOptions
from cuebench.protocols.triplets.trials import COLUMN, DEFAULT, DRAWN, Images, Measured, Trials, images_of
from cuebench.responses.table import Responses
from cuebench.statistics.clustered import NOTHING, Clustering, influence_of, t_quantile
from cuebench.statistics.estimates import ALL_ALIKE, mean_of_shares, ratio_estimates
from cuebench.statistics.intervals import KINDS, Clusters, too_few, undefined
from cuebench.statistics.ratios import total
from cuebench.tables.engine import Result
from cuebench.types import Estimate, Interval, IntervalKind

if TYPE_CHECKING:
    import pyarrow as pa

BIAS, GAIN = "triplet_shape_bias", "triplet_bias_gain"
GAIN_KINDS: tuple[IntervalKind, ...] = ("images", "two_way")


def add_biases(result: Result, trials: Trials, similarities: Sequence[Similarity], options: ScoreOptions) -> None:
    """Add the bias of every condition, then by other similarities, then of other layers.

    The penultimate layer of a network by the default similarity has all kinds of interval, everything else the one over
    images.
    """
    for column in trials.columns:
        layer = column.removeprefix(COLUMN).removeprefix(":")
        if layer or trials.responses.baseline_of:
            _add_biases(result, trials, column, [DEFAULT], KINDS[:1], options)
        else:
            _add_biases(result, trials, column, [DEFAULT], KINDS, options)
            others = [similarity for similarity in similarities if similarity != DEFAULT]
            _add_biases(result, trials, column, others, KINDS[:1], options)


def _add_biases(
    result: Result,
    trials: Trials,
    column: str,
    similarities: Sequence[Similarity],
    kinds: Sequence[IntervalKind],
    options: ScoreOptions,
) -> None:
    layer = column.removeprefix(COLUMN).removeprefix(":")
    measured = list(trials.measured(column, similarities))
    for (condition, similarity, decisions), estimate in zip(
        measured, _estimates([m for *_, m in measured], kinds, options)
    ):
        name = condition + (f"/layer={layer}" if layer else "")
        name += f"/similarity={similarity}" if similarity != DEFAULT else ""
        estimate = estimate.excluding({"undecidable": decisions.undecidable}).noting(*decisions.notes())
        result.add(trials.responses, name, BIAS, estimate, partial=_partial(trials.responses, condition))


def _estimates(measured: Sequence[Measured], kinds: Sequence[IntervalKind], options: ScoreOptions) -> list[Estimate]:
    """Return one estimate for each condition; those with the same anchors share their resamples and one product."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for position, condition in enumerate(measured):
        groups.setdefault(condition.images.ids, []).append(position)
    estimates: dict[int, Estimate] = {}
    for positions in groups.values():
        added = [terms(measured[position].tally) for position in positions]
        clusters = measured[positions[0]].images.clusters
        shared = [shared_terms(measured[position].tally) for position in positions]
        each = ratio_estimates(added, clusters, kinds, shared=shared)
        estimates.update(zip(positions, each))
    return [estimates[position] for position in range(len(measured))]


def _partial(responses: Responses, condition: str) -> list[str]:
    """Return why the images of a condition are incomplete: novel objects do not come from the cue-conflict set."""
    reasons = responses.stimuli.partial
    return [why for why in reasons if not (condition.startswith(DRAWN) and "cue-conflict" in why)]


# ------------------------------------------------------------------------------------------- what training added


class Decided(NamedTuple):
    """The decisions of one condition by anchor, and the position of each anchor in the stimulus set."""

    stimulus: Array
    tally: Tally
    undecidable: int


def decided(trials: Trials) -> dict[str, Decided]:
    """Return condition → decisions of the penultimate layer by the default similarity."""
    by_condition = {}
    for condition, measured in trials.default.items():
        stimulus = trials.responses.stimulus[measured.images.rows].astype(np.int32)
        by_condition[condition] = Decided(stimulus, measured.tally, measured.undecidable)
    return by_condition


def add_gains(
    result: Result,
    responses: Responses,
    decisions: Mapping[str, Decided],
    baselines: Sequence[tuple[Responses, Mapping[str, Decided]]],
    options: ScoreOptions,
) -> None:
    """Add the mean bias of the random initialisations and the gain over them, for every condition."""
    for condition, trained in decisions.items():
        images = _images(responses, trained)
        others = [(r, by_condition[condition]) for r, by_condition in baselines if condition in by_condition]
        tallies = [other.tally for r, other in others if _images(r, other).ids == images.ids]
        partial, note = _partial(responses, condition), f"{len(tallies)} random initialisations"
        biases = np.array([total(terms(tally)).value for tally in tallies])
        mean = mean_of_shares(biases, "seeds")
        mean = mean.excluding({"initialisations that saw other images": len(baselines) - len(tallies)})
        name = f"{condition}/random_initialisation"
        result.add(responses, name, BIAS, mean, partial=partial)
        if tallies:
            gain = _gain(trained.tally, tallies, images.clusters)
            gain = gain.excluding({"undecidable": trained.undecidable}).noting(f"against {note}")
            result.add(responses, condition, GAIN, gain, partial=partial)


def _images(responses: Responses, decisions: Decided) -> Images:
    return images_of([responses.stimuli.stimuli[i] for i in decisions.stimulus])


def _gain(trained: Tally, baselines: Sequence[Tally], clusters: Clusters) -> Estimate:
    """Return the gain, with intervals for other images or sources and other seeds, whose variances add up."""
    added = [terms(tally) for tally in (trained, *baselines)]
    ratios = [total(t) for t in added]
    seeds = np.array([ratio.value for ratio in ratios[1:]])
    value, n = float(triplet_bias_gain(ratios[0].value, seeds)), int(ratios[0].denominator)
    # By how much each anchor moves the bias of the network, and the mean of those of its initialisations.
    moves = [influence_of(t, r) for t, r in zip(added, ratios)]
    shared = [
        {kind: influence_of(t, r) for kind, t in shared_terms(tally).items()}
        for tally, r in zip((trained, *baselines), ratios)
    ]
    apart = {kind: psi - np.mean([other[kind] for other in shared[1:]], axis=0) for kind, psi in shared[0].items()}
    sources: dict[IntervalKind, Array] = {kind: clusters.of(kind) for kind in KINDS[1:3]}
    clustering = Clustering(len(clusters.images), sources, images=clusters.images)
    image_variances = clustering.variances(moves[0] - np.mean(moves[1:], axis=0), apart)
    spread, freedom = (seeds.var(ddof=1) / len(seeds), len(seeds) - 1) if len(seeds) > 1 else (0.0, 1)
    note = "" if len(seeds) > 1 else "one initialisation: how seeds differ is not in the interval"
    intervals = []
    for kind in GAIN_KINDS:
        reason = too_few(clusters, kind)
        if reason or not np.isfinite(value):
            intervals.append(undefined(kind, reason or "no trial in the denominator"))
            continue
        variance = image_variances.by_kind[kind] + spread
        if variance < NOTHING:
            intervals.append(undefined(kind, ALL_ALIKE))
            continue
        doubt = image_variances.by_kind[kind] ** 2 / image_variances.df[kind] + spread**2 / freedom
        reach = t_quantile(variance**2 / doubt if doubt else image_variances.df[kind], 0.95) * np.sqrt(variance)
        low, high = max(-1.0, float(value - reach)), min(1.0, float(value + reach))
        intervals.append(Interval(low, high, kind, note=note, method=SEEDS))
    return Estimate(value, n, tuple(intervals))


# ------------------------------------------------------------------------------------------- by class


def class_table(trials: Trials) -> pa.Table:
    """Return the bias by the anchor's shape class and by its texture class, with ties and trials."""
    import pyarrow as pa

    rows: list[Mapping[str, Any]] = []
    for condition, measured in trials.default.items():
        stimuli = [trials.responses.stimuli.stimuli[i] for i in trials.responses.stimulus[measured.images.rows]]
        for cue in ("shape", "texture"):
            head = {"observer": trials.responses.observer, "condition": condition, "cue": cue}
            classes = np.array([getattr(s, cue) for s in stimuli])
            rows += [{**head, **row} for row in _by_class(classes, measured.tally)]
    fields = [("observer", pa.string()), ("condition", pa.string()), ("cue", pa.string()), ("class", pa.string())]
    fields += [("value", pa.float64()), ("trials", pa.float64()), ("ties", pa.float64()), ("anchors", pa.int64())]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def _by_class(classes: Array, tally: Tally) -> list[Mapping[str, Any]]:
    names, code = np.unique(classes, return_inverse=True)
    code = code.ravel()
    top, bottom = (np.bincount(code, column, len(names)) for column in terms(tally))
    value = np.divide(top, bottom, out=np.full(len(names), np.nan), where=bottom > 0)
    ties = np.bincount(code, tally.ties, len(names))
    anchors = np.bincount(code, tally.trials > 0, len(names)).astype(int)
    columns = {"class": names, "value": value, "trials": bottom, "ties": ties, "anchors": anchors}
    return [dict(zip(columns, row)) for row in zip(*(values.tolist() for values in columns.values()))]
