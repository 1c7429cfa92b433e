"""The check of a cue: a pure function image → image that keeps shape, dtype and range."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.registry import cues
from cuebench.testing.base import CheckFailed, require, run_checks

if TYPE_CHECKING:
    from cuebench.cues.base import CueInfo, Tolerance

SMALL_SIZES = ((1, 1), (1, 7), (9, 1), (17, 23))
"""Height and width of the images that every cue is tried on."""
LARGE_SIZE = (1024, 2048)


def check_cue(cue: str | Callable[..., Any], info: CueInfo | None = None, *, only: Iterable[str] = ()) -> None:
    """Check one cue: shape, dtype and range kept, seeds, batches, identity, input unchanged, bad input refused.

    Parameters
    ----------
    cue : str or callable
        A name, ``python:FILE.py:NAME``, or a function.
    info : CueInfo, optional
        The description of the cue, for a function that does not carry one.
    only : iterable of str, optional
        Names from `CUE_CHECKS`; default: all.

    Raises
    ------
    CheckFailed
        A check failed.
    """
    function = cues.get(cue) if isinstance(cue, str) else cue
    info = info or getattr(function, "info", None)
    if info is None:
        raise UserError(f"check_cue received the function {cue!r} without info=", "pass the CueInfo of its module")
    run_checks(CUE_CHECKS, _Cue(function, info), only)


class _Cue:
    """A cue together with the second image and the object mask it needs, and its quick parameters."""

    def __init__(self, function: Callable[..., Any], info: CueInfo) -> None:
        self.function, self.info = function, info
        self.name = getattr(function, "__name__", repr(function))

    def __call__(self, image: Any, options: Mapping[str, Any] | None = None, **more: Any) -> Any:
        keywords = {**self.info.quick, **(options or {}), **more}
        if "mask" in self.info.needs:
            keywords.setdefault("mask", object_mask(image.shape[1:3] if image.ndim == 4 else image.shape[:2]))
        others = (np.flip(image, axis=-3 if image.ndim == 4 else 0),) if "other" in self.info.needs else ()
        return self.function(image, *others, **keywords)


def object_mask(size: tuple[int, int]) -> Array:
    """Return a mask whose object fills the image but for its corners (tiny images: all of it)."""
    y, x = (np.linspace(-1, 1, n) if n > 4 else np.zeros(n) for n in size)
    return (y[:, None] ** 2 + x[None, :] ** 2) <= 1.6


def sample_image(size: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> Array:
    """Return a smooth random image with some noise: in [0, 1], or [0, 255] for uint8."""
    rng = np.random.default_rng(seed)
    height, width = size[-3:-1] if len(size) == 4 else size[:2]
    wave = np.sin(np.arange(height) / 5)[:, None] * np.cos(np.arange(width) / 7)[None, :]
    wave = wave if len(size) == 2 else wave[..., None]
    image = np.clip(0.5 + 0.3 * wave + rng.uniform(-0.2, 0.2, size=size), 0, 1)
    return np.rint(image * 255).astype(np.uint8) if dtype == np.uint8 else image.astype(dtype)


def _check_description(cue: _Cue) -> None:
    """The description agrees with the signature of the function."""
    parameters = inspect.signature(cue.function).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    require(cue.info.reference, f"{cue.name} has no reference")
    for keyword, expected in (
        ("rng", cue.info.random),
        ("other", "other" in cue.info.needs),
        ("mask", cue.info.moves_mask or "mask" in cue.info.needs),
    ):
        verb = "takes" if keyword in parameters else "does not take"
        require(
            takes_any or (keyword in parameters) == expected, f"{cue.name} {verb} {keyword}=; its info says otherwise"
        )
    for keyword in {**cue.info.quick, **(cue.info.identity or {}), **cue.info.levels}:
        require(takes_any or keyword in parameters, f"{cue.name} has no parameter {keyword!r}, which its info names")


def _check_form(cue: _Cue) -> None:
    """Shape, dtype and range are kept for grey and colour, batches, all dtypes and sizes."""
    for size in SMALL_SIZES:
        for shape in (size, (*size, 1), (*size, 3), (2, *size, 3)):
            _same_form(cue, sample_image(shape, np.float32))
    for dtype in (np.uint8, np.float16, np.float64):
        _same_form(cue, sample_image((17, 23, 3), dtype))


def _same_form(cue: _Cue, image: Array) -> None:
    out = cue(image)
    where = f"{cue.name} of {image.shape} {image.dtype}"
    require(isinstance(out, np.ndarray), f"{where}: expected an array, got {type(out).__name__}")
    require(out.shape == image.shape, f"{where}: expected shape {image.shape}, got {out.shape}")
    require(out.dtype == image.dtype, f"{where}: expected dtype {image.dtype}, got {out.dtype}")
    if out.dtype != np.uint8:
        require(np.isfinite(out).all(), f"{where}: not all values are finite")
        require(out.min() >= 0, f"{where}: lowest value {out.min()}")
        require(out.max() <= 1, f"{where}: highest value {out.max()}")


def _check_large(cue: _Cue) -> None:
    """A 2048×1024 image works."""
    _same_form(cue, sample_image((*LARGE_SIZE, 3), np.uint8))


def _check_unchanged(cue: _Cue) -> None:
    """The input is not modified, not even through the result."""
    for dtype in (np.uint8, np.float32, np.float64):
        image = sample_image((17, 23, 3), dtype)
        before = image.copy()
        out = cue(image)
        out[...] = 0
        require(np.array_equal(image, before), f"{cue.name} modifies its {np.dtype(dtype).name} input")


def _check_repeats(cue: _Cue) -> None:
    """The same call gives the same result; another seed another one."""
    image = sample_image((33, 35, 3), np.uint8)
    if not cue.info.random:
        require(np.array_equal(cue(image), cue(image)), f"{cue.name} is said not to be random, but differs")
        return
    first = cue(image, rng=3)
    require(np.array_equal(first, cue(image, rng=3)), f"{cue.name} differs with the same seed")
    generator = np.random.default_rng(3)
    require(np.array_equal(first, cue(image, rng=generator)), f"{cue.name}: Generator and seed differ")


def _check_batch(cue: _Cue) -> None:
    """An image gets the same result alone, in a batch, and with its own seed in a batch."""
    batch = sample_image((3, 17, 23, 3), np.uint8)
    random = cue.info.random
    together = cue(batch, rng=5) if random else cue(batch)
    for number, image in enumerate(batch):
        alone = cue(image, rng=5) if random else cue(image)
        require(np.array_equal(together[number], alone), f"{cue.name}: image {number} differs in a batch")
    if random:
        seeded = cue(batch, rng=[7, 8, 9])
        require(np.array_equal(seeded[1], cue(batch[1], rng=8)), f"{cue.name}: one seed for each image differs")


def _check_identity(cue: _Cue) -> None:
    """With the parameters of zero strength the output is the input."""
    if cue.info.identity is None:
        return
    for dtype in (np.uint8, np.float32, np.float64):
        image = sample_image((17, 23, 3), dtype)
        out = cue(image, cue.info.identity)
        gap = np.abs(out.astype(np.float64) - image).max()
        limit = 0 if dtype == np.uint8 else 1e-6
        require(gap <= limit, f"{cue.name} with {dict(cue.info.identity)}: differs by {gap}")


def _check_mask(cue: _Cue) -> None:
    """A label mask comes back with its own labels, shape and dtype, and does not change the image."""
    if not cue.info.moves_mask:
        return
    labels = np.arange(17 * 23, dtype=np.int32).reshape(17, 23)
    plain = cue(sample_image((17, 23, 3), np.uint8))
    out, moved = cue(sample_image((17, 23, 3), np.uint8), mask=labels)
    require(np.array_equal(plain, out), f"{cue.name}: the image differs when a mask is given")
    require(moved.shape == labels.shape, f"{cue.name}: expected a mask of {labels.shape}, got {moved.shape}")
    require(moved.dtype == labels.dtype, f"{cue.name}: expected a mask of {labels.dtype}, got {moved.dtype}")
    require(np.isin(moved, labels).all(), f"{cue.name}: the mask has labels that were not there")


def _check_bad_input(cue: _Cue) -> None:
    """Bad images are refused with one UserError each."""
    good = sample_image((6, 6, 3), np.float32)
    bad: dict[str, Any] = {
        "NaN": np.where(good == good.max(), np.nan, good),
        "infinite": np.where(good == good.max(), np.inf, good),
        "above 1": good * 255,
        "below 0": good - 0.9,
        "alpha channel": np.concatenate([good, good[..., :1]], axis=-1),
        "empty": good[:0],
        "int64": (good * 255).astype(np.int64),
        "bool": good > 0.5,
        "one axis": good[0, :, 0],
    }
    for what, image in bad.items():
        _refused(cue, what, image)
    if "mask" in cue.info.needs or cue.info.moves_mask:
        _refused(cue, "a mask of another size", good, mask=np.ones((3, 4), dtype=bool))
    if "other" in cue.info.needs:
        _refused_call(cue, "a second image of another size", lambda: cue.function(good, good[:3]))
    if cue.info.random:
        _refused(cue, "a negative seed", good, rng=-1)
        _refused(cue, "a seed too few", np.stack([good, good]), rng=[1])


def _check_device(cue: _Cue) -> None:
    """A tensor gives the pixels of an array, within the tolerance that the description names; without one, an error."""
    if find_spec("torch") is None or cue.info.needs:
        return
    import torch

    batch = sample_image((2, 33, 35, 3), np.uint8)
    seeds: dict[str, Any] = {"rng": [3, 4]} if cue.info.random else {}
    if cue.info.device is None:
        _refused_call(cue, "a tensor, which its info does not promise", lambda: cue(torch.from_numpy(batch), **seeds))
        return
    on_device = cue(torch.from_numpy(batch.copy()), **seeds)
    require(isinstance(on_device, torch.Tensor), f"{cue.name} of a tensor: got {type(on_device).__name__}")
    require(on_device.dtype == torch.uint8, f"{cue.name} of a tensor: expected uint8, got {on_device.dtype}")
    problem = beyond(cue.info.device, on_device.numpy(), cue(batch, **seeds))
    require(not problem, f"{cue.name} of a tensor: {problem}")


def beyond(tolerance: Tolerance, device_pixels: Array, wanted: Array) -> str:
    """Say in words how pixels N×H×W×C of a device lie further from the CPU's than a tolerance; empty: they do not."""
    gap = np.abs(device_pixels.astype(np.int64) - wanted)
    error = (gap.astype(np.float64) ** 2).reshape(len(gap), -1).mean(axis=1).max()
    decibels = 10 * np.log10(255**2 / error) if error else np.inf
    share = (gap > 0).reshape(len(gap), -1).mean(axis=1).max()
    # On a small image one value is a large share.
    allowed = max(tolerance.share, 1 / gap[0].size) if tolerance.share else 0
    if gap.max() <= tolerance.levels and share <= allowed and decibels >= tolerance.decibels:
        return ""
    gap_text = f"{share:.2%} of the values differ, by up to {gap.max()} ({decibels:.1f} dB)"
    least = f", {tolerance.decibels:g} dB" if tolerance.decibels else ""
    return f"{gap_text}; allowed {tolerance.share:.2%}, {tolerance.levels}{least}"


def _refused(cue: _Cue, what: str, image: Array, **options: Any) -> None:
    others = (sample_image((6, 6, 3)),) if "other" in cue.info.needs else ()
    mask = {"mask": object_mask((6, 6))} if "mask" in cue.info.needs else {}
    _refused_call(cue, what, lambda: cue.function(image, *others, **{**cue.info.quick, **mask, **options}))


def _refused_call(cue: _Cue, what: str, call: Callable[[], Any]) -> None:
    try:
        call()
    except UserError as error:
        require(bool(error.hint), f"{cue.name}: the error for {what} has no hint: {error.message}")
    else:
        raise CheckFailed(f"{cue.name} accepts {what}")


CUE_CHECKS: Mapping[str, Callable[[_Cue], None]] = {
    "description": _check_description,
    "form": _check_form,
    "large": _check_large,
    "unchanged": _check_unchanged,
    "repeats": _check_repeats,
    "batch": _check_batch,
    "identity": _check_identity,
    "mask": _check_mask,
    "bad_input": _check_bad_input,
    "device": _check_device,
}
"""Name → check, as run by `check_cue`."""
