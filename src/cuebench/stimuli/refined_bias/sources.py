"""Sources of objects: a folder of images with masks in one of three forms, or without masks.

==============================  ==============================================================================
``<class>/<name>.png``          with an alpha channel: the object is what is not transparent
``<class>/<name>.jpg``          with a mask file ``<class>/<name>_mask.png`` (or ``.mask.png``) beside it, or
                                ``masks/<class>/<name>.png`` beside ``images/<class>/``: white = object
``annotations.json``            COCO: images, categories, and polygons or run lengths; one object for each annotation
``<class>/<name>.jpg`` alone    a segmenter finds the object (see ``segment``)
==============================  ==============================================================================

``labels.json`` says what the classes are: ``{"targets": {class: [members]}, "shape": [classes], "texture": [classes],
"sigma": {class: blur}}``; only ``targets`` is needed, and only for classes that are none of REFINED-BIAS, none of the
16 of Geirhos et al. 2019 and have no name of an ImageNet class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

from cuebench.errors import UserError, all_problems, is_printable
from cuebench.labels import label_map, members_by_name, spelled_differently
from cuebench.reading import is_regular, path_problem, read_json
from cuebench.stimuli.image_files import FORMATS
from cuebench.stimuli.readers.scan import IMAGE_SUFFIXES, MASKS, is_followed, require_folder

LAYOUT = "<class>/<image> with an alpha channel, a mask file or annotations.json; see `cuebench explain refined_bias`"
MASK_SUFFIXES = (".png", ".bmp", ".tif", ".tiff", ".jpg", ".jpeg")
LARGEST_BLUR = 10_000
"""Standard deviation in pixels; more is a mistake."""


@dataclass(frozen=True)
class Source:
    """An object: an image, and where its mask comes from."""

    name: str
    label: str
    path: Path
    mask: Path | None = None
    annotation: Mapping[str, Any] | None = field(default=None, compare=False)

    @property
    def id(self) -> str:
        """Class and name, unique in a folder."""
        return f"{self.label}/{self.name}"


@dataclass(frozen=True)
class Classes:
    """The classes of a source folder: members in a model's label space, and which cue each class serves."""

    targets: Mapping[str, tuple[str | int, ...]]
    shape: frozenset[str]
    texture: frozenset[str]
    sigma: Mapping[str, float] = field(default_factory=dict)

    def cues(self, label: str) -> tuple[str, ...]:
        """Return the cues that are made of a class."""
        return tuple(c for c in ("shape", "texture") if label in getattr(self, c))


def find_sources(folder: Path) -> tuple[list[Source], list[str]]:
    """Return the objects below a folder, sorted, and what is wrong with the rest."""
    root = require_folder(folder, LAYOUT)
    annotations = root / "annotations.json"
    sources, problems = _coco(root, annotations) if annotations.is_file() else _folders(root)
    if not sources and not problems:
        raise UserError(f"no images found in {root.absolute()}", f"expected layout: {LAYOUT}")
    names = Counter(s.id for s in sources)
    problems += [f"{name}: {n} images have this name; rename all but one" for name, n in names.items() if n > 1]
    return sorted(sources, key=lambda s: (s.label, s.name)), problems


def read_classes(folder: Path, labels: Iterable[str]) -> tuple[Classes, list[str]]:
    """Return the class map of a folder for the labels that occur in it, and the classes that have none."""
    names = sorted(set(labels))
    file = labels_file(Path(folder) / "labels.json")
    targets = _known_targets(names) | {str(t): tuple(m) for t, m in file.get("targets", {}).items()}
    missing = [f"class {n!r} has no map: which classes of a model are it?" for n in names if n not in targets]
    kept = {n: targets[n] for n in names if n in targets}
    shape, texture = (frozenset(file.get(cue, ())) & set(kept) for cue in ("shape", "texture"))
    if not file.get("shape") and not file.get("texture"):
        shape = texture = frozenset(kept)
    return Classes(kept, shape, texture, {k: float(v) for k, v in file.get("sigma", {}).items()}), missing


def labels_file(path: Path) -> dict[str, Any]:
    """Read ``labels.json`` of a folder; empty where there is none."""
    if not path.is_file():
        return {}
    data = read_json(path)
    wrong = not isinstance(data, dict) or not isinstance(data.get("targets", {}), dict)
    if wrong or not all(isinstance(m, list) and m for m in data.get("targets", {}).values()):
        raise UserError(f"{path} has no class map", 'expected {"targets": {"class": ["member", ...]}}')
    members = [m for listed in data.get("targets", {}).values() for m in listed]
    bad = [f"the member {m!r} is no name, id or position" for m in members if type(m) not in (str, int)]
    for cue in ("shape", "texture"):
        listed = data.get(cue, [])
        if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
            bad.append(f"{cue!r} is no list of class names")
    sigma = data.get("sigma", {})
    if not isinstance(sigma, dict) or not all(
        type(v) in (int, float) and 0 <= v <= LARGEST_BLUR for v in sigma.values()
    ):
        bad.append(f"'sigma' does not give a blur of 0 to {LARGEST_BLUR} pixels for each class")
    if bad:
        raise all_problems(str(path), bad, 'expected {"targets": {"class": ["member", ...]}, "sigma": {"class": 1.5}}')
    return dict(data)


def _known_targets(names: Iterable[str]) -> dict[str, tuple[str | int, ...]]:
    """Return the map of classes that need no file: those of REFINED-BIAS, and those whose name says what they are."""
    published = label_map("refined_bias").targets
    known = {name: tuple(published.get(name) or members_by_name(name)) for name in names}
    return {name: members for name, members in known.items() if members}


def _folders(root: Path) -> tuple[list[Source], list[str]]:
    images = root / "images" if (root / "images").is_dir() else root
    masks = root / "masks" if (root / "masks").is_dir() else None
    sources, alone = [], list[str]()
    for folder in sorted(p for p in images.iterdir() if p.is_dir() and p != masks and is_followed(p.name)):
        files = sorted(p for p in folder.iterdir() if p.suffix.lower() in IMAGE_SUFFIXES)
        pictures = [path for path in files if not path.stem.endswith(MASKS)]
        for path in pictures:
            mask_files = [path.with_name(f"{path.stem}{end}{s}") for end in MASKS for s in MASK_SUFFIXES]
            if masks is not None:
                mask_files += [masks / folder.name / f"{path.stem}{suffix}" for suffix in MASK_SUFFIXES]
            sources.append(Source(path.stem, folder.name, path, next((p for p in mask_files if p.is_file()), None)))
        stems = {f"{path.stem}{end}" for path in pictures for end in MASKS}
        alone += [f"{folder.name}/{p.name}: a mask without its image" for p in files if p not in pictures
                  and p.stem not in stems]  # fmt: skip
    loose = [p.name for p in images.iterdir() if p.is_file() and p.suffix.lower() in IMAGE_SUFFIXES]
    twice = spelled_differently(sorted({source.label for source in sources}))
    return sources, [*(f"{name}: lies in no class folder" for name in sorted(loose)), *alone, *twice]


def where_masks_came_from(sources: Iterable[Source], segmenter: str) -> dict[str, str]:
    """Return source → where its mask came from, in words."""
    places = {}
    for s in sources:
        if s.annotation is not None:
            places[s.id] = "from annotations.json"
        elif s.mask is not None:
            beside = s.mask.parent == s.path.parent
            places[s.id] = "from mask files beside the images" if beside else "from the folder masks"
        else:
            places[s.id] = "from alpha channels" if has_alpha(s.path) else f"guessed by the segmenter {segmenter}"
    return places


def has_alpha(path: Path) -> bool:
    """Tell from the header of a picture whether it has an alpha channel."""
    try:
        with Image.open(path, formats=FORMATS) as image:
            return image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
    except Exception:  # noqa: BLE001 - reading it says what is wrong
        return False


def _coco(root: Path, path: Path) -> tuple[list[Source], list[str]]:
    try:
        data = read_json(path)
        images = _by_id(path, data["images"], "file_name")
        categories = {i: name.replace(" ", "_") for i, name in _by_id(path, data["categories"], "name").items()}
        annotations = [dict(annotation) for annotation in data["annotations"]]
        places = [(a.get("image_id"), a.get("category_id"), a.get("segmentation")) for a in annotations]
        known = [(images.get(image), categories.get(category)) for image, category, _ in places]
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is not a COCO file: {error!r}", "needs images, categories and annotations") from error
    sources, problems = [], []
    for a, (file, label) in zip(annotations, known):
        if file is None or label is None or not a.get("segmentation"):
            lack = "image" if file is None else "category" if label is None else "segmentation"
            problems.append(f"annotation {a.get('id')}: has no {lack}")
            continue
        if not _is_name(f"{label}") or not _is_name(f"{a.get('id')}"):
            problems.append(f"annotation {a.get('id')!r}: its id or the name of its category {label!r} is no file name")
            continue
        place = None
        if not path_problem(file):
            place = next((p for p in (root / file, root / "images" / file) if is_regular(p)), None)
        if place is None or root.resolve() not in place.resolve().parents:
            problems.append(f"{file}: named in annotations.json, but there is no such file")
        else:
            sources.append(Source(f"{place.stem}-{a.get('id')}", label, place, annotation=a))
    return sources, problems


def _by_id(path: Path, rows: list[dict[str, Any]], field: str) -> dict[Any, str]:
    """Return id → field of the rows of a COCO file; an id that occurs twice is refused."""
    field_by_id = {row["id"]: str(row[field]) for row in rows}
    if len(field_by_id) < len(rows):
        repeated = Counter(row["id"] for row in rows).most_common(1)[0][0]
        raise UserError(f"{path}: the id {repeated!r} stands for two things", "every image and category has its own")
    return field_by_id


def _is_name(text: str) -> bool:
    """Tell whether a text can be a part of a file name: nothing from a file may lead out of the folder."""
    return bool(text.strip(". ")) and not set(text) & set("/\\:\0") and is_printable(text)


def refuse(folder: Path, problems: list[str], unmapped: list[str], unusable: list[str]) -> None:
    """Raise one error that names every problem, and what helps against each kind of them.

    Parameters
    ----------
    folder : Path
        The source folder.
    problems : list of str
        Files that are not as the layout wants them.
    unmapped : list of str
        Classes of which it is not known which classes of a model they are.
    unusable : list of str
        Sources of which no cue can be made; empty where the user leaves them out.
    """
    hints = ["correct or remove them"] if problems or unusable else []
    if unmapped:
        name = unmapped[0].split("'")[1]
        form = f'{{"targets": {{"{name}": ["n03063599", "coffee mug"]}}}}'
        hints.append(
            f"write what each class is to {folder / 'labels.json'}, WordNet ids or names of ImageNet classes, e.g. "
            f'{form}; for a model of your own with a class of this name {{"targets": {{"{name}": ["{name}"]}}}}'
        )
    if unusable:
        hints.append("or leave the unusable ones out with --set allow_bad=true (they are then listed as rejected)")
    every_problem = [*problems, *unmapped, *unusable]
    if every_problem:
        raise all_problems(f"source folder {folder.absolute()}", every_problem, "; ".join(hints), most=60)
