"""ADE20K scene parsing as distributed: ``images/validation/*.jpg`` with ``annotations/validation/*.png``."""

from __future__ import annotations

from pathlib import Path

from cuebench.labels import label_space
from cuebench.stimuli.decomposition.classes import Classes, numbered
from cuebench.stimuli.readers.base import Reader
from cuebench.stimuli.readers.scan import file_problem, require_folder
from cuebench.stimuli.readers.segmentation_pairs import paired, without_image
from cuebench.types import Stimulus, StimulusSet

LAYOUT = "images/validation/<name>.jpg and annotations/validation/<name>.png (ADEChallengeData2016)"
EXPECTED = 2_000
# 0 in the masks is what belongs to none of the 150 classes, and is not scored.
CLASSES: Classes = numbered("ade20k", label_space("ade20k").names, first=1, ignore=(0,))


def read(folder: Path, *, expected: int = EXPECTED) -> StimulusSet:
    """Read the validation images.

    Parameters
    ----------
    folder : Path
        Holds ``images/validation`` and ``annotations/validation``.
    expected : int
        Size of the complete set: 2,000.
    """
    root = require_folder(folder, LAYOUT)
    stimuli, problems = [], []
    for image in sorted((root / "images" / "validation").glob("*.jpg")):
        mask = Path("annotations", "validation", f"{image.stem}.png")
        stimuli.append(Stimulus(image.stem, image.relative_to(root).as_posix(), mask=mask.as_posix()))
        problems += [f"{p.relative_to(root)}: {why}" for p in (image, root / mask) if (why := file_problem(p))]
    masks = (root / "annotations" / "validation").glob("*.png")
    return paired(stimuli, [*problems, *without_image(masks, stimuli, root)], root, expected, LAYOUT)


READER = Reader("ade20k", LAYOUT, read)
