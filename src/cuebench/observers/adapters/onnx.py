"""Any classifier in an ONNX file, run by onnxruntime.

The file does not say how its images are to be prepared: the input size is read from the model, the rest is ImageNet's
usual preprocessing (shorter side to 8/7 of the size, centre crop, mean and std) unless the options say otherwise, and
the record says so. Features are an output of the graph, named by ``?features=OUTPUT``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cuebench.arrays import Array, Pixels
from cuebench.errors import UserError, did_you_mean
from cuebench.files import hash_file
from cuebench.labels import LabelSpace, label_space
from cuebench.observers.adapters._options import LABELS, NAME, PREPROCESS, imagenet, option_values, overridden
from cuebench.observers.adapters._segmentation import SEGMENTATION, is_segmentation, windows
from cuebench.observers.base import Adapter, Answers, Batch, LoadOptions, Observer, ObserverBase, Spec
from cuebench.observers.masks import MaskObserver
from cuebench.observers.preprocess import Preprocess, imagenet_usual
from cuebench.observers.torch.observer import check_logits
from cuebench.observers.torch.weights import existing_file
from cuebench.options import Option
from cuebench.types import Capability, ObserverKind

CUDA = "CUDAExecutionProvider"
OPTIONS = {
    **NAME,
    **LABELS,
    "output": Option("", "output of the graph that holds the logits; default: the first"),
    "features": Option("", "output of the graph that is the features; default: none"),
    **SEGMENTATION,
    **PREPROCESS,
}
_LOCATION = b"\x0a\x08location\x12"
"""An entry of a protocol buffer: field 1, text of 8 bytes, "location"; then field 2, the text that follows."""
_DTYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}


class OnnxObserver(ObserverBase):
    """A classifier in an ONNX file."""

    name: str
    kind: ObserverKind = "model"
    fingerprint: str
    preprocess: Preprocess
    labels: LabelSpace
    notes: tuple[str, ...]
    precision: str

    def __init__(self, path: Path, values: Mapping[str, Any], spec: Spec, options: LoadOptions) -> None:
        self.name = values["name"] or spec.name
        self.session = _session(path, options.device)
        self.input = self.session.get_inputs()[0]
        self.layout = _layout(self.input.shape, path)
        self.labels = label_space(values["labels"]) if values["labels"] else imagenet()
        self.preprocess, self.notes = _preprocess(self.input.shape, self.layout, spec, values)
        self.settings = {"output": self._output(values["output"]), "features": values["features"]}
        if values["features"]:
            self._output(values["features"])
        self.precision = "the file's own"
        if options.precision != "float32":
            self.notes = (*self.notes, f"precision {options.precision} ignored: the file fixes its own")
        self.fingerprint = hashlib.sha256(f"{_hash(path)}{sorted(self.settings.items())}".encode()).hexdigest()

    @property
    def capabilities(self) -> frozenset[Capability]:
        """``logits``, and ``features`` where an output was named for them."""
        return frozenset({"logits", "features"} if self.settings["features"] else {"logits"})

    def outputs(self) -> list[str]:
        """Return the names of all outputs of the graph, for ``?features=OUTPUT``."""
        return [o.name for o in self.session.get_outputs()]

    def respond(self, batch: Batch, needs: Sequence[Capability]) -> Answers:
        """Answer a batch; a file with a fixed batch size gets it in pieces of that size."""
        if set(needs) - self.capabilities:
            raise UserError(f"observer {self.name!r} cannot give {list(needs)}", "name an output with ?features=OUTPUT")
        if batch.images is None:
            raise UserError(f"observer {self.name!r} needs pixels, and the batch has no images")
        outputs = {"logits": self.settings["output"], "features": self.settings["features"]}
        columns = self._run(self._pixels(batch.images), [outputs[n] for n in needs])
        answers: dict[str, Array] = {}
        for need, column in zip(needs, columns):
            answers[need] = column.astype(np.float32).reshape(len(column), -1)
        if "logits" in answers:
            check_logits(self.name, answers["logits"], self.labels)
        return answers

    def _pixels(self, images: Pixels) -> Array:
        pixels = self.preprocess.normalise(images).astype(_DTYPES.get(self.input.type, np.float32), copy=False)
        return pixels if self.layout == "NCHW" else np.ascontiguousarray(np.moveaxis(pixels, 1, -1))

    def scores(self, pixels: Array) -> Array:
        """Return the first output of a segmentation: class scores N×C×h×w, or class numbers N×h×w."""
        typed = pixels.astype(_DTYPES.get(self.input.type, np.float32), copy=False)
        if self.layout == "NHWC":
            typed = np.ascontiguousarray(np.moveaxis(typed, 1, -1))
        scores = self._run(typed, [self.settings["output"]])[0]
        classes_last = scores.ndim == 4 and scores.shape[-1] == len(self.labels) != scores.shape[1]
        return np.moveaxis(scores, -1, 1) if classes_last else scores

    def _run(self, pixels: Array, outputs: list[str]) -> list[Array]:
        fixed = self.input.shape[0]
        step = fixed if isinstance(fixed, int) and fixed > 0 else len(pixels)
        pieces = []
        for start in range(0, len(pixels), step):
            piece = pixels[start : start + step]
            padded = np.concatenate([piece, np.zeros_like(pixels[:1]).repeat(step - len(piece), 0)])
            pieces.append([o[: len(piece)] for o in self.session.run(outputs, {self.input.name: padded})])
        return [np.concatenate(column) for column in zip(*pieces)]

    def _output(self, name: str) -> str:
        names = [o.name for o in self.session.get_outputs()]
        if name and name not in names:
            raise did_you_mean(f"output of observer {self.name!r}:", name, names)
        return name or names[0]

    def __repr__(self) -> str:
        return f"OnnxObserver({self.name!r})"


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Load one file."""
    values = option_values(spec, OPTIONS)
    observer = OnnxObserver(existing_file(spec.body, "ONNX file"), values, spec, options)
    if not is_segmentation(spec, values):
        return [observer]
    sliding: dict[str, Any] = windows(spec, values, observer.preprocess)
    masks = MaskObserver(
        observer.scores,
        name=observer.name,
        fingerprint=observer.fingerprint,
        preprocess=observer.preprocess,
        labels=observer.labels,
        notes=observer.notes,
        precision=observer.precision,
        **sliding,
    )
    return [masks]


def _session(path: Path, device: str) -> Any:
    import onnxruntime

    providers = _providers(device, onnxruntime.get_available_providers())
    try:
        return onnxruntime.InferenceSession(str(path), providers=providers)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - onnxruntime has a class for each of its codes, and C++ has others
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(f"{path} cannot be loaded by onnxruntime: {reason}") from None


def _providers(device: str, available: Sequence[str]) -> list[Any]:
    """Return the providers of onnxruntime: ``cuda:1`` is the second card; on a Mac's ``mps`` it uses the CPU."""
    kind, _, number = device.partition(":")
    if kind not in {"auto", "cpu", "cuda", "mps"} or (number and not number.isdecimal()):
        raise UserError(f"unknown device {device!r}", "one of auto, cpu, cuda, cuda:N, mps")
    if kind == "cuda" and CUDA not in available:
        raise UserError("this onnxruntime has no CUDA provider", "pip install onnxruntime-gpu, or use --device cpu")
    card = (CUDA, {"device_id": number}) if number else CUDA
    return [*([card] if kind in {"auto", "cuda"} and CUDA in available else []), "CPUExecutionProvider"]


def _layout(shape: Sequence[Any], path: Path) -> str:
    if len(shape) == 4 and shape[3] == 3 and shape[1] != 3:
        return "NHWC"
    if len(shape) == 4 and (shape[1] == 3 or not isinstance(shape[1], int)):
        return "NCHW"
    raise UserError(f"{path} takes an input of shape {list(shape)}; expected N×3×H×W or N×H×W×3")


def _preprocess(
    shape: Sequence[Any], layout: str, spec: Spec, values: Mapping[str, Any]
) -> tuple[Preprocess, tuple[str, ...]]:
    sides = tuple(shape[2:4] if layout == "NCHW" else shape[1:3])
    fixed = all(isinstance(s, int) for s in sides)
    size = sides if fixed else (224, 224)
    base = imagenet_usual((size[0], size[1]), "ImageNet's usual" + ", size from the file" * fixed)
    result = overridden(base, spec, values, prefix="")
    if values["size"] and not values["resize"]:
        result = replace(result, resize=round(min(result.hw) * 8 / 7), source=f"{result.source}; resize 8/7 of it")
    # The network gets one window at a time; the size is that of the whole image.
    if fixed and result.hw != sides and values["window"] != sides[0]:
        segmentation = values["task"] == "segmentation"
        hint = f"leave size= out, or slide: window={sides[0]}" if segmentation else "leave size= out"
        raise UserError(f"{spec.body} takes {sides[0]}×{sides[1]} pixels, not size={spec.options['size']}", hint)
    assumed = [key for key in ("mean", "std", "resize") if not values[key]]
    assumed += [] if fixed or values["size"] else ["size"]
    note = f"assumed, because an ONNX file does not say: ImageNet's {', '.join(assumed)}"
    return result, (note,) if assumed else ()


def _hash(path: Path) -> str:
    """Return the hash of the file and of those that it keeps tensors in, in its folder or below."""
    content = path.read_bytes()
    beside = [path.parent / name for name in external_files(content)]
    return "".join(
        [hashlib.sha256(content).hexdigest(), *(f.name + hash_file(f).sha256 for f in beside if f.is_file())]
    )


def external_files(content: bytes) -> list[str]:
    """Return the files in which a model keeps tensors: the entries ``location`` of its tensors, as they are encoded."""
    names = set()
    start = content.find(_LOCATION)
    while start >= 0:
        start += len(_LOCATION)
        length = shift = 0
        for byte in content[start : start + 5]:  # a number in pieces of seven bits, the lowest first
            start += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        names.add(content[start : start + length].decode("utf-8", "replace"))
        start = content.find(_LOCATION, start)
    return sorted(name for name in names if name)


ADAPTER = Adapter(
    load,
    form="onnx:FILE[?size=224&resize=256&mean=…&std=…&scale=…&labels=…&output=…&features=OUTPUT]"
    "[&task=segmentation&window=512&stride=341]",
    extra="onnx",
    packages=("onnxruntime",),
    examples=(
        "onnx:squeezenet1_1.onnx",
        "onnx:net.onnx?size=160&mean=0.5&std=0.5&labels=classes.json",
        "onnx:deeplab.onnx?task=segmentation&labels=voc21&scale=0.00784313725490196&mean=1&std=1",
    ),
    options=OPTIONS,
)
