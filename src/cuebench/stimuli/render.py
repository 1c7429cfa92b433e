"""From a stimulus to the picture that is shown: decode the file, then follow the recipe.

A recipe is written like an observer's options: ``contrast?level=0.3`` applies the cue ``contrast`` to the decoded file,
``a?x=1;b?y=2`` applies two in turn. A value ``file:PATH`` is a second image below the same root, such as a mask;
``black:PATH@SHA`` is the mask of a published silhouette: its pure-black pixels (SHA: how its hash begins).
A stimulus without a file begins with a *source* instead (``stimuli/sources/``), which makes the picture from nothing.
``square?size=224&resize=256`` is the one step that is no cue: the usual cut of a photograph, for recipes that must work
on what the observer sees, not on what is cropped away later.
Random steps draw from the stimulus' own seed, so a picture never depends on which worker made it.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
from PIL import Image

from cuebench.errors import UserError
from cuebench.registry import cues, sources
from cuebench.stimuli._rgb import to_rgb
from cuebench.types import Stimulus


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


def decode(root: str | Path, stimulus: Stimulus) -> Image.Image:
    """Return the file, or what the source makes, as an RGB image; what cannot be decoded raises ``Unreadable``."""
    if not stimulus.path:
        name, options = next(steps(stimulus.recipe, root))
        return Image.fromarray(sources.get(name)(seed=stimulus.seed, **options))
    return _open(Path(root), stimulus.path)


def render(root: str | Path, image: Image.Image, stimulus: Stimulus) -> Image.Image:
    """Follow the stimulus' recipe on its decoded file; the source of one without a file was the first step."""
    if not stimulus.recipe:
        return image
    pixels = np.asarray(image)
    for name, options in islice(steps(stimulus.recipe, root), 0 if stimulus.path else 1, None):
        if name == "square":
            pixels = square(pixels, **options)
            continue
        function = cues.get(name)
        if cues.get(name).info.random:
            options = {"rng": stimulus.seed, **options}
        pixels = function(pixels, **options)
    return Image.fromarray(pixels)


def square(pixels: np.ndarray[Any, Any], *, size: int, resize: int = 0) -> np.ndarray[Any, Any]:
    """Scale the shorter side to ``resize`` (0: to ``size``) and cut the centre ``size`` × ``size``, bilinear."""
    image = Image.fromarray(pixels)
    short, goal = min(image.size), max(resize, size)
    image = image.resize((goal * image.width // short, goal * image.height // short), Image.Resampling.BILINEAR)
    left, top = round((image.width - size) / 2), round((image.height - size) / 2)
    return np.asarray(image.crop((left, top, left + size, top + size)))


def _open(root: Path, path: str) -> Image.Image:
    try:
        with Image.open(root / path) as image:
            image.load()
            return to_rgb(image)
    except Exception as error:  # noqa: BLE001 - damaged files make Pillow's many decoders raise anything
        raise Unreadable(f"{path}: {_reason(error)}", transient=_may_pass(error)) from None


def steps(recipe: str, root: str | Path = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (name, keyword arguments) for each step of a recipe; values are read as JSON where they can be."""
    for step in recipe.split(";"):
        name, _, query = step.partition("?")
        yield name, {key: _value(text, Path(root)) for key, text in parse_qsl(query, keep_blank_values=True)}


def _value(text: str, root: Path) -> Any:
    if text.startswith("file:"):
        return np.asarray(_open(root, text.removeprefix("file:")))
    if text.startswith("black:"):
        return _black(root, text.removeprefix("black:"))
    try:
        return json.loads(text)
    except ValueError:
        return text


def _black(root: Path, text: str) -> np.ndarray[Any, Any]:
    """Return where a silhouette is pure black; the hash in the recipe keeps stored answers to another one apart."""
    path, _, digest = text.rpartition("@")
    plane = np.asarray(_open(root, path)).max(axis=2)
    if digest and not hashlib.sha256((root / path).read_bytes()).hexdigest().startswith(digest):
        raise Unreadable(f"{path}: the silhouette is not the one that the stimuli were planned with")
    return plane == 0


def _may_pass(error: Exception) -> bool:
    """Tell whether the system failed, not the contents: Pillow's own errors about contents have no number."""
    if isinstance(error, MemoryError):
        return True
    # Damaged contents make a decoder jump to places that no file has, which the system calls an invalid argument.
    return isinstance(error, OSError) and error.errno not in (None, errno.EINVAL, errno.EOVERFLOW)


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "the file is missing"
    if _may_pass(error):
        return f"cannot be read ({type(error).__name__}: {getattr(error, 'strerror', None) or error})"
    return f"cannot be decoded ({type(error).__name__}: {str(error).partition(' <_io')[0]})"
