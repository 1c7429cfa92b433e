"""Source images of a decomposition: a labelled folder, or images with masks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cuebench import labels as label_files
from cuebench.errors import UserError, did_you_mean
from cuebench.stimuli.decomposition.classes import Classes, read_classes
from cuebench.stimuli.readers import ade20k, cityscapes, image_folder, segmentation_pairs
from cuebench.types import StimulusSet

LAYOUTS = ("image_folder", "segmentation_pairs", "cityscapes", "ade20k")
SIXTEEN = "in16"
"""The label map of the 16 classes of Geirhos et al. 2019."""
CROPS = {"image_folder": (224, 256), "ade20k": (512, 512)}
"""Layout → published (size, resize); the others are used as they are."""


@dataclass(frozen=True)
class Source:
    """Images, and what their masks or labels mean."""

    layout: str
    images: StimulusSet
    classes: Classes | None = None
    targets: str = ""

    @property
    def size(self) -> int:
        """Published size of the crop, 0: none."""
        return CROPS.get(self.layout, (0, 0))[0]

    @property
    def resize(self) -> int:
        """Published length of the shorter side before the crop."""
        return CROPS.get(self.layout, (0, 0))[1]

    @property
    def described(self) -> dict[str, str | int]:
        """What ``made.json`` records of the images: their content, so that the data may move."""
        return {"layout": self.layout, "images": len(self.images), "fingerprint": self.images.fingerprint[:16]}

    @property
    def coding(self) -> dict[str, Any]:
        """What ``made.json`` records of the meaning of masks or labels: another meaning is another set."""
        if self.classes:
            names = list(self.classes.names)  # their order is the coding of the masks that are written
            ids = {str(value): names[position] for value, position in sorted(self.classes.ids.items())}
            members = {name: list(self.classes.members[name]) for name in names}
            return {"classes": {"names": names, "ids": ids, "ignore": sorted(self.classes.ignore), "members": members}}
        if not self.targets:
            return {}
        targets = label_files.label_map(self.targets).targets
        return {"labels": {name: [str(m) for m in members] for name, members in targets.items()}}


def read_source(place: str, layout: str, *, classes: str, labels: str, count: int, seed: int) -> Source:
    """Read the source data set in any known layout.

    Parameters
    ----------
    place : str
        Folder of the data set.
    layout : str
        One of ``LAYOUTS``, or ``auto``.
    classes, labels : str
        See the maker.
    count, seed : int
        A seeded draw of so many images; 0: all.
    """
    if not place:
        raise UserError("cue_decomposition needs images", "cuebench make cue_decomposition --source DIR --out DIR")
    root = Path(place).expanduser()
    layout = _layout(root) if layout == "auto" else layout
    if layout not in LAYOUTS:
        raise did_you_mean("layout", layout, LAYOUTS)
    if count < 0:
        raise UserError(f"count is {count}", "a number of images, or 0 for all")
    if layout == "image_folder" and classes:
        raise UserError(f"classes={classes}: {root} is a folder of labelled images", "classes= is for masks")
    if layout != "image_folder" and labels:
        raise UserError(f"labels={labels}: {root} has masks", "labels= is for labelled images; use classes= for masks")
    if layout == "image_folder":
        images, targets = _mapped(image_folder.read(root), labels)
        return Source(layout, _drawn(images, count, seed), None, targets)
    reader = {"cityscapes": cityscapes, "ade20k": ade20k, "segmentation_pairs": segmentation_pairs}[layout]
    if layout == "segmentation_pairs" and not classes and not (root / "classes.json").is_file():
        raise UserError(
            f"{root}: nothing says what the numbers in its masks mean",
            'put classes.json there or give --set classes=FILE: {"classes": [{"name": "road", "ids": [7]}, …]}',
        )
    coding = reader.CLASSES
    if layout == "segmentation_pairs":
        coding = read_classes(Path(classes) if classes else root / "classes.json")
    return Source(layout, _drawn(reader.read(root), count, seed), coding)


def _layout(root: Path) -> str:
    there = {p.name for p in root.iterdir() if p.is_dir()} if root.is_dir() else set()
    if {"leftImg8bit", "gtFine"} <= there:
        return "cityscapes"
    if {"images", "annotations"} <= there and (root / "images" / "validation").is_dir():
        return "ade20k"
    return "segmentation_pairs" if "images" in there and there & set(segmentation_pairs.MASKS) else "image_folder"


def _drawn(images: StimulusSet, count: int, seed: int) -> StimulusSet:
    if not count or count >= len(images):
        return images
    chosen = sorted(np.random.default_rng(seed).permutation(len(images))[:count])
    return images.only(
        [images.stimuli[i] for i in chosen], f"{count:,} of {len(images):,} images, drawn by seed {seed}"
    )


def _mapped(images: StimulusSet, labels: str) -> tuple[StimulusSet, str]:
    """Return the images that belong to a class of a label map, labelled by that class.

    Without a map that is named, it is ``labels.json`` of the folder, or these of the 16 classes of Geirhos et al.
    2019 where all folders have such names: an ImageNet network has no class "cat", but six that are cats.
    """
    if not labels:
        labels, note = _own_map(images)
        if not labels:
            return images, ""
        images = replace(images, notes=(*images.notes, note))
    names = label_files.label_map(labels)
    target_of = {str(member): target for target, members in names.targets.items() for member in members}
    target_of |= {target: target for target in names.names}
    kept = [replace(s, label=target_of[s.label]) for s in images if s.label in target_of]
    if not kept:
        raise UserError(f"no image of {images.root} belongs to a class of {labels!r}", f"classes: {names.names}")
    why = f"the {len(kept):,} of {len(images):,} images of {labels}" if len(kept) < len(images) else ""
    return images.only(kept, why), labels


def _own_map(images: StimulusSet) -> tuple[str, str]:
    """Return the map for a folder without ``labels=``, and why it is that one; empty: labels are a model's classes."""
    file = Path(images.root) / "labels.json"
    if file.is_file():
        return str(file), f"decisions among the classes of {file.name}"
    labels = sorted({s.label for s in images})
    if not set(labels) <= set(label_files.label_map(SIXTEEN).names):
        return "", ""
    names = ",".join(labels)
    return f"{SIXTEEN}{label_files.SUBSET}{names}", f"decisions among {len(labels)} classes of {SIXTEEN}: {names}"
