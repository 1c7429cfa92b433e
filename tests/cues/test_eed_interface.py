"""Edge-enhancing diffusion as a user calls it: shapes, dtypes, options and errors."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

from cuebench.cues import eed, texture_residual
from cuebench.cues._eed.backends import backend_for
from cuebench.cues._eed.scheme import Scheme
from cuebench.errors import MissingExtra, UserError

RNG = np.random.default_rng(0)
COLOUR = RNG.random((21, 18, 3))


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(12, 9), (12, 9, 1), (12, 9, 3), (2, 12, 9, 3), (1, 1), (1, 30, 3)], ids=str)
def test_shape_and_dtype_are_kept(shape, dtype):
    image = (RNG.random(shape) * (255 if dtype == np.uint8 else 1)).astype(dtype)
    before = image.copy()
    out = eed(image, steps=3)
    assert out.shape == shape
    assert out.dtype == dtype
    assert np.array_equal(image, before)
    assert np.isfinite(out).all()
    assert out.min() >= 0
    assert out.max() <= (255 if dtype == np.uint8 else 1)


def test_batch_size_and_workers_change_nothing():
    batch = RNG.random((5, 14, 15, 3)).astype(np.float32)
    single = eed(batch, steps=300, accuracy=40, workers=1)
    assert np.array_equal(single, eed(batch, steps=300, accuracy=40, workers=4))
    assert np.array_equal(single, np.stack([eed(image, steps=300, accuracy=40) for image in batch]))


def test_stretch_reaches_the_full_range_over_all_channels():
    out = eed(0.3 + 0.2 * COLOUR, steps=20)
    assert (out.min(), out.max()) == (0, 1)
    kept = eed(0.3 + 0.2 * COLOUR, steps=20, stretch=False)
    assert 0.25 < kept.min() < kept.max() < 0.55
    assert np.allclose(out, (kept - kept.min()) / (kept.max() - kept.min()), atol=1e-6)


def as_the_authors_write(state):
    """Grey levels of a state in [0, 1]: clipped, stretched, and cut off by torchvision's ``mul(255).byte()``."""
    state = np.clip(state, 0, 1)
    return (np.float32(255) * ((state - state.min()) / (state.max() - state.min())).astype(np.float32)).astype(np.uint8)


def test_truncated_grey_levels_are_those_of_the_authors():
    image = np.rint(255 * RNG.random((40, 30, 3))).astype(np.uint8)
    theirs = as_the_authors_write(eed(image / np.float32(255), steps=20, stretch=False))
    rounded, truncated = (eed(image, steps=20, rounding=rounding) for rounding in ("round", "truncate"))
    assert np.mean(truncated == theirs) > 0.998  # the rest are whole grey levels up to the noise of float32
    assert 0.4 < np.mean(rounded == theirs) < 0.6
    assert set(np.unique(rounded.astype(int) - truncated)) == {0, 1}


def test_only_bytes_are_truncated():
    for function in (eed, texture_residual):
        with pytest.raises(UserError, match="dtype float64") as caught:
            function(COLOUR, steps=2, rounding="truncate")
        assert "uint8" in caught.value.hint


@pytest.mark.parametrize("stretch", [True, False])
def test_whole_grey_levels_are_not_truncated(stretch):
    for value in range(256):
        image = np.full((2, 2), value, np.uint8)
        assert np.array_equal(eed(image, steps=1, stretch=stretch, rounding="truncate"), image)


def test_the_residual_of_truncated_pictures_is_a_whole_number_of_grey_levels():
    image = np.rint(255 * (0.4 + 0.2 * COLOUR)).astype(np.uint8)
    smooth = eed(image, steps=20, rounding="truncate").astype(int)
    residual = texture_residual(image, steps=20, rounding="truncate")
    assert np.array_equal(residual, np.clip(image - smooth + 127, 0, 255))


@pytest.mark.parametrize("value", [0, 7, 255])
def test_constant_image_stays_constant_with_stretch(value):
    image = np.full((6, 7, 3), value, np.uint8)
    assert np.array_equal(eed(image, steps=5), image)


def test_only_one_of_a_batch_is_constant():
    batch = np.stack([np.full((8, 8, 3), 0.25), RNG.random((8, 8, 3))])
    out = eed(batch, steps=5)
    assert np.allclose(out[0], 0.25)
    assert out[1].max() == 1


@pytest.mark.parametrize("fast", [{}, {"cycles": 6}], ids=["explicit", "fast"])
def test_snapshots_are_the_states_on_the_way(fast):
    states = eed(COLOUR, steps=400, snapshots=[100, 200, 400], **fast)
    assert states.shape == (3, *COLOUR.shape)
    for state, steps in zip(states, (100, 200, 400)):
        alone = eed(COLOUR, steps=steps, **({"cycles": round(6 * steps / 400)} if fast else {}))
        assert np.abs(state - alone).max() < (0.02 if fast else 1e-6)
    assert not np.allclose(states[0], states[2], atol=0.01)


def test_time_is_two_tau_times_steps():
    assert np.array_equal(eed(COLOUR, time=20.0), eed(COLOUR, steps=50))
    assert np.abs(eed(COLOUR, time=20.0, tau=0.1) - eed(COLOUR, steps=50)).max() < 0.01


@pytest.mark.parametrize("fast", [{}, {"accuracy": 45}], ids=["explicit", "fast"])
def test_progress_counts_up_to_the_total(fast):
    seen = []
    eed(np.stack([COLOUR] * 3), steps=600, progress=lambda done, total: seen.append((done, total)), **fast)
    done = [pair[0] for pair in seen]
    assert done == sorted(done)
    assert len(done) > 3
    assert seen[-1][0] == seen[-1][1]


def test_accuracy_beyond_reach_is_the_explicit_scheme():
    assert np.array_equal(eed(COLOUR, steps=30, accuracy=200), eed(COLOUR, steps=30))


def test_options_change_the_picture():
    plain = eed(COLOUR, steps=200, stretch=False)
    for options in (
        {"diffusivity": "paper"},
        {"boundary": "mirror"},
        {"orientation_smoothing": False},
        {"kernel_size": 3},
        {"sigma": 1.0},
        {"contrast": 1.0},
        {"alpha": 0.3, "tau": 0.15},
    ):
        assert not np.allclose(plain, eed(COLOUR, steps=200, stretch=False, **options), atol=1e-4), options


BAD_IMAGES = {
    "NaN": np.array([[0.0, np.nan]]),
    "infinite": np.array([[0.0, np.inf]]),
    "from -0.1": np.array([[-0.1, 0.5]]),
    "to 2": np.array([[0.0, 2.0]]),
    "dtype int64": np.zeros((4, 4), int),
    "empty": np.zeros((0, 4, 3)),
    "4 channels": np.zeros((4, 4, 4)),
    "1 axes": np.zeros(4),
}


@pytest.mark.parametrize("words", BAD_IMAGES)
def test_bad_images_are_named(words):
    with pytest.raises(UserError, match=words):
        eed(BAD_IMAGES[words], steps=2)


BAD_OPTIONS = [
    ({"steps": 0}, "steps is 0"),
    ({"steps": -3}, "steps is -3"),
    ({"steps": 2.5}, "steps is 2.5"),
    ({"time": 0.0}, "time is 0"),
    ({"time": float("nan")}, "time is nan"),
    ({"tau": 0.3}, "tau is 0.3"),
    ({"tau": 0.0}, "tau is 0"),
    ({"tau": 0.2, "alpha": 0.0}, "tau is 0.2"),
    ({"alpha": 0.6}, "alpha is 0.6"),
    ({"sigma": 0.0}, "sigma is 0"),
    ({"contrast": -1}, "contrast is -1"),
    ({"kernel_size": 4}, "kernel_size is 4"),
    ({"kernel_size": 31}, "kernel_size is 31"),
    ({"diffusivity": "publised"}, "diffusivity is 'publised'"),
    ({"boundary": "zero"}, "boundary is 'zero'"),
    ({"rounding": "floor"}, "rounding is 'floor'"),
    ({"backend": "opencl"}, "backend is 'opencl'"),
    ({"workers": 0}, "workers is 0"),
    ({"cycles": 0}, "cycles is 0"),
    ({"accuracy": -1}, "accuracy is -1"),
    ({"accuracy": 45, "cycles": 3}, "one of the two"),
    ({"snapshots": []}, "snapshots is"),
    ({"snapshots": [8, 2]}, "snapshots is"),
    ({"snapshots": [0]}, "snapshots is"),
    ({"snapshots": [17000]}, "snapshots is"),
]


@pytest.mark.parametrize(("options", "words"), BAD_OPTIONS, ids=str)
def test_bad_options_are_named_with_what_is_accepted(options, words):
    with pytest.raises(UserError, match=words) as caught:
        eed(COLOUR, **options)
    assert "accepted" in str(caught.value)


def test_missing_numba_and_torch_say_what_to_install(monkeypatch):
    monkeypatch.setattr("cuebench.cues._eed.backends.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"cuebench\[image\]"):
        eed(COLOUR, steps=2)


def test_kernels_are_cached_elsewhere_when_the_package_is_read_only(monkeypatch, tmp_path):
    from cuebench.compiled import kept_in

    assert kept_in(tmp_path) is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    writable = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path / "package" and writable(path, mode))
    assert kept_in(tmp_path / "package") == tmp_path / "cache" / "cuebench" / "numba"
    (tmp_path / "file").write_text("no folder can be made here")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert os.access(kept_in(tmp_path / "package"), os.W_OK)


@pytest.mark.torch
@pytest.mark.xdist_group("torch")
def test_images_too_wide_for_numba_go_to_torch():
    wide = np.zeros((1, 3, 2, 17000), np.float32)
    assert backend_for("auto", wide, Scheme()).__name__.endswith("torch_batch")
    with pytest.raises(UserError, match="17000 pixels wide"):
        eed(np.zeros((2, 17000)), steps=1, backend="numba")


def test_import_of_the_cue_imports_no_kernel():
    import subprocess

    code = "import sys, cuebench.cues.eed; print([m for m in ('numba', 'torch', 'triton') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
