"""How many stimuli of one set cannot be read, and when that is too many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cuebench.errors import all_problems
from cuebench.responses.job import Progress
from cuebench.types import Stimulus, StimulusSet


class Tally:
    """The unreadable stimuli of one set: those of stored answers too, so that running again never starts at zero.

    Parameters
    ----------
    stimuli : StimulusSet
        Of which they are a share.
    allowed : float
        Share that may be unreadable before the run stops.
    progress : Progress
        Where they are named, beside those of other sets.
    """

    def __init__(self, stimuli: StimulusSet, allowed: float, progress: Progress) -> None:
        self._stimuli = stimuli
        self._allowed = allowed
        self._progress = progress
        self._found: dict[str, str] = {}

    def note(self, batch: Sequence[Stimulus], errors: Mapping[int, str]) -> None:
        """Count what cannot be shown of a batch, each stimulus once."""
        for position, why in errors.items():
            stimulus = batch[position].id
            if stimulus not in self._found:
                self._found[stimulus] = why
                self._progress.unreadable[stimulus] = why
                self._progress.tell("excluded", why, stimulus=stimulus)

    def check(self) -> None:
        """Stop the run where more are unreadable than is allowed."""
        size = len(self._stimuli)
        if len(self._found) <= self._allowed * size:
            return
        title = f"too many unreadable stimuli of {self._stimuli.name} (more than {self._allowed:.0%} of {size:,})"
        hint = (
            "mend the files, or allow them with --allow-unreadable 0.05 (a share); they are then excluded and counted"
        )
        raise all_problems(title, self._found.values(), hint)
