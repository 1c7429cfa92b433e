"""The estimates of texture association: associations, confidence, texturedness, dominance, agreement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cuebench.arrays import Array
from cuebench.interval_methods import PERMUTATIONS
from cuebench.metrics.texture_agreement import KINDS, Agreement, by_label, texture_agreement
from cuebench.metrics.texture_association import associated_texture, association_intervals, resampled, top_pairs
from cuebench.metrics.texture_confidence import ConfidenceHistogram
from cuebench.metrics.texture_dominance import STATISTICS, Groups, dominance_estimates, group, texture_dominance
from cuebench.metrics.texturedness import texturedness_difference, texturedness_estimate
from cuebench.protocols.base import ScoreOptions
from cuebench.protocols.texture_association.measure import ADVERSARIAL, CLEAN, TEXTURE, Measured, Photographs
from cuebench.statistics.clustered import ratio_intervals
from cuebench.statistics.estimates import mean_of_sums, missing, share
from cuebench.statistics.intervals import Clusters, undefined
from cuebench.statistics.ratios import Terms
from cuebench.tables.engine import Result
from cuebench.types import Estimate, Interval

TOP = 50
FEW = 20
"""Fewer pictures of a texture than this: its interval is flagged."""
MOST_RESAMPLES = 1000
"""Associations and dominance are recomputed in each resample: more would take minutes and change no digit."""
BY = {"label": "accuracy", "prediction": "confidence"}


@dataclass(frozen=True)
class Scorer:
    """All numbers of one observer."""

    measured: Measured
    options: ScoreOptions
    result: Result

    @property
    def resamples(self) -> int:
        """Number of resamples where a whole analysis is repeated in each."""
        return min(self.options.resamples, MOST_RESAMPLES)

    def add_all(self) -> None:
        """Add the numbers on textures, then on photographs, then on natural adversarial images."""
        self._add_associations()
        self._add_confidence()
        for part, photos in self.measured.photographs.items():
            self._add_photographs(part, photos)
        if CLEAN in self.measured.photographs:
            for by in BY:
                self._add_dominance(by)
            self._add_errors()
        if ADVERSARIAL in self.measured.photographs:
            self._add_adversarial()

    def _add(self, condition: str, metric: str, estimate: Estimate) -> None:
        self.result.add(self.measured.responses, condition, metric, estimate)

    # ------------------------------------------------------------------------------------------------- textures

    def _add_associations(self) -> None:
        """Add the strongest pairs of texture and class."""
        tav, counts = self.measured.tav, self.measured.answers.counts
        pairs = top_pairs(tav, TOP)
        if not pairs:
            return
        at = [p.texture for p in pairs], [p.label for p in pairs]
        batches = resampled(counts, seed=self.options.seed, resamples=self.resamples)
        draws = np.concatenate([batch[:, at[0], at[1]] for batch in batches])
        for pair, interval in zip(pairs, association_intervals(tav[at], draws, counts.sum(axis=1)[at[0]])):
            texture, label = self.measured.textures[pair.texture], self.measured.labels.names[pair.label]
            n = int(counts[pair.texture].sum())
            note = f"{counts[pair.texture, pair.label] / n:.0%} of the pictures of {texture!r}"
            estimate = Estimate(pair.value, n, (interval,)).excluding(self.measured.excluded(TEXTURE, n, texture))
            condition = f"pair/texture={texture}/class={label}"
            self._add(condition, "texture_association", estimate.noting(note, _few(texture, n)))

    def _add_confidence(self) -> None:
        """Add the mean confidence and the share of sure answers on all textures, then the mean on each texture."""
        textures, answers = self.measured.textures, self.measured.answers
        total = answers.overall
        few = sum(histogram.n < FEW for histogram in answers.confidence)
        note = f"{len(textures)} textures; fewer than {FEW} pictures of {few} of them" if few else ""
        excluded = self.measured.excluded(TEXTURE, total.n)
        for condition, estimate in (
            ("textures", _mean_confidence(total)),
            ("textures/sure", share(total.sure, total.n)),
        ):
            sums = [h.sure if condition.endswith("sure") else h.total for h in answers.confidence]
            estimate = replace(estimate, intervals=(*estimate.intervals, _over_textures(sums, answers.confidence)))
            self._add(condition, "texture_confidence", estimate.excluding(excluded).noting(note))
        for name, histogram in zip(textures, answers.confidence):
            estimate = _mean_confidence(histogram).excluding(self.measured.excluded(TEXTURE, histogram.n, name))
            self._add(f"textures/class={name}", "texture_confidence", estimate.noting(_few(name, histogram.n)))

    # --------------------------------------------------------------------------------------------- photographs

    def _add_photographs(self, part: str, photos: Photographs) -> None:
        """Add accuracy and texturedness; of adversarial images also the difference to clean ones."""
        n = len(photos.label)
        excluded = self.measured.excluded(part, n)
        self._add(part, "accuracy", share(int(photos.correct.sum()), n).excluding(excluded))
        without = int((photos.texture < 0).sum())
        note = f"{without:,} images share no class with any texture" if without else ""
        estimate = texturedness_estimate(photos.similarity, self.measured.with_other_pictures[part])
        self._add(part, "texturedness", estimate.excluding(excluded).noting(note))
        shuffled = photos.shuffled_similarity.mean(0) if n else np.zeros(0)
        self._add(f"{part}/shuffled", "texturedness", _null(shuffled, n).excluding(excluded))
        if part == ADVERSARIAL and CLEAN in self.measured.photographs:
            clean, others = self.measured.photographs[CLEAN].similarity, self.measured.with_other_pictures
            both = others[ADVERSARIAL], others[CLEAN]
            drawn = both[0] - both[1] if len(both[0]) == len(both[1]) else None  # a part of one photograph has none
            difference = texturedness_difference(photos.similarity, clean, drawn)
            note = "adversarial minus clean"
            self._add("adversarial-clean", "texturedness", difference.excluding(excluded).noting(note))

    def _add_dominance(self, by: str) -> None:
        """Add the statistics of dominant textures, and those that arise with permuted classes."""
        photos = self.measured.photographs[CLEAN]
        classes, values = grouping(photos, by)
        size = (len(self.measured.textures), len(self.measured.labels))
        estimates = dominance_estimates(
            classes, photos.texture, values, *size, seed=self.options.seed, resamples=self.resamples
        )
        groups = group(classes, photos.texture, values, *size)
        note, excluded = _dominance_note(groups, by), {"without a texture": groups.lost}
        for name in STATISTICS:
            self._add(f"{by}/{name}", "texture_dominance", estimates[name].excluding(excluded).noting(note))
        permuted = [texture_dominance(group(classes, textures, values, *size)) for textures in photos.shuffled.T]
        for name in ("correlation", "textures", "gap"):
            draws = np.array([getattr(statistics, name) for statistics in permuted])
            null = _null(draws, len(classes) - groups.lost).excluding(excluded)
            self._add(f"{by}/{name}/shuffled", "texture_dominance", null)

    def _add_errors(self) -> None:
        """Add, of wrong answers to clean images, how many show the texture of the class that was answered.

        Not in the paper: dominant textures of the same images would be circular, so the usual texture of a class is
        here the one that it is most associated with on textures alone. Works with one image of each class.
        """
        photos, tav = self.measured.photographs[CLEAN], self.measured.tav
        wrong = ~photos.correct
        answered = photos.prediction[wrong], photos.label[wrong]
        agreement = texture_agreement(photos.texture[wrong], *answered, associated_texture(tav))
        n = int(agreement.judged.sum())
        excluded = {"not judged": int(wrong.sum()) - n}
        note = "usual texture of a class: the one most associated with it (TAV); not in the paper"
        for i, kind in enumerate(KINDS):
            estimate = share(int(agreement.kinds[:, i].sum()), n).excluding(excluded).noting(note)
            self._add(f"clean_errors/{kind}", "texture_agreement", estimate)
        permuted = [
            texture_agreement(textures[wrong], *answered, associated_texture(tav[:, order]))
            for textures, order in zip(photos.shuffled.T, self.measured.permutations)
        ]
        for i, kind in enumerate(KINDS[:2]):
            draws = [p.kinds[:, i].sum() / p.judged.sum() if p.judged.any() else math.nan for p in permuted]
            null = _null(np.array(draws), n).excluding(excluded)
            self._add(f"clean_errors/{kind}/shuffled", "texture_agreement", null)

    def _add_adversarial(self) -> None:
        """Add whose usual texture natural adversarial images show, by image and by class."""
        photos = self.measured.photographs[ADVERSARIAL]
        if CLEAN not in self.measured.photographs:
            reason = "dominant textures come from clean images, and there are none: put them in imagenet_val"
            shown = sum(s.condition == ADVERSARIAL for s in self.measured.responses.stimuli)
            for kind in KINDS:
                absent = missing(reason, "images", {"not judged": shown})
                self._add(f"adversarial/{kind}", "texture_agreement", absent)
            return
        agreement = judge(self.measured, photos)
        n = int(agreement.judged.sum())
        excluded = {**self.measured.excluded(ADVERSARIAL, len(photos.label)), "not judged": len(photos.label) - n}
        hits = dict(zip(KINDS, agreement.kinds.sum(0)))
        hits["not_label"] = hits["prediction"] + hits["neither"]
        for kind, count in hits.items():
            self._add(f"adversarial/{kind}", "texture_agreement", share(int(count), n).excluding(excluded))
        classes = by_label(agreement, photos.label, len(self.measured.labels))
        note = "labels with an image that agrees with one of the two textures only"
        more, only = int((classes.prediction > classes.own).sum()), int((classes.own == 0).sum())
        for condition, count in (("more_prediction", more), ("only_prediction", only)):
            estimate = share(count, len(classes.label)).noting(note)
            self._add(f"adversarial/classes/{condition}", "texture_agreement", estimate)


def grouping(photos: Photographs, by: str) -> tuple[Array, Array]:
    """Return the class and the value of each image: label and correctness, or prediction and confidence."""
    return (photos.label, photos.correct) if by == "label" else (photos.prediction, photos.confidence)


def judge(measured: Measured, photos: Photographs) -> Agreement:
    """Compare the texture of each image with the dominant textures of clean images, grouped by prediction."""
    clean = measured.photographs[CLEAN]
    size = (len(measured.textures), len(measured.labels))
    groups = group(clean.prediction, clean.texture, clean.confidence, *size)
    return texture_agreement(photos.texture, photos.prediction, photos.label, groups.dominant)


def _few(texture: str, n: int) -> str:
    return "" if n >= FEW else f"only {n} pictures of {texture!r}: every number of it is rough"


def _dominance_note(groups: Groups, by: str) -> str:
    text = f"{BY[by]} by {by}; {groups.classes:,} classes"
    if groups.alone * 2 > groups.classes:
        text += f", {groups.alone:,} of them with a single image: shares of 1 by themselves, read with care"
    return text


def _mean_confidence(histogram: ConfidenceHistogram) -> Estimate:
    """Return the mean confidence with Student's interval, from sums alone."""
    if histogram.n < 2:
        return Estimate(histogram.mean, histogram.n, (undefined("images", "fewer than two pictures"),))
    return mean_of_sums(histogram.mean, histogram.variance_of_mean, histogram.n, histogram.n - 1)


def _over_textures(sums: Sequence[float], histograms: Sequence[ConfidenceHistogram]) -> Interval:
    """Return the interval of a mean over pictures for other textures: pictures of one texture are alike."""
    shown = np.array([h.n for h in histograms], np.float64)
    each = np.flatnonzero(shown)
    if len(each) < 2:
        return undefined("classes", f"{len(each)} texture{'s' * (len(each) != 1)}: nothing to compare")
    terms = Terms(np.array(sums, np.float64)[each], shown[each])
    ((interval,),) = ratio_intervals([terms], Clusters(each, each, each), ["images"])
    return replace(interval, kind="classes", note=interval.note.replace("images", "textures"))


def _null(draws: Array, n: int) -> Estimate:
    """Return the mean and the range over TAVs with permuted classes: what arises without any association."""
    defined = draws[~np.isnan(draws)]
    if not len(defined):
        return Estimate(math.nan, n, (undefined("shuffles", "undefined"),))
    if defined.min() == defined.max():
        return Estimate(float(defined.mean()), n, (undefined("shuffles", "every permutation gives the same"),))
    note = f"mean and range of {len(defined)} TAVs with permuted classes: what arises without any association"
    interval = Interval(float(defined.min()), float(defined.max()), "shuffles", method=PERMUTATIONS)
    return Estimate(float(defined.mean()), n, (interval,)).noting(note)
