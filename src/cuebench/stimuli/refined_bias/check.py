"""Defects of the published files: another size, greyscale, byte-identical duplicates. Reported, never hidden."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from cuebench.stimuli.readers.refined_bias import SIZE, facts
from cuebench.types import Stimulus, StimulusSet

GREY = frozenset({"L", "LA", "1", "I", "I;16", "F"})
KINDS = ("size", "greyscale", "duplicate", "label")
"""Kinds of defect: another size than 224 × 224, a greyscale file, a later copy, a copy under another class."""


class Defect(NamedTuple):
    """A defect of a file."""

    stimulus: str
    path: str
    kind: str
    detail: str


def defects(stimuli: StimulusSet, size: int = SIZE) -> list[Defect]:
    """List every defect of a set, from the manifest alone (sizes, modes and hashes were read with it).

    Of byte-identical files of a class, the first (by id) counts as good and the others are duplicates; where the
    classes differ, it is not known which is right, and all of them are listed.

    Parameters
    ----------
    stimuli : StimulusSet
        As read by ``readers.refined_bias``.
    size : int
        Width and height that every file should have.
    """
    listed: list[Defect] = []
    groups: dict[str, list[Stimulus]] = {}
    for s in stimuli:
        if s.width and (s.width, s.height) != (size, size):
            listed.append(Defect(s.id, s.path, "size", f"{s.width}×{s.height} pixels, expected {size}×{size}"))
        if (mode := facts(s).get("mode", "")) in GREY:
            detail = f"one channel (mode {mode}); shown as equal red, green and blue"
            listed.append(Defect(s.id, s.path, "greyscale", detail))
        groups.setdefault(s.sha256 or s.id, []).append(s)
    for same in groups.values():
        if len({(s.shape, s.texture) for s in same}) > 1:
            detail = f"the same bytes under several classes: {', '.join(s.path for s in same)}"
            listed += [Defect(s.id, s.path, "label", detail) for s in same]
        else:
            listed += [Defect(s.id, s.path, "duplicate", f"the same bytes as {same[0].path}") for s in same[1:]]
    order = {s.id: i for i, s in enumerate(stimuli)}
    return sorted(listed, key=lambda d: (order[d.stimulus], KINDS.index(d.kind)))


def summary(listed: Sequence[Defect], total: int) -> str:
    """Return a line that says how many files have which defect."""
    if not listed:
        return f"no defect in {total:,} files"
    counts = Counter(d.kind for d in listed)
    words = {"size": "not 224×224", "greyscale": "greyscale", "duplicate": "duplicates", "label": "ambiguous copies"}
    text = ", ".join(f"{counts[kind]:,} {words[kind]}" for kind in KINDS if counts[kind])
    return f"{text} ({len({d.stimulus for d in listed}):,} of {total:,} files)"
