"""From trials to estimates: every measure of both cues, overall, without defective files, by patch size, by class."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cuebench.arrays import Array, Bools
from cuebench.metrics.refined_bias import (
    CUES,
    IMAGE_VALUES,
    METRICS,
    distorted_prediction,
    shape_preference,
    texture_preference,
)
from cuebench.protocols.base import ScoreOptions
from cuebench.protocols.refined_bias.trials import Trials, known_defects, trials_of
from cuebench.responses.table import Responses, once
from cuebench.statistics.estimates import derived, missing
from cuebench.statistics.intervals import undefined
from cuebench.statistics.means import mean_estimates
from cuebench.stimuli.readers.refined_bias import facts
from cuebench.stimuli.refined_bias.check import summary
from cuebench.tables.engine import Result
from cuebench.types import Estimate, IntervalKind, Stimulus, StimulusSet

if TYPE_CHECKING:
    import pyarrow as pa

KINDS: tuple[IntervalKind, ...] = ("images", "classes")
_CLUSTER_FIELD: Mapping[IntervalKind, str] = {"images": "images", "classes": "class_numbers"}


@dataclass(frozen=True)
class Part:
    """Some of the stimuli of one cue or of both: what one condition is about.

    ``keep`` is cue → which stimuli belong to it, ``others`` names the stimuli that do not.
    """

    condition: str
    keep: Mapping[str, Bools]
    others: str = ""
    note: str = ""


@dataclass(frozen=True)
class Scorer:
    """All numbers of one observer under one view."""

    responses: Responses
    options: ScoreOptions
    result: Result

    @cached_property
    def trials(self) -> dict[str, Trials]:
        """Cue → answers."""
        return trials_of(self.responses)

    @cached_property
    def kinds(self) -> tuple[IntervalKind, ...]:
        """Kinds of interval of a measure of one cue."""
        return KINDS if self.trials["shape"].subjects is None else (*KINDS, "subjects")

    @cached_property
    def answers_per_stimulus(self) -> int:
        """How many answers each stimulus should have: one, or one of each person."""
        pooled = [t.subjects for t in self.trials.values() if t.subjects is not None]
        return len(np.unique(np.concatenate(pooled))) if pooled else 1

    def add_all(self) -> None:
        """Add both cues and the preferences, then clean files, patch sizes, classes, distorted predictions."""
        view = self.responses.view
        everything = {cue: np.ones(len(t.shown), bool) for cue, t in self.trials.items()}
        clean = {cue: t.shown.clean for cue, t in self.trials.items()}
        defective = summary(known_defects(self.responses.stimuli), len(self.responses.stimuli))
        self._add_both(Part(view, everything))
        self._add_both(Part(f"{view}/clean", clean, "defective", f"left out: {defective}"))
        for part in self._patch_sizes(view):
            self._add(part, self._measures("texture", part, self.kinds))
        for cue in CUES:
            for part in self._classes(view, cue):
                self._add(part, self._measures(cue, part, ("images",)))
        for cue, trials in self.trials.items():
            if "distorted" in trials.values:
                self._add_distorted(Part(f"{view}/cue={cue}", everything), trials)

    # ------------------------------------------------------------------------------------------ parts of the set

    def _patch_sizes(self, view: str) -> Iterator[Part]:
        patch = self.trials["texture"].shown.patch
        for size in sorted({int(p) for p in patch if p}):
            yield Part(f"{view}/patch={size}", {"texture": patch == str(size)}, "with other patch sizes")

    def _classes(self, view: str, cue: str) -> Iterator[Part]:
        classes = self.trials[cue].shown.classes
        for name in sorted(set(classes.tolist())):
            yield Part(f"{view}/class={name}", {cue: classes == name}, "in other classes")

    # ------------------------------------------------------------------------------------------------- estimates

    def _add(self, part: Part, estimates: Mapping[str, Estimate]) -> None:
        for metric, estimate in estimates.items():
            self.result.add(self.responses, part.condition, metric, estimate.noting(part.note))

    def _add_both(self, part: Part) -> None:
        """Add the measures of both cues and the two preferences, in the order of the metrics."""
        estimates = {name: e for cue in CUES for name, e in self._measures(cue, part, self.kinds).items()}
        estimates |= self._preferences(part, *(estimates[f"{cue}_sensitivity"] for cue in CUES))
        self._add(part, {m.name: estimates[m.name] for m in METRICS if m.name in estimates})

    def _measures(self, cue: str, part: Part, kinds: Sequence[IntervalKind]) -> dict[str, Estimate]:
        """Return metric → mean over the images of a part, or why it is missing."""
        trials = self.trials[cue]
        measured = self._means(trials, part, [m for m in IMAGE_VALUES if m in trials.values], kinds)
        excluded = self._excluded(part, (cue,), 0, trials.reason)
        absent = missing(trials.reason, kinds[0], excluded)
        return {f"{cue}_{measure}": measured.get(measure, absent) for measure in IMAGE_VALUES}

    def _means(
        self, trials: Trials, part: Part, measures: Sequence[str], kinds: Sequence[IntervalKind]
    ) -> dict[str, Estimate]:
        excluded = self._excluded(part, (trials.cue,), int(part.keep[trials.cue][trials.stimulus].sum()))
        # Without defective files the clean ones are all of them.
        key = (trials.cue, part.keep[trials.cue].tobytes(), tuple(measures), tuple(kinds))
        if key not in self._known:
            self._known[key] = self._averaged(trials, part.keep[trials.cue], measures, kinds)
        return {measure: estimate.excluding(excluded) for measure, estimate in self._known[key].items()}

    @cached_property
    def _known(self) -> dict[tuple[Any, ...], dict[str, Estimate]]:
        return {}

    def _averaged(
        self, trials: Trials, keep: Bools, measures: Sequence[str], kinds: Sequence[IntervalKind]
    ) -> dict[str, Estimate]:
        rows = keep[trials.stimulus]
        columns = {m: trials.values[m][rows] for m in measures}
        clusters: dict[IntervalKind, Array] = {}
        for kind in kinds:
            every_row = trials.subjects if kind == "subjects" else trials.of(_CLUSTER_FIELD[kind])
            assert every_row is not None
            clusters[kind] = every_row[rows]
        # Shape and texture cues have images and classes of their own.
        return mean_estimates(columns, clusters, trials.cue)

    def _preferences(self, part: Part, shape: Estimate, texture: Estimate) -> dict[str, Estimate]:
        """Return the two preferences, with intervals from both sensitivities, which are independent."""
        reasons: dict[IntervalKind, list[str]] = {kind: [] for kind in KINDS}
        for cue, estimate in zip(CUES, (shape, texture)):
            if "sensitivity" not in self.trials[cue].values:
                reason = self.trials[cue].reason
                absent = Estimate(float("nan"), 0, tuple(undefined(kind, reason) for kind in KINDS))
                absent = absent.excluding(self._excluded(part, CUES, 0, reason))
                return {m.name: absent for m in (shape_preference, texture_preference)}
            for interval in estimate.intervals:
                if interval.kind in reasons and not len(estimate.left_out[interval.kind][cue]):
                    reasons[interval.kind].append(f"{cue} cues: {interval.note}")
        # People are shown both cues: their two sensitivities are not independent.
        arguments = [replace(e, left_out={kind: e.left_out[kind] for kind in KINDS}) for e in (shape, texture)]
        excluded = self._excluded(part, CUES, shape.n + texture.n)
        preferences = {}
        for metric in (shape_preference, texture_preference):
            assert metric.compute is not None
            estimate = derived(metric.compute, *arguments, bounds=metric.bounds).excluding(excluded)
            intervals = tuple(
                undefined(i.kind, "; ".join(reasons[i.kind])) if reasons[i.kind] else i for i in estimate.intervals
            )
            preferences[metric.name] = replace(estimate, intervals=intervals)
        return preferences

    def _add_distorted(self, part: Part, trials: Trials) -> None:
        estimate = self._means(trials, part, ["distorted"], KINDS)["distorted"]
        note = f"{int(trials.values['distorted'].sum()):,} images"
        self.result.add(self.responses, part.condition, distorted_prediction.name, estimate.noting(note))

    def _excluded(self, part: Part, cues: Sequence[str], n: int, reason: str = "") -> dict[str, int]:
        """Return why answers to the stimuli of some cues are not among the n that a number rests on → how many."""
        shown = [self.trials[cue].shown for cue in cues]
        each = self.answers_per_stimulus
        outside = sum(int((~part.keep[cue]).sum()) for cue in cues) * each
        unreadable = sum(int((part.keep[cue] & ~s.readable).sum()) for cue, s in zip(cues, shown)) * each
        rest = sum(map(len, shown)) * each - n - outside - unreadable
        return {
            part.others: outside,
            "unreadable": unreadable,
            "answered without logits" if reason else "unanswered": rest,
        }


# ------------------------------------------------------------------------------------------------------- tables


class Ranks(NamedTuple):
    """The ranks of one observer's answers to one cue, and the position of each one's stimulus in the set."""

    cue: str
    stimulus: Array
    rank: Array


def ranks_of(scorer: Scorer) -> list[Ranks]:
    """Return the ranks of both cues; empty where only decisions were given."""
    return [
        Ranks(cue, trials.of("position")[: len(trials.ranks)].astype(np.int32), trials.ranks)
        for cue, trials in scorer.trials.items()
    ]


def rank_table(everyone: Sequence[tuple[Responses, Sequence[Ranks]]]) -> pa.Table:
    """Return the rank of every answer: observer, view, stimulus, cue, class, patch, rank (1: right).

    Texts are numbers of a list that all observers share: there are as many rows as answers of all observers.
    """
    import pyarrow as pa

    def listed(stimuli: StimulusSet, name: str, text_of: Callable[[Stimulus], str], positions: Array) -> pa.Array:
        def numbered() -> tuple[pa.Array, Array]:
            words, number = np.unique(np.array([text_of(s) for s in stimuli], np.str_), return_inverse=True)
            return pa.array(words.tolist(), pa.string()), number.ravel().astype(np.int32)

        words, number = once(stimuli, f"list of {name}", numbered)
        return pa.DictionaryArray.from_arrays(number[positions], words)

    def repeated(text: str, count: int) -> pa.Array:
        return pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array([text]))

    parts = []
    for responses, ranks in everyone:
        stimuli = responses.stimuli
        for cue, stimulus, rank in ranks:
            columns = {
                "observer": repeated(responses.observer, len(rank)),
                "view": repeated(responses.view, len(rank)),
                "stimulus": listed(stimuli, "id", lambda s: s.id, stimulus),
                "cue": repeated(cue, len(rank)),
                "class": listed(stimuli, cue, attrgetter(cue), stimulus),
                "patch": listed(stimuli, "patch", lambda s: facts(s).get("patch", ""), stimulus),
                "rank": pa.array(rank, pa.int32()),
            }
            parts.append(pa.table(columns))
    return pa.concat_tables(parts)


def defect_table(sets: Sequence[StimulusSet]) -> pa.Table:
    """Return the defects of the files: stimulus, path, kind, detail."""
    import pyarrow as pa

    unique = dict.fromkeys(defect for stimuli in sets for defect in known_defects(stimuli))
    names = ("stimulus", "path", "kind", "detail")
    return pa.table({n: pa.array([getattr(d, n) for d in unique], pa.string()) for n in names})
