"""The 17 data sets of Geirhos et al. 2021 (model-vs-human): conditions, and the names of images and trials.

An image is named ``<data set>/<condition>/<category>/<image>``, without the condition in data sets that have only one:
``contrast/c30/knife/n03041632_7380``, ``edge/airplane/airplane1``. The same name is made from a file of the stimuli
and from a row of the raw responses, whichever of the two naming forms they use, so that they find each other.

References
----------
Geirhos, Narayanappa, Mitzkus, Thieringer, Bethge, Wichmann & Brendel 2021, https://arxiv.org/abs/2106.07411
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

from cuebench.labels import label_map

CATEGORIES = label_map("in16").names
"""The 16 classes that every trial is answered with."""
CONTROL, TOO_HARD = "control condition", "people are right in less than 20 % of the trials"
"""Why a condition is left out of the means."""


@dataclass(frozen=True)
class DataSet:
    """One of the 17 experiments.

    Parameters
    ----------
    name : str
        As its folder is called.
    about : str
        What was done to the images.
    images : int
        How many there are in the published set, all conditions together.
    conditions : tuple of str
        From the easiest to the hardest; empty: there is only one.
    control : str
        The condition with unchanged images.
    too_hard : tuple of str
        Conditions in which people are right in less than 20 % of the trials.
    """

    name: str
    about: str
    images: int
    conditions: tuple[str, ...] = ()
    control: str = ""
    too_hard: tuple[str, ...] = ()

    @property
    def left_out(self) -> Mapping[str, str]:
        """Condition → why the authors leave it out of all means."""
        return {c: CONTROL if c == self.control else TOO_HARD for c in (self.control, *self.too_hard) if c}

    @cached_property
    def _spellings(self) -> dict[str, str]:
        return {_spelling(c): c for c in self.conditions}

    def condition(self, text: str) -> str | None:
        """Return a condition as it is spelled here (``0.00`` → ``0.0``, ``True`` → ``true``); None: there is no such.

        >>> DATA_SETS["uniform-noise"].condition("0.60")
        '0.6'
        """
        return self._spellings.get(_spelling(text)) if self.conditions else ""

    def expected(self, condition: str = "") -> int:
        """Return how many images the published set has, in one condition or in all: conditions are equally large."""
        return self.images // len(self.conditions) if condition and self.conditions else self.images


@lru_cache(maxsize=4096)
def _spelling(text: str) -> str:
    text = text.strip().lower()
    try:
        return f"{float(text):g}"
    except ValueError:
        return text


def _set(name: str, about: str, images: int, conditions: str = "", too_hard: str = "") -> DataSet:
    names = tuple(conditions.split())
    return DataSet(name, about, images, names, names[0] if names else "", tuple(too_hard.split()))


DATA_SETS: Mapping[str, DataSet] = {
    d.name: d
    for d in (
        _set("sketch", "sketches", 800),
        _set("stylized", "photographs in the style of a painting", 800),
        _set("edge", "edges of objects as line drawings", 160),
        _set("silhouette", "objects filled with black", 160),
        _set("cue-conflict", "shape of one class, texture of another; correct is the shape", 1280),
        _set("colour", "colour or greyscale", 1280, "cr bw"),
        _set("contrast", "contrast in %", 1280, "c100 c50 c30 c15 c10 c05 c03 c01", "c03 c01"),
        _set("high-pass", "high-pass filter, standard deviation in pixels", 1280,
             "inf 3 1.5 1 0.7 0.55 0.45 0.4", "0.55 0.45 0.4"),
        _set("low-pass", "low-pass filter, standard deviation in pixels", 1280, "0 1 3 5 7 10 15 40", "15 40"),
        _set("phase-scrambling", "phase noise in degrees", 1120, "0 30 60 90 120 150 180", "150 180"),
        _set("power-equalisation", "power spectrum of the image or of the mean image", 1120, "0 pow"),
        _set("false-colour", "true or opponent colours", 1120, "true false"),
        _set("rotation", "rotation in degrees", 1280, "0 90 180 270"),
        _set("eidolonI", "eidolon, coherence 1: reach-coherence-grain", 1280,
             "1-10-10 2-10-10 4-10-10 8-10-10 16-10-10 32-10-10 64-10-10 128-10-10", "64-10-10 128-10-10"),
        _set("eidolonII", "eidolon, coherence .3: reach-coherence-grain", 1280,
             "1-3-10 2-3-10 4-3-10 8-3-10 16-3-10 32-3-10 64-3-10 128-3-10", "32-3-10 64-3-10 128-3-10"),
        _set("eidolonIII", "eidolon, coherence 0: reach-coherence-grain", 1280,
             "1-0-10 2-0-10 4-0-10 8-0-10 16-0-10 32-0-10 64-0-10 128-0-10", "16-0-10 32-0-10 64-0-10 128-0-10"),
        _set("uniform-noise", "uniform noise, half its width", 1280,
             "0.0 0.03 0.05 0.1 0.2 0.35 0.6 0.9", "0.6 0.9"),
    )
}  # fmt: skip
"""Name → data set, in the order of the paper: five with one condition, twelve with several."""
IMAGES = sum(d.images for d in DATA_SETS.values())
OTHERWISE_SPELLED: Mapping[str, tuple[str, ...]] = {"false-colour": ("true",), "uniform-noise": ("0.0", "0.6", "0.9")}
"""Left-out conditions that raw files spell otherwise than the paper (``true``, ``0.00``) and a comparison of texts
therefore keeps."""


class Trial(NamedTuple):
    """What the name of an image says."""

    data_set: str
    condition: str
    category: str
    image: str

    @property
    def name(self) -> str:
        """The name that stimuli and responses share."""
        return f"{self.place}/{self.category}/{self.image}"

    @property
    def place(self) -> str:
        """Data set and condition, as scores name them."""
        return f"{self.data_set}/{self.condition}" if self.condition else self.data_set


_TRIAL = re.compile(r"\d+_[^_]+_[^_]+_(?P<condition>[^_]+)_(?P<category>[^_]+)_\d+_(?P<image>.+)")
PERSON = re.compile(r"subject-\d+")
"""The name of a person in the public raw data."""
_CLASS = re.compile(r"[a-z]+")
_SUFFIX = re.compile(r"\.(png|jpe?g|webp|bmp|tiff?|gif|ppm)$", re.IGNORECASE)


def parse_name(name: str) -> Trial | None:
    """Read a name that `Trial.name` made; None where it is none.

    >>> parse_name("contrast/c30/knife/n03041632_7380").condition
    'c30'
    """
    head, *rest = name.split("/")
    data_set = DATA_SETS.get(head)
    if data_set is None or len(rest) != 2 + bool(data_set.conditions):
        return None
    *condition, category, image = rest
    if category not in CATEGORIES or (condition and condition[0] not in data_set.conditions):
        return None
    return Trial(head, condition[0] if condition else "", category, image)


def trial_of(data_set: str, imagename: str, condition: str = "", category: str = "") -> Trial | str:
    """Return what a file or a row of raw data shows, or in words why that cannot be told.

    Parameters
    ----------
    data_set : str
        One of `DATA_SETS`.
    imagename : str
        ``0001_cop_s01_c30_knife_10_n03041632_7380.png``, which carries condition and class, or ``airplane1.png``.
    condition, category : str
        What the columns of the row, or the folder of the file, say; they go first.
    """
    known = DATA_SETS.get(data_set)
    if known is None:
        return f"{data_set!r} is no data set ({', '.join(DATA_SETS)})"
    stem = _SUFFIX.sub("", imagename.strip().replace("\\", "/").rpartition("/")[2])
    trial = _TRIAL.fullmatch(stem)
    image = trial["image"] if trial else stem
    spelled = condition or (trial["condition"] if trial else "")
    level = known.condition(spelled)
    if level is None:
        return f"{spelled or 'nothing'!r} is no condition of {data_set} ({', '.join(known.conditions)})"
    named = trial["category"] if trial else _leading_class(image)
    chosen = (category or named).strip().lower()
    if chosen not in CATEGORIES:
        return f"{chosen or 'nothing'!r} is no category ({', '.join(CATEGORIES)})"
    if named and named != chosen:
        return f"the image is named {named!r}, its category is {chosen!r}"
    return Trial(data_set, level, chosen, image)


def _leading_class(image: str) -> str:
    match = _CLASS.match(image)
    return match.group() if match and match.group() in CATEGORIES else ""


def data_set_of_file(file: Path) -> str:
    """Return the data set of a file of raw data by its folder or the beginning of its name; empty: neither says."""
    if file.parent.name in DATA_SETS:
        return file.parent.name
    begins = file.name.partition("_")[0]
    return begins if begins in DATA_SETS else ""


def uncovered(seen: Mapping[str, Set[str]], answered: Mapping[tuple[str, str], Set[str]]) -> list[str]:
    """Return in words which files do not cover the trials that people saw.

    Parameters
    ----------
    seen : mapping of str to set of str
        Data set → images that people saw.
    answered : mapping of pair to set of str
        Data set and file of a model → images that it answered.
    """
    return [
        f"{file} ({len(seen[data_set] & images):,} of {len(seen[data_set]):,} trials)"
        for (data_set, file), images in answered.items()
        if seen.get(data_set, frozenset()) - images
    ]
