"""Cue-conflict candidates: the shape cue of one image mixed with the texture cue of an image of another class.

They need no space on disk: a recipe mixes the two files when a picture is shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import numpy as np

from cuebench.cues.add_texture import WEIGHTS as SUM_WEIGHTS
from cuebench.cues.blend import WEIGHTS as BLEND_WEIGHTS
from cuebench.errors import UserError
from cuebench.stimuli.decomposition.cue_list import RESIDUAL, SHAPE, SHUFFLED_RESIDUAL
from cuebench.types import Stimulus

PREFIX = "conflict/"
_MIXES = {"blend": "blend", "sum": "add_texture"}


@dataclass(frozen=True)
class Candidate:
    """A way to mix two cues: ``blend/voronoi/0.5/0.5`` or ``sum/tex_eed_pat/1/2``."""

    mix: str
    texture: str
    gamma_s: float
    gamma_t: float

    @property
    def condition(self) -> str:
        """Name in the scores."""
        return f"{PREFIX}{self.mix}/{self.texture}/{self.gamma_s:g}/{self.gamma_t:g}"


PUBLISHED = (
    *(Candidate("blend", texture, *w) for texture in ("voronoi", "patch") for w in BLEND_WEIGHTS),
    Candidate("sum", RESIDUAL, *SUM_WEIGHTS[0]),
    *(Candidate("sum", SHUFFLED_RESIDUAL, *w) for w in SUM_WEIGHTS),
)
"""The ten candidates of Table II."""


def parse(text: str) -> tuple[Candidate, ...]:
    """Read a list of candidates; ``published``: the ten of Table II.

    >>> parse("blend/voronoi/0.5/0.5")[0].condition
    'conflict/blend/voronoi/0.5/0.5'
    """
    if text.strip() == "published":
        return PUBLISHED
    return tuple(_candidate(word.strip()) for word in text.split(",") if word.strip())


def _candidate(word: str) -> Candidate:
    form = "MIX/TEXTURE/γS/γT with MIX blend or sum, e.g. blend/voronoi/0.5/0.5, or published"
    parts = word.split("/")
    if len(parts) != 4 or parts[0] not in _MIXES:
        raise UserError(f"conflict {word!r}", f"accepted: {form}")
    try:
        weights = float(parts[2]), float(parts[3])
    except ValueError:
        raise UserError(f"conflict {word!r}: the weights are not numbers", f"accepted: {form}") from None
    if min(weights) < 0 or not max(weights) or not np.isfinite(weights).all():
        raise UserError(f"conflict {word!r}: weights must be ≥ 0, not both 0", f"accepted: {form}")
    return Candidate(parts[0], parts[1], *weights)


def partners(labels: Sequence[str], seed: int) -> list[int]:
    """Return for each image the position of an image of another class; every image is a partner once.

    The images, in random order but sorted by class, are shifted by at least the size of the largest class: no image can
    meet one of its class.
    """
    count = Counter(labels)
    n, largest = len(labels), max(count.values(), default=0)
    if 2 * largest > n:
        worst = count.most_common(1)[0][0]
        raise UserError(
            f"no partners of another class: {largest} of {n} images show {worst!r}",
            "cue conflict needs a set in which no class has more than half of the images",
        )
    rng = np.random.default_rng(seed)
    order = {name: i for i, name in enumerate(rng.permutation(sorted(count)).tolist())}
    ranked = sorted(rng.permutation(n).tolist(), key=lambda i: order[labels[i]])
    shift = int(rng.integers(largest, n - largest + 1))
    chosen = [0] * n
    for position, image in enumerate(ranked):
        chosen[image] = ranked[(position + shift) % n]
    return chosen


def stimuli(
    candidates: Sequence[Candidate], shapes: Sequence[Stimulus], textures: Mapping[str, Sequence[Stimulus]], seed: int
) -> list[Stimulus]:
    """Return a stimulus for each candidate and each image.

    Parameters
    ----------
    candidates : sequence of Candidate
        What to mix.
    shapes : sequence of Stimulus
        The EED pictures.
    textures : mapping of str to sequence of Stimulus
        Texture cue → its pictures, in the order of ``shapes``.
    seed : int
        Of the pairs; all candidates have the same pairs.
    """
    partner = partners([s.label for s in shapes], seed)
    return [
        _mixed(c, shape, textures[c.texture][partner[i]])
        for i, shape in enumerate(shapes)
        for c in candidates
        if c.texture in textures
    ]


def _mixed(candidate: Candidate, shape: Stimulus, texture: Stimulus) -> Stimulus:
    options = {
        "other": f"file:{texture.path}@{texture.sha256[:16]}",
        "gamma_s": candidate.gamma_s,
        "gamma_t": candidate.gamma_t,
    }
    photograph = shape.id.removesuffix(f"|{SHAPE}")
    return Stimulus(
        id=f"{photograph}|{candidate.condition}",
        path=shape.path,
        sha256=shape.sha256,
        width=shape.width,
        height=shape.height,
        label=shape.label,
        shape=shape.label,
        texture=texture.label,
        shape_source=photograph,
        texture_source=texture.id.partition("|")[0],
        condition=candidate.condition,
        recipe=f"{_MIXES[candidate.mix]}?{urlencode(options)}",
        # Mixing draws no random numbers: here the seed stands for the bytes of the second file, which a stored answer
        # depends on as much as on those of the first.
        seed=int(texture.sha256[:12], 16),
    )
