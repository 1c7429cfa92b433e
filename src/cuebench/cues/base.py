"""The contract of all cues: description, checks of dtype, range and shape, batches and random seeds.

A cue is written as a *kernel* on one image: float64 or float32 H×W×C in [0, 1], C = 1 or 3, and a
``numpy.random.Generator`` where it is random. ``on_images`` does the rest: it checks the input, takes H×W,
H×W×C and N×H×W×C, uint8 or float, and gives back the same shape and dtype.

A cue may have a second kernel, ``on_device``, for a whole batch in PyTorch: the same function then takes a tensor
N×H×W×C on any device and gives one back (``cues/on_device.py``). Its description says how near the pixels are
(`CueInfo.device`). Both kernels draw the same random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np

from cuebench.arrays import Array
from cuebench.cues.parameters import check_choice
from cuebench.errors import UserError

Rng = int | np.random.Generator | Sequence[int] | None
Function = TypeVar("Function", bound=Callable[..., Any])
Rounding = Literal["round", "truncate"]
"""How a result becomes 8-bit values: to the nearest level, or to the next lower one, as ``astype(uint8)`` does it."""
Kind = Literal["shape", "texture", "suppression", "corruption", "mixing"]

SHAPES = "H×W, H×W×C or N×H×W×C with C = 1 or 3, channels last"
NEARLY_WHOLE = 2**-14
"""Grey levels: so far below a whole one, float32 is rounding noise and nothing is truncated."""
DTYPES = "uint8 in [0, 255], or float16, float32, float64 in [0, 1]"


class Tolerance(NamedTuple):
    """How far pixels made on a device may lie from those of the CPU: 8-bit values, of a photograph.

    At most `share` of the values of an image differ, and by at most `levels` grey levels; the PSNR of the image is at
    least `decibels`. No arguments: none differs.
    """

    levels: int = 0
    share: float = 0.0
    decibels: float = 0.0


@dataclass(frozen=True)
class CueInfo:
    """Description of a cue: what the registry, the conformance tests, the docs and the command line know of it.

    Parameters
    ----------
    kind : str
        What the cue keeps or does.
    reference : str
        The paper or library that defines it.
    random : bool
        The function takes ``rng=``.
    identity : mapping, optional
        Keyword arguments with which the output equals the input; None where there are none by nature.
    needs : tuple of str
        Other images the function needs: ``"mask"`` (object mask) or ``"other"`` (second image, second
        positional).
    moves_mask : bool
        With ``mask=`` the function returns ``(image, mask)``, the label mask moved along with the image.
    quick : mapping
        Keyword arguments that make the cue cheap for the conformance tests; they change strength, not kind.
    levels : mapping
        Published levels: name of the keyword → values.
    passes_to : str
        Name of the cue that receives all further keyword arguments, for a function with ``**options``.
    device : Tolerance, optional
        The function takes a tensor of PyTorch too (N×H×W×C, on any device, without masks and second images), and its
        pixels agree with those of an array within this. None: it takes arrays only.
    """

    kind: Kind
    reference: str
    random: bool = False
    identity: Mapping[str, Any] | None = None
    needs: tuple[str, ...] = ()
    moves_mask: bool = False
    quick: Mapping[str, Any] = field(default_factory=dict)
    levels: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    passes_to: str = ""
    device: Tolerance | None = None

    def __call__(self, function: Function) -> Function:
        """Describe a function of your own: ``@CueInfo(kind="texture", reference="…")`` makes it a cue."""
        function.info = self  # type: ignore[attr-defined]
        return function


@dataclass(frozen=True)
class Layout:
    """Shape and dtype of the caller's image: what a result must be brought back to."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def count(self) -> int:
        """Number of images."""
        return self.shape[0] if len(self.shape) == 4 else 1

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return (self.shape[1], self.shape[2]) if len(self.shape) == 4 else (self.shape[0], self.shape[1])

    def restore(self, batch: Array, rounding: Rounding = "round") -> Array:
        """Bring an N×H×W×C result back: clip floats to [0, 1], round to uint8 where the input was uint8."""
        if self.dtype == np.uint8 and batch.dtype != np.uint8:
            levels = np.clip(batch, 0, 1) * 255
            batch = np.rint(levels) if rounding == "round" else np.floor(levels + NEARLY_WHOLE)
        elif batch.dtype != np.uint8:
            batch = np.clip(batch, 0, 1)
        return np.ascontiguousarray(batch.astype(self.dtype, copy=False).reshape(self.shape))


def check_image(image: Any, name: str = "image") -> Array:
    """Return the image as an array after checking it.

    Raises
    ------
    UserError
        Wrong dtype, wrong number of axes, empty, an alpha channel, NaN or infinite values, floats outside
        [0, 1].
    """
    array = np.asarray(image)
    if array.dtype != np.uint8 and array.dtype not in (np.float16, np.float32, np.float64):
        raise UserError(f"{name} has dtype {array.dtype}", f"accepted: {DTYPES}")
    if array.ndim not in (2, 3, 4):
        raise UserError(f"{name} has {array.ndim} axes (shape {array.shape})", f"accepted: {SHAPES}")
    if array.size == 0:
        raise UserError(f"{name} is empty (shape {array.shape})", f"accepted: {SHAPES}, at least one pixel")
    _check_channels(array, name)
    if array.dtype != np.uint8:
        _check_range(array, name)
    return array


def _check_channels(array: Array, name: str) -> None:
    if array.ndim == 2 or array.shape[-1] in (1, 3):
        return
    if array.shape[-1] in (2, 4):
        hint = f"drop the alpha channel first, e.g. image[..., :{array.shape[-1] - 1}]"
    elif array.shape[-3] in (1, 3):
        hint = "it looks channels-first: move the axis with np.moveaxis(image, -3, -1)"
    else:
        hint = f"accepted: {SHAPES}"
    raise UserError(f"{name} has {array.shape[-1]} channels (shape {array.shape})", hint)


def _check_range(array: Array, name: str) -> None:
    low, high = float(array.min()), float(array.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        bad = array[~np.isfinite(array)]
        what = "NaN" if np.isnan(bad).any() else "infinite"
        raise UserError(
            f"{name} has {bad.size} {what} value{'s' * (bad.size != 1)}", "accepted: finite floats in [0, 1]"
        )
    if low < 0 or high > 1:
        raise UserError(
            f"{name} has float values from {low:g} to {high:g}",
            "accepted: floats in [0, 1]; divide by 255, or pass uint8",
        )


def check_rounding(rounding: Rounding, image: Any) -> None:
    """Refuse an unknown rounding, and truncation of floats, which come back as they are."""
    check_choice("rounding", rounding, get_args(Rounding))
    dtype = image.dtype if is_tensor(image) else np.asarray(image).dtype
    if rounding == "truncate" and not str(dtype).endswith("uint8"):
        raise UserError(f"rounding is 'truncate' and the image has dtype {dtype}", "accepted with 'truncate': uint8")


def check_mask(mask: Any, layout: Layout, name: str = "mask") -> Array:
    """Return a mask (object or labels) as N×H×W after checking it.

    Accepted are booleans and integers of the same height and width as the image: H×W for one image, N×H×W for a
    batch (an H×W mask of a batch is used for all its images).
    """
    array = np.asarray(mask)
    if array.dtype != np.bool_ and not np.issubdtype(array.dtype, np.integer):
        raise UserError(f"{name} has dtype {array.dtype}", "accepted: bool or an integer type, e.g. mask > 0.5")
    if array.ndim == 2 and array.shape == layout.size:
        return np.broadcast_to(array, (layout.count, *layout.size))
    if array.ndim == 3 and array.shape == (layout.count, *layout.size):
        return array
    accepted = " or ".join(f"{shape}" for shape in dict.fromkeys([layout.size, (layout.count, *layout.size)]))
    raise UserError(f"{name} has shape {array.shape}, the image {layout.shape}", f"accepted: a mask of {accepted}")


def as_batch(image: Any, *, raw: bool = False, name: str = "image") -> tuple[Array, Layout]:
    """Check an image and return it as N×H×W×C with the layout to bring results back.

    float64 stays float64, everything else becomes float32 in [0, 1]; with ``raw=True`` the dtype is left
    alone, for cues that only move pixels.
    """
    array = check_image(image, name)
    layout = Layout(array.shape, array.dtype)
    batch = array.reshape(layout.count, *layout.size, -1)
    if raw:
        return batch, layout
    if array.dtype == np.uint8:
        return batch.astype(np.float32) / np.float32(255), layout
    return batch.astype(np.float64 if array.dtype == np.float64 else np.float32, copy=False), layout


def generators(rng: Rng, count: int) -> list[np.random.Generator]:
    """Return one random generator for each image.

    An int seeds each image alike, so a draw depends neither on the batch size nor on the place in the batch; a
    sequence gives each image its own seed; a Generator is used in turn, image after image; None takes fresh
    entropy.
    """
    if isinstance(rng, np.random.Generator):
        return [rng] * count
    if rng is None:
        return [np.random.default_rng() for _ in range(count)]
    seeds = [rng] * count if isinstance(rng, int | np.integer) else rng
    if isinstance(seeds, str) or not isinstance(seeds, Sequence | np.ndarray):
        raise UserError(
            f"rng is {rng!r}",
            "accepted: an int seed ≥ 0, a numpy Generator, one seed for each image, or None",
        )
    if len(seeds) != count:
        raise UserError(
            f"rng has {len(seeds)} seeds for {count} image(s)",
            "accepted: one seed for each image, or one int",
        )
    for seed in seeds:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise UserError(f"rng has the seed {seed!r}", "accepted: whole numbers ≥ 0")
    return [np.random.default_rng(int(seed)) for seed in seeds]


def on_images(
    kernel: Callable[..., Any],
    image: Any,
    *,
    random: bool = False,
    rng: Rng = 0,
    mask: Any = None,
    labels: Any = None,
    other: Any = None,
    other_name: str = "other",
    raw: bool = False,
    on_device: Callable[..., Any] | None = None,
    rounding: Rounding = "round",
) -> Any:
    """Apply a kernel to an image or to each image of a batch; the result has the caller's shape and dtype.

    Parameters
    ----------
    kernel : callable
        ``kernel(image, *, rng, mask, labels, other)`` on one H×W×C float image in [0, 1]; it is called with those
        keywords only that apply. It returns an image that broadcasts to H×W×C, or ``(image, labels)`` when it is
        called with labels.
    image : array
        The caller's image; see `check_image`.
    random : bool
        Pass ``rng=`` to the kernel.
    rng : int, Generator, sequence of int or None
        See `generators`.
    mask : array, optional
        Object mask, H×W or N×H×W; passed to the kernel as a boolean H×W (non-zero = object).
    labels : array, optional
        Label mask that moves with the pixels, H×W or N×H×W; passed as H×W.
    other : array, optional
        Second image of the same height and width (one for each image, or one for the whole batch); passed as
        H×W×C with as many channels as the image.
    other_name : str
        What messages call the second image.
    raw : bool
        Leave the dtype alone: for kernels that only move pixels.
    on_device : callable, optional
        The kernel for a tensor: ``on_device(images, *, rng)`` on N×H×W×C floats in [0, 1] (with ``raw``: as they are),
        ``rng`` a list with one generator for each image, given where the cue is random.
    rounding : {"round", "truncate"}
        How the result becomes 8-bit values; see `check_rounding`.

    Returns
    -------
    array, or (array, array) where labels were moved; a tensor where the image is one
    """
    check_rounding(rounding, image)
    if is_tensor(image):
        from cuebench.cues.on_device import on_tensor

        given = {"mask": mask, "label mask": labels, other_name: other}
        rngs = generators(rng, len(image)) if random else None
        unused = [name for name, value in given.items() if value is not None]
        return on_tensor(on_device, image, rngs, raw=raw, given=unused, rounding=rounding)
    batch, layout = as_batch(image, raw=raw)
    keywords: dict[str, Sequence[Any] | Array] = {}  # name → one value for each image
    if random:
        keywords["rng"] = generators(rng, layout.count)
    if mask is not None:
        keywords["mask"] = check_mask(mask, layout) != 0
    if labels is not None:
        keywords["labels"] = check_mask(labels, layout)
    if other is not None:
        keywords["other"] = match_other(other, batch, layout, other_name)
    results = [kernel(pixels, **{k: v[i] for k, v in keywords.items()}) for i, pixels in enumerate(batch)]
    images = results if labels is None else [result[0] for result in results]
    restored = layout.restore(np.stack([np.broadcast_to(pixels, batch.shape[1:]) for pixels in images]), rounding)
    if labels is None:
        return restored
    moved = np.stack([result[1] for result in results]).astype(np.asarray(labels).dtype, copy=False)
    return restored, moved[0] if layout.count == 1 and np.ndim(labels) == 2 else moved


def is_tensor(image: Any) -> bool:
    """Tell whether an image is a tensor of PyTorch, without importing it."""
    return type(image).__module__.partition(".")[0] == "torch"


def match_other(other: Any, batch: Array, layout: Layout, name: str = "other") -> Array:
    """Return a second image as a batch of the shape of the first, after checking that it fits."""
    second, second_layout = as_batch(other, name=name)
    if second_layout.size != layout.size or second_layout.count not in (1, layout.count):
        raise UserError(
            f"{name} has shape {second_layout.shape}, the image {layout.shape}",
            "accepted: the same height and width, and one image or as many as the batch has",
        )
    if second.shape[-1] > batch.shape[-1]:
        raise UserError(
            f"{name} has {second.shape[-1]} channels, the image {batch.shape[-1]}",
            "accepted: as many channels as the image, or one",
        )
    return np.broadcast_to(second, batch.shape).astype(batch.dtype, copy=False)
