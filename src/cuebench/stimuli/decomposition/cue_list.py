"""The cues of a decomposition by their short names: ``eed``, ``voronoi``, ``voronoi64``, ``patch``, ``diamond``, …"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cuebench.errors import UserError, did_you_mean

ORIGINAL, SHAPE = "original", "eed"
RESIDUAL, SHUFFLED_RESIDUAL = "tex_eed", "tex_eed_pat"
SITES = (8, 128)
"""Fewest and most sites of the published ablations."""
NAMES = (SHAPE, "voronoi", "patch", "diamond", RESIDUAL, SHUFFLED_RESIDUAL)
MORE = ("edge_blur",)
"""Texture cues of others that can be made besides: Dai et al. 2022."""
_PAPER = {"tex.eed": RESIDUAL, "tex.eedpat": SHUFFLED_RESIDUAL}
_TEXTURES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "voronoi": ("voronoi_shuffle", {"sites": 32}),
    "patch": ("patch_shuffle", {"grid": 8}),
    "diamond": ("diamond_shuffle", {"grid": 8}),
    "edge_blur": ("edge_blur", {}),
}


@dataclass(frozen=True)
class Part:
    """A version of the data set.

    Parameters
    ----------
    name : str
        Name of its folder and of the condition in the scores.
    keeps : str
        Which cue is left: ``both``, ``shape`` or ``texture``.
    cue : str
        The cue that makes it; empty for the originals and for the residual, which is a difference of two files.
    options : mapping
        Of the cue.
    source : str
        The part that it is made from.
    """

    name: str
    keeps: Literal["both", "shape", "texture"]
    cue: str = ""
    options: Mapping[str, Any] | None = None
    source: str = ORIGINAL


def parse(cues: str, eed_options: Mapping[str, Any]) -> list[Part]:
    """Return the parts that a list of cues needs, in the order in which they can be made.

    >>> [p.name for p in parse("tex_eed_pat,voronoi8", {})]
    ['original', 'eed', 'tex_eed', 'tex_eed_pat', 'voronoi8']
    """
    words = [word for word in re.split(r"[,\s]+", cues.strip().lower()) if word]
    names = [name for word in words for name in (NAMES if word == "all" else (_PAPER.get(word, word),))]
    if not names:
        raise UserError("no cues were named", f"known: {', '.join((*NAMES, *MORE))}, voronoi8 … voronoi128, or all")
    parts = {ORIGINAL: Part(ORIGINAL, "both")}
    for name in names:
        for part in _with_sources(name, eed_options):
            parts.setdefault(part.name, part)
    return list(parts.values())


def _with_sources(name: str, eed_options: Mapping[str, Any]) -> list[Part]:
    shape = Part(SHAPE, "shape", "eed", dict(eed_options))
    residual = Part(RESIDUAL, "texture", source=SHAPE)
    if name == SHAPE:
        return [shape]
    if name == RESIDUAL:
        return [shape, residual]
    if name == SHUFFLED_RESIDUAL:
        shuffle, options = _TEXTURES["patch"]
        return [shape, residual, Part(name, "texture", shuffle, options, source=RESIDUAL)]
    return [_texture(name)]


def _texture(name: str) -> Part:
    if name in _TEXTURES:
        return Part(name, "texture", *_TEXTURES[name])
    sites = re.fullmatch(r"voronoi(\d+)", name)
    if sites is None:
        raise did_you_mean("cue of a decomposition:", name, [*NAMES, *MORE, "voronoi8", "voronoi64", "voronoi128"])
    number = int(sites[1])
    if not 1 <= number <= 4096:
        raise UserError(f"{name}: {number} sites", f"the published range is {SITES[0]} to {SITES[1]}")
    return Part(name, "texture", "voronoi_shuffle", {"sites": number})


def keeps(condition: str) -> Literal["both", "shape", "texture"]:
    """Return which cue the pictures of a condition still have."""
    return "both" if condition == ORIGINAL else "shape" if condition == SHAPE else "texture"
