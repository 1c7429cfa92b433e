"""Names of stimuli in recorded files: which of them are one stimulus, and where the answers to a stimulus are."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from functools import lru_cache

from cuebench.observers.model_vs_human import CATEGORIES
from cuebench.types import Stimulus

_IMAGE = {"png", "jpg", "jpeg", "webp", "bmp", "tif", "tiff", "gif", "ppm"}
# The names of the public raw data: trial_experiment_subject_condition_category_number_IMAGE.
_TRIAL = re.compile(r"\d+_[^_]+_[^_]+_[^_]+_(?P<category>[^_]+)_\d+_(?P<image>.+)")


@lru_cache(maxsize=65_536)
def stimulus_key(name: str) -> str:
    """Return what identifies the image of a recorded name: no extension, folders kept, of a trial the image.

    A trial is named ``trial_experiment_subject_condition_class_number_IMAGE``. Only where the class is one of the
    public raw data, or begins the name of the image, is a name sure to be one.

    >>> stimulus_key("0001_s5n_dnn_0_airplane_00_airplane1-bicycle2.png")
    'airplane1-bicycle2'
    >>> stimulus_key("0001_study_ann_a_b_10_mug.png")
    '0001_study_ann_a_b_10_mug'
    >>> stimulus_key("cats/1.jpg")
    'cats/1'
    """
    path = _stem(name)
    trial = _TRIAL.fullmatch(path.rpartition("/")[2])
    return trial["image"] if trial and _names_its_class(trial) else path


def is_trial(name: str) -> bool:
    """Tell whether `stimulus_key` shortens a name to that of the image of a trial."""
    return stimulus_key(name) != _stem(name)


def image_of_trial(name: str) -> str:
    """Return the image of a name in raw data, of whatever class; what `stimulus_key` shortens stays as it is.

    >>> image_of_trial("0001_study_ann_a_b_10_mug.png")
    'mug'
    """
    trial = _TRIAL.fullmatch(_stem(name).rpartition("/")[2])
    return name if trial is None or _names_its_class(trial) else trial["image"]


def same_stimulus(first: str, second: str) -> bool:
    """Tell whether two names can be those of one picture: folders may be left out."""
    short, long = sorted((stimulus_key(first), stimulus_key(second)), key=len)
    return f"/{long}".endswith(f"/{short}")


def _names_its_class(trial: re.Match[str]) -> bool:
    category, image = trial["category"], trial["image"]
    return category.lower() in CATEGORIES or (image.startswith(category) and image[len(category) :][:1].isdecimal())


def _stem(name: str) -> str:
    path = name.strip().replace("\\", "/")
    stem, dot, suffix = path.rpartition(".")
    return (stem if dot and suffix.lower() in _IMAGE else path).removeprefix("./")


class StimulusIndex:
    """Where the answers of one observer are: names of stimuli as recorded → rows.

    Recorded folders may be left out where that is not ambiguous.

    Parameters
    ----------
    names : sequence of str
        As recorded.
    rows : sequence of int
        The row of each.
    """

    def __init__(self, names: Sequence[str], rows: Sequence[int]) -> None:
        self._rows: dict[str, list[int]] = {}
        for name, row in zip(names, rows):
            self._rows.setdefault(stimulus_key(name), []).append(row)
        self._short: dict[str, list[str]] = {}
        for key in self._rows:
            self._short.setdefault(key.rpartition("/")[2], []).append(key)

    def find(self, stimulus: Stimulus) -> list[int]:
        """Return the rows of a stimulus, by its name or that of its file; none where that is ambiguous."""
        for key in _keys(stimulus):
            same_end = self._short.get(key, ())
            if rows := self._rows.get(key) or (self._rows[same_end[0]] if len(same_end) == 1 else []):
                return rows
        return []

    def all_of(self, stimulus: Stimulus, others: Container[str] = ()) -> list[int]:
        """Return all rows that can be of a stimulus; ``others`` are names that are those of other stimuli."""
        keys = _keys(stimulus)
        own = [key for key in keys if key in self._rows]
        if not any("/" in key for key in own):
            ends = dict.fromkeys(end for key in keys for end in self._short.get(key, ()))
            own += [end for end in ends if end not in own and end not in others]
        return [row for key in own for row in self._rows[key]]

    def repeated(self, stimuli: Sequence[Stimulus]) -> list[tuple[Stimulus, list[int]]]:
        """Return the stimuli that were answered more than once, under names that can all be theirs, with the rows."""
        keys = [_keys(stimulus) for stimulus in stimuli]
        shown = {key for names in keys for key in names}
        # Most names are those of one stimulus: only the others are looked up.
        open_ends = {key.rpartition("/")[2] for key in self._rows if key not in shown}
        doubtful = [
            stimulus
            for stimulus, names in zip(stimuli, keys)
            if (len(names) > 1 and all(key in self._rows for key in names)) or not open_ends.isdisjoint(names)
        ]
        found = [(stimulus, self.all_of(stimulus, shown)) for stimulus in doubtful]
        return [(stimulus, rows) for stimulus, rows in found if len(rows) > 1]


def _keys(stimulus: Stimulus) -> list[str]:
    """Return the names of a stimulus, each once."""
    return list(dict.fromkeys(stimulus_key(name) for name in (stimulus.id, stimulus.path) if name))
