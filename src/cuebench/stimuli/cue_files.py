"""Applying a cue to a folder: which file becomes which, and reading and writing the images."""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from cuebench.arrays import Array
from cuebench.cues.base import CueInfo
from cuebench.cues.by_name import parse_options
from cuebench.errors import UserError
from cuebench.files import write_atomic
from cuebench.reading import file_kind_problem
from cuebench.registry import cues
from cuebench.stimuli.image_files import UnreadablePicture, read_picture
from cuebench.stimuli.object_mask import object_pixels
from cuebench.stimuli.readers.scan import is_followed

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".gif"})
MASKS = "masks"


class Job(NamedTuple):
    """One file to make."""

    cue: str
    options: Mapping[str, Any]
    seed: int
    source: Path
    target: Path
    mask: Path | None = None
    moved_mask: Path | None = None
    invert_mask: bool = False
    other: Path | None = None

    @property
    def results(self) -> list[Path]:
        """The files that are written."""
        return [self.target, *([self.moved_mask] if self.moved_mask else [])]

    @property
    def inputs(self) -> list[Path]:
        """The files that they are made from."""
        return [path for path in (self.source, self.mask, self.other) if path is not None]


def check_call(name: str, options: Mapping[str, Any], *, has_mask: bool, has_other: bool) -> dict[str, Any]:
    """Return the options of a cue with the types of its signature; refuse missing and surplus images."""
    function = cues.get(name)
    info: CueInfo = function.info
    if "mask" in info.needs and not has_mask:
        raise UserError(f"the cue '{name}' needs an object mask for each image", "give a file or folder with --mask")
    if "other" in info.needs and not has_other:
        raise UserError(f"the cue '{name}' needs a second image", "give a file or folder with --other")
    if has_mask and not (info.moves_mask or "mask" in info.needs):
        raise UserError(f"the cue '{name}' takes no mask", "leave out --mask")
    if has_other and "other" not in info.needs:
        raise UserError(f"the cue '{name}' takes no second image", "leave out --other")
    return parse_options(function, options, f"cue '{name}'")


def plan(
    name: str,
    source: Path,
    target: Path,
    options: Mapping[str, Any],
    seed: int,
    mask: str | Path | None,
    invert_mask: bool,
    other: str | Path | None,
) -> list[Job]:
    """Return one job for each image, sorted by name."""
    moves = mask is not None and "mask" not in cues.get(name).info.needs
    root = target if source.is_dir() else target.parent
    jobs = []
    for relative, path, result in _targets(source, target):
        moved = root / MASKS / result.relative_to(root) if moves else None
        for what, given in (("mask", mask), ("second image", other)):
            if given is not None and result.resolve() == Path(given).resolve():
                raise UserError(f"{result} is the {what} itself", "give another file or folder to write to")
        jobs.append(
            Job(
                cue=name,
                options=options,
                seed=file_seed(seed, relative),
                source=path,
                target=result,
                mask=_companion(mask, relative),
                moved_mask=moved,
                invert_mask=invert_mask,
                other=_companion(other, relative),
            )
        )
    return jobs


def file_seed(seed: int, relative: str) -> int:
    """Return the seed of a file: a hash of the seed and the name, the same on every machine."""
    return int.from_bytes(hashlib.sha256(f"{seed}\n{relative}".encode()).digest()[:6], "big")


def _targets(source: Path, target: Path) -> list[tuple[str, Path, Path]]:
    """Return (relative name, source file, result file) of every image."""
    if not source.exists():
        raise UserError(f"{source} does not exist", "give an image file or a folder of images")
    if source.is_file():
        single = target if target.suffix.lower() in SUFFIXES else target / f"{source.stem}.png"
        if single.resolve() == source.resolve():
            raise UserError(f"{single} is the source itself", "give another file or folder to write to")
        return [(source.name, source, single)]
    if target.is_file() or target.suffix.lower() in SUFFIXES:
        raise UserError(f"{target} is a file, {source} a folder", "give a folder to write to")
    inside = target.resolve()
    if inside == source.resolve():
        raise UserError(f"{target} is the source folder itself", "give another folder to write to")
    below = (p for p in source.rglob("*") if all(map(is_followed, p.relative_to(source).parts[:-1])))
    images = sorted(p for p in below if p.suffix.lower() in SUFFIXES and inside not in p.resolve().parents)
    if not images:
        raise UserError(f"no images below {source}", f"looked for {', '.join(sorted(SUFFIXES))}")
    plain = Counter(path.relative_to(source).with_suffix("") for path in images)
    results = []
    for path in images:
        relative = path.relative_to(source)
        # a.jpg and a.png would both become a.png: then the old suffix stays in the name.
        unique = plain[relative.with_suffix("")] == 1
        name = relative.with_suffix(".png") if unique else relative.with_name(f"{relative.name}.png")
        results.append((relative.as_posix(), path, target / name))
    return results


def _companion(place: str | Path | None, relative: str) -> Path | None:
    """Return the mask or second image that belongs to a file; a missing one is reported when it is read."""
    if place is None or not Path(place).is_dir():
        return None if place is None else Path(place)
    exact = Path(place) / relative
    if exact.exists():
        return exact
    others = (exact.with_suffix(suffix) for suffix in sorted(SUFFIXES))
    return next((path for path in others if path.exists()), exact.with_suffix(".png"))


def read_image(path: Path) -> Array:
    """Return an image as uint8, H×W for grey and H×W×3 for colour; an alpha channel must be opaque."""
    picture = _open(path)
    if picture.mode in {"1", "L"}:
        return np.asarray(picture.convert("L"))
    if picture.mode in {"I", "F"} or picture.mode.startswith("I;"):
        raise UserError(f"{picture.mode} pixels (more than 8 bits)", "convert it to 8 bits first")
    if picture.mode in {"LA", "PA", "RGBA", "RGBa", "La"} or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        if np.asarray(picture)[..., 3].min() < 255:
            raise UserError("has transparent pixels (an alpha channel)", "put it on a background first")
    return np.asarray(picture.convert("RGB"))


def read_labels(path: Path) -> Array:
    """Return a label mask: grey levels or palette indices as they are stored."""
    picture = _open(path)
    if picture.format in ("JPEG", "MPO"):
        raise UserError(f"{path} is a JPEG, which changes the numbers of a label mask", "save it as PNG")
    if picture.mode not in {"1", "L", "P", "I", "I;16"}:
        raise UserError(f"{path} has {picture.mode} pixels", "accepted as a label mask: grey levels or a palette")
    values = np.asarray(picture)
    return values.astype(np.uint8) if values.dtype == bool else values


def read_mask(path: Path, *, invert: bool) -> Array:
    """Return an object mask: what is white or opaque (or, inverted, all else); see `object_pixels`."""
    try:
        inside = object_pixels(_open(path))
    except ValueError as error:
        raise UserError(f"the mask {path.name}: {error}", "save it in black and white, with 8 bits") from None
    return ~inside if invert else inside


def _open(path: Path) -> Image.Image:
    if file_kind_problem(path) == "no such file":
        raise UserError(f"{path.name} is missing", f"looked in {path.parent}")
    try:
        return read_picture(path)
    except UnreadablePicture as error:
        raise UserError(error.message, error.hint) from None


def write_image(path: Path, pixels: Array) -> None:
    """Write an array as an image, whole or not at all."""
    buffer = io.BytesIO()
    array = pixels[..., 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels
    form = Image.registered_extensions().get(path.suffix.lower(), "PNG")
    # Level 2 of PNG is twice as fast as the default, and no larger on photographs.
    Image.fromarray(array).save(buffer, form, **({"compress_level": 2} if form == "PNG" else {}))
    write_atomic(path, buffer.getvalue())
