"""Cityscapes as distributed: ``leftImg8bit/val/<city>/*_leftImg8bit.png`` with ``gtFine/val/<city>/*_labelIds.png``."""

from __future__ import annotations

from pathlib import Path

from cuebench.labels import label_space
from cuebench.stimuli.decomposition.classes import Classes
from cuebench.stimuli.readers.base import Reader
from cuebench.stimuli.readers.scan import file_problem, require_folder
from cuebench.stimuli.readers.segmentation_pairs import paired, without_image
from cuebench.types import Stimulus, StimulusSet

LAYOUT = "leftImg8bit/val/<city>/<name>_leftImg8bit.png and gtFine/val/<city>/<name>_gtFine_labelIds.png"
EXPECTED = 500
TRAINED_IDS = (7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33)
"""Values of the 19 scored classes in the files of ids, in the order of the training ids."""


_NAMES = label_space("cityscapes").names
CLASSES: Classes = Classes(
    "cityscapes",
    _NAMES,
    ids={value: position for position, value in enumerate(TRAINED_IDS)},
    ignore=frozenset(range(35)) - set(TRAINED_IDS) | {255},
    members={name: (name,) for name in _NAMES},
)


def read(folder: Path, *, expected: int = EXPECTED) -> StimulusSet:
    """Read the validation images.

    Parameters
    ----------
    folder : Path
        Holds ``leftImg8bit`` and ``gtFine``.
    expected : int
        Size of the complete set: 500.
    """
    root = require_folder(folder, LAYOUT)
    stimuli, problems = [], []
    for image in sorted((root / "leftImg8bit" / "val").glob("*/*_leftImg8bit.png")):
        stem, city = image.name.removesuffix("_leftImg8bit.png"), image.parent.name
        mask = Path("gtFine", "val", city, f"{stem}_gtFine_labelIds.png")
        stimuli.append(Stimulus(f"{city}/{stem}", image.relative_to(root).as_posix(), mask=mask.as_posix()))
        problems += [f"{p.relative_to(root)}: {why}" for p in (image, root / mask) if (why := file_problem(p))]
    masks = (root / "gtFine" / "val").glob("*/*_gtFine_labelIds.png")
    return paired(stimuli, [*problems, *without_image(masks, stimuli, root)], root, expected, LAYOUT)


READER = Reader("cityscapes", LAYOUT, read)
