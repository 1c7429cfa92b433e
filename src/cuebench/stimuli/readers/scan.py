"""Listing, checking and hashing files, for all readers."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from cuebench.errors import NoStimuli, all_problems, is_printable
from cuebench.files import hash_file
from cuebench.labels import spelled_differently
from cuebench.reading import file_kind_problem, path_problem
from cuebench.stimuli.hashing import each_file, for_each_file, in_processes
from cuebench.stimuli.manifest import duplicates
from cuebench.types import Stimulus, StimulusSet

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm"})
MASKS = ("_mask", ".mask")
"""How the name of a mask file ends: ``cat_mask.png`` is the mask of ``cat.jpg``."""
NOT_FOLLOWED = "__MACOSX"
"""Folder that macOS puts into archives."""
DEEPEST = 4
_TASKS = 32
"""Parts into which the folders of a set are divided for processes that list them."""
READ_AT_ONCE = 1 << 20
"""Bytes; most pictures are smaller."""
# Litter of operating systems and notes of people. Nothing else is passed over silently.
IGNORED = frozenset(
    {".ds_store", "thumbs.db", "desktop.ini", ".gitkeep", ".gitignore", ".directory"}
    | {stem + suffix for stem in ("readme", "license", "licence") for suffix in ("", ".md", ".txt")}
    | {"labels.csv", "labels.json", "cue.json", ".inputs.jsonl"}
)


class Listing(NamedTuple):
    """The images below a folder (relative, sorted) and what is wrong with the rest."""

    images: list[Path]
    problems: list[str]


class ImageFacts(NamedTuple):
    """Content hash, and pixel size from the header: 0 × 0 where the header cannot be read."""

    sha256: str
    width: int
    height: int


def find_images(folder: Path, depth: int | None) -> Listing:
    """List image files exactly ``depth`` folders below ``folder`` (None: at any depth); all else there is a problem.

    So are folders, which are classes, whose names differ only by case or spaces. Hidden folders are passed over.
    """
    images, problems = find_names(folder, depth)
    return Listing([Path(image) for image in images], problems)


def find_names(folder: Path, depth: int | None) -> tuple[list[str], list[str]]:
    """Do what `find_images` does, with images as texts: of a large set, paths take five times the memory."""
    root = str(folder)
    _, folders, _ = next(os.walk(root), (root, [], []))
    folders = sorted(filter(is_followed, folders))
    size = max(1, -(-len(folders) // _TASKS))
    groups = [("",), *(tuple(folders[i : i + size]) for i in range(0, len(folders), size))]
    by_group = in_processes(_find, [(root, depth, group) for group in groups])
    images = [image for images, _ in by_group for image in images]
    problems = [text for _, problems in by_group for text in problems]
    if depth:
        problems += spelled_differently(sorted({image.partition(os.sep)[0] for image in images}))
    return images, problems


def is_followed(folder: str) -> bool:
    """Tell whether a folder of this name can hold stimuli: not the hidden ones of programs (``.ipynb_checkpoints``)."""
    return not folder.startswith(".") and folder != NOT_FOLLOWED


def without_masks(images: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the images without the masks that lie beside their photographs, and those masks.

    >>> without_masks(["cat/a.jpg", "cat/a_mask.png", "cat/iron_mask.jpg"])
    (['cat/a.jpg', 'cat/iron_mask.jpg'], ['cat/a_mask.png'])
    """
    named = [image for image in images if os.path.splitext(image)[0].endswith(MASKS)]
    stems = {os.path.splitext(image)[0] for image in images} if named else set()
    wholes = {image: {os.path.splitext(image)[0].removesuffix(end) for end in MASKS} for image in named}
    masks = {image for image, stem in wholes.items() if stem & stems - {os.path.splitext(image)[0]}}
    return [image for image in images if image not in masks], sorted(masks)


def _find(task: tuple[str, int | None, Sequence[str]]) -> tuple[list[str], list[str]]:
    root, depth, folders = task
    images, problems = [], []
    for place, relative in chain.from_iterable(_walk(root, folder) for folder in folders):
        suffix, deep = os.path.splitext(relative)[1], relative.count(os.sep)
        if suffix == ".part":
            problems.append(f"{relative}: an unfinished download; run `cuebench fetch` again")
        elif suffix.lower() not in IMAGE_SUFFIXES:
            problems.append(f"{relative}: not an image file")
        elif depth is not None and deep != depth:
            problems.append(f"{relative}: lies {deep} folders deep, expected {depth}")
        elif problem := file_problem(os.path.join(place, os.path.basename(relative))):
            problems.append(f"{relative}: {problem}")
        else:
            images.append(relative)
    return images, problems


def file_problem(path: str | Path) -> str:
    """Return why a path cannot be a stimulus: no such file, a broken link, no bytes; empty where it can."""
    text = str(path)
    name = os.path.basename(text)
    if not is_printable(name) or not (text.isascii() or all(not "\ud800" <= c <= "\udfff" for c in text)):
        return "the name holds control characters or is not UTF-8; rename it"
    return file_kind_problem(path, filled=True)


def _walk(root: str, below: str) -> Iterator[tuple[str, str]]:
    """Yield the folder of each file below a folder of ``root``, and its path from there; ``""``: files of the root.

    Texts: a set may have a million files.
    """
    # Class folders are often links to another disk, so links are followed; the depth bound ends a circle of them.
    for place, folders, files in os.walk(os.path.join(root, below) if below else root, followlinks=True):
        parts = os.path.relpath(place, root).split(os.sep) if below else []
        deeper = 0 < len(parts) < DEEPEST
        folders[:] = sorted(filter(is_followed, folders)) if deeper else []
        for name in sorted(files):
            # Side files of macOS, and temporary files of a cuebench process that was killed.
            litter = name.startswith("._") or (name.startswith(".") and name.endswith(".tmp"))
            if name.lower() not in IGNORED and not litter:
                yield place, os.sep.join([*parts, name])


def require_folder(folder: Path, layout: str) -> Path:
    """Return the expanded path of a folder; the error for a missing one names the expected layout."""
    folder = Path(folder).expanduser()
    if folder.is_dir():
        return folder
    what = "is a file, not a folder" if folder.exists() else "does not exist"
    raise NoStimuli(f"stimulus folder {folder.absolute()} {what}", f"expected layout: {layout}", str(folder))


def nothing_found(place: Path, layout: str) -> NoStimuli:
    """Build the error for a place without a single stimulus."""
    return NoStimuli(f"no stimuli found in {place.absolute()}", f"expected layout: {layout}", str(place))


def with_facts(stimuli: Sequence[Stimulus], root: Path) -> tuple[Stimulus, ...]:
    """Fill in hash and pixel size of every stimulus that has a file, sorted by id."""
    ordered = sorted(stimuli, key=attrgetter("id"))
    del stimuli  # each is replaced below: nobody needs two of them
    place = str(root)
    paths = (os.path.join(place, s.path) for s in ordered if s.path)
    facts = each_file(image_facts, paths, sum(bool(s.path) for s in ordered))
    sizes: dict[int, int] = {}  # most files of a set have one of a few sizes
    for position, s in enumerate(ordered):
        if s.path:
            sha256, width, height = next(facts)
            ordered[position] = s.of_file(sha256, sizes.setdefault(width, width), sizes.setdefault(height, height))
    deque(facts, maxlen=0)  # to its end, where it says which files could not be read
    return tuple(ordered)


def check_hashes(stimuli: StimulusSet) -> None:
    """Raise where files or masks of a set are not those that its manifest names: it may be older than the files.

    Raises
    ------
    UserError
        Naming every file that is missing or has another content.
    """
    root, wanted = Path(stimuli.root), dict[str, str]()
    problems = []
    for s in stimuli:
        for path, sha256 in ((s.path, s.sha256), (s.mask, s.mask_sha256)):
            if path and sha256 and wanted.setdefault(path, sha256) != sha256:
                problems.append(f"{path}: has two different hashes in the manifest")
    problems += [f"{path}: {why}" for path in wanted if (why := path_problem(path) or file_problem(root / path))]
    if not problems:
        hashes = for_each_file(hash_file, [os.path.join(root, path) for path in wanted])
        changed = (path for path, facts in zip(wanted, hashes) if facts.sha256 != wanted[path])
        problems = [f"{path}: is not the file that the manifest names" for path in changed]
    if problems:
        hint = "put the files back, or make the set again in another folder"
        raise all_problems(f"stimuli in {root} have changed since the set was made", problems, hint)


def image_facts(path: str | Path) -> ImageFacts:
    """Hash a file and find its pixel size in its header, without decoding it: the file is opened once.

    The size is 0 × 0 where the header is corrupt: the engine excludes and reports the file.
    """
    from cuebench.stimuli.image_files import UnreadablePicture, size_in_header

    with open(path, "rb", buffering=0) as file:
        beginning = file.read(min(os.fstat(file.fileno()).st_size, READ_AT_ONCE))
        digest = hashlib.sha256(beginning)
        while rest := file.read(1 << 16):
            digest.update(rest)
    try:
        return ImageFacts(digest.hexdigest(), *size_in_header(beginning, Path(path)))
    except UnreadablePicture:
        return ImageFacts(digest.hexdigest(), 0, 0)


def id_problems(stimuli: Sequence[Stimulus]) -> list[str]:
    """Return a problem for every duplicated id, with the files that have it."""
    if len({s.id for s in stimuli}) == len(stimuli):
        return []
    claims: dict[str, list[str]] = {}
    for s in stimuli:
        claims.setdefault(s.id, []).append(s.path or "no file")
    repeated = duplicates([i for i, paths in claims.items() for _ in paths])
    return [f"duplicated id {i!r}: {', '.join(claims[i])}" for i in repeated]


def shortfall(count: int, expected: int) -> tuple[str, ...]:
    """Return in words how many stimuli of the complete set there are; empty where it is complete or not known."""
    return (f"{count:,} of {expected:,} stimuli",) if expected and count != expected else ()
