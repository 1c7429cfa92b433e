"""Cue-conflict folder: ``<shape>/<shape>i-<texture>j.png``, the layout of Geirhos et al. 2019."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from cuebench.errors import all_problems
from cuebench.stimuli.made import made_count
from cuebench.stimuli.readers import csv_manifest
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

LAYOUT = "<shape>/<shape>i-<texture>j.png, for example airplane/airplane1-bicycle2.png"
NO_SOURCES = "no shape_source, texture_source: pictures count as independent, and intervals over sources are too narrow"
_SOURCE = re.compile(r"[^\W\d_]\w*\d")
"""A class, which starts with a letter, and the number of the source: all digits at the end (mp3_player1 → 1)."""


def parse(name: str) -> Stimulus | None:
    """Read shape, texture and their sources from a file stem such as ``airplane1-bicycle2``; None if it is not one.

    >>> parse("airplane10-bicycle2").shape_source
    'airplane10'
    """
    sources = name.split("-")
    if len(sources) != 2 or not all(map(_SOURCE.fullmatch, sources)):
        return None
    shape, texture = (_without_number(source) for source in sources)
    return Stimulus(name, shape=shape, texture=texture, shape_source=sources[0], texture_source=sources[1])


def _without_number(source: str) -> str:
    """Return a text without the digits at its end, in any script; a regular expression would try each of them."""
    end = len(source)
    while source[end - 1].isdecimal():
        end -= 1
    return source[:end]


def read(folder: Path, *, expected: int = 0) -> StimulusSet:
    """Read a cue-conflict folder.

    Parameters
    ----------
    folder : Path
        Folder with one sub-folder for each shape class.
    expected : int
        Size of the complete set; a smaller one says so in ``partial``. The size in the ``made.json`` of a set that
        cuebench made (beside the folder) is used instead.

    Returns
    -------
    StimulusSet
        Sorted by id. ``targets`` is the ``labels.json`` in the folder or beside it, where there is one.

    Raises
    ------
    UserError
        With all problems at once.
    """
    root = require_folder(folder, LAYOUT)
    files = find_images(root, depth=1)
    if not files.images and not files.problems:
        raise nothing_found(root, LAYOUT)
    expected = made_count(root.parent) or expected
    stimuli, problems = [], list(files.problems)
    for path in files.images:
        stimulus = parse(path.stem)
        if stimulus is None:
            problems.append(f"{path}: the name is not <shape>i-<texture>j")
        elif stimulus.shape != path.parent.name:
            problems.append(f"{path}: lies in folder {path.parent.name!r} but its name says shape {stimulus.shape!r}")
        else:
            stimuli.append(replace(stimulus, path=path.as_posix()))
    problems += id_problems(stimuli)
    if problems:
        raise all_problems(f"cue-conflict folder {root.absolute()}", problems, f"expected layout: {LAYOUT}")
    return StimulusSet(
        name="cue_conflict",
        stimuli=with_facts(stimuli, root),
        root=str(root),
        expected=expected,
        partial=shortfall(len(stimuli), expected),
        targets=next((str(p) for p in (root / "labels.json", root.parent / "labels.json") if p.is_file()), ""),
    )


def read_table(file: Path) -> StimulusSet:
    """Read cue-conflict stimuli of any names from a CSV: ``id`` or ``path``, ``shape``, ``texture``.

    Parameters
    ----------
    file : Path
        A CSV as in ``csv_manifest``; ``path`` can be left out where answers were recorded elsewhere. Without
        ``shape_source`` and ``texture_source``, a name such as cat1-dog2 says them; otherwise every picture counts as
        its own source, and a note says what that does to the intervals.
    """
    table = csv_manifest.read(file)
    problems = [f"{s.id}: no {cue}" for s in table for cue in ("shape", "texture") if not getattr(s, cue)]
    if problems:
        raise all_problems(f"stimulus CSV {file}", problems, "expected: id (or path), shape, texture for each stimulus")
    named = {s.id: parse(s.id) or Stimulus(s.id, shape_source=s.id, texture_source=s.id) for s in table}
    guessed = any(not s.shape_source and parse(s.id) is None for s in table)
    stimuli = [
        replace(
            s,
            shape_source=s.shape_source or named[s.id].shape_source,
            texture_source=s.texture_source or named[s.id].texture_source,
        )
        for s in table
    ]
    labels = file.parent / "labels.json"
    return replace(
        table,
        name="cue_conflict",
        stimuli=tuple(stimuli),
        targets=str(labels) if labels.is_file() else "",
        notes=(*table.notes, *([NO_SOURCES] if guessed else []), *_contradicted(file, stimuli)),
    )


def _contradicted(file: Path, stimuli: list[Stimulus]) -> list[str]:
    """Return a note of the names that say another shape or texture, among the classes of the table, than the table."""
    classes = {c for s in stimuli for c in (s.shape, s.texture)}
    said = [(s, parse(s.id.rpartition("/")[2])) for s in stimuli]
    known = [(s, name) for s, name in said if name is not None and {name.shape, name.texture} <= classes]
    other = [s.id for s, name in known if (name.shape, name.texture) != (s.shape, s.texture)]
    what = f"{file.name} counts: it says another shape or texture than {len(other):,} names"
    return [f"{what} ({other[0]!r} …)"] if other else []


READER = Reader("cue_conflict", LAYOUT, read)
