"""Observers that answer with a class for each pixel: whole image or sliding window, around any forward function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.labels import LabelSpace
from cuebench.observers.base import Answers, Batch, ObserverBase
from cuebench.observers.preprocess import Inside, Preprocess
from cuebench.observers.torch.placement import Placed
from cuebench.types import Capability, ObserverKind

Forward = Callable[[Array], Any]
"""float32 N×3×H×W → logits N×classes×h×w (an array or a tensor), or class numbers N×h×w."""
FUNCTION_PRECISION = "the function's own"
"""Precision of what cuebench cannot look into."""
ROOM = 64_000_000
"""Numbers of logits that are held at once: 256 MB."""


class MaskObserver(ObserverBase):
    """A semantic segmentation model.

    Parameters
    ----------
    forward : callable
        See ``Forward``. Logits that are coarser than the input are enlarged bilinearly before the arg max.
    name : str
        Public name.
    fingerprint : str or callable
        What identifies the answers in the cache; a function is asked each time, for a model that may still change.
    preprocess : Preprocess
        Geometry is done by the engine, normalisation here.
    labels : LabelSpace
        What the class numbers stand for.
    window, stride : int
        Sliding window of this side and step: logits of overlapping windows are averaged. 0: the whole image at once.
    notes : sequence of str
        What the record of the run says about this observer.
    precision : str
        What it computes with.
    placed : Placed, optional
        The module behind ``forward``, where there is one: it can leave the device for others.
    """

    name: str
    kind: ObserverKind = "model"
    preprocess: Preprocess
    labels: LabelSpace
    capabilities: frozenset[Capability] = frozenset({"masks"})
    notes: tuple[str, ...]
    precision: str

    def __init__(
        self,
        forward: Forward,
        *,
        name: str,
        fingerprint: str | Callable[[], str],
        preprocess: Preprocess,
        labels: LabelSpace,
        window: int = 0,
        stride: int = 0,
        notes: Sequence[str] = (),
        precision: str = FUNCTION_PRECISION,
        placed: Placed | None = None,
    ) -> None:
        check_window(name, window, stride)
        self.forward, self.name, self.preprocess, self.labels = forward, name, preprocess, labels
        self.window, self.stride = window, stride or window
        self.precision, self._identity, self._placed = precision, fingerprint, placed
        sliding = (f"sliding window {window}, stride {self.stride}",) if window else ()
        self.notes = (*notes, *sliding)

    @property
    def fingerprint(self) -> str:
        """What identifies the answers in the cache."""
        identity = self._identity if isinstance(self._identity, str) else self._identity()
        # Windows change the answers.
        return f"{identity}|window {self.window}/{self.stride}" if self.window else identity

    @property
    def memory(self) -> int:
        """Bytes that the weights take on a device of their own; 0 where they do not or are not known."""
        return self._placed.memory if self._placed else 0

    @property
    def device(self) -> Any:
        """Where it runs; empty: not known."""
        return self._placed.device if self._placed else ""

    def release(self) -> None:
        """Make room on the device until the next answer."""
        if self._placed:
            self._placed.release()

    def respond(self, batch: Batch, needs: Sequence[Capability]) -> Answers:
        """Answer a batch with class numbers, N×H×W at the size of the input."""
        if set(needs) - self.capabilities:
            raise UserError(
                f"observer {self.name!r} is a segmentation model and gives masks only; wanted {list(needs)}"
            )
        if batch.images is None:
            raise UserError(f"observer {self.name!r} needs pixels, and the batch has no images")
        height, width = batch.images.shape[1:3]
        step = max(1, ROOM // (len(self.labels) * height * width))
        masks = np.zeros((len(batch.images), height, width), np.int16)
        for size, rows in self._sizes(batch).items():
            for start in range(0, len(rows), step):
                piece = rows[start : start + step]
                # Enlarged to the frame: scaling the frame to the size of the truth then gives the mask's own pixels.
                masks[piece] = nearest(self._masks(batch.images[piece, : size[0], : size[1]]), (height, width))
        return {"masks": masks}

    def _sizes(self, batch: Batch) -> dict[tuple[int, int], list[int]]:
        """Return height and width → which images of a batch have them: one size, unless each keeps its own."""
        assert batch.images is not None
        geometry = self.preprocess.geometry
        if not isinstance(geometry, Inside):
            whole: tuple[int, int] = (batch.images.shape[1], batch.images.shape[2])
            return {whole: list(range(len(batch)))}
        sizes: dict[tuple[int, int], list[int]] = {}
        for row, stimulus in enumerate(batch.stimuli):
            if not stimulus.width or not stimulus.height:
                raise UserError(f"the size of {stimulus.id!r} is not known", "leave out fit=native and fit=pad")
            sizes.setdefault(geometry.inside((stimulus.height, stimulus.width)), []).append(row)
        return sizes

    def _masks(self, images: Array) -> Array:
        pixels = self.preprocess.normalise(images)
        answer = self._slide(pixels) if self.window else self._checked(self.forward(pixels), len(pixels))
        size = (pixels.shape[2], pixels.shape[3])
        if answer.ndim == 3:
            return nearest(answer, size).astype(np.int16)
        return resized(answer, size).argmax(axis=1).astype(np.int16)

    def _slide(self, pixels: Array) -> Array:
        height, width = pixels.shape[2:]
        side = min(self.window, height), min(self.window, width)
        total = np.zeros((len(pixels), len(self.labels), height, width), np.float32)
        count = np.zeros((height, width), np.float32)
        for top in _starts(height, side[0], self.stride):
            for left in _starts(width, side[1], self.stride):
                where = slice(top, top + side[0]), slice(left, left + side[1])
                answer = self._checked(self.forward(np.ascontiguousarray(pixels[:, :, *where])), len(pixels))
                if answer.ndim == 3:
                    raise UserError(
                        f"observer {self.name!r} gives class numbers, which overlapping windows cannot average",
                        "return logits N×classes×h×w, or leave the window out",
                    )
                total[:, :, *where] += resized(answer, side)
                count[where] += 1
        return total / count

    def _checked(self, answer: Any, images: int) -> Array:
        array = np.asarray(answer.detach().float().cpu().numpy() if hasattr(answer, "detach") else answer)
        if array.ndim not in (3, 4) or len(array) != images:
            raise UserError(
                f"observer {self.name!r} returned an output of shape {array.shape} for {images} images",
                "a segmentation model returns logits images × classes × height × width, or class numbers",
            )
        if array.ndim == 4 and array.shape[1] != len(self.labels):
            raise UserError(
                f"observer {self.name!r} gives {array.shape[1]} logits for each pixel, but its label space "
                f"{self.labels.name!r} has {len(self.labels)} classes",
                f"pass labels= (voc21, cityscapes, ade20k, or a file) with the {array.shape[1]} classes of this model",
            )
        if array.ndim == 4 and not np.isfinite(array).all():
            raise UserError(f"observer {self.name!r} answered with NaN or infinite logits", "check its preprocessing")
        return array

    def __repr__(self) -> str:
        return f"MaskObserver({self.name!r})"


def check_window(name: str, window: int, stride: int) -> None:
    """Refuse windows that leave gaps."""
    if window < 0 or stride < 0 or (stride and not window) or stride > window:
        raise UserError(
            f"observer {name!r}: window {window}, stride {stride}", "0, or a stride of 1 to the window's side"
        )


def _starts(length: int, side: int, stride: int) -> Iterator[int]:
    """Yield where windows begin; the last one ends at the border."""
    start = 0
    while start + side < length:
        yield start
        start += stride
    yield length - side


def resized(logits: Array, size: tuple[int, int]) -> Array:
    """Return N×C×h×w at another size, bilinear with half-pixel centres (torch's ``align_corners=False``)."""
    if logits.shape[2:] == size:
        return logits
    rows, columns = (_weights(n, m) for n, m in zip(logits.shape[2:], size))
    tall = logits[:, :, rows[0]] * rows[2][:, None] + logits[:, :, rows[1]] * (1 - rows[2])[:, None]
    return np.asarray(tall[..., columns[0]] * columns[2] + tall[..., columns[1]] * (1 - columns[2]))


def nearest(masks: Array, size: tuple[int, int]) -> Array:
    """Return N×h×w class numbers at another size, each pixel taking the nearest."""
    if masks.shape[1:] == size:
        return masks
    rows, columns = (((np.arange(m) + 0.5) * n / m).astype(np.intp) for n, m in zip(masks.shape[1:], size))
    return masks[:, rows[:, None], columns]


def _weights(old: int, new: int) -> tuple[Array, Array, Array]:
    """Return the two neighbours of each new pixel and the weight of the first."""
    centre = np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)
    low = np.floor(centre).astype(np.intp)
    return low, np.minimum(low + 1, old - 1), (1 - (centre - low)).astype(np.float32)
