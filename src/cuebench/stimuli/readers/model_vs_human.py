"""The stimuli of model-vs-human: a folder for each of its 17 data sets, with images at any depth below it.

File names carry condition and class, ``0001_cop_dnn_c30_knife_10_n03041632_7380.png``; in data sets with one condition
the class can also be the folder, ``airplane/airplane1.png``, or the beginning of the name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from cuebench.errors import all_problems
from cuebench.observers.model_vs_human import CATEGORIES, DATA_SETS, IMAGES, Trial, trial_of
from cuebench.stimuli.readers import cue_conflict
from cuebench.stimuli.readers.base import Reader
from cuebench.stimuli.readers.scan import find_images, id_problems, nothing_found, require_folder, with_facts
from cuebench.types import Stimulus, StimulusSet

NAME, TARGETS = "model_vs_human", "in16"
LAYOUT = (
    "<data set>/…/0001_cop_dnn_c30_knife_10_n03041632_7380.png, or <data set>/<class>/airplane1.png where a data set "
    f"has one condition; data sets: {', '.join(DATA_SETS)}"
)


def read(folder: Path, *, expected: int = 0, elsewhere: Mapping[str, Path] | None = None) -> StimulusSet:
    """Read the data sets that are there.

    Parameters
    ----------
    folder : Path
        Holds one folder for each data set.
    expected : int
        Not used: the size of every data set is known.
    elsewhere : mapping of str to Path, optional
        Data set → another folder with its images, used where ``folder`` does not have it.

    Returns
    -------
    StimulusSet
        Sorted by id, ``<data set>/<condition>/<category>/<image>``; ``partial`` names what is missing.

    Raises
    ------
    UserError
        With all problems at once.
    """
    folder = Path(folder).expanduser()
    places = {name: folder / name for name in DATA_SETS if (folder / name).is_dir()}
    places |= {name: place for name, place in (elsewhere or {}).items() if name not in places and place.is_dir()}
    if not places:
        require_folder(folder, LAYOUT)
        raise nothing_found(folder, LAYOUT)
    root = folder.absolute()
    while any(not place.absolute().is_relative_to(root) for place in places.values()):
        root = root.parent
    stimuli, problems = list[Stimulus](), list[str]()
    for name in places:
        place = places[name].absolute()
        listing = find_images(place, depth=None)
        problems += [f"{name}/{problem}" for problem in listing.problems]
        for path in listing.images:
            category = path.parent.name if path.parent.name in CATEGORIES else ""
            trial = trial_of(name, path.name, category=category)
            if isinstance(trial, str):
                problems.append(f"{name}/{path}: {trial}")
            else:
                stimuli.append(replace(stimulus_of(trial), path=(place / path).relative_to(root).as_posix()))
    problems += id_problems(stimuli)
    if problems:
        raise all_problems(f"stimuli of {NAME} in {folder.absolute()}", problems, f"expected layout: {LAYOUT}")
    if not stimuli:
        raise nothing_found(folder, LAYOUT)
    return as_set(with_facts(stimuli, root), str(root))


def stimulus_of(trial: Trial) -> Stimulus:
    """Return a stimulus without a file; of a cue-conflict image, with both cues and their sources."""
    cues = cue_conflict.parse(trial.image) if trial.data_set == "cue-conflict" else None
    return replace(cues or Stimulus(""), id=trial.name, label=trial.category, condition=trial.place)


def as_set(stimuli: tuple[Stimulus, ...], root: str = "") -> StimulusSet:
    """Return the set, with what it lacks of the published one."""
    return StimulusSet(NAME, stimuli, root, IMAGES, shortfalls([s.condition for s in stimuli]), TARGETS)


def shortfalls(conditions: list[str]) -> tuple[str, ...]:
    """Return in words which data sets are missing or incomplete.

    Parameters
    ----------
    conditions : list of str
        ``<data set>/<condition>`` of every stimulus.
    """
    counts: dict[str, int] = {}
    for condition in conditions:
        name = condition.partition("/")[0]
        counts[name] = counts.get(name, 0) + 1
    missing = [name for name in DATA_SETS if name not in counts]
    reasons = [
        f"{counts[name]:,} of {d.images:,} images of {name}"
        for name, d in DATA_SETS.items()
        if name in counts and counts[name] != d.images
    ]
    if missing:
        reasons.insert(0, f"{len(counts)} of {len(DATA_SETS)} data sets, without {', '.join(missing)}")
    return tuple(reasons)


_SHORTFALL = re.compile(r"[\d,]+ of [\d,]+ (data sets, without |images of )")


def is_shortfall(reason: str) -> bool:
    """Tell whether a reason why a set is partial is one of `shortfalls`, and not a limit of the run."""
    return _SHORTFALL.match(reason) is not None


READER = Reader(NAME, LAYOUT, read)
