"""Captions matched with classes by a text encoder: the class whose prompt is most similar to the caption."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cuebench.arrays import Array
from cuebench.observers.chat.answers import Reading
from cuebench.observers.chat.asking import Match

TEMPLATE = "a photo of a {}"


def by_similarity(encode: Callable[[Sequence[str]], Array]) -> Match:
    """Return what reads captions by the cosine of text features.

    Every caption gets a class, also one that describes none of them: "an abstract pattern" is similar to something.

    Parameters
    ----------
    encode : callable
        Texts → features n×d of length one.
    """
    known: dict[tuple[str, ...], Array] = {}

    def match(texts: Sequence[str], classes: Sequence[str]) -> list[Reading]:
        names = tuple(classes)
        if names not in known:
            known[names] = encode([TEMPLATE.format(name.replace("_", " ")) for name in names])
        nearest = np.argmax(encode(texts) @ known[names].T, axis=1) if len(texts) else []
        return [Reading(names[i], "match") for i in nearest]

    return match
