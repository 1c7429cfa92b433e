"""How often each kind of interval holds the truth, simulated: the table behind ``cuebench explain two_way``.

    python -m benchmarks coverage                          100 studies for each setting
    python -m benchmarks.coverage --studies 1000 --write   the table of the package, statistics/interval_coverage.csv

A study is drawn anew with its shapes, textures, people, images and classes; its interval holds the truth or not. The
truth is an integral over new sources, or the mean over many more images. Settings go where intervals break: few
sources, rates near 0 and 1, no effects of sources, rare classes, few models. `cuebench calibrate` measures the same
through the protocols, for planted observers.
"""

from __future__ import annotations

import argparse
import csv
import math
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from benchmarks.coverage_people import CLAIMED, World, worlds
from benchmarks.paired import TRIPLETS, two_networks
from cuebench.metrics.cue_decomposition import robustness_cd, shape_bias_cd
from cuebench.metrics.error_consistency import error_consistency, mean_over_pairs
from cuebench.metrics.mean_iou import mean_iou_of_areas
from cuebench.metrics.refined_bias import shape_preference
from cuebench.metrics.relative_robustness import relative_robustness
from cuebench.metrics.shape_reliance import shape_reliance
from cuebench.metrics.triplet_shape_bias import shared_terms
from cuebench.metrics.triplet_shape_bias import terms as triplet_terms
from cuebench.metrics.triplets import Tally, count, decide, enumerate_triplets, gram
from cuebench.protocols.triplets.scores import _gain
from cuebench.statistics.clustered import Sums, ratio_intervals
from cuebench.statistics.correlations import correlate
from cuebench.statistics.estimates import derived, mean_of_subjects, part_of
from cuebench.statistics.intervals import Clusters, weights
from cuebench.statistics.means import mean_estimates
from cuebench.statistics.paired import paired
from cuebench.statistics.ratios import Terms, quotient, total
from cuebench.statistics.sums import estimates_of_sums

Array = np.ndarray
Random = np.random.Generator
TABLE = Path(__file__).resolve().parents[1] / "src" / "cuebench" / "statistics" / "interval_coverage.csv"
ORDER = (
    *("cue_conflict", "compare", "triplets", "refined_bias", "cue_decomposition", "feature_suppression"),
    *("corruption_robustness", "cue_decomposition_segmentation", "human_alignment", "correlate"),
)
COLUMNS = ("protocol", "metric", "kind", "setting", "studies", "coverage", "mean_width", "bias")


class Held(NamedTuple):
    """One interval of one study, and the truth that it should hold."""

    kind: str
    value: float
    low: float
    high: float
    truth: float


class Setting(NamedTuple):
    """One row or several of the table: ``study(rng)`` yields the intervals of one study. ``part`` of all studies."""

    protocol: str
    metric: str
    words: str
    study: Callable[[Random], Iterator[Held]]
    part: float = 1.0


# ---------------------------------------------------------------------------------------------- ratios of two sources

DESIGNS = (
    (160, 48, 1200),
    (160, 48, 240),
    (160, 16, 1200),
    (160, 8, 600),
    (160, 4, 400),
    (16, 16, 128),
    (8, 8, 64),
    (4, 4, 16),
)
EFFECTS = {"no effects of sources": (0.0, 0.0), "both kinds vary": (1.0, 1.0), "textures vary": (0.0, 1.0)}
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def over_new(log_odds: Array | float, spread: float) -> Array:
    """Return the mean rate over new sources whose effects on the log odds have this spread."""
    return (expit(np.asarray(log_odds)[..., None] + spread * NODES) * WEIGHTS).sum(axis=-1)


def intercept(rate: float, spread: float) -> float:
    """Return the log odds with which the mean rate over new sources is this."""
    from scipy.optimize import brentq

    return float(brentq(lambda x: float(over_new(x, spread)) - rate, -30, 30))


def ratios(size: tuple[int, int, int], rate: float, spread: tuple[float, float], decided: float) -> Callable:
    """Return a study of a shape bias: each kind of interval with the truth that it claims to hold."""
    shapes, textures, images = size
    start = intercept(rate, math.hypot(*spread))

    def study(rng: Random) -> Iterator[Held]:
        cells = rng.choice(shapes * textures, images, replace=False)
        shape, texture = cells // textures, cells % textures
        a, b = rng.normal(0, spread[0], shapes), rng.normal(0, spread[1], textures)
        counted = rng.random(images) < decided
        hits = (rng.random(images) < expit(start + a[shape] + b[texture])) & counted
        if not counted.any():
            return
        truths = {
            "images": expit(start + a[:, None] + b).mean(),
            "shape_sources": over_new(start + b, spread[0]).mean(),
            "texture_sources": over_new(start + a, spread[1]).mean(),
            "two_way": rate,
        }
        clusters = Clusters(np.arange(images), shape, texture)
        (found,) = ratio_intervals([Terms(hits, counted)], clusters, list(truths))
        value = hits.sum() / counted.sum()
        for i in found:
            yield Held(i.kind, value, i.low, i.high, truths[i.kind])
            if i.kind == "images":
                yield Held("images, taken for other sources", value, i.low, i.high, rate)

    return study


def bootstrapped(size: tuple[int, int, int], rate: float, spread: tuple[float, float], decided: float) -> Callable:
    """Return a study of the bootstrap that this package used before: product weights of shapes and textures."""
    shapes, textures, images = size
    start = intercept(rate, math.hypot(*spread))

    def study(rng: Random) -> Iterator[Held]:
        cells = rng.choice(shapes * textures, images, replace=False)
        shape, texture = cells // textures, cells % textures
        a, b = rng.normal(0, spread[0], shapes), rng.normal(0, spread[1], textures)
        counted = rng.random(images) < decided
        hits = (rng.random(images) < expit(start + a[shape] + b[texture])) & counted
        u, v = (weights(s, n, 0, 1000).astype(float) for s, n in (("shapes", shapes), ("textures", textures)))
        sums = []
        for column in (hits, counted):
            table = np.bincount(cells, column, shapes * textures).reshape(shapes, textures)
            sums.append(np.einsum("bj,bj->b", u @ table, v))
        low, high = np.nanquantile(quotient(*sums), [0.025, 0.975])
        yield Held("two_way by bootstrap, not used", hits.sum() / counted.sum(), low, high, rate)

    return study


def pooled_people(people: int, spread: tuple[float, float, float]) -> Callable:
    """Return a study of people who all see the same 300 images of 40 shapes and 16 textures."""
    start = intercept(0.8, math.sqrt(sum(s * s for s in spread)))

    def study(rng: Random) -> Iterator[Held]:
        cells = rng.choice(40 * 16, 300, replace=False)
        shape, texture = (np.tile(c, people) for c in (cells // 16, cells % 16))
        person, image = np.repeat(np.arange(people), 300), np.tile(np.arange(300), people)
        a, b, c = (rng.normal(0, s, n) for s, n in zip(spread, (40, 16, people)))
        hits = rng.random(len(image)) < expit(start + a[shape] + b[texture] + c[person])
        terms, ones = Terms(hits, np.ones(len(hits), bool)), hits.mean()
        fixed = over_new(start + a[shape[:300]] + b[texture[:300]], spread[2]).mean()
        truths = {"three_way": 0.8, "subjects": fixed}
        for i in ratio_intervals([terms], Clusters(image, shape, texture, person), list(truths))[0]:
            yield Held(i.kind, ones, i.low, i.high, truths[i.kind])
        mean = mean_of_subjects(terms, person)
        yield Held("subjects, mean of subjects", mean.value, mean.intervals[0].low, mean.intervals[0].high, fixed)

    return study


def differences(size: tuple[int, int, int], logits: tuple[float, float], decided: tuple[float, float]) -> Callable:
    """Return a study of two observers on the same images: shared and own effects of both kinds of source."""
    shapes, textures, images = size
    truth = float(over_new(logits[0], math.sqrt(2.5)) - over_new(logits[1], math.sqrt(2.5)))

    def study(rng: Random) -> Iterator[Held]:
        cells = rng.choice(shapes * textures, images, replace=False)
        places = cells // textures, cells % textures
        shared = [rng.normal(0, 1, n) for n in (shapes, textures)]
        sums = []
        for start, share in zip(logits, decided):
            effect = sum((s + rng.normal(0, 0.5, len(s)))[place] for s, place in zip(shared, places))
            counted = rng.random(images) < share
            hits = (rng.random(images) < expit(start + effect)) & counted
            sources = {"shape_sources": places[0], "texture_sources": places[1]}
            sums.append(Sums.of_ratio(Terms(hits, counted), cells, sources))  # type: ignore[arg-type]
        found = paired(*sums)
        if found.interval is not None:
            yield Held("two_way", found.value, found.interval.low, found.interval.high, truth)

    return study


# ------------------------------------------------------------------------------------------------------ triplets


def triplets(shapes: int, textures: int, weight: float, truth: float) -> Callable:
    """Return a study of similarities: features are shape and texture vectors, weighted, with noise of each image."""
    s, t = (a.ravel() for a in np.meshgrid(np.arange(shapes), np.arange(textures), indexing="ij"))
    found = enumerate_triplets([str(i) for i in s], [str(i) for i in t])
    clusters = Clusters(np.arange(len(s)), s, t)

    def features(rng: Random, weight: float) -> Array:
        by_shape, by_texture = rng.normal(size=(shapes, 30))[s], rng.normal(size=(textures, 30))[t]
        return weight * by_shape + (1 - weight) * by_texture + 0.5 * rng.normal(size=(len(s), 30))

    def tally(rng: Random, weight: float) -> Tally:
        return count(decide(gram(features(rng, weight), found)), found)

    def study(rng: Random) -> Iterator[Held]:
        trained = tally(rng, weight)
        terms = triplet_terms(trained)
        for i in ratio_intervals([terms], clusters, ["two_way"], shared=[shared_terms(trained)])[0]:
            yield Held("two_way", total(terms).value, i.low, i.high, truth)
        if shapes == 16:
            gain = _gain(trained, [tally(rng, 0.5) for _ in range(5)], clusters)
            yield Held("two_way, gain over 5 seeds", gain.value, *_ends(gain.intervals[1]), truth - 0.5)

    study.value = lambda rng: total(triplet_terms(tally(rng, weight))).value  # type: ignore[attr-defined]
    return study


def triplet_differences(shapes: int, textures: int, weight: tuple[float, float]) -> Callable:
    """Return a study of two networks on the same drawn objects, with its truth, the mean over many studies."""
    draw = two_networks(shapes, textures, weight)
    rng = np.random.default_rng(14)
    truth = 0.0 if weight[0] == weight[1] else float(np.mean([paired(*draw(rng)).value for _ in range(600)]))

    def study(rng: Random) -> Iterator[Held]:
        found = paired(*draw(rng))
        if found.interval is not None:
            yield Held("two_way", found.value, *_ends(found.interval), truth)

    return study


def _ends(interval: object) -> tuple[float, float]:
    return interval.low, interval.high  # type: ignore[attr-defined]


def planted_triplets(shapes: int, textures: int, weight: float) -> Callable:
    """Return the study with its truth, the mean over many studies."""
    rng = np.random.default_rng(11)
    draw = triplets(shapes, textures, weight, math.nan).value  # type: ignore[attr-defined]
    truth = 0.5 if weight == 0.5 else float(np.mean([draw(rng) for _ in range(600)]))
    return triplets(shapes, textures, weight, truth)


# -------------------------------------------------------------------------------------------- means and quotients


def refined(classes: int, images: int, start: float, spread: float) -> Callable:
    """Return a study of mean reciprocal ranks of images in classes: sensitivity, and the preference for shape."""
    rest = 0.1 * (1 - math.exp(-5))  # mean of min(exponential of mean .1, .5)
    hit = float(over_new(start, spread))
    truth = hit + (1 - hit) * rest

    def study(rng: Random) -> Iterator[Held]:
        means = []
        for cue in ("shape", "texture"):
            p = expit(start + rng.normal(0, spread, classes))
            right = rng.random((classes, images)) < p[:, None]
            values = np.where(right, 1, np.minimum(rng.exponential(0.1, right.shape), 0.5))
            clusters = {"images": np.arange(values.size), "classes": np.repeat(np.arange(classes), images)}
            means.append(mean_estimates({"v": values.ravel()}, clusters, cue)["v"])  # type: ignore[arg-type]
            fixed = p.mean() + (1 - p.mean()) * rest
        last = means[-1]
        for i, true in zip(last.intervals, (fixed, truth)):
            yield Held(i.kind, last.value, i.low, i.high, true)
        preference = derived(shape_preference.compute, *means, bounds=(0.0, 1.0))  # type: ignore[arg-type]
        i = preference.intervals[1]
        yield Held("classes, preference", preference.value, i.low, i.high, 0.5)

    return study


def qualities(images: int, lean: tuple[float, ...], function: Callable, of: tuple[int, ...], bounds: tuple) -> Callable:
    """Return a study of a function of accuracies on several versions of the same images; of losses, by Fieller."""
    p = [float(over_new(start, 1.0)) for start in lean]
    truth = float(function(*(p[i] for i in of)))

    def study(rng: Random) -> Iterator[Held]:
        correct = rng.random((images, len(lean))) < expit(rng.normal(size=(images, 1)) + np.array(lean))
        found = estimates_of_sums(
            np.column_stack([correct, np.ones_like(correct)]),
            lambda sums: quotient(sums[:, : len(lean)], sums[:, len(lean) :]),
            [images] * len(lean),
        )
        estimate = derived(function, *(found[i] for i in of), bounds=bounds)
        if function is shape_reliance:
            estimate = part_of(function, lambda s, t: 1 - s, lambda s, t: 2 - s - t, *(found[i] for i in of))
        yield Held("images", estimate.value, *_ends(estimate.intervals[0]), truth)

    return study


def segmentations(images: int, classes: int, rarest: float) -> Callable:
    """Return a study of a mean IoU: classes as rare as in data sets, images of different difficulty."""
    share = np.exp(np.linspace(np.log(0.4), np.log(rarest), classes))
    good = np.linspace(2, -0.5, classes)

    def draw(rng: Random, number: int) -> Array:
        present = rng.random((number, classes)) < share
        present[:, 0] = True
        size = np.where(present, rng.lognormal(0, 1, present.shape), 0)
        size /= size.sum(axis=1, keepdims=True)
        recall = expit(good + 0.7 * rng.normal(size=(number, 1)) + 0.8 * rng.normal(size=present.shape))
        missed = (size * (1 - recall)).sum(axis=1)
        wrong = np.zeros_like(size)
        wrong[:, 0] = 0.6 * missed
        for _ in range(3):
            wrong[np.arange(number), rng.integers(1, classes, number)] += 0.4 / 3 * missed
        return np.stack([size * recall, size, size * recall + wrong], axis=1)

    rng = np.random.default_rng(12)
    truth = float(mean_iou_of_areas(sum(draw(rng, 20_000).sum(axis=0)[None] for _ in range(10)))[0])

    def study(rng: Random) -> Iterator[Held]:
        areas = draw(rng, images)
        (found,) = estimates_of_sums(areas, lambda sums: mean_iou_of_areas(sums)[:, None], [images])
        yield Held("images", found.value, *_ends(found.intervals[0]), truth)

    return study


def consistencies(images: int, people: int) -> Callable:
    """Return a study of the mean κ of an observer with the same people on other images."""
    own = np.linspace(0.5, 1.5, people + 1)

    def draw(rng: Random, number: int) -> Array:
        return rng.random((people + 1, number)) < expit(1.5 * rng.normal(size=number) + own[:, None])

    rng = np.random.default_rng(13)
    many = draw(rng, 400_000)
    truth = float(np.mean([error_consistency(many[0], many[i]) for i in range(1, people + 1)]))

    def study(rng: Random) -> Iterator[Held]:
        correct = draw(rng, images)
        pairs = [(0, i) for i in range(1, people + 1)]
        found = mean_over_pairs(correct, np.ones_like(correct), pairs)
        yield Held("images", found.value, *_ends(found.intervals[0]), truth)

    return study


def with_people(world: World, metric: str) -> Callable:
    """Return a study of `human_alignment`: other images for the same people, then other people for the same images."""

    def study(rng: Random) -> Iterator[Held]:
        for kind in CLAIMED[metric]:
            yield Held(kind, *world.study(rng, kind))

    return study


def correlations(models: int, rho: float, method: str) -> Callable:
    """Return a study of a correlation of models."""
    truth = {
        "pearson": rho,
        "spearman": 6 / math.pi * math.asin(rho / 2),
        "kendall": 2 / math.pi * math.asin(rho),
    }[method]

    def study(rng: Random) -> Iterator[Held]:
        x, noise = rng.normal(size=(2, models))
        found = correlate(x, rho * x + math.sqrt(1 - rho * rho) * noise, method, resamples=1000)  # type: ignore[arg-type]
        yield Held("models", found.value, found.low, found.high, truth)

    return study


# ------------------------------------------------------------------------------------------------------ the table


def settings() -> Iterator[Setting]:
    """Yield every setting of the table."""
    for size in DESIGNS:
        design = f"{size[2]:,} images of {size[0]} shapes and {size[1]} textures"
        for rate in (0.02, 0.24, 0.5, 0.98) if size[2] > 16 else (0.24, 0.5):
            for words, spread in EFFECTS.items():
                study = ratios(size, rate, spread, 0.7)
                yield Setting("cue_conflict", "shape_bias", f"{design}; rate {rate:g}; {words}", study)
    for words, spread in EFFECTS.items():
        study = bootstrapped((160, 48, 1200), 0.24, spread, 0.7)
        yield Setting("cue_conflict", "shape_bias", f"160 × 48; rate 0.24; {words}", study, 0.25)
    for size, logits, decided in (
        ((160, 48, 1200), (-1.2, -1.2), (0.65, 0.65)),
        ((160, 48, 1200), (-1.2, -1.2), (0.8, 0.3)),
        ((160, 48, 1200), (3.0, 3.0), (0.9, 0.5)),
        ((160, 48, 240), (-1.2, -0.7), (0.65, 0.5)),
        ((16, 16, 128), (-1.2, -0.7), (0.65, 0.65)),
        ((8, 8, 64), (-1.2, -0.7), (0.9, 0.9)),
    ):
        words = f"difference, {size[2]:,} images of {size[0]} shapes and {size[1]} textures; "
        words += f"log odds {logits[0]:g} and {logits[1]:g}; decided {decided[0]:g} and {decided[1]:g}"
        yield Setting("compare", "shape_bias", words, differences(size, logits, decided), 0.5)
    for *size, pair in TRIPLETS:
        words = f"difference, {size[0]} shapes × {size[1]} textures; weights of shape {pair[0]:g} and {pair[1]:g}"
        yield Setting("compare", "triplet_shape_bias", words, triplet_differences(*size, pair), 0.25)
    for people, spread in ((10, (0.7, 0.7, 0.7)), (10, (0.7, 0.7, 0.0)), (4, (0.7, 0.7, 0.7)), (30, (0.0, 0.0, 1.0))):
        words = f"{people} people, 300 images of 40 shapes and 16 textures; spreads {spread}"
        yield Setting("cue_conflict", "shape_bias of people", words, pooled_people(people, spread), 0.5)
    for shapes, textures, weight in ((16, 16, 0.5), (16, 16, 0.55), (8, 8, 0.5), (8, 8, 0.6)):
        words = f"{shapes} shapes × {textures} textures; weight of shape {weight:g}"
        study = planted_triplets(shapes, textures, weight)
        yield Setting("triplets", "triplet_shape_bias", words, study, 0.25)
    for classes, images, start, spread in (
        (10, 300, -1, 1), (10, 300, 2.5, 1), (10, 300, 0, 0), (10, 16, -1, 1), (20, 30, -1, 1), (4, 30, -1, 1),
        (10, 300, -4, 1.5),
    ):  # fmt: skip
        words = f"{classes} classes × {images} images; log odds {start:g}, spread over classes {spread:g}"
        study = refined(classes, images, start, spread)
        yield Setting("refined_bias", "shape_sensitivity", words, study, 0.5)
    for images in (100, 1000):
        for lean in ((1.5, -0.5, 0.3), (1.5, -3.0, -2.0), (-1.0, -3.0, -3.0), (2.0, -2.0, 4.0)):
            words = f"{images:,} images; log odds of original, shape and texture {lean}"
            bias = qualities(images, lean, lambda s, t: shape_bias_cd(s, t, 0.4, 0.5), (1, 2), (0.0, 1.0))
            yield Setting("cue_decomposition", "shape_bias_cd", words, bias, 0.5)
            robust = qualities(images, lean, robustness_cd, (1, 2, 0), (0.0, math.inf))
            yield Setting("cue_decomposition", "robustness_cd", words, robust, 0.5)
            reliance = qualities(images, lean, shape_reliance, (1, 2), (0.0, 1.0))
            yield Setting("feature_suppression", "shape_reliance", words, reliance, 0.5)
            relative = qualities(images, lean, lambda a, b, c: relative_robustness([a, b], c), (1, 2, 0), (0, math.inf))
            yield Setting("corruption_robustness", "relative_robustness", words, relative, 0.5)
    for images, classes, rarest in ((100, 21, 0.03), (200, 21, 0.03), (500, 21, 0.03), (200, 21, 0.1), (100, 8, 0.2),
                                    (500, 19, 0.02), (1000, 150, 0.005), (50, 21, 0.03)):  # fmt: skip
        words = f"{images} images; {classes} classes, the rarest in {100 * rarest:g} % of them"
        yield Setting("cue_decomposition_segmentation", "mean_iou", words, segmentations(images, classes, rarest), 0.25)
    for images, people in ((160, 10), (1200, 10), (160, 1)):
        words = f"{images:,} images; with {people} people"
        yield Setting("cue_conflict", "error_consistency", words, consistencies(images, people), 0.25)
    for metric, words, world in worlds():
        part = 0.5 if metric == "error_consistency" else 0.1
        yield Setting("human_alignment", metric, words, with_people(world, metric), part)
    for method in ("spearman", "kendall", "pearson"):
        for models in (5, 6, 8, 12, 20, 40):
            for rho in (0.0, 0.5, 0.8, 0.95):
                words = f"{models} models; normal correlation {rho:g}"
                yield Setting(
                    "correlate", method, words, correlations(models, rho, method), 0.5 if models < 21 else 0.25
                )


def rows_of(setting: Setting, studies: int, seed: int) -> list[dict[str, object]]:
    """Simulate a setting; its random numbers depend on the seed and its words alone."""
    number = max(20, round(studies * setting.part))
    words = f"{setting.protocol}|{setting.metric}|{setting.words}"
    rng = np.random.default_rng([seed, zlib.crc32(words.encode())])
    found: dict[str, list[Held]] = {}
    for _ in range(number):
        for held in setting.study(rng):
            if not math.isnan(held.low):
                found.setdefault(held.kind, []).append(held)
    return [
        {
            "protocol": setting.protocol,
            "metric": setting.metric,
            "kind": kind,
            "setting": setting.words,
            "studies": len(each),
            "coverage": f"{np.mean([h.low - 1e-12 <= h.truth <= h.high + 1e-12 for h in each]):.4f}",
            "mean_width": f"{np.mean([h.high - h.low for h in each]):.4f}",
            "bias": f"{np.mean([h.value - h.truth for h in each]):+.4f}",
        }
        for kind, each in found.items()
    ]


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each row of the table, and write it where asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="settings of this protocol; other rows are kept")
    parser.add_argument("--match", default="", help="settings with this in their metric or words; other rows are kept")
    parser.add_argument("--write", action="store_true", help="write into the table of the package")
    given = parser.parse_args(arguments or [])
    rows = []
    for setting in settings():
        if given.only in ("", setting.protocol) and given.match in f"{setting.metric}; {setting.words}":
            for row in rows_of(setting, given.studies, given.seed):
                rows.append(row)
                print(" · ".join(str(value) for value in row.values()), flush=True)
    if given.write:
        _write(rows)


def _write(rows: list[dict[str, object]]) -> None:
    """Write rows into the table: those of the same protocol, metric, kind and setting are replaced, others are kept."""

    def key(row: dict[str, object]) -> tuple[str, ...]:
        return tuple(str(row[name]) for name in COLUMNS[:4])

    with TABLE.open(newline="") as file:
        table: dict[tuple[str, ...], dict[str, object]] = {key(row): row for row in csv.DictReader(file)}
    table |= {key(row): row for row in rows}
    ordered = sorted(table.values(), key=lambda row: ORDER.index(str(row["protocol"])))
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(ordered)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
