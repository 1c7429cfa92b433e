"""Folder of labelled images: ``<class>/<file>``, or a flat folder with ``labels.csv``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from cuebench.errors import UserError, all_problems
from cuebench.labels import label_space, spelled_differently
from cuebench.reading import read_csv
from cuebench.stimuli.made import MADE, made_count
from cuebench.stimuli.readers.base import Reader
from cuebench.stimuli.readers.scan import (
    find_names,
    id_problems,
    nothing_found,
    require_folder,
    shortfall,
    with_facts,
    without_masks,
)
from cuebench.types import Stimulus, StimulusSet

LAYOUT = (
    "<class>/<file>, or a flat folder of images with labels.csv "
    "(columns file,label, or file,wnid, or file,index: one of ImageNet's 1,000 classes, from 0)"
)
# What names the class, best first: a WordNet id is the same in every label space, an index is not.
_LABEL_COLUMNS = ("wnid", "label", "index")
_INDEX_OF = "imagenet1k"


def read(folder: Path, *, expected: int = 0) -> StimulusSet:
    """Read a folder of labelled images.

    Parameters
    ----------
    folder : Path
        With ``labels.csv``: images lie directly in it, and the label is ``wnid``, else ``label``, else the
        WordNet id of the class with this ``index`` in ImageNet.
        Without: the sub-folder is the class.
    expected : int
        Size of the complete set; a smaller one says so in ``partial``. The size in the ``made.json`` of a set that
        cuebench made is used instead.

    Returns
    -------
    StimulusSet
        Sorted by id: the file's stem, or ``<class>/<stem>``.

    Raises
    ------
    UserError
        With all problems at once.
    """
    root = require_folder(folder, LAYOUT)
    listed, masks = _listed(root)
    filled = with_facts(listed, root)
    expected = made_count(root) or expected
    notes = (f"{len(masks):,} masks beside the photographs are not shown: {masks[0]} …",) if masks else ()
    return StimulusSet(root.resolve().name, filled, str(root), expected, shortfall(len(filled), expected), notes=notes)


def _listed(root: Path) -> tuple[list[Stimulus], list[str]]:
    """Return the stimuli, without the facts of their files, and masks beside them; raise for all problems at once."""
    table = root / "labels.csv"
    images, unfit = find_names(root, depth=0 if table.is_file() else 1)
    images, masks = (images, []) if table.is_file() else without_masks(images)
    unfit = [problem for problem in unfit if not problem.startswith(f"{MADE}: ")]
    if not images and not unfit:
        raise nothing_found(root, LAYOUT)
    if table.is_file():
        stimuli, problems = _from_table(table, images)
    else:
        stimuli, problems = list(map(_in_class_folder, images)), []
    problems = [*unfit, *problems, *id_problems(stimuli)]
    if problems:
        raise all_problems(f"image folder {root.absolute()}", problems, f"expected layout: {LAYOUT}")
    return stimuli, masks


def _in_class_folder(image: str) -> Stimulus:
    path = image.replace(os.sep, "/")  # no Path: of a large set it would be a third of the time of reading it
    folder, _, _ = path.rpartition("/")
    return Stimulus(os.path.splitext(path)[0], path, label=sys.intern(folder.rpartition("/")[2]))


def _from_table(table: Path, images: list[str]) -> tuple[list[Stimulus], list[str]]:
    labels, problems = _labels(table)
    there = {Path(image).as_posix() for image in images}
    problems += [f"{f}: listed in labels.csv, but missing or empty" for f in sorted(set(labels) - there)]
    problems += [f"{f}: has no row in labels.csv" for f in sorted(there - set(labels))]
    problems += spelled_differently(sorted(set(labels.values())))
    return [Stimulus(Path(f).stem, f, label=labels[f]) for f in sorted(there & set(labels))], problems


def _labels(table: Path) -> tuple[dict[str, str], list[str]]:
    """Return file → label, and what is wrong with the rows."""
    columns, rows, lines = read_csv(table, hint=f"expected layout: {LAYOUT}")
    column = next((c for c in _LABEL_COLUMNS if c in columns), None)
    if "file" not in columns or column is None:
        raise UserError(f"{table}: needs a column 'file' and one of {_LABEL_COLUMNS}; found {columns}")
    ids = {str(number): wnid for number, wnid in enumerate(label_space(_INDEX_OF).ids)} if column == "index" else {}
    labels: dict[str, str] = {}
    problems = []
    for line, row in zip(lines, rows):
        file_name, label = row["file"].strip(), row[column].strip()
        if not file_name or not label:
            problems.append(f"labels.csv line {line}: no {'file' if not file_name else column}")
            continue
        if column == "index":
            if label not in ids:
                problem = f"index {label!r} is not one of 0 … {len(ids) - 1} of ImageNet"
                problems.append(f"labels.csv line {line}: {problem}; name classes of other models in a column label")
                continue
            label = ids[label]
        if labels.setdefault(file_name, label) != label:
            problems.append(f"labels.csv line {line}: {file_name} has two labels, {labels[file_name]!r} and {label!r}")
    return labels, problems


READER = Reader("image_folder", LAYOUT, read)
