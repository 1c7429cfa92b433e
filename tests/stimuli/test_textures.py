"""Procedural textures: there are many, they differ in structure, each has many variants, and a seed fixes the bytes."""

from __future__ import annotations

import warnings
import zlib

import numpy as np
import pytest

from cuebench.errors import UserError
from cuebench.stimuli.drawing.textures import names, texture
from cuebench.stimuli.render import decode, render
from cuebench.stimuli.sources.texture import draw, recipe
from cuebench.types import Stimulus

NAMES = names()
ASKED_FOR = [
    "banded",
    "striped",
    "dotted",
    "polka_dotted",
    "chequered",
    "grid",
    "honeycombed",
    "woven",
    "scaly",
    "fibrous",
    "marbled",
    "cracked",
    "bubbly",
    "zigzagged",
    "spiralled",
    "perforated",
    "paisley",
    "wood",
    "bricks",
    "fur",
    "leaves",
    "foam",
    "cells",
]


def test_there_are_many_and_the_ones_that_were_asked_for():
    assert len(NAMES) >= 40
    assert sorted(NAMES) == NAMES
    assert set(ASKED_FOR) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_form_contrast_and_repeatability(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a NaN on its way to uint8 warns
        first = texture(name, size=(56, 80), rng=4)
    assert (first.shape, first.dtype) == ((56, 80, 3), np.uint8)
    assert first.astype(float).mean(2).std() > 5, "hardly any structure"
    assert np.array_equal(first, texture(name, size=(56, 80), rng=np.random.default_rng(4)))


@pytest.mark.parametrize("name", NAMES)
def test_variants_are_clearly_different(name):
    variants = np.stack([texture(name, size=(48, 48), rng=seed) for seed in range(8)]).astype(float)
    gaps = np.abs(variants[:, None] - variants[None]).mean((2, 3, 4))
    assert gaps[~np.eye(8, dtype=bool)].min() > 5


@pytest.mark.parametrize("name", ["striped", "granite", "cloudy"])
def test_a_hundred_variants_are_all_different_even_in_grey(name):
    drawn = [texture(name, size=(40, 40), rng=seed, colour=False)[..., 0] for seed in range(100)]
    flat = np.stack(drawn).astype(float).reshape(100, -1)
    gaps = np.abs(flat[:, None] - flat[None]).mean(2)
    assert gaps[~np.eye(100, dtype=bool)].min() > 8


def test_grey_has_no_colour_and_the_same_structure():
    colour, grey = (texture("leaves", size=(64, 64), rng=1, colour=c) for c in (True, False))
    assert (grey[..., 0] == grey[..., 1]).all()
    assert (grey[..., 0] == grey[..., 2]).all()
    assert (colour[..., 0] != colour[..., 2]).any()
    assert np.corrcoef(grey[..., 0].ravel(), colour.astype(float).mean(2).ravel())[0, 1] > 0.9


def features(image):
    """Structure without colour or contrast: what the spectrum and the gradients of an image look like."""
    grey = image.astype(float).mean(2)
    grey = (grey - grey.mean()) / grey.std()
    gy, gx = np.gradient(grey)
    power = np.abs(np.fft.rfft2(grey)) ** 2
    radius = np.hypot(*np.meshgrid(np.fft.fftfreq(len(grey)), np.fft.rfftfreq(len(grey)), indexing="ij"))
    rings = np.log([power[(radius >= a) & (radius < 1.5 * a)].mean() for a in 0.01 * 1.5 ** np.arange(9)])
    values = np.percentile(grey, [1, 10, 25, 50, 75, 90, 99])
    slopes = np.percentile(np.hypot(gx, gy), [10, 25, 50, 75, 90, 99])
    turn = np.abs(np.exp(2j * np.arctan2(gy, gx))[np.hypot(gx, gy) > np.median(np.hypot(gx, gy))].mean())
    fourth = np.abs(np.exp(4j * np.arctan2(gy, gx))[np.hypot(gx, gy) > np.median(np.hypot(gx, gy))].mean())
    peak = np.log(np.sort(power.ravel())[-40:].sum() / power.sum())
    return np.concatenate([rings, values, slopes, [3 * turn, 3 * fourth, peak]])


@pytest.mark.slow
def test_classes_differ_in_structure():
    """A plain classifier that sees neither colour nor contrast tells them apart: chance is 1 in 67."""
    per = 6
    known = np.stack([[features(texture(n, size=(96, 96), rng=s)) for s in range(per)] for n in NAMES])
    flat = known.reshape(-1, known.shape[-1])
    flat = (flat - flat.mean(0)) / flat.std(0)
    cells = flat.reshape(len(NAMES), per, -1)
    centres, within = cells[:, 1:].mean(1), cells[:, 1:] - cells[:, 1:].mean(1, keepdims=True)
    shape = within.reshape(-1, flat.shape[1])
    inverse = np.linalg.inv(shape.T @ shape / len(shape) + 0.05 * np.eye(flat.shape[1]))
    gap = cells[:, :1] - centres[None]
    nearest = np.einsum("ijk,kl,ijl->ij", gap, inverse, gap).argmin(1)
    assert (nearest == np.arange(len(NAMES))).mean() > 0.7


def test_scale_makes_the_structure_coarser():
    """Twice the scale halves the frequencies: fewer edges in a picture of the same size."""
    edges = [np.abs(np.diff(texture("chequered", rng=5, scale=s).astype(float), axis=0)).mean() for s in (0.5, 1, 2)]
    assert edges[0] > 1.4 * edges[1] > 1.4**2 * edges[2]


def test_streams_are_the_same_in_every_process():
    """Rounded block means: a stream that depended on Python's salted hash() would agree within one process only."""
    blocks = draw(seed=0, name="honeycombed", size=64).astype(float).reshape(2, 32, 2, 32, 3).mean((1, 3))
    assert np.abs(blocks[..., 0] - HONEYCOMB).max() <= 1


HONEYCOMB = [[152, 118], [200, 135]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "stripped"}, "striped"),
        ({"size": (4, 224)}, "at least 8"),
        ({"size": "big"}, "height and width"),
        ({"scale": 0}, "scale positive"),
    ],
)
def test_mistakes_are_answered_with_the_next_action(change, words):
    asked = {"name": "striped", "size": (32, 32), "scale": 1.0, **change}
    with pytest.raises(UserError) as error:
        texture(asked.pop("name"), rng=0, **asked)
    assert words in str(error.value)


def test_a_stimulus_without_a_file_is_drawn_from_its_recipe():
    stimulus = Stimulus("a", texture="grid", recipe=recipe("grid", size=40, colour=False) + ";greyscale", seed=7)
    shown = np.asarray(render("", decode("", stimulus), stimulus))
    expected = draw(seed=7, name="grid", size=40, colour=False)
    assert np.abs(shown.astype(int) - expected).max() <= 1
    assert zlib.crc32(draw(seed=8, name="grid", size=40).tobytes()) != zlib.crc32(expected.tobytes())


def test_drawings_of_another_version_are_refused():
    with pytest.raises(UserError, match="version 99"):
        draw(seed=0, name="grid", version=99)
