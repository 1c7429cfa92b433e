"""Names of stimuli in recorded files: which of them are one stimulus, and where the answers to a stimulus are."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import lru_cache

from cuebench.errors import all_problems
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

    Folders may be left out where that is not ambiguous, of the recorded names or of those of the stimuli.

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
        ends = (self._rows[end] for key in _keys(stimulus) for end in _ends(key) if end in self._rows)
        return next(ends, [])  # that no other stimulus ends like it is seen to by `meant_by`

    def all_of(self, stimulus: Stimulus, others: Container[str] = ()) -> list[int]:
        """Return all rows that can be of a stimulus; ``others`` are names that are those of other stimuli."""
        keys = _keys(stimulus)
        own = [key for key in keys if key in self._rows]
        if not any("/" in key for key in own):
            ends = dict.fromkeys(end for key in keys for end in self._short.get(key, ()))
            own += [end for end in ends if end not in own and end not in others]
        if not own:
            own = [end for key in keys for end in _ends(key) if end in self._rows and end not in others][:1]
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


def meant_by(names: Iterable[str], stimuli: Iterable[Stimulus]) -> dict[str, str]:
    """Return which stimulus is meant by each recorded name that lacks the folders of the stimulus's own name.

    Raises
    ------
    UserError
        A name can be that of several stimuli, or a stimulus was answered under its own name, too.
    """
    shown: dict[str, list[str]] = {}
    ends: dict[str, list[str]] = {}
    for stimulus in stimuli:
        keys = _keys(stimulus)
        for key in keys:
            shown.setdefault(key, []).append(stimulus.id)
        for end in dict.fromkeys(end for key in keys for end in _ends(key)):
            ends.setdefault(end, []).append(stimulus.id)
    recorded = dict.fromkeys(map(stimulus_key, names))
    short = {name: ends[name] for name in recorded if name in ends and name not in shown}
    several = short | {name: shown[name] for name in recorded if len(shown.get(name, ())) > 1}
    problems = [f"{name!r} can be {' or '.join(map(repr, ids))}" for name, ids in several.items() if len(ids) > 1]
    problems += [f"{name!r} and {ids[0]!r} can be one" for name, ids in short.items() if ids[0] in recorded]
    if problems:
        raise all_problems("recorded names of stimuli", problems, "write the names of the stimuli with their folders")
    return {name: ids[0] for name, ids in short.items()}


def _ends(key: str) -> Iterator[str]:
    """Yield a name without its first folder, without its first two …: ``a/b/c`` → ``b/c``, ``c``."""
    while "/" in key:
        key = key.partition("/")[2]
        yield key


def _keys(stimulus: Stimulus) -> list[str]:
    """Return the names of a stimulus, each once."""
    return list(dict.fromkeys(stimulus_key(name) for name in (stimulus.id, stimulus.path) if name))
