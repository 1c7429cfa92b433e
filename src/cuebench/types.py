"""The nouns of cuebench as frozen dataclasses. Nothing here does I/O or imports a heavy library."""

from __future__ import annotations

import hashlib
import importlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, Literal

from cuebench.errors import did_you_mean

Capability = Literal["logits", "features", "masks", "decisions", "choices"]
REMOVED = "-"
"""In ``Stimulus.shape`` or ``texture``: this cue was taken out of the picture (a suppression)."""
ObserverKind = Literal["model", "person", "people", "ideal"]
IntervalKind = Literal[
    "images",
    "shape_sources",
    "texture_sources",
    "two_way",
    "subjects",
    "three_way",
    "data_sets",
    "classes",
    "seeds",
    "shuffles",
    "",
]

LeftOut = Mapping[IntervalKind, Mapping[str, Any]]
"""Kind of interval → part of the set → a number without each of its clusters."""


@dataclass(frozen=True, slots=True)
class Stimulus:
    """An image shown to an observer, with what we know of it.

    ``label`` is the class of an ordinary image; ``shape`` and ``texture`` are the classes of the two cues where they
    can differ. Sources name the *instance* a cue was taken from (``cat3``): images that share one are not independent.
    ``recipe`` says how the shown image is made from the file (empty: the file itself). ``mask`` is the file of the
    ground truth of a segmentation, below the same root.
    """

    id: str
    path: str = ""
    sha256: str = ""
    width: int = 0
    height: int = 0
    label: str = ""
    shape: str = ""
    texture: str = ""
    shape_source: str = ""
    texture_source: str = ""
    condition: str = ""
    recipe: str = ""
    seed: int = 0
    mask: str = ""
    mask_sha256: str = ""

    @property
    def image(self) -> str:
        """The image that this is one picture of: the id without ``|condition``."""
        return self.id.removesuffix(f"|{self.condition}")

    @property
    def key(self) -> str:
        """What a stored response is keyed by: the bytes of the file, what is done to them, the mask it is held to."""
        picture = f"{self.sha256 or self.id}|{self.recipe}|{self.seed}" if self.recipe else self.sha256 or self.id
        mask = self.mask_sha256 or self.mask
        return f"{picture}|mask {mask}" if mask else picture

    @property
    def everything(self) -> str:
        """All that we know of it: what the answer of an observer that looks at no pixels can depend on."""
        return repr(_values(self))

    def _repr_html_(self) -> str:
        """Return what a notebook shows: all that is known of it, and its picture where that needs no file."""
        return str(_shown_by().stimulus_html(self))

    def of_file(self, sha256: str, width: int, height: int) -> Stimulus:
        """Return the stimulus with these facts of its file; three times as fast as ``replace``."""
        identity, path, _, _, _, *rest = _in_order(self)
        return Stimulus(identity, path, sha256, width, height, *rest)

    @property
    def without_truth(self) -> Stimulus:
        """The same picture without its classes, sources and condition: what ``key`` covers, and no more."""
        return replace(self, label="", shape="", texture="", shape_source="", texture_source="", condition="")


_in_order = attrgetter(*(f.name for f in fields(Stimulus)))
_values = attrgetter(*sorted(f.name for f in fields(Stimulus)))
_HASHED = sorted({f.name for f in fields(Stimulus)} - {"path", "mask"})


def _form(names: Sequence[str]) -> tuple[str, Callable[[Stimulus], tuple[Any, ...]]]:
    """Return a format of (name, value) pairs, as ``repr`` writes a list of them, and what fills it in."""
    return "[" + ", ".join(f"({name!r}, %r)" for name in names) + "]", attrgetter(*names)


_WITH_MASK, _WITHOUT_MASK = _form(_HASHED), _form([name for name in _HASHED if name != "mask_sha256"])


@dataclass(frozen=True, repr=False)
class StimulusSet:
    """A manifest of stimuli: what is there, where it lies, how many there should be.

    Parameters
    ----------
    name : str
        Public name of the set.
    stimuli : tuple of Stimulus
        In a fixed order; ids are unique.
    root : str
        Folder that the paths are relative to; empty where no files are needed.
    expected : int
        How many stimuli the complete published set has (0: unknown, e.g. a user's own).
    partial : tuple of str
        Every reason why this is not the complete set; a result made from it carries them.
    targets : str
        Name or file of the label map that turns an observer's label space into this set's classes.
    notes : tuple of str
        Where the set departs from the published one in how it was made; a result made from it carries them.
    """

    name: str
    stimuli: tuple[Stimulus, ...]
    root: str = ""
    expected: int = 0
    partial: tuple[str, ...] = ()
    targets: str = ""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.stimuli)

    def __repr__(self) -> str:
        number = f"{len(self):,}" + (f" of {self.expected:,}" if self.expected > len(self) else "")
        return f"<StimulusSet {self.name}: {number} stimuli>"

    def __iter__(self) -> Iterator[Stimulus]:
        return iter(self.stimuli)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that can change a score: contents, truth and order. Computed once for each set."""
        digest = hashlib.sha256()
        for s in self.stimuli:
            # Sets without masks keep the fingerprint they had before there were any.
            form, values = _WITH_MASK if s.mask_sha256 else _WITHOUT_MASK
            digest.update((form % values(s)).encode())
        return digest.hexdigest()

    def __getitem__(self, key: int | str | slice) -> Any:
        """Return a stimulus by its place or id; for a slice, the set of some."""
        if isinstance(key, slice):
            return self.only(self.stimuli[key])
        if isinstance(key, str):
            named = next((s for s in self.stimuli if s.id == key), None)
            if named is None:
                raise did_you_mean(f"stimulus of {self.name}:", key, [s.id for s in self.stimuli])
            return named
        return self.stimuli[key]

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a contact sheet with ids and classes."""
        return str(_shown_by().set_html(self))

    def only(self, stimuli: Sequence[Stimulus], why: str = "") -> StimulusSet:
        """Return the set restricted to ``stimuli``; ``why`` marks it as partial."""
        partial = (*self.partial, why) if why else self.partial
        return replace(self, stimuli=tuple(stimuli), partial=partial)


def _shown_by() -> Any:
    """Return the module that draws stimuli: only a notebook needs it, and this one decodes no image."""
    return importlib.import_module("cuebench.stimuli.show")


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval: what would be drawn anew (``kind``), and why it is missing or limited (``note``).

    ``method`` says how it is made: a name of `cuebench.interval_methods.METHODS`, given by the function that computes
    the interval, or words of your own.
    """

    low: float
    high: float
    kind: IntervalKind
    level: float = 0.95
    note: str = ""
    method: str = ""

    @property
    def width(self) -> float:
        """High minus low; −1 where the interval is undefined, so that it is never the widest."""
        width = self.high - self.low
        return width if math.isfinite(width) else -1.0


@dataclass(frozen=True)
class Estimate:
    """A number with everything that must stand beside it: what every metric, interval and protocol hands on.

    Parameters
    ----------
    value : float
        The number; NaN where it is undefined.
    n : int
        What it was divided by: trials, images, people.
    intervals : tuple of Interval
        One for each kind, in a fixed order.
    excluded : mapping of str to int
        Why trials are outside the denominator → how many: ``{"aligned": 80, "other": 468}``.
    notes : tuple of str
        Further remarks for the reader of the number.
    left_out : mapping of str to mapping of str to array
        Kind of interval → part of the set → the number without each cluster, kept where others are derived from it.
    """

    value: float
    n: int
    intervals: tuple[Interval, ...] = ()
    excluded: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    left_out: LeftOut = field(default_factory=dict, compare=False, repr=False)

    @property
    def widest(self) -> Interval | None:
        """The interval that makes the weakest claim; None where there is none."""
        defined = [i for i in self.intervals if i.width >= 0]
        return max(defined, key=lambda i: i.width, default=None)

    def excluding(self, reasons: Mapping[str, int]) -> Estimate:
        """Return the same estimate with what is outside its denominator; a count of 0 says that it was looked for."""
        return replace(self, excluded={**self.excluded, **reasons})

    def noting(self, *notes: str) -> Estimate:
        """Return the same estimate with further notes; empty ones are left out."""
        return replace(self, notes=(*self.notes, *(note for note in notes if note)))


@dataclass(frozen=True, slots=True)
class Score:
    """One row of the result. The field order is the column order of ``scores.parquet``."""

    protocol: str
    protocol_version: int
    observer: str
    condition: str
    metric: str
    value: float
    ci_low: float = float("nan")
    ci_high: float = float("nan")
    ci_kind: str = ""
    n: int = 0
    n_excluded: int = 0
    note: str = ""
    ci_method: str = ""

    @classmethod
    def columns(cls) -> list[str]:
        """Return the column names of the tidy table."""
        return [f.name for f in fields(cls)]

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Score:
        """Rebuild a score from a row of ``scores.parquet``."""
        return cls(**row)


Direction = Literal["shape", "texture", "correct", "human"]
"""What a larger value means: answers more by shape, more by texture, more often correctly, or more like people."""


@dataclass(frozen=True)
class Axis:
    """A metric and the conditions to read it in, best first; ``*`` and ``?`` stand for any text, as in file names."""

    metric: str
    conditions: tuple[str, ...]


@dataclass(frozen=True)
class Headline(Axis):
    """The one number of a protocol: what tables, comparisons, figures and callbacks show.

    Parameters
    ----------
    metric : str
        Its metric.
    conditions : tuple of str
        Where to read it, best first: the first condition in which any observer has a value is used for all of them.
    direction : str
        What a larger value means: ``shape``, ``texture``, ``correct`` or ``human``.
    human : float or None
        The value of people, where it is known; ``human_source`` says from where, ``human_condition`` in which condition
        they answered (default: the first of the headline).
    plane : pair of Axis, optional
        For a protocol that measures two things: the shape axis and the texture axis.
    beside : tuple of str
        Metrics of the same condition without which the headline is misread; tables never leave them out.
    neutral : float or None
        The value of an observer that goes by neither cue more than by the other. Only where both cues compete in every
        trial; None where the middle depends on how hard the pictures of each cue are. Reports say *more shape* and
        *more texture* against this value only.
    """

    direction: Direction = "shape"
    human: float | None = None
    human_source: str = ""
    human_condition: str = ""
    plane: tuple[Axis, Axis] | None = None
    beside: tuple[str, ...] = ()
    neutral: float | None = None


@dataclass(frozen=True)
class Reference:
    """A published value: what our own should be compared with."""

    observer: str
    metric: str
    condition: str
    value: float
    source: str


@dataclass(frozen=True)
class Citation:
    """How to cite a protocol, and under which licence its data may be used."""

    text: str
    bibtex: str
    url: str
    licence: str


@dataclass(frozen=True)
class Failure:
    """An observer that could not be measured: a row of the result, never a silent gap."""

    observer: str
    reason: str
    protocol: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
