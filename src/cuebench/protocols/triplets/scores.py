"""From decisions to rows and tables. Private to ``triplets``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cuebench.metrics.triplet_bias_gain import gain_estimates, mean_of_seeds
from cuebench.metrics.triplets import SIMILARITIES, Similarity
from cuebench.protocols.base import ScoreOptions, partial_notes
from cuebench.protocols.triplets.trials import COLUMN, Measured, Trials
from cuebench.statistics.estimates import Estimate, ratio_estimates
from cuebench.statistics.intervals import KINDS
from cuebench.statistics.ratios import Terms
from cuebench.types import IntervalKind, Score

if TYPE_CHECKING:
    import pyarrow as pa

NAME, VERSION = "triplets", 1
BIAS, GAIN = "triplet_shape_bias", "triplet_bias_gain"
DEFAULT: Similarity = "cosine"


@dataclass(frozen=True)
class Scorer:
    """Rows of one observer."""

    trials: Trials
    options: ScoreOptions
    similarities: tuple[Similarity, ...]

    def rows(self) -> Iterator[Score]:
        """Yield the bias of every condition, then other similarities, then other layers."""
        quick = bool(self.trials.responses.baseline_of)
        for column in self.trials.columns:
            layer = column.removeprefix(COLUMN).removeprefix(":")
            plain = not layer and not quick
            kinds = KINDS if plain else KINDS[:1]
            yield from self._bias(column, [DEFAULT], kinds, layer)
            if plain:
                others = [k for k in self.similarities if k != DEFAULT]
                yield from self._bias(column, others, KINDS[:1], layer)

    def _bias(
        self, column: str, similarities: Sequence[Similarity], kinds: Sequence[IntervalKind], layer: str
    ) -> Iterator[Score]:
        found = list(self.trials.measured(column, similarities))
        for (condition, similarity, measured), estimates in zip(found, self._estimates([m for *_, m in found], kinds)):
            name = condition + (f"/layer={layer}" if layer else "")
            name += f"/similarity={similarity}" if similarity != DEFAULT else ""
            note = self._note(condition, measured)
            for estimate in estimates:
                yield self._row(name, BIAS, estimate, self._lost(condition, measured), note)

    def _estimates(self, found: Sequence[Measured], kinds: Sequence[IntervalKind]) -> list[list[Estimate]]:
        """Return the estimates of all conditions; those with the same anchors share their resamples and one product."""
        made: dict[int, list[Estimate]] = {}
        groups: dict[tuple[str, ...], list[int]] = {}
        for i, one in enumerate(found):
            groups.setdefault(one.images.ids, []).append(i)
        for members in groups.values():
            terms = [Terms(found[i].tally.shape, found[i].tally.trials) for i in members]  # type: ignore[arg-type]
            clusters = found[members[0]].images.clusters
            each = ratio_estimates(terms, clusters, kinds, seed=self.options.seed, resamples=self.options.resamples)
            made.update(zip(members, each))
        return [made[i] for i in range(len(found))]

    def against(self, baselines: Sequence[Trials]) -> Iterator[Score]:
        """Yield the mean of the random initialisations and the difference from them, for every condition."""
        own = {c: m for c, _, m in self.trials.measured(COLUMN, [DEFAULT])}
        theirs = [{c: m for c, _, m in b.measured(COLUMN, [DEFAULT])} for b in baselines]
        seed, resamples = self.options.seed, self.options.resamples
        for condition, measured in own.items():
            same = [t[condition] for t in theirs if condition in t and t[condition].images.ids == measured.images.ids]
            tallies = [m.tally for m in same]
            note = f"{len(same)} random initialisations"
            mean = mean_of_seeds(tallies, seed=seed, resamples=resamples)
            yield self._row(f"{condition}/random_initialisation", BIAS, mean, len(baselines) - len(same), note)
            if tallies:
                kinds: tuple[IntervalKind, ...] = ("images", "two_way")
                clusters = measured.images.clusters
                for e in gain_estimates(measured.tally, tallies, clusters, kinds, seed=seed, resamples=resamples):
                    yield self._row(condition, GAIN, e, self._lost(condition, measured), f"against {note}")

    def _lost(self, condition: str, measured: Measured) -> int:
        """Return how many of the chosen trials could not be decided."""
        return max(0, self._chosen(condition, measured) - round(float(measured.tally.trials.sum())))

    def _chosen(self, condition: str, measured: Measured) -> int:
        k = self.trials.choice_of(condition).k
        per_anchor = measured.images.triplets.per_anchor
        return int((np.minimum(per_anchor, k) if k else per_anchor).sum())

    def _note(self, condition: str, measured: Measured) -> str:
        choice, per_anchor = self.trials.choice_of(condition), measured.images.triplets.per_anchor
        fewer = int(((per_anchor > 0) & (per_anchor < choice.k)).sum())
        ties = float(measured.tally.ties.sum())
        parts = [
            f"{choice.k} triplets of each anchor, mean of {choice.replications} draws" if choice.k else "all triplets",
            f"{fewer:,} anchors have fewer and give all theirs" if fewer else "",
            f"{measured.alone:,} of {len(per_anchor):,} anchors have no match and are left out"
            if measured.alone
            else "",
            f"{measured.zero:,} images with a zero vector" if measured.zero else "",
            f"{measured.unusable:,} images with NaN or infinite features" if measured.unusable else "",
            f"{ties:,.0f} ties count against shape" if ties else "no ties",
        ]
        return "; ".join(p for p in parts if p)

    def _row(self, condition: str, metric: str, estimate: Estimate, lost: int, note: str) -> Score:
        responses, interval = self.trials.responses, estimate.bootstrap.interval
        reasons = [
            why for why in responses.stimuli.partial if not (condition[:11] == "experiment3" and "cue-conflict" in why)
        ]
        partial = partial_notes(reasons)
        unreadable = [f"{len(responses.excluded):,} unreadable"] if responses.excluded else []
        notes = [note, estimate.bootstrap.note, *unreadable, *partial, *responses.notes]
        return Score(
            protocol=NAME,
            protocol_version=VERSION,
            observer=responses.observer,
            condition=condition,
            metric=metric,
            value=estimate.value,
            ci_low=interval.low,
            ci_high=interval.high,
            ci_kind=interval.kind,
            n=estimate.n,
            n_excluded=lost,
            note="; ".join(n for n in notes if n),
        )


def class_table(everyone: Sequence[Trials]) -> pa.Table:
    """Return the bias by the anchor's shape class and by its texture class, with ties and trials."""
    import pyarrow as pa

    rows: list[Mapping[str, Any]] = []
    for trials in everyone:
        for condition, _, measured in trials.measured(COLUMN, [DEFAULT]):
            stimuli = [trials.responses.stimuli.stimuli[i] for i in trials.responses.stimulus[measured.images.rows]]
            for cue in ("shape", "texture"):
                classes = np.array([getattr(s, cue) for s in stimuli])
                rows += _by_class(trials.responses.observer, condition, cue, classes, measured)
    fields = [("observer", pa.string()), ("condition", pa.string()), ("cue", pa.string()), ("class", pa.string())]
    fields += [("value", pa.float64()), ("trials", pa.float64()), ("ties", pa.float64()), ("anchors", pa.int64())]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def _by_class(
    observer: str, condition: str, cue: str, classes: np.ndarray[Any, Any], measured: Measured
) -> list[Mapping[str, Any]]:
    names, code = np.unique(classes, return_inverse=True)
    shape, trials, ties = (
        np.bincount(code.ravel(), values, len(names))
        for values in (measured.tally.shape, measured.tally.trials, measured.tally.ties)
    )
    anchors = np.bincount(code.ravel(), measured.tally.trials > 0, len(names)).astype(int)
    value = np.divide(shape, trials, out=np.full(len(names), np.nan), where=trials > 0)
    head = {"observer": observer, "condition": condition, "cue": cue}
    return [
        {**head, "class": str(n), "value": float(v), "trials": float(t), "ties": float(e), "anchors": int(a)}
        for n, v, t, e, a in zip(names, value, trials, ties, anchors)
    ]


ALL_SIMILARITIES = ",".join(SIMILARITIES)
