"""Edge-enhancing diffusion: golden values, exact facts of eed.md, and all backends against the float64 reference."""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from cuebench.cues import eed
from cuebench.cues._eed.backends import backend_for
from cuebench.cues._eed.plan import GROWTH, RISE, Cycle, Plan, cycle_of, cycle_plan, explicit_plan
from cuebench.cues._eed.scheme import Scheme

sys.path.insert(0, str(Path(__file__).parent))
from eed_reference import eed_reference, golden_input, stencil, tensor

BACKENDS = ("numba", pytest.param("torch", marks=[pytest.mark.torch, pytest.mark.xdist_group("torch")]))
SHAPES = [(16, 16, 3), (17, 23, 3), (9, 12, 1), (1, 20, 3), (20, 1, 3), (1, 1, 1), (2, 2, 3)]
OPTIONS = [
    {},
    {"boundary": "mirror"},
    {"diffusivity": "paper"},
    {"orientation_smoothing": False},
    {"kernel_size": 7, "sigma": 1.5},
    {"kernel_size": 1},
    {"alpha": 0.3, "contrast": 0.5},
]


def raw(image, plan, backend="numba", workers=1, **options):
    """The state of one H×W×C image in [0, 255] at the end of the plan, before clip and stretch."""
    scheme = Scheme(**options)
    planes = np.moveaxis(np.asarray(image, np.float32), -1, 0)[None]
    result = backend_for(backend, planes, scheme).diffuse(planes, scheme, plan, lambda work: None, workers)
    return np.moveaxis(result[-1, 0], 0, -1)


def steps(count, dt=0.4):
    return explicit_plan([count * dt], dt)


def plain(options):
    """The reference's words for the same options."""
    words = {"orientation_smoothing": "smoothing", "kernel_size": "size", "contrast": "kappa"}
    return {words.get(name, name): value for name, value in options.items()}


def psnr(a, b):
    return 10 * math.log10(255**2 / max(1e-30, float(np.mean((np.clip(a, 0, 255) - np.clip(b, 0, 255)) ** 2))))


def noise(shape, seed=0):
    return np.random.default_rng(seed).random(shape) * 255


def blobs(size=48, seed=3):
    """A smooth image with edges, like a photograph: thresholded and shaded blurred noise."""
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng(seed)
    field = np.stack([gaussian_filter(rng.standard_normal((size, size)), 3) for _ in range(3)], -1)
    return 128 + 60 * np.sign(field) + 200 * field + 8 * rng.standard_normal((size, size, 3))


GOLDEN = [
    (1, (8, 8), [128.0005, 0.0253, 199.9970]),
    (100, (0, 0), [0.6208, 0.0994, 40.7670]),
    (100, (8, 8), [128.0509, 2.5316, 199.7040]),
    (100, (15, 7), [167.5660, 208.5181, 40.3796]),
    (1000, (8, 8), [128.5696, 24.7373, 197.0357]),
]


@pytest.mark.parametrize(("count", "at", "want"), GOLDEN)
def test_golden_values_of_the_definitions(count, at, want):
    assert raw(golden_input(), steps(count))[at] == pytest.approx(want, abs=1.5e-3 if count == 1000 else 2e-4)


@pytest.mark.parametrize(("count", "at", "want"), GOLDEN[:4])
def test_the_reference_itself_reproduces_the_golden_values(count, at, want):
    assert eed_reference(golden_input(), count)[at] == pytest.approx(want, abs=2e-4)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_explicit_scheme_agrees_with_the_reference(shape, options, backend):
    image = noise(shape)
    want = eed_reference(image, 12, **plain(options))
    assert psnr(raw(image, steps(12), backend, **options), want) > 105


@pytest.mark.parametrize("size", [32, 45])
def test_float32_stays_at_105_db_over_many_steps(size):
    image = blobs(size)
    assert psnr(raw(image, steps(600)), eed_reference(image, 600)) > 105


@pytest.mark.torch
@pytest.mark.xdist_group("torch")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("plan", [Plan(((Cycle(5, 0.3), Cycle(8, 0.3), Cycle(1, 0.2)),)), cycle_plan([90.0], 3, 0.3)])
def test_cycles_agree_between_the_backends(options, plan):
    image = noise((19, 14, 3))
    assert psnr(raw(image, plan, "numba", **options), raw(image, plan, "torch", **options)) > 105


def test_one_frozen_cycle_is_a_polynomial_of_the_step():
    """FSI with two steps by hand: a₀ = 2/3 and a₁ = 6/5."""
    image = noise((12, 13, 3))
    u = np.moveaxis(image, -1, 0)
    field = tensor(u)
    first = 2 / 3 * (u + 0.45 * stencil(u, *field) / 2) + 1 / 3 * u
    second = 6 / 5 * (first + 0.45 * stencil(first, *field) / 2) - 1 / 5 * u
    assert psnr(raw(image, Plan(((Cycle(2, 0.45),),))), np.moveaxis(second, 0, -1)) > 110


def test_fast_scheme_converges_to_the_explicit_one():
    image = blobs()
    want = raw(image, steps(2000))
    accuracies = [psnr(raw(image, cycle_plan([800.0], m, 0.5)), want) for m in (2, 8, 32, 128)]
    assert accuracies == sorted(accuracies)
    assert accuracies[-1] > 60


@pytest.mark.parametrize("steps", [400, 16384])
@pytest.mark.parametrize("name", ["astronaut", "coins"])
def test_wanted_accuracy_is_reached_on_photographs(name, steps):
    from PIL import Image

    photograph = getattr(pytest.importorskip("skimage.data"), name)()
    image = np.asarray(Image.fromarray(photograph).resize((96, 96)).convert("RGB"))
    want = eed(image, steps=steps, stretch=False).astype(float)
    for decibels in (40, 45, 50):
        assert psnr(eed(image, steps=steps, accuracy=decibels, stretch=False), want) >= decibels


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("boundary", ["published", "mirror"])
@pytest.mark.parametrize("plan", [steps(30), cycle_plan([40.0], 5, 0.5)], ids=["explicit", "fast"])
def test_constant_images_do_not_change_at_all(plan, boundary, backend):
    image = np.full((13, 8, 3), [3.0, 77.7, 255.0])
    assert np.array_equal(raw(image, plan, backend, boundary=boundary), image.astype(np.float32))


@pytest.mark.parametrize("boundary", ["published", "mirror"])
@pytest.mark.parametrize("span", [0.4, 5.0, 60.0])
def test_l2_norm_never_grows(span, boundary):
    image = noise((31, 26, 3))
    norms = [float(np.sum(image**2))]
    for part in range(1, 6):
        plan = steps(part * 10) if span == 0.4 else cycle_plan([part * 60.0], round(part * 60 / span), 0.5)
        norms.append(float(np.sum(raw(image, plan, boundary=boundary).astype(float) ** 2)))
    assert all(after <= before * (1 + 1e-6) for before, after in itertools.pairwise(norms))


def test_mean_is_conserved_by_mirrored_borders_only():
    image = noise((24, 37, 3))
    drift = {
        b: abs(raw(image, steps(800), boundary=b).mean(dtype=float) - image.mean()) for b in ("mirror", "published")
    }
    assert drift["mirror"] < 1e-3
    assert drift["published"] > 5e-3


def test_values_may_leave_the_range_on_the_way_and_are_clipped_at_the_end():
    image = np.where(noise((40, 40, 3)) > 128, 255.0, 0.0)
    field = raw(image, steps(200))
    assert field.min() < 0 or field.max() > 255
    out = eed(image.astype(np.uint8), steps=200, stretch=False)
    assert np.array_equal(out, np.rint(np.clip(raw(image, steps(200)), 0, 255)).astype(np.uint8))


def test_instability_shows_beyond_the_bound_only():
    """The bound of tau is real: just inside it noise decays, beyond it the chequerboard grows."""
    image = 128 + noise((32, 32, 1)) / 1e4  # so faint that the tensor is the identity
    assert raw(image, steps(200, 0.5)).std() < image.std()
    assert raw(image, steps(200, 0.55)).std() > 10 * image.std()


@pytest.mark.parametrize(
    "transform", [np.flipud, np.fliplr, lambda x: x.transpose(1, 0, 2)], ids=["ud", "lr", "transpose"]
)
def test_commutes_with_flips_and_transposition(transform):
    image = noise((18, 25, 3))
    want = transform(raw(image, steps(30)))
    assert psnr(raw(np.ascontiguousarray(transform(image)), steps(30)), want) > 110


def test_cycles_cover_the_time_and_are_stable():
    for time in (0.3, 0.7, 5.0, 102.4, 6553.6):
        cycle = cycle_of(time, 0.5)
        assert cycle.time == pytest.approx(time)
        assert cycle.tau <= 0.5 + 1e-12
    assert cycle_of(6553.6 / 64, 0.5).steps == 25
    plan = cycle_plan([10.0, 35.5], 12, 0.5)
    assert [sum(c.time for c in part) for part in plan.parts] == pytest.approx([10.0, 25.5])


def test_cycles_grow_and_a_longer_horizon_only_cuts_them_off():
    (whole,) = cycle_plan([6553.6], 64, 0.5).parts
    assert len(whole) == 64
    ramp = 64 // 9
    rise = [b.time / a.time for a, b in itertools.pairwise(whole[: ramp + 1])]
    assert rise == pytest.approx([RISE] * ramp)
    assert whole[-1].time == pytest.approx(GROWTH * whole[ramp].time)
    (cut,) = cycle_plan([1000.0], 64, 0.5, horizon=6553.6).parts
    assert sum(c.time for c in cut) == pytest.approx(1000)
    same = next(i for i, c in enumerate(cut) if c != whole[i])
    assert cut[:same] == whole[:same]
    assert all(c.time <= whole[-1].time * (1 + 1e-9) for c in cut)


@pytest.mark.parametrize("alpha", [0.0, 0.2, 0.4, 0.49, 0.5])
def test_stability_bound_holds_for_every_alpha(alpha):
    image = noise((24, 24, 1))
    longest = Scheme(alpha=alpha).longest_step
    assert np.std(raw(image, steps(300, longest), alpha=alpha)) < np.std(image)
