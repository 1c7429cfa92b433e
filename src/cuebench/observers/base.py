"""The contract of an observer, what it may offer besides, and how one is asked for by name.

An observer is anything with the six attributes of `Observer` and ``respond``. `ObserverBase` adds defaults for all that
is optional; our own observers inherit it, and `complete` gives the same to an object that does not. Observers that look
at pixels have a ``preprocess``; those that do not (people recorded in a file, ideal observers) have None, and no image
is decoded for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from cuebench.arrays import Array, Pixels
from cuebench.errors import UserError
from cuebench.labels import LabelMap, LabelSpace
from cuebench.observers.guess import likely_spec
from cuebench.observers.preprocess import Preprocess
from cuebench.options import Option, query_options
from cuebench.types import Capability, ObserverKind, Stimulus

WEIGHT_FILES = {".onnx", ".safetensors", ".pt", ".pth", ".ckpt", ".bin", ".ts"}
"""Endings of files that hold a model."""
REQUIRED = ("name", "kind", "fingerprint", "preprocess", "labels", "capabilities", "respond")
"""What every observer has."""


class SharedImages:
    """Images that several observers are shown, one after the other.

    Parameters
    ----------
    images : uint8 array N×H×W×3
        Nobody may change them.

    Attributes
    ----------
    images : uint8 array
        Read-only.
    memory : uint8 array
        The same, for libraries that take no read-only memory (and do not change it).
    copies : dict
        Device → what an observer has made of them there: a network that has the same input uses it again.
    copying : list of callable
        Each waits until a device has copied the images.
    render : callable or None
        Turns the copy on a device into what is shown: these images are not finished. Such images are given to observers
        with ``makes_cues`` only.
    """

    def __init__(self, images: Pixels) -> None:
        self.memory = images
        self.images = images.view()
        self.images.flags.writeable = False
        self.copies: dict[Any, Any] = {}
        self.copying: list[Callable[[], object]] = []
        self.render: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Batch:
    """What an observer is shown at once.

    Parameters
    ----------
    stimuli : sequence of Stimulus
        The stimuli. Only ideal and recorded observers may look at the truth in here.
    images : uint8 array N×H×W×3 or None
        After the observer's own geometry, before its normalisation; None for observers without ``preprocess``.
    shared, first : SharedImages or None, int
        What ``images`` are a part of, and where they begin there; None: they are shown to one observer only.
    """

    stimuli: Sequence[Stimulus]
    images: Pixels | None = None
    shared: SharedImages | None = None
    first: int = 0

    def __len__(self) -> int:
        return len(self.stimuli)


Answers = Mapping[str, Array]
"""What ``respond`` returns: column → one row for each stimulus of the batch.

``logits`` float N×classes, ``features`` float N×d, ``decisions`` str N. An observer that can answer one stimulus
several times (a crowd) returns more rows and adds the column ``stimulus`` (position in the batch); it may also return
fewer (a person who did not see it). Further columns such as ``rt`` or ``subject`` are stored as they are.
"""


@dataclass(frozen=True)
class Expense:
    """The most that asking an observer can take of somebody else's machine.

    Parameters
    ----------
    requests, tokens_in, tokens_out : int
        That are sent and received.
    cost : float
        In the currency of the user's prices; 0 where no price is known.
    """

    requests: int
    tokens_in: int
    tokens_out: int
    cost: float

    def __add__(self, other: Expense) -> Expense:
        return Expense(
            self.requests + other.requests,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.cost + other.cost,
        )

    def __str__(self) -> str:
        tokens = f"about {self.tokens_in:,} tokens in and at most {self.tokens_out:,} out"
        cost = (
            f", at most {self.cost:,.2f} at the given prices"
            if self.cost
            else " (no prices given: &price_in=&price_out=)"
        )
        return f"up to {self.requests:,} requests, {tokens}{cost}"


@runtime_checkable
class Observer(Protocol):
    """A model, a person or an ideal observer: the least that an object must have.

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

    See Also
    --------
    ObserverBase : what an observer may offer besides.
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


class ObserverBase:
    """Everything that a run asks of an observer: the contract, and what is optional with its default.

    Attributes
    ----------
    notes : tuple of str
        Remarks that stand beside every score of this observer.
    precision : str
        What it computes with, part of the cache's key; empty: as the run says.
    memory : int
        Bytes that it takes on its device; 0: unknown, or none that ``release`` could free.
    device : str
        Where that is; empty: the usual one.
    loaded_by : str
        Adapter and version that made it, part of the cache's key; set by ``observers.load``.
    makes_cues : str
        Kind of device (``cuda``) on which it finishes the pictures of a batch by ``SharedImages.render``; empty: it
        must be shown finished ones.
    charges : bool
        Each answer may cost money: nothing is asked twice, and ``expense`` is shown before anything is asked.
    concurrency : int
        Requests on their way at once, for one that ``charges``.
    """

    if TYPE_CHECKING:

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
        @property
        def notes(self) -> tuple[str, ...]: ...
        @property
        def precision(self) -> str: ...
        @property
        def memory(self) -> int: ...
        @property
        def device(self) -> Any: ...
        @property
        def loaded_by(self) -> str: ...
        @property
        def makes_cues(self) -> str: ...
        @property
        def charges(self) -> bool: ...
        @property
        def concurrency(self) -> int: ...
    else:  # plain defaults, so that a subclass may set them in any way
        notes, precision, memory, device, loaded_by, makes_cues = (), "", 0, "", "", ""
        charges, concurrency = False, 1

    def respond(self, batch: Batch, needs: Sequence[Capability]) -> Answers:
        """Answer a batch with (at least) the columns named in ``needs``."""
        raise NotImplementedError

    def submit(self, batch: Batch, needs: Sequence[Capability]) -> Callable[[], Answers]:
        """Begin to answer a batch; what is returned waits for the answers.

        An observer on a device of its own overrides this: the next batch can then begin before this one has ended.
        """
        answers = self.respond(batch, needs)
        return lambda: answers

    def compile(self, ask: Callable[[], object]) -> bool:
        """Make itself faster at the cost of some time now; ``ask`` shows it something. False: it cannot."""
        return False

    def expense(self, count: int) -> Expense:
        """Return the most that asking about so many stimuli can take, for one that ``charges``."""
        return Expense(0, 0, 0, 0.0)

    def stop(self) -> None:
        """Begin nothing more: the run ends."""

    def release(self) -> None:
        """Go to the main memory until the next answer, so that another observer fits the device."""

    def check_shown(self, stimuli: Sequence[Stimulus]) -> None:
        """Raise a UserError where it cannot answer any of these stimuli."""

    def check_known(self, stimuli: Sequence[Stimulus]) -> None:
        """Raise a UserError where it knows something else of these stimuli, or has answered one of them twice."""

    def stimulus_names(self) -> Sequence[str]:
        """Return the names of the images that it has answered already; empty: it can be shown any."""
        return ()

    def among(self, targets: Sequence[str], members: LabelMap | None = None, space: str = "") -> ObserverBase:
        """Return the observer that chooses among these classes (by their members in a larger space, if given).

        Only ideal and recorded observers can choose; the others answer in the classes that they were trained on.
        """
        return self

    def with_masks(self, truth: Callable[[Stimulus], Array]) -> ObserverBase:
        """Return the observer for stimuli with masks; only ideal observers answer from the true ones."""
        return self

    def layers(self) -> list[str]:
        """Return the names of the layers that ``?features=LAYER`` can name."""
        return []

    def outputs(self) -> list[str]:
        """Return the names of the outputs that ``?features=OUTPUT`` can name."""
        return []

    def reading(self, names: Sequence[str]) -> ObserverBase:
        """Return an observer that answers also with ``features:NAME`` for each layer; ``all``: every block."""
        if self.kind != "model":
            return self
        raise UserError(
            f"{self.name} has no layers that can be named",
            "layers are read from torch models; name one output of an ONNX file with ?features=OUTPUT",
        )


def missing_attributes(thing: object) -> list[str]:
    """Return what an object lacks to be an observer; a class lacks everything.

    The fingerprint is not looked at, because asking for it may hash gigabytes of weights.
    """
    looked_at = [name for name in REQUIRED if name != "fingerprint"]
    return [name for name in looked_at if isinstance(thing, type) or not hasattr(thing, name)]


def is_observer(thing: object) -> bool:
    """Tell whether an object has what an observer must have."""
    return not missing_attributes(thing)


def complete(observer: Observer) -> ObserverBase:
    """Return an observer with all that is optional: itself where it inherits it, else with defaults for the rest."""
    return observer if isinstance(observer, ObserverBase) else _Completed(observer)


def _offered(name: str, default: Any = None) -> Any:
    """Return the attribute of the completed object; where it has none, the default."""
    return property(lambda self: getattr(self.observer, name, default))


class _Completed(ObserverBase):
    """A user's own observer with everything that it does not define itself."""

    name, kind, fingerprint = _offered("name"), _offered("kind"), property(lambda self: self.observer.fingerprint)
    preprocess, labels, capabilities = _offered("preprocess"), _offered("labels"), _offered("capabilities")
    precision, device = _offered("precision", ""), _offered("device", "")
    loaded_by: str

    def __init__(self, observer: Observer) -> None:
        self.observer: Any = observer
        self.loaded_by = str(getattr(observer, "loaded_by", ""))

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(getattr(self.observer, "notes", ()))

    @property
    def memory(self) -> int:
        return int(getattr(self.observer, "memory", 0) or 0) if hasattr(self.observer, "release") else 0

    def respond(self, batch: Batch, needs: Sequence[Capability]) -> Answers:
        answers: Answers = self.observer.respond(batch, needs)
        return answers

    def release(self) -> None:
        self._call("release")

    def check_shown(self, stimuli: Sequence[Stimulus]) -> None:
        self._call("check_shown", stimuli)

    def check_known(self, stimuli: Sequence[Stimulus]) -> None:
        self._call("check_known", stimuli)

    def stimulus_names(self) -> Sequence[str]:
        return list(self._call("stimulus_names"))

    def among(self, targets: Sequence[str], members: LabelMap | None = None, space: str = "") -> ObserverBase:
        choosing = self._call("among", targets, members, space)
        return self if choosing is self.observer else complete(choosing)

    def layers(self) -> list[str]:
        return list(self._call("layers"))

    def outputs(self) -> list[str]:
        return list(self._call("outputs"))

    def reading(self, names: Sequence[str]) -> ObserverBase:
        return complete(self._call("reading", names))

    def _call(self, name: str, *arguments: Any) -> Any:
        """Call the user's method, or the default where there is none."""
        method = getattr(self.observer, name, None)
        return method(*arguments) if callable(method) else getattr(ObserverBase, name)(self, *arguments)

    def __repr__(self) -> str:
        return repr(self.observer)


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
            form = f"name one: {scheme}:NAME" if colon else f"write SOURCE:NAME, perhaps {likely_spec(text)}"
            hint = f"{form}; all sources: cuebench list observers"
            raise UserError(f"observer {text!r} has no {'name' if colon else 'source'}", hint)
        body, _, query = rest.partition("?")
        # A plus is a plus (a folder may be called c++), not the space of a web form.
        return cls(text, scheme, body, query_options(query.replace("+", "%2B"), f"observer {text!r}"))

    @property
    def name(self) -> str:
        """What the observer is called by default: the spec itself; of a file, its name without the folders.

        >>> Spec.parse("onnx:nets/a.onnx").name, Spec.parse("timm:resnet18?checkpoint=nets/best.pth").name
        ('onnx:a', 'timm:resnet18/best')
        """
        path = self.weight_file
        return self.text if path is None else self.named_by(path.stem)

    def named_by(self, file: str) -> str:
        """Return the default name where the file of the weights is called so."""
        return f"{self.scheme}:{self.body}/{file}" if self._checkpoint else f"{self.scheme}:{file}"

    @property
    def weight_file(self) -> PurePath | None:
        """The file that is named, without the ``.tar`` that older training scripts add; None for anything else."""
        path = PurePath((self._checkpoint or self.body).removesuffix(".tar"))
        return path if path.suffix in WEIGHT_FILES else None

    @property
    def _checkpoint(self) -> str:
        return self.options.get("checkpoint", "")


@dataclass(frozen=True)
class LoadOptions:
    """Options of the run that every adapter gets."""

    device: str = "auto"
    precision: str = "float32"
    offline: bool = False
    seed: int = 0
    targets: tuple[str, ...] = ()
    """Classes of all stimuli of this run, for observers that choose among them."""
    journal: str = ""
    """Folder for answers that were paid for, kept as they come; empty: they are not kept."""


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
    install : str
        Command that installs them, where they are in no extra of cuebench.
    version : int
        Rises when the same weights would answer differently; part of the cache key.
    examples : tuple of str
        Specs that show the range, used by ``cuebench list observers`` and the docs.
    options : mapping of str to Option
        What may stand behind the ``?``; ``cuebench explain`` lists them.
    weights_of_classes : bool
        Whether weights are made of the names of the classes, as with a text encoder: of other classes they are others.
    """

    load: Callable[[Spec, LoadOptions], list[Observer]]
    form: str
    extra: str = ""
    packages: tuple[str, ...] = ()
    install: str = ""
    version: int = 1
    examples: tuple[str, ...] = ()
    options: Mapping[str, Option] = field(default_factory=dict)
    weights_of_classes: bool = False
