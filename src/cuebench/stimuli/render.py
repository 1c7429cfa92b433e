"""From a stimulus to the picture that is shown: decode the file, then follow the recipe.

A recipe is written like an observer's options: ``contrast?level=0.3`` applies the cue ``contrast`` to the decoded file,
``a?x=1;b?y=2`` applies two in turn, and ``python:/path/to/FILE.py:NAME?x=1`` applies a cue of your own. Options are
typed by the signature of the cue (``cues/by_name.py``). A value ``file:PATH`` is a second image below the same root,
such as a mask; ``black:PATH@SHA`` is the mask of a published silhouette: its pure-black pixels (SHA: how its hash
begins). A stimulus without a file begins with a *source* instead (``stimuli/sources/``), which draws the picture.
``square?size=224&resize=256`` is the only step that is no cue: the usual cut of a photograph, for recipes that must
work on what the observer sees, not on what is cropped away later.
Random steps draw from the seed of the stimulus, so a picture never depends on which worker made it.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import numpy as np
from PIL import Image

from cuebench.arrays import Array, Pixels
from cuebench.cues.by_name import call, parse_options
from cuebench.errors import MissingExtra, UserError
from cuebench.registry import cues, sources
from cuebench.stimuli._rgb import to_rgb
from cuebench.types import Stimulus

SQUARE = "square"
FILE, BLACK = "file:", "black:"
"""Prefixes of values that are images: a file, and the black pixels of a file."""


class Unreadable(UserError):
    """A stimulus whose file cannot be decoded: excluded from the scores, counted and shown.

    Parameters
    ----------
    message, hint : str
        As of every ``UserError``.
    transient : bool
        The file could not be *read* (it is missing, the disk or the memory failed): the next time it may be there.
        False: its contents are at fault, and stay so.
    """

    def __init__(self, message: str, hint: str = "", transient: bool = False) -> None:
        self.transient = transient
        super().__init__(message, hint)

    def __reduce__(self) -> tuple[type[Unreadable], tuple[str, str, bool]]:  # type: ignore[override]
        """Keep all parts when the error crosses a process border."""
        return type(self), (self.message, self.hint, self.transient)


class Step(NamedTuple):
    """A step of a recipe: a cue, a source or ``square``, its function, and its options as texts."""

    name: str
    kind: str
    function: Callable[..., Any]
    texts: dict[str, str]

    def options(self, root: str | Path) -> dict[str, Any]:
        """Return the keyword arguments: images are read, everything else is typed by the function's signature."""
        read = {key: _image(text, Path(root)) for key, text in self.texts.items()}
        return parse_options(self.function, read, f"{self.kind} {self.name!r}", recipe=True)


def decode(root: str | Path, stimulus: Stimulus) -> Image.Image:
    """Return the file, or what the source draws, as an RGB image; what cannot be decoded raises ``Unreadable``."""
    if stimulus.path:
        return _open(Path(root), stimulus.path)
    step = next(steps(stimulus.recipe, source=True))
    return Image.fromarray(step.function(seed=stimulus.seed, **step.options(root)))


def render(root: str | Path, image: Image.Image, stimulus: Stimulus) -> Image.Image:
    """Follow the recipe of a stimulus on its decoded file; the source of a stimulus without a file is the first step.

    Raises
    ------
    UserError
        For a wrong recipe, and for a cue that cannot be applied; the message names the cue.
    Unreadable
        For a second image that cannot be read.
    """
    if not stimulus.recipe:
        return image
    pixels = np.asarray(image)
    has_source = not stimulus.path
    for step in islice(steps(stimulus.recipe, source=has_source), int(has_source), None):
        options = step.options(root)
        if step.name == SQUARE:
            pixels = square(pixels, **options)
            continue
        if step.function.info.random:  # type: ignore[attr-defined]
            options = {"rng": stimulus.seed, **options}
        try:
            pixels = call(step.name, pixels, **options)
        except MissingExtra:
            raise
        except UserError as error:
            cue = f"cue {step.name!r}"
            message = error.message if error.message.startswith(cue) else f"{cue}: {error.message}"
            raise UserError(f"stimulus {stimulus.id!r}: {message}", error.hint) from error
    return Image.fromarray(pixels)


def steps(recipe: str, *, source: bool = False) -> Iterator[Step]:
    """Yield the steps of a recipe; the first is a source where the stimulus has no file."""
    for number, text in enumerate(recipe.split(";")):
        name, _, query = text.partition("?")
        texts = dict(parse_qsl(query, keep_blank_values=True))
        if source and number == 0:
            yield Step(name, "source", sources.get(name), texts)
        elif name == SQUARE:
            yield Step(name, "step", square, texts)
        else:
            yield Step(name, "cue", cues.get(name), texts)


def check_recipe(recipe: str, *, source: bool = False) -> None:
    """Check the names and options of a recipe without reading a file; what is wrong is a ``UserError``."""
    for step in steps(recipe, source=source) if recipe else ():
        placeholder = {k: np.zeros((1, 1, 3), np.uint8) if t.startswith((FILE, BLACK)) else t
                       for k, t in step.texts.items()}  # fmt: skip
        parse_options(step.function, placeholder, f"{step.kind} {step.name!r}", recipe=True)


def square(pixels: Pixels, *, size: int, resize: int = 0) -> Pixels:
    """Scale the shorter side to ``resize`` (0: to ``size``) and cut the centre ``size`` × ``size``, bilinear."""
    return cut_square(pixels, size, resize, Image.Resampling.BILINEAR)


def cut_square(pixels: Pixels, size: int, resize: int, resampling: Image.Resampling) -> Pixels:
    """Do what ``square`` does, with any interpolation: label masks need the nearest pixel."""
    image = Image.fromarray(pixels)
    short, goal = min(image.size), max(resize, size)
    image = image.resize((goal * image.width // short, goal * image.height // short), resampling)
    left, top = round((image.width - size) / 2), round((image.height - size) / 2)
    return np.asarray(image.crop((left, top, left + size, top + size)))


def _image(text: str, root: Path) -> str | Array:
    """Return the image that a value names; any other text as it is."""
    if text.startswith(FILE):
        return np.asarray(_open(root, text.removeprefix(FILE)))
    if not text.startswith(BLACK):
        return text
    path, _, digest = text.removeprefix(BLACK).rpartition("@") if "@" in text else (text.removeprefix(BLACK), "", "")
    plane = np.asarray(_open(root, path)).max(axis=2)
    # The hash in the recipe keeps stored answers to another silhouette apart.
    if digest and not hashlib.sha256((root / path).read_bytes()).hexdigest().startswith(digest):
        raise Unreadable(f"{path}: the silhouette is not the one that the stimuli were planned with")
    return np.asarray(plane == 0)


def _open(root: Path, path: str) -> Image.Image:
    try:
        with Image.open(root / path) as image:
            image.load()
            return to_rgb(image)
    except Exception as error:  # noqa: BLE001 - damaged files make Pillow's many decoders raise anything
        # Errors of the system have a number, Pillow's errors about contents have none. Damaged contents make a decoder
        # jump to places that no file has, which the system calls an invalid argument.
        number = error.errno if isinstance(error, OSError) else None
        transient = isinstance(error, MemoryError) or number not in (None, errno.EINVAL, errno.EOVERFLOW)
        if isinstance(error, FileNotFoundError):
            reason = "the file is missing"
        elif transient:
            reason = f"cannot be read ({type(error).__name__}: {getattr(error, 'strerror', None) or error})"
        else:
            reason = f"cannot be decoded ({type(error).__name__}: {str(error).partition(' <_io')[0]})"
        raise Unreadable(f"{path}: {reason}", transient=transient) from None
