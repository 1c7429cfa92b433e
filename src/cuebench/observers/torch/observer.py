"""A torch module as an observer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cuebench.arrays import Array, Pixels
from cuebench.errors import UserError
from cuebench.labels import LabelSpace
from cuebench.observers.base import Answers, Batch, ObserverBase
from cuebench.observers.function_preprocess import FunctionPreprocess
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.features import ALL, Outputs, Route, as_rows, blocks, check_layers, route, watching
from cuebench.observers.torch.fingerprint import Identity
from cuebench.observers.torch.placement import Placed
from cuebench.observers.torch.transfer import MAKES_CUES, on_device, to_host
from cuebench.types import Capability, ObserverKind


class TorchObserver(ObserverBase):
    """An ``nn.Module`` that answers with logits and penultimate features.

    Parameters
    ----------
    module : nn.Module
        Takes float N×3×H×W, returns logits N×classes. It is moved to the device and kept in evaluation mode.
        What of it cannot be hashed gets a fingerprint that holds for this object only, unless ``settings`` name one
        (``fingerprint``).
    name : str
        Public name.
    preprocess : Preprocess
        Its geometry has been applied by the engine before ``respond``; its normalisation is done here, on the device.
    labels : LabelSpace or None
        What the logits stand for; None for a model without a head: its output is then the features.
    device, precision : str
        ``auto``, ``cpu``, ``cuda`` …; ``float32``, ``bfloat16`` or ``float16`` (autocast).
    features : str, optional
        Layer whose output is wanted as features; default: what the classifier reads.
    way : Route, optional
        How to get logits and features out of the module, for adapters that know better.
    settings : mapping
        Whatever else changes an answer (prompts, back ends …); part of the fingerprint and of the record.
    notes : sequence of str
        What the record of the run says about this observer.
    frozen : bool
        Nothing else uses the module, so it cannot change and is hashed once. Otherwise it is hashed whenever the
        fingerprint is asked for.
    """

    name: str
    kind: ObserverKind = "model"
    preprocess: Preprocess
    labels: LabelSpace | None

    def __init__(
        self,
        module: Any,
        *,
        name: str,
        preprocess: Preprocess,
        labels: LabelSpace | None,
        device: str = "auto",
        precision: str = "float32",
        features: str | None = None,
        way: Route | None = None,
        settings: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
        frozen: bool = False,
    ) -> None:
        self.name, self.preprocess, self.labels = name, preprocess, labels
        self.way = way or route(module, None if labels is None else len(labels), features)
        self.settings = {"precision": precision, "features": self.way.features, **(settings or {})}
        # Before the module moves: hashing reads all weights, which would have to come back from the device.
        self._identity = Identity(module, frozen=frozen, named="fingerprint" in self.settings)
        self._placed = Placed(module, device, precision, frozen=frozen)
        missing = () if self.way.features else ("no features: no classifier layer found; name one with features=LAYER",)
        self._notes: tuple[str, ...] = (*notes, *missing)
        self.read: tuple[str, ...] = ()
        self._numbers: Any = None

    @property
    def module(self) -> Any:
        """The module, on its device."""
        return self._placed.module

    @property
    def device(self) -> Any:
        """Where it runs."""
        return self._placed.device

    @property
    def makes_cues(self) -> str:
        """Kind of device on which it finishes pictures; empty for one that asks the module in a way of its own."""
        overridden = type(self).submit is not TorchObserver.submit or type(self).respond is not TorchObserver.respond
        kind = str(self.device.type)
        return "" if overridden or kind not in MAKES_CUES else kind

    @property
    def precision(self) -> str:
        """What it computes with."""
        return self._placed.precision

    @property
    def notes(self) -> tuple[str, ...]:
        """What the record of the run says about this observer."""
        return (*self._notes, *self._identity.notes, *self._placed.notes)

    @property
    def weights_sha256(self) -> str:
        """Hash of the weights alone: every name, dtype, shape and byte of the state dict and the buffers."""
        return self._identity.weights

    @property
    def memory(self) -> int:
        """Bytes that the weights take on a device of their own; 0 in the main memory."""
        return self._placed.memory

    def compile(self, ask: Callable[[], object]) -> bool:
        """Compile the network; where that fails, it stays as it was."""
        if not self._placed.frozen:
            return False
        self._placed.compile()
        try:
            ask()
        except Exception as error:  # noqa: BLE001 - a compiler may raise anything
            self._placed.undo_compile()
            self._notes = (*self._notes, f"not compiled: {type(error).__name__}")
            return False
        return True

    def release(self) -> None:
        """Make room on the device until the next answer."""
        self._placed.release()

    @property
    def fingerprint(self) -> str:
        """Hash of the weights, the layers, the code and the settings: all that decides the answers to the same pixels.

        Reads all weights of a module that could still be trained; ask once for a run, not for every batch.
        """
        return self._identity.fingerprint(self.settings)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """``logits`` where there is a label space, ``features`` where they can be reached."""
        logits: list[Capability] = ["logits"] if self.labels is not None else []
        return frozenset([*logits, "features"] if self.way.features else logits)

    def layers(self) -> list[str]:
        """Return the names of all layers, for ``features=LAYER``."""
        return [name for name, _ in self.module.named_modules() if name]

    def reading(self, names: Sequence[str]) -> TorchObserver:
        """Answer also with ``features:NAME`` for each layer (``all``: every block), averaged over positions.

        The answer is another observer that shares the module. One pass over a blank image finds out which layers take
        part; with ``all`` the others are noted, a layer that was named must take part.
        """
        wanted = blocks(self.module) if list(names) == [ALL] else list(dict.fromkeys(names))
        check_layers(self.module, wanted)
        blank = np.zeros((1, *self.preprocess.hw, 3), np.uint8)
        with watching(self.module, wanted) as seen:
            self._forward(on_device(Batch((), blank), self.device), True)
        idle = [name for name in wanted if name not in seen]
        if idle and list(names) != [ALL]:
            raise UserError(f"layers of {self.name!r} that take no part in the forward pass: {', '.join(idle)}")
        notes = (f"no part in the forward pass: {', '.join(idle)}",) if idle else ()
        reader = self.with_settings({"layers": list(seen)}, notes)  # in the order of the forward pass
        reader.read = tuple(seen)
        return reader

    def with_settings(self, settings: Mapping[str, Any], notes: Sequence[str] = ()) -> TorchObserver:
        """Return an observer that shares the module, with further settings and notes."""
        other = copy.copy(self)
        other.settings, other._notes = {**self.settings, **settings}, (*self._notes, *notes)
        return other

    def respond(self, batch: Batch, needs: Sequence[Capability]) -> Answers:
        """Answer a batch with one forward pass."""
        return self.submit(batch, needs)()

    def submit(self, batch: Batch, needs: Sequence[Capability]) -> Callable[[], Answers]:
        """Begin one forward pass; on a GPU it goes on while the caller prepares the next."""
        unable = [n for n in needs if n not in self.capabilities]
        if unable:
            raise UserError(f"observer {self.name!r} cannot give {', '.join(unable)}", "; ".join(self.notes))
        if batch.images is None:
            raise UserError(f"observer {self.name!r} needs pixels, and the batch has no images")
        layers = self.read if "features" in needs else ()
        with watching(self.module, layers) as seen:
            logits, features = self._forward(on_device(batch, self.device), "features" in needs)
        outputs: dict[str, Any] = {}
        if "logits" in needs:
            outputs["logits"] = _rows(logits)
        if "features" in needs:
            outputs["features"] = _rows(features)
            outputs.update({f"features:{name}": _rows(as_rows(seen[name])) for name in layers})
        fetch = to_host(outputs)

        def answers() -> Answers:
            arrays = fetch()
            if "logits" in needs and self.labels is not None:
                check_logits(self.name, arrays["logits"], self.labels)
            return arrays

        return answers

    def _forward(self, images: Any, features: bool) -> Outputs:
        def forward(x: Any) -> Outputs:
            return self.way.forward(x, features)

        return self._placed.run(forward, self.normalised(images), fleeting=not features)

    def normalised(self, images: Any) -> Any:
        """Turn uint8 N×H×W×3 on the device into the input N×3×H×W: ``Preprocess.normalise``, step by step."""
        import torch

        if isinstance(self.preprocess, FunctionPreprocess):
            return torch.from_numpy(self.preprocess.normalise(images.cpu().numpy())).to(self.device)
        numbers = (self.preprocess.mean, self.preprocess.std, self.device)
        if self._numbers is None or self._numbers[0] != numbers:  # made once: each is a copy that the device waits for
            mean, std = (torch.tensor(n, dtype=torch.float32, device=self.device).view(1, 3, 1, 1) for n in numbers[:2])
            self._numbers = (numbers, mean, std)
        _, mean, std = self._numbers
        return images.permute(0, 3, 1, 2).to(torch.float32).mul_(self.preprocess.scale).sub_(mean).div_(std)

    def pixels(self, images: Pixels) -> Any:
        """Return the normalised input of some images."""
        return self.normalised(on_device(Batch((), images), self.device))

    def __repr__(self) -> str:
        return f"TorchObserver({self.name!r}, {type(self.module).__name__}, {self.device}, {self.precision})"


def check_logits(name: str, logits: Array, labels: LabelSpace) -> None:
    """Raise where logits do not fit the label space, or are not numbers."""
    if logits.ndim != 2:
        raise UserError(
            f"observer {name!r} returned an output of shape {logits.shape}; expected images × classes",
            "a classifier is needed here; wrap the model so that it returns logits N×classes",
        )
    if logits.shape[1] != len(labels):
        raise UserError(
            f"observer {name!r} gives {logits.shape[1]} logits, but its label space {labels.name!r} "
            f"has {len(labels)} classes",
            f"pass labels= (a name, or a JSON or CSV file) with the {logits.shape[1]} classes of this model's head",
        )
    bad = int((np.isnan(logits) | (logits == np.inf)).any(axis=1).sum())
    if bad:
        raise UserError(
            f"observer {name!r} answered {bad} of {len(logits)} images with logits that are NaN or infinite",
            "check its weights and preprocessing, or use precision 'float32'",
        )


def _rows(tensor: Any) -> Any:
    rows = tensor.float()
    while rows.ndim > 2 and rows.shape[-1] == 1:  # a convolutional head gives N×C×1×1
        rows = rows[..., 0]
    return rows
