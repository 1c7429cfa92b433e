"""The contract of an observer, and how one is asked for by name.

An observer is anything with these six attributes and ``respond``; no base class is needed. Those that look at pixels
have a ``preprocess``; those that do not (people recorded in a file, ideal observers) have None, and the engine then
decodes no image for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Protocol, runtime_checkable
from urllib.parse import parse_qsl

import numpy as np

from cuebench.errors import UserError
from cuebench.labels import LabelMap, LabelSpace
from cuebench.observers.preprocess import Preprocess
from cuebench.types import Capability, ObserverKind, Stimulus

WEIGHT_FILES = {".onnx", ".safetensors", ".pt", ".pth", ".ckpt", ".bin", ".ts"}
"""Endings of files that hold a model."""


@dataclass(frozen=True)
class Batch:
    """What an observer is shown at once.

    Parameters
    ----------
    stimuli : sequence of Stimulus
        Who they are. Only ideal and recorded observers may look at the truth in here.
    images : uint8 array N×H×W×3 or None
        After the observer's own geometry, before its normalisation; None for observers without ``preprocess``.
    """

    stimuli: Sequence[Stimulus]
    images: np.ndarray[Any, np.dtype[np.uint8]] | None = None

    def __len__(self) -> int:
        return len(self.stimuli)


Answers = Mapping[str, np.ndarray[Any, Any]]
"""What ``respond`` returns: column → one row for each stimulus of the batch.

``logits`` float N×classes, ``features`` float N×d, ``decisions`` str N. An observer that can answer one stimulus
several times (a crowd) returns more rows and adds the column ``stimulus`` (position in the batch); it may also return
fewer (a person who did not see it). Further columns such as ``rt`` or ``subject`` are stored as they are.
"""


@runtime_checkable
class Observer(Protocol):
    """Whoever looks.

    Attributes
    ----------
    name : str
        Public name, unique in a run.
    kind : str
        ``model``, ``person``, ``people`` or ``ideal``.
    fingerprint : str
        Hash of the weights (or of the recorded file): same name and other weights give another one.
    preprocess : Preprocess or None
        None: needs no pixels.
    labels : LabelSpace or None
        What the logits stand for; None where there are only features or decisions in the stimuli's own classes.
    capabilities : frozenset of str
        Subset of ``logits``, ``features``, ``masks``, ``decisions``.

    Notes
    -----
    What an observer may offer besides: ``precision`` (what it computes with; part of the cache's key); ``memory``
    (bytes on the device) with ``release()`` (go to the main memory until the next answer), so that observers which do
    not fit the device together take turns; ``check_shown(stimuli)``, which raises where it cannot answer any of them;
    ``notes``, which stand in the record; ``loaded_by`` (adapter and version, set by ``load``).
    """

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> ObserverKind: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def preprocess(self) -> Preprocess | None: ...
    @property
    def labels(self) -> LabelSpace | None: ...
    @property
    def capabilities(self) -> frozenset[Capability]: ...

    def respond(self, batch: Batch, needs: Sequence[Capability]) -> Answers:
        """Answer a batch with (at least) the columns named in ``needs``."""
        ...


@runtime_checkable
class Recorded(Observer, Protocol):
    """An observer whose answers were given earlier and are read from a file: it knows what it was shown."""

    def stimulus_names(self) -> Sequence[str]:
        """Return the names of the images it has answered, as recorded."""
        ...


@runtime_checkable
class Choosing(Observer, Protocol):
    """An observer that is told what it can choose from: it answers in the classes of each protocol's stimuli."""

    def among(self, targets: Sequence[str], members: LabelMap | None = None, space: str = "") -> Observer:
        """Return the same observer, choosing among these classes (by their members in a larger space, if given)."""
        ...


@dataclass(frozen=True)
class Spec:
    """An observer as a user writes it: ``scheme:body?key=value&key=value``."""

    text: str
    scheme: str
    body: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Spec:
        """Split a spec; a missing scheme is an error that shows the form."""
        scheme, colon, rest = text.partition(":")
        if not colon or not rest:
            raise UserError(f"observer {text!r} has no source", "write SOURCE:NAME, e.g. timm:resnet50.a1_in1k")
        body, _, query = rest.partition("?")
        # A plus is a plus (a folder may be called c++), not the space of a web form.
        return cls(text, scheme, body, dict(parse_qsl(query.replace("+", "%2B"), keep_blank_values=True)))

    @property
    def name(self) -> str:
        """What the observer is called by default: the spec itself; of a file, its name without the folders."""
        path = PurePath(self.body)
        return f"{self.scheme}:{path.stem}" if path.suffix in WEIGHT_FILES else self.text

    def take(self, **accepted: str) -> dict[str, str]:
        """Return the options with defaults; an option that is not accepted is an error that lists those that are."""
        unknown = set(self.options) - set(accepted)
        if unknown:
            known = ", ".join(accepted) or "none"
            raise UserError(f"observer {self.text!r}: unknown option {sorted(unknown)[0]!r}", f"accepted: {known}")
        return {**accepted, **self.options}


@dataclass(frozen=True)
class LoadOptions:
    """What the run says to every adapter."""

    device: str = "auto"
    precision: str = "float32"
    offline: bool = False
    seed: int = 0
    targets: tuple[str, ...] = ()
    """Classes of all stimuli of this run, for observers that are told what to choose from."""


@dataclass(frozen=True)
class Adapter:
    """A source of observers.

    Parameters
    ----------
    load : callable
        ``load(spec, options) -> list of Observer`` (one file of people gives many).
    form : str
        How it is written, e.g. ``timm:MODEL[?checkpoint=FILE]``.
    extra : str
        The extra that it needs, empty for the core.
    packages : tuple of str
        Import names that must be present.
    version : int
        Rises when the same weights would answer differently; part of the cache key.
    examples : tuple of str
        Specs that show the range, used by ``cuebench list observers`` and the docs.
    """

    load: Callable[[Spec, LoadOptions], list[Observer]]
    form: str
    extra: str = ""
    packages: tuple[str, ...] = ()
    version: int = 1
    examples: tuple[str, ...] = ()
