"""The folder of a decomposition: who made it, its manifest, and reading it back.

made.json           how it was made: source, sizes, seed, options of every cue
manifest.parquet    one row for each picture, with hashes
labels.json         segmentation: the classes, and which classes of a model count as each
original/ eed/ …    one folder for each part, PNG files of the same names
masks/ voronoi/masks/ …   ground truth; moved masks lie in the folder of what moved them
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cuebench.errors import UserError
from cuebench.files import write_atomic, write_json
from cuebench.registry import cues
from cuebench.stimuli.decomposition.cue_list import Part
from cuebench.stimuli.decomposition.originals import MASKS
from cuebench.stimuli.decomposition.sources import Source
from cuebench.stimuli.hashing import hash_files
from cuebench.stimuli.made import MADE
from cuebench.stimuli.manifest import read_manifest
from cuebench.stimuli.readers.scan import with_facts
from cuebench.types import REMOVED, Stimulus, StimulusSet

CLASSIFICATION, SEGMENTATION = "cue_decomposition", "cue_decomposition_segmentation"
MANIFEST, LABELS = "manifest.parquet", "labels.json"
# A change of any pixel is a new version: pictures of two versions must never be mixed in one folder.
VERSION = 1


def part_stimuli(part: Part, images: Sequence[Stimulus], home: Path) -> list[Stimulus]:
    """Return the pictures of one part in the order of the images, with hashes and the mask that belongs to each."""
    made = [
        Stimulus(
            id=f"{s.id}|{part.name}",
            path=f"{part.name}/{s.id}.png",
            label=s.label,
            # What a cue takes away is marked, for ideal observers.
            shape=REMOVED if part.keeps == "texture" else s.label,
            texture=REMOVED if part.keeps == "shape" else s.label,
            shape_source=s.id,
            texture_source=s.id,
            condition=part.name,
            mask=_mask(part, s) if s.mask else "",
        )
        for s in images
    ]
    facts = {s.id: s for s in with_facts(made, home)}
    masks = sorted({s.mask for s in made if s.mask})
    hashes = dict(zip(masks, (f.sha256 for f in hash_files([home / m for m in masks]))))
    return [replace(facts[s.id], mask_sha256=hashes.get(s.mask, "")) for s in made]


def _mask(part: Part, stimulus: Stimulus) -> str:
    moved = bool(part.cue) and cues.get(part.cue).info.moves_mask
    return f"{part.name}/{MASKS}/{stimulus.id}.png" if moved else f"{MASKS}/{stimulus.id}.png"


def write_labels(home: Path, source: Source) -> str:
    """Write what the labels or masks mean beside the stimuli; return what the manifest calls it."""
    if source.classes:
        write_json(home / LABELS, source.classes.label_map())
        return LABELS
    if not Path(source.targets).suffix:
        return source.targets  # a map that ships with cuebench, or none
    given = Path(source.targets).expanduser()
    write_atomic(home / f"labels{given.suffix}", given.read_bytes())
    return f"labels{given.suffix}"


def read_set(home: Path, make: str) -> StimulusSet:
    """Read a set that the maker ``cue_decomposition`` made."""
    path = home / MANIFEST
    if not path.is_file():
        unfinished = (home / MADE).is_file()
        raise UserError(
            f"{home} " + ("is not finished: it has no manifest yet" if unfinished else "holds no cue decomposition"),
            "run the same `cuebench make` command again" if unfinished else make,
        )
    found = read_manifest(path, root=home)
    return replace(found, targets=str(home / found.targets)) if Path(found.targets).suffix else found
