"""Folder of textures: the layouts of DTD and PTD, or any folder with a sub-folder for each texture."""

from __future__ import annotations

from pathlib import Path

from cuebench.errors import all_problems
from cuebench.stimuli.made import made_count
from cuebench.stimuli.readers.base import Reader
from cuebench.stimuli.readers.scan import (
    Found,
    find_images,
    id_problems,
    nothing_found,
    require_folder,
    shortfall,
    with_facts,
)
from cuebench.types import Stimulus, StimulusSet

LAYOUT = "<texture>/<file>, or images/<texture>/<file> as in DTD (with labels/, imdb/) and PTD (with metafile.txt)"
LIST = "metafile.txt"


def read(folder: Path, *, expected: int = 0) -> StimulusSet:
    """Read a folder of textures.

    Parameters
    ----------
    folder : Path
        With a sub-folder ``images``, that is where the textures lie (DTD, PTD) and what is beside it is not looked at.
        A ``metafile.txt`` (PTD) says which pictures belong to the set, one ``<texture>/<file>`` in a line.
    expected : int
        Size of the complete set; a smaller one says so in ``partial``. A set that cuebench made itself (``made.json``)
        knows its own size.

    Returns
    -------
    StimulusSet
        Sorted by id ``<texture>/<stem>``; ``texture`` is the class and ``texture_source`` the picture.

    Raises
    ------
    UserError
        With all problems at once.
    """
    home = require_folder(folder, LAYOUT)
    root = home / "images" if (home / "images").is_dir() else home
    found = _listed(home / LIST, _found(root))
    if not found.images and not found.problems:
        raise nothing_found(root, LAYOUT)
    stimuli = [_stimulus(p) for p in found.images]
    problems = [*found.problems, *id_problems(stimuli)]
    if problems:
        raise all_problems(f"texture folder {root.absolute()}", problems, f"expected layout: {LAYOUT}")
    expected = made_count(home) or expected
    filled = with_facts(stimuli, root)
    return StimulusSet(home.resolve().name, filled, str(root), expected, shortfall(len(filled), expected))


def _found(root: Path) -> Found:
    """List the pictures; our own record and the list of the set are no intruders."""
    found = find_images(root, depth=1)
    return Found(found.images, [p for p in found.problems if not p.startswith(("made.json:", f"{LIST}:"))])


def _listed(table: Path, found: Found) -> Found:
    """Keep what the list of the set names; what it names and is not there is a problem."""
    if not table.is_file():
        return found
    wanted = {line.strip() for line in table.read_text("utf-8").splitlines() if line.strip()}
    there = {p.as_posix() for p in found.images}
    missing = [f"{name}: listed in {LIST}, but missing or empty" for name in sorted(wanted - there)]
    return Found([p for p in found.images if p.as_posix() in wanted], [*found.problems, *missing])


def _stimulus(path: Path) -> Stimulus:
    name = path.with_suffix("").as_posix()
    return Stimulus(name, path.as_posix(), texture=path.parent.name, texture_source=name)


READER = Reader("texture_folder", LAYOUT, read)
