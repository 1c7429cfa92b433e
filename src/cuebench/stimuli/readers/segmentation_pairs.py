"""Images with masks: ``images/<file>`` and ``masks/<file>`` (or ``annotations``, ``labels``, ``trimaps``)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from cuebench.errors import NoStimuli, all_problems
from cuebench.stimuli.decomposition.classes import Classes
from cuebench.stimuli.hashing import hash_files
from cuebench.stimuli.readers.base import Reader
from cuebench.stimuli.readers.scan import (
    find_images,
    id_problems,
    nothing_found,
    require_folder,
    shortfall,
    with_facts,
)
from cuebench.types import Stimulus, StimulusSet

MASKS = ("masks", "annotations", "labels", "trimaps", "segmentation")
"""Names of the folder of masks, best first."""
LAYOUT = f"images/<name>.jpg and {'|'.join(MASKS)}/<name>.png, with classes.json (what the numbers in a mask mean)"
CLASSES: Classes | None = None
"""Classes of the layout: none, as those of a pair of folders come from a file."""


def read(folder: Path, *, expected: int = 0) -> StimulusSet:
    """Read a pair of folders.

    Parameters
    ----------
    folder : Path
        Holds ``images`` and one folder of masks; a mask has the name of its image, with any suffix.
    expected : int
        Size of the complete set.

    Raises
    ------
    UserError
        With every image without a mask and every mask without an image.
    """
    root = require_folder(folder, LAYOUT)
    place = next((m for m in MASKS if (root / m).is_dir()), "")
    if not (root / "images").is_dir() or not place:
        raise NoStimuli(f"{root.absolute()} has no images/ and masks/", f"expected layout: {LAYOUT}", str(root))
    images, masks = (find_images(root / name, depth=0) for name in ("images", place))
    pairs = {p.stem: f"{place}/{p.as_posix()}" for p in masks.images}
    stimuli = [Stimulus(p.stem, f"images/{p.as_posix()}", mask=pairs.get(p.stem, "")) for p in images.images]
    problems = [*images.problems, *masks.problems, *id_problems(stimuli)]
    problems += [f"{s.path}: has no mask" for s in stimuli if not s.mask]
    problems += without_image((root / place / m for m in masks.images), stimuli, root)
    return paired(stimuli, problems, root, expected, LAYOUT)


def without_image(masks: Iterable[Path], stimuli: list[Stimulus], root: Path) -> list[str]:
    """Return a problem for every mask that belongs to no image."""
    known = {s.mask for s in stimuli}
    names = sorted(m.relative_to(root).as_posix() for m in masks)
    return [f"{mask}: has no image" for mask in names if mask not in known]


def paired(stimuli: list[Stimulus], problems: list[str], root: Path, expected: int, layout: str) -> StimulusSet:
    """Return the set with hashes of images and masks, or one error for all problems."""
    if not stimuli and not problems:
        raise nothing_found(root, layout)
    if problems:
        counts = f"{len(stimuli):,} images, {sum(bool(s.mask) for s in stimuli):,} of them with a mask"
        raise all_problems(f"{root.absolute()} ({counts})", problems, f"expected layout: {layout}")
    filled = with_facts(stimuli, root)
    hashes = hash_files([root / s.mask for s in filled])
    done = tuple(replace(s, mask_sha256=h.sha256) for s, h in zip(filled, hashes))
    return StimulusSet(root.resolve().name, done, str(root), expected, shortfall(len(done), expected))


READER = Reader("segmentation_pairs", LAYOUT, read)
