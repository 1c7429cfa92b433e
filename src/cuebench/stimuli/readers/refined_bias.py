"""REFINED-BIAS folder: ``refined_bias_shape/<class>/`` and ``refined_bias_texture/<class>/``, the published layout.

Any subset of the published files can be read, and any set that ``cuebench make refined_bias`` wrote. A stimulus has the
class of its cue: ``shape`` *or* ``texture``. Its ``condition`` holds what a score needs and only the pixels would tell:
``patch=8`` (patches along a side) and ``mode=L`` (a greyscale file).
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl

from cuebench.errors import all_problems
from cuebench.stimuli.hashing import for_each_file
from cuebench.stimuli.made import made_count
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

CUES = ("shape", "texture")
FOLDERS = {cue: f"refined_bias_{cue}" for cue in CUES}
LAYOUT = "refined_bias_shape/<class>/<class>_<i>.png and refined_bias_texture/<class>/<G>x<G>_<class>_<i>.png"
EXPECTED = 6000
SIZE = 224
_NAME = re.compile(r"(?:(?P<a>\d+)x(?P<b>\d+)_)?(?P<name>[^\W\d_].*?)_(?P<i>\d+)")


def parse(stem: str, cue: str = "") -> Stimulus | None:
    """Read class, number and patch grid from a stem such as ``4x4_tiger_0`` or ``balloon_3``; None if it is not one.

    Parameters
    ----------
    stem : str
        File name without folder and extension.
    cue : str
        ``shape`` or ``texture``, where the folder says it; else a grid in the name means texture.

    Examples
    --------
    >>> parse("16x16_tiger_7").texture, parse("16x16_tiger_7").condition, parse("soccer_ball_3").shape
    ('tiger', 'patch=16', 'soccer_ball')
    """
    match = _NAME.fullmatch(stem)
    if match is None or match["a"] != match["b"]:
        return None
    grid = match["a"]
    if cue and cue != ("texture" if grid else "shape"):
        return None
    source = f"{match['name']}_{match['i']}"
    if not grid:
        return Stimulus(stem, shape=match["name"], shape_source=source)
    return Stimulus(stem, texture=match["name"], texture_source=source, condition=f"patch={int(grid)}")


def facts(stimulus: Stimulus) -> dict[str, str]:
    """Return what the condition of a stimulus says: ``patch``, ``mode``."""
    return dict(parse_qsl(stimulus.condition))


def read(folder: Path, *, expected: int = 0) -> StimulusSet:
    """Read a REFINED-BIAS folder; one of the two cues may be missing, and the set then says so.

    Parameters
    ----------
    folder : Path
        Holds ``refined_bias_shape`` and ``refined_bias_texture``.
    expected : int
        Size of the complete set; the size in the ``made.json`` of a set that cuebench made is used instead.

    Raises
    ------
    UserError
        With all problems at once.
    """
    root = require_folder(folder, LAYOUT)
    parts = [_cue_folder(root, cue) for cue in CUES]
    stimuli = [s for part in parts for s in part.stimuli]
    problems = [p for part in parts for p in part.problems] + id_problems(stimuli)
    if not stimuli and not problems:
        raise nothing_found(root, LAYOUT)
    if problems:
        raise all_problems(f"REFINED-BIAS folder {root.absolute()}", problems, f"expected layout: {LAYOUT}")
    expected = made_count(root) or expected
    partial = [*shortfall(len(stimuli), expected)]
    partial += [f"no {cue} cues" for cue, part in zip(CUES, parts) if not part.stimuli]
    labels = root / "labels.json"
    return StimulusSet(
        name="refined_bias",
        stimuli=_with_modes(with_facts(stimuli, root), root),
        root=str(root),
        expected=expected,
        partial=tuple(partial),
        targets=str(labels) if labels.is_file() else "",
    )


class _Part(NamedTuple):
    stimuli: list[Stimulus]
    problems: list[str]


def _cue_folder(root: Path, cue: str) -> _Part:
    place = root / FOLDERS[cue]
    if not place.is_dir():
        return _Part([], [f"{place.name} is a file, not a folder"] if place.exists() else [])
    files = find_images(place, depth=1)
    stimuli, problems = [], [f"{FOLDERS[cue]}/{p}" for p in files.problems]
    for path in files.images:
        parsed = parse(path.stem, cue)
        where = f"{FOLDERS[cue]}/{path.as_posix()}"
        if parsed is None:
            form = "<class>_<i>" if cue == "shape" else "<G>x<G>_<class>_<i>"
            problems.append(f"{where}: the name is not {form}")
        elif (label := getattr(parsed, cue)) != path.parent.name:
            problems.append(f"{where}: lies in folder {path.parent.name!r} but its name says class {label!r}")
        else:
            stimuli.append(replace(parsed, path=where))
    return _Part(stimuli, problems)


def _with_modes(stimuli: tuple[Stimulus, ...], root: Path) -> tuple[Stimulus, ...]:
    """Write the pixel mode of files that are not RGB into the condition."""
    modes = for_each_file(_mode, [root / s.path for s in stimuli])
    return tuple(
        replace(s, condition="&".join(filter(None, [s.condition, f"mode={m}" if m != "RGB" else ""])))
        for s, m in zip(stimuli, modes)
    )


def _mode(path: Path) -> str:
    """Return Pillow's mode from the header; a file without a readable one is left to the engine, which reports it."""
    from cuebench.stimuli.image_files import UnreadablePicture, header

    try:
        return header(path)[0]
    except UnreadablePicture:
        return "RGB"


READER = Reader("refined_bias", LAYOUT, read)
