"""Folder of textures: the layouts of DTD and PTD, or any folder with a sub-folder for each texture."""

from __future__ import annotations

from pathlib import Path

from cuebench.errors import all_problems
from cuebench.reading import read_text
from cuebench.stimuli.made import MADE, made_count
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

LAYOUT = "<texture>/<file>, or images/<texture>/<file> as in DTD (with labels/, imdb/) and PTD (with metafile.txt)"
LIST = "metafile.txt"


def read(folder: Path, *, expected: int = 0) -> StimulusSet:
    """Read a folder of textures.

    Parameters
    ----------
    folder : Path
        With a sub-folder ``images``, the textures lie there (DTD, PTD) and everything beside it is ignored.
        A ``metafile.txt`` (PTD) says which pictures belong to the set, one ``<texture>/<file>`` in a line.
    expected : int
        Size of the complete set; a smaller one says so in ``partial``. The size in the ``made.json`` of a set that
        cuebench made is used instead.

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
    files = find_images(root, depth=1)
    images = files.images
    problems = [p for p in files.problems if not p.startswith((f"{MADE}:", f"{LIST}:"))]
    if (home / LIST).is_file():
        listed = {line.strip() for line in read_text(home / LIST).splitlines() if line.strip()}
        missing = listed - {p.as_posix() for p in images}
        problems += [f"{name}: listed in {LIST}, but missing or empty" for name in sorted(missing)]
        images = [p for p in images if p.as_posix() in listed]
    if not images and not problems:
        raise nothing_found(root, LAYOUT)
    stimuli = []
    for path in images:
        name = path.with_suffix("").as_posix()
        stimuli.append(Stimulus(name, path.as_posix(), texture=path.parent.name, texture_source=name))
    problems += id_problems(stimuli)
    if problems:
        raise all_problems(f"texture folder {root.absolute()}", problems, f"expected layout: {LAYOUT}")
    expected = made_count(home) or expected
    filled = with_facts(stimuli, root)
    return StimulusSet(home.resolve().name, filled, str(root), expected, shortfall(len(filled), expected))


READER = Reader("texture_folder", LAYOUT, read)
