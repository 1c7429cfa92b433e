"""Cues on tensors against the same cues on arrays; on a CUDA device where there is one, else on the CPU."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cuebench.cues import channel_shuffle, contrast, eed, gaussian_blur, voronoi_shuffle  # noqa: E402
from cuebench.cues.base import Tolerance  # noqa: E402
from cuebench.errors import UserError  # noqa: E402
from cuebench.observers.preprocess import Geometry  # noqa: E402
from cuebench.protocols.corruption_robustness.corruptions import corruptions  # noqa: E402
from cuebench.protocols.feature_suppression.suppressions import MODES, suppressions  # noqa: E402
from cuebench.registry import cues  # noqa: E402
from cuebench.stimuli import on_device  # noqa: E402
from cuebench.stimuli.on_device import Split, before_device, marked, render_on_device, split  # noqa: E402
from cuebench.stimuli.render import render  # noqa: E402
from cuebench.testing.cues import beyond, sample_image  # noqa: E402
from cuebench.types import Stimulus  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
NAMES = [name for name in cues.names() if cues.get(name).info.device is not None]
DIFFUSION = [
    {"steps": 30},
    {"steps": 30, "rounding": "truncate"},
    {"steps": 30, "boundary": "mirror", "stretch": False},
    {"steps": 500, "accuracy": 40},
]
MORE = {
    "eed": DIFFUSION,
    "texture_residual": DIFFUSION,
    "texture_residual_shuffle": [{"steps": 10, "grid": 3}],
    "rotation": [{"angle": 31.7}, {"angle": -45.0, "border": 0.1}],
    "gaussian_blur": [{"kernel": 7, "sigma": 4.0}],
    "power_equalisation": [{"exponent": 2.0}, {"spectrum": np.random.default_rng(0).random((37, 29)) * 30}],
    "patch_rotation": [{"angles": (90, 180)}],
    "diamond_shuffle": [{"grid": 3}, {"grid": 11}],
    "bilateral": [{"diameter": 6, "sigma_space": 1.5}],
    "eidolon": [{"grain": 3.0, "coherence": 0.5}],
    "greyscale": [{"alpha": alpha, "weights": "rec601", "rounding": "truncate"} for alpha in (0.2, 0.6, 1.0)],
    "low_pass": [{"sigma": 2.0, "border": 0.9}],
}
"""Options beyond the published levels."""
SHORT = Tolerance(1, 5e-3)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads of small tensors only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def tensor(array):
    return torch.from_numpy(np.array(array)).to(DEVICE)


@cache
def photograph_like(count=3, height=37, width=29):
    """Smooth shapes with edges and some noise, sizes odd."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:height, 0:width]
    images = []
    for _ in range(count):
        a, b, c, d = rng.uniform(0.05, 0.3, 4)
        planes = [np.sin(a * y + b * x + k) + (np.cos(c * x - d * y + k) > 0.3) for k in rng.uniform(0, 6, 3)]
        image = 0.5 + 0.2 * np.stack(planes, -1) + rng.normal(0, 0.03, (height, width, 3))
        images.append(np.rint(255 * np.clip(image, 0, 1)).astype(np.uint8))
    return np.stack(images)


def all_options(name):
    function = cues.get(name)
    options = list(MORE.get(name, ()))
    if not name.startswith(("eed", "texture_residual")):  # their published levels take minutes
        options += [{}, *({key: value} for key, values in function.info.levels.items() for value in values)]
    if "keep_colour" in inspect.signature(function).parameters:
        options += [{**some, "keep_colour": True} for some in options[::3]]
    return options


def tolerance_of(name):
    """What is held here: diffusions of these tests are short, and rounding has no time to grow."""
    return SHORT if name.startswith(("eed", "texture_residual")) else cues.get(name).info.device


def on_both(name, images, options):
    function = cues.get(name)
    seeds = {"rng": list(range(5, 5 + len(images)))} if function.info.random else {}
    plain = {"backend": "torch"} if DEVICE == "cpu" and "eed" in (name, function.info.passes_to) else {}
    found = function(tensor(images), **seeds, **options, **plain)
    assert found.device.type == DEVICE
    assert found.dtype == torch.uint8
    return found.cpu().numpy(), function(images, **seeds, **options)


@pytest.mark.parametrize("name", NAMES)
def test_pixels_agree_for_all_options(name):
    tolerance = tolerance_of(name)
    for options in all_options(name):
        found, wanted = on_both(name, photograph_like(), options)
        assert not (problem := beyond(tolerance, found, wanted)), f"{options}: {problem}"


def test_a_long_diffusion_keeps_its_tolerance():
    """Rounding that the fast scheme enlarges: PyTorch and Numba, both in float32, on a photograph."""
    skimage = pytest.importorskip("skimage.data")
    image = skimage.astronaut()[None, 60:156, 150:262]
    found, wanted = on_both("eed", image, {"time": 6553.6, "cycles": 30})
    assert not (problem := beyond(eed.info.device, found, wanted)), problem
    assert beyond(Tolerance(1, 1e-6, 120), found, wanted)  # and the comparison can fail


@pytest.mark.parametrize("name", NAMES)
def test_small_and_grey_images(name):
    function = cues.get(name)
    for shape in ((2, 1, 1, 3), (1, 1, 7, 3), (2, 9, 1, 1), (2, 12, 12, 1)):
        images = sample_image(shape, np.uint8)
        found, wanted = on_both(name, images, function.info.quick)
        if name == "power_equalisation":  # the phase of a frequency without power is rounding noise
            assert found.shape == wanted.shape
            continue
        assert not (problem := beyond(tolerance_of(name), found, wanted)), f"{shape}: {problem}"


@pytest.mark.parametrize("name", NAMES)
def test_an_image_does_not_depend_on_its_batch(name):
    function, images = cues.get(name), tensor(photograph_like())
    before = images.clone()
    random = function.info.random
    together = function(images, **({"rng": [1, 2, 3]} if random else {}), **function.info.quick)
    alone = function(images[1:2], **({"rng": [2]} if random else {}), **function.info.quick)
    gap = (together[1].int() - alone[0].int()).abs()
    assert gap.max() <= tolerance_of(name).levels
    assert gap.float().mean() <= tolerance_of(name).share
    assert torch.equal(images, before)


def test_floats_stay_floats():
    image = sample_image((1, 16, 16, 3), np.float32)
    found = gaussian_blur(tensor(image), kernel=5)
    assert found.dtype == torch.float32
    assert np.allclose(found.cpu().numpy(), gaussian_blur(image, kernel=5), atol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda images: cues.get("sketch")(images), "takes no tensor"),
        (lambda images: cues.get("chain")(images), "takes no tensor"),
        (lambda images: voronoi_shuffle(images, mask=np.zeros((37, 29), int)), "tensor with label mask"),
        (lambda images: contrast(images[0]), r"shape \(37, 29, 3\)"),
        (lambda images: contrast(images.int()), "torch.int32"),
        (lambda images: contrast(images, level=2), "level is 2"),
        (lambda images: channel_shuffle(images, rng=[1]), "1 seeds for 3"),
        (lambda images: eed(images, steps=4, snapshots=[2, 4]), "snapshots"),
        (lambda images: eed(images, steps=4, backend="cpu" if DEVICE == "cuda" else "cuda"), "the tensor lies on"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(UserError, match=message) as error:
        call(tensor(photograph_like()))
    assert error.value.hint


def test_random_numbers_are_those_of_numpy():
    from cuebench.cues import _pcg64

    seeds = [0, 1, 2**63 + 5, 12345678901234567890123]
    plain, moved = ([np.random.default_rng(seed) for seed in seeds] for _ in range(2))
    for count in (5003, 0, 64):  # the generators go on where they were
        found = _pcg64.random(moved, count, torch.device(DEVICE)).cpu().numpy()
        assert np.array_equal(found, np.stack([rng.random(count) for rng in plain]))


# ---------------------------------------------------------------------------------------------- recipes


def test_split():
    square = "square?size=224&resize=256"
    assert split(f"{square};contrast?level=0.3") == Split(square, "contrast?level=0.3", 224)
    assert split(f"{square};non_local_means?strength=5;patch_shuffle") == Split(
        f"{square};non_local_means?strength=5", "patch_shuffle", 224
    )
    whole = (
        "",
        square,
        "contrast",
        f"contrast;{square}",
        f"{square};patch_shuffle;non_local_means",
        f"{square};eed?backend=numba",
        f"{square};blend?other=file:b.png",
    )
    for recipe in whole:
        assert split(recipe) == Split(recipe), recipe


def test_only_an_observer_that_keeps_the_picture_leaves_cues_to_the_device():
    stimulus = Stimulus(id="a", path="a.png", recipe="square?size=32;contrast")
    native = Geometry((32, 32), (32, 32), crop=False)
    assert before_device(stimulus, native).recipe == "square?size=32"
    assert before_device(stimulus, Geometry((32, 32), 32)).recipe == "square?size=32"
    for other in (Geometry((32, 32), 36), Geometry((28, 28), 28), Geometry((32, 32), (40, 32))):
        assert before_device(stimulus, other) == stimulus


def protocol_stimuli(photograph):
    """The recipes of two protocols, the suppressions in both modes, on small squares."""
    small = Geometry((32, 32), (32, 32), crop=False)
    planned = [s.stimulus(photograph) for mode in MODES for s in suppressions(mode)]
    planned += [c.stimulus(photograph, "square?size=224&resize=256") for c in corruptions(keep_colour=False)]
    # 228 and 230 are the multiples of a grid that patches are turned at.
    sizes = {"224&resize=256": "32&resize=36", "stretch?size=224": "stretch?size=32", "size=228": "size=36",
             "size=230": "size=40"}  # fmt: skip
    recipes = [s.recipe for s in planned]
    for published, tiny in sizes.items():
        recipes = [recipe.replace(published, tiny) for recipe in recipes]
    return [replace(s, recipe=recipe) for s, recipe in zip(planned, recipes)], small


def test_the_recipes_of_protocols_in_one_mixed_batch(monkeypatch):
    from PIL import Image

    image = Image.fromarray(photograph_like(1, 50, 41)[0])
    stimuli, geometry = protocol_stimuli(Stimulus(id="a", path="a.png", label="cat"))
    monkeypatch.setattr(on_device, "MOST_VALUES", 3 * 32 * 32 * 3)
    begun = np.stack([np.asarray(render(".", image, before_device(s, geometry))) for s in stimuli])
    assert len({s.recipe for s in stimuli if on_device.device_part(s, geometry).device}) > 80
    images = tensor(begun)
    found = render_on_device(images, stimuli, geometry).cpu().numpy()
    assert np.array_equal(images.cpu().numpy(), begun)
    for stimulus, pixels in zip(stimuli, found):
        wanted = np.asarray(render(".", image, stimulus))
        gap = np.abs(pixels.astype(int) - wanted)
        assert gap.max() <= 1, stimulus.recipe
        assert (gap > 0).mean() <= 2e-3, stimulus.recipe


def test_a_cue_that_fails_is_named():
    stimulus = Stimulus(id="a", path="a.png", recipe="square?size=32;contrast?level=2")
    with pytest.raises(UserError, match="stimulus 'a': cue 'contrast': level is 2"):
        render_on_device(tensor(photograph_like(1, 32, 32)), [stimulus], Geometry((32, 32), 32))


def test_the_key_says_what_was_made_on_the_device():
    stimuli = [
        Stimulus(id="a", path="a.png", recipe="square?size=32;non_local_means;greyscale"),
        Stimulus(id="b", path="a.png", recipe="square?size=32;contrast"),
    ]
    versions = {"non_local_means": "1", "greyscale": "2", "contrast": "3"}
    keeps = Geometry((32, 32), 32)
    marks = marked(versions, stimuli, keeps, "cuda")
    assert marks == {"non_local_means": "1", "greyscale": "2 on cuda", "contrast": "3 on cuda"}
    assert marked(versions, stimuli, Geometry((32, 32), 36), "cuda") == versions
