"""The cues to be judged: those that a maker has made, accepted or not, or the images of any folder with classes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from cuebench.errors import UserError
from cuebench.reading import is_regular, path_problem, read_csv
from cuebench.stimuli.readers.scan import find_images

SHOWN = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp", ".gif": "image/gif"}
"""Kinds of files that a browser shows → their type."""


class CueFile(NamedTuple):
    """An image to be judged: its name, kind and class, its file, and what the automatic inspection says."""

    name: str
    cue: str
    label: str
    path: Path
    inspection: str = ""


class Cues(NamedTuple):
    """The images of a set, where its verdicts belong, and how many cannot be shown."""

    home: Path
    files: tuple[CueFile, ...]
    without_picture: int = 0


def find_cues(folder: Path) -> Cues:
    """Find the images to be judged.

    Parameters
    ----------
    folder : Path
        What ``cuebench make refined_bias --out`` wrote (or its sub-folder ``refined_bias``): every cue that was made;
        else a folder of REFINED-BIAS or of images in folders by class.
    """
    home = next((p for p in (folder / "refined_bias", folder) if p.is_dir()), folder)
    if not home.is_dir():
        hint = "cuebench curate DIR, with DIR from cuebench make refined_bias --source … --out DIR"
        raise UserError(f"{folder} is no folder", hint)
    cues = _made(home) if (home / "inspection.csv").is_file() else _images(home)
    if not cues.files:
        raise UserError(f"{home} holds no image to judge", "make some: cuebench make refined_bias --source … --out DIR")
    return cues


def _made(home: Path) -> Cues:
    table = read_csv(home / "inspection.csv", "inspection", needed=("name", "cue", "label", "verdict", "reason", "by"))
    files, missing = [], 0
    for row in table.rows:
        inside = f"made/{row['cue']}/{row['label']}/{row['name']}.png"
        path = home / inside
        if path_problem(inside) or not is_regular(path) or not path.resolve().is_relative_to(home.resolve()):
            missing += 1  # a source that could not be read or segmented has no picture
            continue
        reason = row["reason"] if row["by"] == "inspection" else ""
        files.append(CueFile(row["name"], row["cue"], row["label"], path, reason))
    return Cues(home, tuple(files), missing)


def _images(home: Path) -> Cues:
    files, others = [], 0
    for depth in (2, 1):
        for path in find_images(home, depth=depth).images:
            if path.suffix.lower() not in SHOWN:
                others += 1
            elif path.parts[0] not in ("verdicts", "made"):
                cue = path.parts[0].removeprefix("refined_bias_") if depth == 2 else ""
                files.append(CueFile(path.stem, cue, path.parent.name, home / path))
        if files:
            break
    names = [f.name for f in files]
    if len(set(names)) < len(names):  # the same name in two classes
        files = [f._replace(name=f"{f.label}_{f.name}") for f in files]
    return Cues(home, tuple(files), others)
