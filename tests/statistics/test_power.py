"""Planned studies: what is planned is what larger studies show, and more images of the same sources have a limit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cuebench.statistics.clustered import Sums, Variances
from cuebench.statistics.paired import paired
from cuebench.statistics.power import Components
from cuebench.statistics.ratios import Terms

PLAIN = Components(0.5, {}, {"images": 200})
CROSSED = Components(0.5, {"shape_sources": 0.02, "texture_sources": 0.1},
                     {"images": 1200, "shape_sources": 160, "texture_sources": 48})  # fmt: skip


def test_components_are_what_the_variance_is_made_of():
    found = Variances(
        {"images": 4e-4, "shape_sources": 5e-4, "texture_sources": 9e-4, "two_way": 1e-3},
        {"images": 1200, "shape_sources": 160, "texture_sources": 48},
        {},
    )
    made = Components.of(found, 1200)
    assert made.image == pytest.approx(0.48)
    assert made.sources == pytest.approx({"shape_sources": 160 * 1e-4, "texture_sources": 48 * 5e-4})
    assert sum(made.parts().values()) == pytest.approx(1e-3)
    only = Components.of(Variances({"images": 1e-4, "classes": 3e-4}, {"images": 100, "classes": 10}, {}), 100)
    assert only.numbers == {"images": 100, "classes": 10}


def test_without_sources_it_is_the_textbook_size():
    # n = variance of one image · ((1.96 + .84)/difference)²
    assert PLAIN.factor(0.05, ()) * 200 == pytest.approx(0.5 * ((1.96 + 0.8416) / 0.05) ** 2, rel=0.01)
    assert PLAIN.chance(PLAIN.smallest()) == pytest.approx(0.8, abs=1e-6)
    assert PLAIN.chance(0) == pytest.approx(0.05, abs=0.002)
    assert PLAIN.factor(1.0, ()) == 1.0


def test_more_images_of_the_same_sources_have_a_limit():
    now = CROSSED.smallest()
    assert CROSSED.smallest(CROSSED.grown((), 1e6)) > 0.75 * now
    assert CROSSED.factor(0.7 * now, ()) == math.inf
    shapes, textures, both = (
        CROSSED.factor(0.7 * now, kinds)
        for kinds in (("shape_sources",), ("texture_sources",), ("shape_sources", "texture_sources"))
    )
    assert both < textures < shapes == math.inf
    assert both == pytest.approx(2, rel=0.1)
    assert CROSSED.chance(0.7 * now, CROSSED.grown(CROSSED.sources, both)) == pytest.approx(0.8, abs=0.01)


def study(size, rng, spread=0.8):
    """Return the paired difference of two observers; shapes and textures have effects of their own on each."""
    shapes, textures, images = size
    cells = rng.choice(shapes * textures, images, replace=False)
    sources = {"shape_sources": cells // textures, "texture_sources": cells % textures}
    sums = []
    for start in (0.5, -0.5):
        effect = sum(rng.normal(0, spread, n)[code] for n, code in zip((shapes, textures), sources.values()))
        hits = rng.random(images) < 1 / (1 + np.exp(-start - effect))
        sums.append(Sums.of_ratio(Terms(hits, np.ones(images, bool)), cells, sources))
    return paired(*sums)


def several_images_of_a_pair(rng, pairs_of=8, each=10, shift=0.0):
    """Two observers that answer alike but for effects of their own on pairs, shapes and textures; ten images a pair."""
    cell = np.repeat(np.arange(pairs_of**2), each)
    sources = {"shape_sources": cell // pairs_of, "texture_sources": cell % pairs_of}
    images = np.arange(len(cell))
    sums = []
    for start in (shift, 0.0):
        effect = rng.normal(0, 1.0, pairs_of**2)[cell]
        effect = effect + sum(rng.normal(0, 0.3, pairs_of)[code] for code in sources.values())
        hits = rng.random(len(cell)) < 1 / (1 + np.exp(-start - effect))
        sums.append(Sums.of_ratio(Terms(hits, np.ones(len(cell))), images, sources))
    return paired(*sums)


def mean_components(each):
    """Return the mean of components of the same design."""
    return Components(
        np.mean([c.image for c in each]),
        {kind: np.mean([c.sources[kind] for c in each]) for kind in each[0].sources},
        each[0].numbers,
        np.mean([c.pair for c in each]),
        each[0].pairs,
        np.median([c.freedom for c in each]),
    )


def test_pairs_with_several_images_count_once():
    """What pairs differ by is no noise of images, and is not counted again with the shapes and textures."""
    rng = np.random.default_rng(1)
    pilots = [several_images_of_a_pair(rng).components for _ in range(60)]
    mean = mean_components(pilots)
    assert (mean.pairs, mean.numbers["images"]) == (64, 640)
    larger = mean.grown((), 4)
    assert mean.parts(larger)["images"] > 0.6 * mean.parts()["images"], "all pairs are used: their part stays"
    for each in (10, 40):
        numbers = {**mean.numbers, "images": 64 * each}
        values = [several_images_of_a_pair(rng, each=each).value for _ in range(100)]
        assert math.sqrt(sum(mean.parts(numbers).values())) == pytest.approx(np.std(values), rel=0.2)
    variance = Variances(
        {"images": 4e-4, "shape_sources": 5e-4, "texture_sources": 9e-4, "two_way": 1e-3},
        {"images": 32, "shape_sources": 8, "texture_sources": 8},
        {},
        (4e-4, 32),
    )
    one = Components.of(variance, 32)
    assert one.parts(one.grown((), 2))["images"] == pytest.approx(2e-4), "one image a pair, and as many pairs left"


def test_larger_studies_show_what_small_ones_plan():
    rng = np.random.default_rng(0)
    pilots = [study((24, 12, 144), rng).components for _ in range(40)]
    mean = mean_components(pilots)
    for size in ((24, 12, 288), (24, 36, 432)):
        numbers = {"images": size[2], "shape_sources": size[0], "texture_sources": size[1]}
        planned = math.sqrt(sum(mean.parts(numbers).values()))
        assert np.std([study(size, rng).value for _ in range(60)]) == pytest.approx(planned, rel=0.3)
