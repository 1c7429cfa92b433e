"""The score rows of texture association: associations, confidence, dominance, agreement, texturedness."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Array
from cuebench.metrics import texture_dominance as dominance
from cuebench.metrics.texture_agreement import KINDS, by_label, texture_agreement
from cuebench.metrics.texture_association import associated_texture, association_intervals, resampled, top_pairs
from cuebench.metrics.texture_confidence import ConfidenceHistogram
from cuebench.protocols.base import ScoreOptions
from cuebench.protocols.texture_association.measure import ADVERSARIAL, CLEAN, TEXTURE, Measured, Photographs
from cuebench.statistics.intervals import Bootstrap
from cuebench.types import Interval

TOP = 50
FEW = 20
"""Fewer pictures of a texture than this: its interval is flagged."""
MOST_RESAMPLES = 1000
"""Associations and dominance are recomputed whole in each resample: more would cost minutes and change no digit."""
BY = {"label": "accuracy", "prediction": "confidence"}


class Row(NamedTuple):
    """A score before it knows its protocol and observer."""

    condition: str
    metric: str
    value: float
    interval: Interval
    n: int
    excluded: int = 0
    note: str = ""


def rows(found: Measured, options: ScoreOptions) -> Iterator[Row]:
    """Yield all rows of one observer, in a fixed order."""
    yield from _association(found, options)
    yield from _confidence(found)
    for part, photos in found.photographs.items():
        yield from _photographs(found, part, photos)
    if CLEAN in found.photographs:
        for by in BY:
            yield from _dominance(found, by, options)
        yield from _errors(found)
    if ADVERSARIAL in found.photographs:
        yield from _adversarial(found)


# ---------------------------------------------------------------------------------------------------- textures


def _association(found: Measured, options: ScoreOptions) -> Iterator[Row]:
    pairs = top_pairs(found.tav, TOP)
    at = [p.texture for p in pairs], [p.label for p in pairs]
    resamples = min(options.resamples, MOST_RESAMPLES)
    batches = resampled(found.answers.counts, seed=options.seed, resamples=resamples) if pairs else ()
    draws = np.concatenate([tav[:, at[0], at[1]] for tav in batches]) if pairs else np.zeros((0, 0))
    intervals = association_intervals(found.tav[at], draws) if pairs else []
    pictures = found.answers.counts.sum(1)
    asked = _asked(found)
    for i, pair in enumerate(pairs):
        texture, n = found.textures[pair.texture], int(pictures[pair.texture])
        share = found.answers.counts[pair.texture, pair.label] / n
        note = f"{share:.0%} of the pictures of {texture!r}; {_few(texture, n)}".removesuffix("; ")
        name = f"pair/texture={texture}/class={found.labels.names[pair.label]}"
        yield Row(name, "texture_association", pair.value, intervals[i], n, asked[texture] - n, note)


def _confidence(found: Measured) -> Iterator[Row]:
    total = found.answers.overall
    lost = sum(_asked(found).values()) - total.n
    few = [t for t, h in zip(found.textures, found.answers.confidence) if h.n < FEW]
    note = f"{len(found.textures)} textures; fewer than {FEW} pictures of {len(few)} of them" if few else ""
    yield Row("textures", "texture_confidence", _mean(total), mean_interval(total), total.n, lost, note)
    yield Row("textures/sure", "texture_confidence", *_share(total.sure, total.n), total.n, lost, note)
    asked = _asked(found)
    for name, one in zip(found.textures, found.answers.confidence):
        condition = f"textures/class={name}"
        missing, why = asked[name] - one.n, _few(name, one.n)
        yield Row(condition, "texture_confidence", _mean(one), mean_interval(one), one.n, missing, why)


def _asked(found: Measured) -> dict[str, int]:
    asked = dict.fromkeys(found.textures, 0)
    for s in found.responses.stimuli:
        if s.condition == TEXTURE:
            asked[s.texture] += 1
    return asked


def _few(texture: str, n: int) -> str:
    return "" if n >= FEW else f"only {n} pictures of {texture!r}: the interval is too narrow"


# ------------------------------------------------------------------------------------------------- photographs


def _photographs(found: Measured, part: str, photos: Photographs) -> Iterator[Row]:
    n = len(photos.label)
    lost = sum(s.condition == part for s in found.responses.stimuli) - n
    right = int(photos.correct.sum())
    yield Row(part, "accuracy", *_share(right, n), n, lost)
    mean, interval = _mean_of(photos.similarity)
    without = int((photos.texture < 0).sum())
    note = f"{without:,} images share no class with any texture" if without else ""
    yield Row(part, "texturedness", mean, interval, n, lost, note)
    yield _null(f"{part}/shuffled", "texturedness", photos.shuffled_similarity.mean(0) if n else np.zeros(0), n, lost)
    if part == ADVERSARIAL and CLEAN in found.photographs:
        clean = found.photographs[CLEAN].similarity
        value, interval = _difference(photos.similarity, clean)
        note = "adversarial minus clean; Welch interval"
        yield Row("adversarial-clean", "texturedness", value, interval, n + len(clean), lost, note)


def _dominance(found: Measured, by: str, options: ScoreOptions) -> Iterator[Row]:
    photos = found.photographs[CLEAN]
    classes, values = grouping(photos, by)
    size = (len(found.textures), len(found.labels))
    groups = dominance.group(classes, photos.texture, values, *size)
    stats = dominance.texture_dominance(groups)
    resamples = min(options.resamples, MOST_RESAMPLES)
    boots = dominance.dominance_intervals(
        classes, photos.texture, values, *size, seed=options.seed, resamples=resamples
    )
    n, lost = len(classes) - groups.lost, groups.lost
    note = _dominance_note(groups, by)
    for name in dominance.STATISTICS:
        boot: Bootstrap = boots[name]
        value = getattr(stats, name)
        why = "; ".join(filter(None, [note, boot.note, "undefined" if math.isnan(value) else ""]))
        yield Row(f"{by}/{name}", "texture_dominance", value, boot.interval, n, lost, why)
    null = [
        dominance.texture_dominance(dominance.group(classes, shuffled, values, *size)) for shuffled in photos.shuffled.T
    ]
    for name in ("correlation", "textures", "gap"):
        draws = np.array([getattr(one, name) for one in null])
        yield _null(f"{by}/{name}/shuffled", "texture_dominance", draws, n, lost)


def grouping(photos: Photographs, by: str) -> tuple[Array, Array]:
    """Return the class and the value of each image: label and right answer, or prediction and confidence."""
    return (photos.label, photos.correct) if by == "label" else (photos.prediction, photos.confidence)


def _dominance_note(groups: dominance.Groups, by: str) -> str:
    text = f"{BY[by]} by {by}; {groups.classes:,} classes"
    if groups.alone * 2 > groups.classes:
        text += f", {groups.alone:,} of them with a single image: shares of 1 by themselves, read with care"
    return text


def _adversarial(found: Measured) -> Iterator[Row]:
    photos = found.photographs[ADVERSARIAL]
    total = sum(s.condition == ADVERSARIAL for s in found.responses.stimuli)
    if CLEAN not in found.photographs:
        why = "dominant textures come from clean images, and there are none: put them in imagenet_val"
        nothing = Interval(math.nan, math.nan, "images")
        for kind in KINDS:
            yield Row(f"adversarial/{kind}", "texture_agreement", math.nan, nothing, 0, total, why)
        return
    judged = judge(found, photos)
    n = int(judged.judged.sum())
    for i, kind in enumerate(KINDS):
        yield Row(f"adversarial/{kind}", "texture_agreement", *_share(int(judged.kinds[:, i].sum()), n), n, total - n)
    against = int(judged.kinds[:, [0, 3]].sum())
    yield Row("adversarial/not_label", "texture_agreement", *_share(against, n), n, total - n)
    classes = by_label(judged, photos.label, len(found.labels))
    size, note = len(classes.label), "labels with an image that agrees with one of the two textures only"
    more, only = int((classes.prediction > classes.own).sum()), int((classes.own == 0).sum())
    yield Row("adversarial/classes/more_prediction", "texture_agreement", *_share(more, size), size, 0, note)
    yield Row("adversarial/classes/only_prediction", "texture_agreement", *_share(only, size), size, 0, note)


def _errors(found: Measured) -> Iterator[Row]:
    """Ask of each wrong answer to a clean image: does it show the texture of what it is taken for?

    Not in the paper: dominant textures of the same images would be circular, so the usual texture of a class is here
    the one that it is most associated with on textures alone. Works with one image a class.
    """
    photos = found.photographs[CLEAN]
    wrong = ~photos.correct
    own = photos.prediction[wrong], photos.label[wrong]
    judged = texture_agreement(photos.texture[wrong], *own, associated_texture(found.tav))
    n, total = int(judged.judged.sum()), int(wrong.sum())
    note = "usual texture of a class: the one most associated with it (TAV); not in the paper"
    for i, kind in enumerate(KINDS):
        value, interval = _share(int(judged.kinds[:, i].sum()), n)
        yield Row(f"clean_errors/{kind}", "texture_agreement", value, interval, n, total - n, note)
    for i, kind in enumerate(KINDS[:2]):
        draws = []
        for shuffled, order in zip(photos.shuffled.T, found.permutations):
            null = texture_agreement(shuffled[wrong], *own, associated_texture(found.tav[:, order]))
            draws.append(null.kinds[:, i].sum() / null.judged.sum() if null.judged.any() else math.nan)
        yield _null(f"clean_errors/{kind}/shuffled", "texture_agreement", np.array(draws), n, total - n)


def judge(found: Measured, photos: Photographs) -> Any:
    """Compare the texture of each image with the dominant textures of clean images, grouped by prediction."""
    clean = found.photographs[CLEAN]
    size = (len(found.textures), len(found.labels))
    groups = dominance.group(clean.prediction, clean.texture, clean.confidence, *size)
    return texture_agreement(photos.texture, photos.prediction, photos.label, groups.dominant)


# --------------------------------------------------------------------------------------------------- intervals


def _share(hits: int, n: int) -> tuple[float, Interval]:
    """Return a share and its Wilson interval, which stays inside [0, 1] and is right near its ends."""
    if not n:
        return math.nan, Interval(math.nan, math.nan, "images")
    z, p = 1.959963984540054, hits / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return p, Interval(max(0.0, centre - half), min(1.0, centre + half), "images")


def _mean_of(values: Array) -> tuple[float, Interval]:
    n = len(values)
    if n < 2:
        return (float(values[0]) if n else math.nan), Interval(math.nan, math.nan, "images")
    return float(values.mean()), _student(float(values.mean()), float(values.var(ddof=1)) / n, n - 1)


def mean_interval(histogram: ConfidenceHistogram) -> Interval:
    """Return Student's interval of the mean confidence, from sums alone."""
    n = histogram.n
    if n < 2:
        return Interval(math.nan, math.nan, "images")
    mean = histogram.total / n
    return _student(mean, max(histogram.squares / n - mean**2, 0) / (n - 1), n - 1)


def _mean(histogram: ConfidenceHistogram) -> float:
    return histogram.total / histogram.n if histogram.n else math.nan


def _difference(first: Array, second: Array) -> tuple[float, Interval]:
    if min(len(first), len(second)) < 2:
        return math.nan, Interval(math.nan, math.nan, "images")
    a, b = first.var(ddof=1) / len(first), second.var(ddof=1) / len(second)
    freedom = (a + b) ** 2 / max(a**2 / (len(first) - 1) + b**2 / (len(second) - 1), 1e-300)
    value = float(first.mean() - second.mean())
    return value, _student(value, float(a + b), float(freedom))


def _student(mean: float, variance: float, freedom: float) -> Interval:
    from scipy.special import stdtrit

    half = float(stdtrit(freedom, 0.975)) * math.sqrt(variance)
    return Interval(mean - half, mean + half, "images")


def _null(condition: str, metric: str, draws: Array, n: int, lost: int) -> Row:
    """Return the mean over TAVs whose classes were permuted, with their range."""
    known = draws[~np.isnan(draws)] if len(draws) else draws
    if not len(known):
        return Row(condition, metric, math.nan, Interval(math.nan, math.nan, ""), n, lost, "undefined")
    note = f"mean and range of {len(known)} TAVs with permuted classes: what arises without any association"
    return Row(condition, metric, float(known.mean()), Interval(known.min(), known.max(), ""), n, lost, note)
