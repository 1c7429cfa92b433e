"""The data check: files of another size, greyscale files, byte-identical duplicates. Reported, never hidden."""

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
    """One thing that is wrong with one file."""

    stimulus: str
    path: str
    kind: str
    detail: str


def defects(stimuli: StimulusSet, size: int = SIZE) -> list[Defect]:
    """List every defect of a set, from the manifest alone (sizes, modes and hashes were read with it).

    Of byte-identical files of one class, the first (by id) is kept as good and the others are duplicates; where the
    classes differ, nobody can say which is right, and all of them are listed.

    Parameters
    ----------
    stimuli : StimulusSet
        As read by ``readers.refined_bias``.
    size : int
        Width and height that every file should have.
    """
    found = [d for s in stimuli for d in _own(s, size)]
    groups: dict[str, list[Stimulus]] = {}
    for s in stimuli:
        groups.setdefault(s.sha256 or s.id, []).append(s)
    for same in groups.values():
        if len(same) > 1:
            found += _copies(same)
    order = {s.id: i for i, s in enumerate(stimuli)}
    return sorted(found, key=lambda d: (order[d.stimulus], KINDS.index(d.kind)))


def summary(found: Sequence[Defect], total: int) -> str:
    """Say in a line how many files have which defect."""
    if not found:
        return f"no defect in {total:,} files"
    counts = Counter(d.kind for d in found)
    words = {"size": "not 224×224", "greyscale": "greyscale", "duplicate": "duplicates", "label": "ambiguous copies"}
    listed = ", ".join(f"{counts[kind]:,} {words[kind]}" for kind in KINDS if counts[kind])
    return f"{listed} ({len({d.stimulus for d in found}):,} of {total:,} files)"


def _own(s: Stimulus, size: int) -> list[Defect]:
    found = []
    if (s.width, s.height) != (size, size) and s.width:
        found.append(Defect(s.id, s.path, "size", f"{s.width}×{s.height} pixels, expected {size}×{size}"))
    if (mode := facts(s).get("mode", "")) in GREY:
        found.append(
            Defect(s.id, s.path, "greyscale", f"one channel (mode {mode}); shown as equal red, green and blue")
        )
    return found


def _copies(same: list[Stimulus]) -> list[Defect]:
    first = same[0]
    if len({(s.shape, s.texture) for s in same}) > 1:
        names = ", ".join(s.path for s in same)
        return [Defect(s.id, s.path, "label", f"the same bytes under several classes: {names}") for s in same]
    return [Defect(s.id, s.path, "duplicate", f"the same bytes as {first.path}") for s in same[1:]]
