"""The part of a run that one of several processes answers."""

from __future__ import annotations

from typing import NamedTuple

from cuebench.types import StimulusSet


class Part(NamedTuple):
    """The i-th of n parts of all shards, i from 1: what one of several processes answers."""

    i: int
    n: int

    def holds(self, stimuli: StimulusSet, number: int) -> bool:
        """Tell whether a shard of a stimulus set, by its number there, is in this part."""
        return self == Part.of(stimuli, number, self.n)

    @classmethod
    def of(cls, stimuli: StimulusSet, number: int, n: int) -> Part:
        """Return the part of n that a shard of a stimulus set is in."""
        # Each set begins with another part: otherwise the last parts would get less of many small sets.
        return cls((number + int(stimuli.fingerprint[:8], 16)) % n + 1, n)
