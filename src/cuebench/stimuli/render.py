"""From a stimulus to the picture that is shown: decode the file, then follow the recipe.

A recipe is written like an observer's options: ``contrast?level=0.3`` applies the cue ``contrast`` to the decoded file,
``a?x=1;b?y=2`` applies two in turn. Random cues draw from the stimulus' own seed, so a picture never depends on which
worker made it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
from PIL import Image

from cuebench.errors import UserError
from cuebench.registry import cues
from cuebench.types import Stimulus


class Unreadable(UserError):
    """A stimulus whose file cannot be decoded: excluded from the scores, counted and shown."""


def decode(root: str | Path, stimulus: Stimulus) -> Image.Image:
    """Return the file as an RGB image; a missing, truncated or corrupt one raises ``Unreadable``."""
    path = Path(root) / stimulus.path
    try:
        with Image.open(path) as image:
            image.load()
            return image.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise Unreadable(f"{stimulus.path}: {_reason(error)}") from None


def render(image: Image.Image, stimulus: Stimulus) -> Image.Image:
    """Follow the stimulus' recipe on its decoded file."""
    if not stimulus.recipe:
        return image
    pixels = np.asarray(image)
    for name, options in steps(stimulus.recipe):
        function = getattr(cues.module(name), name)
        if cues.get(name).random:
            options = {"rng": stimulus.seed, **options}
        pixels = function(pixels, **options)
    return Image.fromarray(pixels)


def steps(recipe: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (cue, keyword arguments) for each step of a recipe; values are read as JSON where they can be."""
    for step in recipe.split(";"):
        name, _, query = step.partition("?")
        yield name, {key: _value(text) for key, text in parse_qsl(query, keep_blank_values=True)}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "the file is missing"
    return f"cannot be decoded ({type(error).__name__}: {str(error).partition(' <_io')[0]})"
