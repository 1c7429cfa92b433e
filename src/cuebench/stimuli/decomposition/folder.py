"""The folder of a decomposition: how it was made, its manifest, and reading it.

made.json           how it was made: source, sizes, seed, options of every cue
manifest.parquet    one row for each picture, with hashes
labels.json         the classes, and which classes of a model count as each; yours, or that of a segmentation set
original/ eed/ …    one folder for each part, PNG files of the same names
masks/ voronoi/masks/ …   ground truth; moved masks lie in the folder of what moved them
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cuebench.errors import NoStimuli, UserError
from cuebench.files import write_atomic, write_json
from cuebench.registry import cues
from cuebench.stimuli.decomposition.cue_list import Part
from cuebench.stimuli.decomposition.originals import MASKS
from cuebench.stimuli.decomposition.sources import Source
from cuebench.stimuli.hashing import hash_files
from cuebench.stimuli.made import MADE
from cuebench.stimuli.manifest import read_manifest
from cuebench.stimuli.readers.scan import check_hashes, with_facts
from cuebench.types import REMOVED, Stimulus, StimulusSet

CLASSIFICATION, SEGMENTATION = "cue_decomposition", "cue_decomposition_segmentation"
MANIFEST, LABELS = "manifest.parquet", "labels.json"
# A change of any pixel is a new version: pictures of two versions must never be mixed in one folder.
VERSION = 1


def part_stimuli(part: Part, images: Sequence[Stimulus], home: Path) -> list[Stimulus]:
    """Return the pictures of a part in the order of the images, with hashes and the mask that belongs to each."""
    moves_mask = bool(part.cue) and cues.get(part.cue).info.moves_mask
    masks = f"{part.name}/{MASKS}" if moves_mask else MASKS
    pictures = [
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
            mask=f"{masks}/{s.id}.png" if s.mask else "",
        )
        for s in images
    ]
    facts = {s.id: s for s in with_facts(pictures, home)}
    files = sorted({s.mask for s in pictures if s.mask})
    hashes = dict(zip(files, (f.sha256 for f in hash_files([home / m for m in files]))))
    return [replace(facts[s.id], mask_sha256=hashes.get(s.mask, "")) for s in pictures]


def write_labels(home: Path, source: Source) -> str:
    """Write what the labels or masks mean beside the stimuli; return its name in the manifest."""
    if source.classes:
        write_json(home / LABELS, source.classes.label_map())
        return LABELS
    if not Path(source.targets).suffix:
        return source.targets  # a map that ships with cuebench, or none
    path = Path(source.targets).expanduser()
    write_atomic(home / f"labels{path.suffix}", path.read_bytes())
    return f"labels{path.suffix}"


def read_set(home: Path, make: str) -> StimulusSet:
    """Read a set that the maker ``cue_decomposition`` made."""
    path = home / MANIFEST
    if not path.is_file():
        if (home / MADE).is_file():
            raise UserError(
                f"{home} is not finished: it has no manifest yet", "run the same `cuebench make` command again"
            )
        raise NoStimuli(f"{home} holds no cue decomposition", make, str(home))
    stimuli = read_manifest(path, root=home)
    check_hashes(stimuli)
    # A label map that the user has put there later counts more than one that was taken by the names of the folders.
    has_user_map = (home / LABELS).is_file() and not Path(stimuli.targets).suffix
    targets = LABELS if has_user_map else stimuli.targets
    return replace(stimuli, targets=str(home / targets)) if Path(targets).suffix else stimuli
