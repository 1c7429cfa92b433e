"""From a stimulus to the picture that is shown: decode the file, then follow the recipe.

A recipe is written like an observer's options: ``contrast?level=0.3`` applies the cue ``contrast`` to the decoded file,
``a?x=1;b?y=2`` applies two in turn, and ``python:/path/to/FILE.py:NAME?x=1`` applies a cue of your own. Options are
typed by the signature of the cue (``cues/by_name.py``). A value ``file:PATH`` is a second image below the same root,
such as a mask; ``black:PATH`` is the mask of a published silhouette: its pure-black pixels. Behind both, ``@SHA`` is
how the hash of the file begins. A stimulus without a file begins with a *source* instead (``stimuli/sources/``), which
draws the picture.
A recipe may come from a table that anybody wrote: it runs no file that was not allowed (``registry.allow_code``).
Three steps are no cues: ``background?colour=black``, always the first, is what transparent parts of the file are put on
(without it: white); ``square?size=224&resize=256``, the usual cut of a photograph, and ``stretch?size=224``, all of
it made square; for recipes that must work on what the observer sees, not on what is cropped away later.
Random steps draw from the seed of the stimulus, so a picture never depends on which worker made it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from PIL import Image

from cuebench.arrays import Array, Pixels
from cuebench.cues.by_name import call, parse_options
from cuebench.errors import MissingExtra, UserError
from cuebench.observers.preprocess import MOST_PIXELS
from cuebench.options import query_options
from cuebench.reading import file_kind_problem, path_problem, read_bytes
from cuebench.registry import cues, named_by_data, sources
from cuebench.stimuli._rgb import WHITE, is_plain, to_rgb
from cuebench.stimuli.image_files import UnreadablePicture, open_picture
from cuebench.types import Stimulus

SQUARE, STRETCH, BACKGROUND = "square", "stretch", "background"
Colour = Literal["white", "black", "grey"]
COLOURS: tuple[str, ...] = get_args(Colour)
RECIPE = "the recipe of a stimulus"
FILE, BLACK = "file:", "black:"
"""Prefixes of values that are images: a file, and the black pixels of a file."""
CHANGED = "run the same command again: the set is then read anew"
HASHED = re.compile(r"(?P<path>.+)@(?P<sha256>[0-9a-f]{4,64})")
"""A file and how its hash begins."""


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
    """Return the file, or what the source draws, as an RGB image; what cannot be decoded raises ``Unreadable``.

    The bytes that are decoded are hashed and compared with the stimulus: an image that was swapped after its set was
    read is never shown under the old hash.
    """
    if stimulus.path:
        return _open(Path(root), stimulus.path, stimulus.sha256, _background(stimulus.recipe))
    with named_by_data(RECIPE):
        step = next(steps(stimulus.recipe, source=True))
        return Image.fromarray(step.function(seed=stimulus.seed, **step.options(root)))


def background_step(recipe: str) -> str:
    """Return the first step of a recipe where that is a background; else an empty text."""
    first = recipe.partition(";")[0]
    return first if first.partition("?")[0] == BACKGROUND else ""


def _background(recipe: str) -> str:
    """Return the colour on which the file of a stimulus with this recipe is decoded."""
    if not (step := background_step(recipe)):
        return WHITE
    return str(next(steps(step)).options("").get("colour", WHITE))


def is_shown_as_stored(data: bytes, name: str) -> bool:
    """Tell whether a browser shows the bytes of a file as models are shown it; it must be readable."""
    return is_plain(open_picture(data, name))


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
    with named_by_data(RECIPE):
        return _rendered(root, image, stimulus)


def _rendered(root: str | Path, image: Image.Image, stimulus: Stimulus) -> Image.Image:
    pixels = np.asarray(image)
    has_source = not stimulus.path
    for step in islice(steps(stimulus.recipe, source=has_source), int(has_source), None):
        options = step.options(root)
        if step.name == BACKGROUND:  # the file was decoded on it
            continue
        if step.kind == "step":
            pixels = step.function(pixels, **options)
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
        texts = query_options(query, f"recipe {recipe!r}")
        if source and number == 0:
            yield Step(name, "source", sources.get(name), texts)
        elif name == BACKGROUND and (source or number):
            raise UserError(f"recipe {recipe!r}: {BACKGROUND} is not the first step of a file", "write it first")
        elif name in _STEPS:
            yield Step(name, "step", _STEPS[name], texts)
        else:
            yield Step(name, "cue", cues.get(name), texts)


def check_recipe(recipe: str, *, source: bool = False) -> None:
    """Check the names and options of a recipe without reading a file; what is wrong is a ``UserError``."""
    with named_by_data(RECIPE):
        for step in steps(recipe, source=source) if recipe else ():
            placeholder = {k: np.zeros((1, 1, 3), np.uint8) if t.startswith((FILE, BLACK)) else t
                           for k, t in step.texts.items()}  # fmt: skip
            parse_options(step.function, placeholder, f"{step.kind} {step.name!r}", recipe=True)


def square(pixels: Pixels, *, size: int, resize: int = 0) -> Pixels:
    """Scale the shorter side to ``resize`` (0: to ``size``) and cut the centre ``size`` × ``size``, bilinear."""
    return cut_square(pixels, size, resize, Image.Resampling.BILINEAR)


def stretch(pixels: Pixels, *, size: int) -> Pixels:
    """Scale the whole image to ``size`` × ``size``, bilinear; its proportions change."""
    return np.asarray(Image.fromarray(pixels).resize((size, size), Image.Resampling.BILINEAR))


def background(pixels: Pixels, *, colour: Colour = "white") -> Pixels:
    """Leave the pixels: a colour that transparent parts of a file are put on acts when the file is decoded."""
    return pixels


_STEPS: Mapping[str, Callable[..., Pixels]] = {SQUARE: square, STRETCH: stretch, BACKGROUND: background}


def cut_square(pixels: Pixels, size: int, resize: int, resampling: Image.Resampling) -> Pixels:
    """Do what ``square`` does, with any interpolation: label masks need the nearest pixel."""
    image = Image.fromarray(pixels)
    short, goal = min(image.size), max(resize, size)
    wanted = (goal * image.width // short, goal * image.height // short)
    if wanted[0] * wanted[1] > MOST_PIXELS:
        raise Unreadable(f"{image.width}×{image.height} pixels would become {wanted[0]:,}×{wanted[1]:,}, too many")
    image = image.resize(wanted, resampling)
    left, top = round((image.width - size) / 2), round((image.height - size) / 2)
    return np.asarray(image.crop((left, top, left + size, top + size)))


def _image(text: str, root: Path) -> str | Array:
    """Return the image that a value names; any other text as it is."""
    prefix = next((prefix for prefix in (FILE, BLACK) if text.startswith(prefix)), "")
    if not prefix:
        return text
    # The hash in the recipe keeps stored answers to another mask or second image apart.
    name = text.removeprefix(prefix)
    match = HASHED.fullmatch(name)
    image = np.asarray(_open(root, match["path"], match["sha256"]) if match else _open(root, name))
    return np.asarray(image.max(axis=2) == 0) if prefix == BLACK else image


def _open(root: Path, path: str, sha256: str = "", background: str = WHITE) -> Image.Image:
    """Read, check and decode a file below the root: the bytes that are decoded are the bytes that are hashed."""
    if path_problem(path):
        raise Unreadable(f"{path}: {path_problem(path)}")
    if problem := file_kind_problem(root / path):
        reason = "the file is missing" if problem == "no such file" else problem
        raise Unreadable(f"{path}: {reason}", transient=True)
    try:
        data = read_bytes(root / path)
        if sha256 and not hashlib.sha256(data).hexdigest().startswith(sha256):
            raise Unreadable(f"{path}: the file has changed since the set was read", CHANGED, transient=True)
        return to_rgb(open_picture(data, path), background)
    except MemoryError:
        raise Unreadable(f"{path}: cannot be read (the memory is full)", transient=True) from None
    except UnreadablePicture as error:
        raise Unreadable(error.message, error.hint) from None
    except Unreadable:
        raise
    except UserError as error:
        raise Unreadable(error.message.replace(str(root / path), path, 1), transient=True) from None
    except ValueError as error:
        raise Unreadable(f"{path}: cannot be decoded ({error})") from None
