"""From decisions to numbers and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cuebench.arrays import Array
from cuebench.metrics.triplet_bias_gain import triplet_bias_gain
from cuebench.metrics.triplet_shape_bias import terms
from cuebench.metrics.triplets import Similarity, Tally
from cuebench.protocols.base import Result, ScoreOptions
from cuebench.protocols.triplets.trials import COLUMN, DEFAULT, DRAWN, Images, Measured, Trials, images_of
from cuebench.responses.table import Responses
from cuebench.statistics.estimates import from_draws, ratio_estimates, resampled_mean
from cuebench.statistics.intervals import KINDS, Clusters, resampled_sums, too_few, weights
from cuebench.statistics.ratios import total
from cuebench.types import Estimate, IntervalKind

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
    for (condition, similarity, found), estimate in zip(
        measured, _estimates([m for *_, m in measured], kinds, options)
    ):
        name = condition + (f"/layer={layer}" if layer else "")
        name += f"/similarity={similarity}" if similarity != DEFAULT else ""
        estimate = estimate.excluding({"undecidable": found.undecidable}).noting(*found.notes())
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
        each = ratio_estimates(added, clusters, kinds, seed=options.seed, resamples=options.resamples)
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
    found = {}
    for condition, measured in trials.default.items():
        stimulus = trials.responses.stimulus[measured.images.rows].astype(np.int32)
        found[condition] = Decided(stimulus, measured.tally, measured.undecidable)
    return found


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
        others = [(r, found[condition]) for r, found in baselines if condition in found]
        tallies = [other.tally for r, other in others if _images(r, other).ids == images.ids]
        partial, note = _partial(responses, condition), f"{len(tallies)} random initialisations"
        biases = np.array([total(terms(tally)).value for tally in tallies])
        mean = resampled_mean(biases, "seeds", seed=options.seed, resamples=options.resamples)
        mean = mean.excluding({"initialisations that saw other images": len(baselines) - len(tallies)}).noting(note)
        name = f"{condition}/random_initialisation"
        result.add(responses, name, BIAS, mean, partial=partial)
        if tallies:
            gain = _gain(trained.tally, tallies, images.clusters, options)
            gain = gain.excluding({"undecidable": trained.undecidable}).noting(f"against {note}")
            result.add(responses, condition, GAIN, gain, partial=partial)


def _images(responses: Responses, decisions: Decided) -> Images:
    return images_of([responses.stimuli.stimuli[i] for i in decisions.stimulus])


def _gain(trained: Tally, baselines: Sequence[Tally], clusters: Clusters, options: ScoreOptions) -> Estimate:
    """Return the gain; trained and untrained networks are resampled alike, together with the seeds."""
    added = [terms(tally) for tally in (trained, *baselines)]
    ratios = [total(t) for t in added]
    value = float(triplet_bias_gain(ratios[0].value, [ratio.value for ratio in ratios[1:]]))
    columns = np.column_stack([column for t in added for column in t])
    draws: dict[IntervalKind, Array] = {}
    reasons: dict[IntervalKind, str] = {}
    for kind in GAIN_KINDS:
        reasons[kind] = too_few(clusters, kind)
        draws[kind] = np.empty(0)
        if not reasons[kind]:
            sums = resampled_sums(columns, clusters, kind, seed=options.seed, resamples=options.resamples)
            with np.errstate(invalid="ignore", divide="ignore"):
                biases = sums[:, 0::2] / sums[:, 1::2]
            drawn = weights("seeds", len(baselines), options.seed, options.resamples)
            draws[kind] = np.asarray(triplet_bias_gain(biases[:, 0], biases[:, 1:], drawn))
    return from_draws(value, int(ratios[0].denominator), draws, reasons)


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
