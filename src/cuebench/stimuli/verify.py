"""Compare a stimulus set with a known manifest: counts, hashes, sizes; all problems at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from cuebench.types import Stimulus, StimulusSet

# Fields whose wrong value would change a score, in the order in which they are reported.
_TRUTH = ("label", "shape", "texture", "shape_source", "texture_source", "condition", "recipe", "seed")


def verify(stimuli: StimulusSet, known: StimulusSet) -> list[str]:
    """Return every difference between a set and a known manifest; an empty list means that they agree.

    Parameters
    ----------
    stimuli : StimulusSet
        What lies on the disk, as read by a reader.
    known : StimulusSet
        The manifest of how it should be. A field that the manifest leaves empty is not compared.

    Returns
    -------
    list of str
        Count, missing, unknown and duplicated stimuli, then wrong contents, sizes and labels.
    """
    here, there = {s.id: s for s in stimuli}, {s.id: s for s in known}
    problems = [] if len(stimuli) == len(known) else [f"{len(stimuli):,} stimuli, expected {len(known):,}"]
    problems += [f"missing: {i}" for i in sorted(there.keys() - here.keys())]
    problems += [f"not in the manifest: {i}" for i in sorted(here.keys() - there.keys())]
    problems += [f"duplicated id: {i}" for i, n in sorted(Counter(s.id for s in stimuli).items()) if n > 1]
    for i in sorted(here.keys() & there.keys()):
        problems += _compare(here[i], there[i])
    return problems + _copies(stimuli, known)


def _compare(stimulus: Stimulus, known: Stimulus) -> Iterable[str]:
    if known.sha256 and stimulus.sha256 != known.sha256:
        yield f"{stimulus.id}: sha256 {stimulus.sha256 or 'unknown'}, expected {known.sha256}"
    size, right = (stimulus.width, stimulus.height), (known.width, known.height)
    if any(right) and size != right:
        yield f"{stimulus.id}: {size[0]}×{size[1]} pixels, expected {right[0]}×{right[1]}"
    for field in _TRUTH:
        if getattr(known, field) and getattr(stimulus, field) != getattr(known, field):
            yield f"{stimulus.id}: {field} is {getattr(stimulus, field)!r}, expected {getattr(known, field)!r}"


def _copies(stimuli: StimulusSet, known: StimulusSet) -> list[str]:
    """Return a problem for files with equal bytes under several ids, where the manifest has no such copies."""
    allowed = Counter(s.sha256 for s in known if s.sha256)
    groups: dict[str, list[str]] = {}
    for s in stimuli:
        if s.sha256:
            groups.setdefault(f"{s.sha256}|{s.recipe}|{s.seed}", []).append(s.id)
    return [f"same bytes: {', '.join(ids)}" for key, ids in groups.items() if len(ids) > max(1, allowed[key[:64]])]
