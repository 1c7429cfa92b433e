"""Every file that a stimulus names gets its hash before answers are keyed by it.

Readers of cuebench hash the files of their sets. Where a protocol of one's own names files without saying what is in
them (pictures, masks, second images of recipes), a picture that is replaced would keep the answers to the old one: so
what is lacking is added when a run is planned. Files that are not there stay without: nothing is stored of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote_plus

from cuebench.reading import file_kind_problem, path_problem
from cuebench.stimuli.hashing import hash_files
from cuebench.stimuli.render import BLACK, FILE, HASHED
from cuebench.types import Stimulus, StimulusSet

DIGITS = 16
"""Of a hash that is added to a recipe."""


def identified(stimuli: StimulusSet) -> StimulusSet:
    """Return the set with the hashes of all files that its stimuli name; itself where none is missing.

    Raises
    ------
    UserError
        Naming every file that is there and cannot be read.
    """
    named = dict.fromkeys(path for stimulus in stimuli for path in _without_hash(stimulus))
    root = Path(stimuli.root)
    there = [path for path in named if not path_problem(path) and not file_kind_problem(root / path)]
    if not there:
        return stimuli
    hashes = {path: facts.sha256 for path, facts in zip(there, hash_files([root / path for path in there]))}
    return replace(stimuli, stimuli=tuple(_with_hashes(stimulus, hashes) for stimulus in stimuli))


def _without_hash(stimulus: Stimulus) -> Iterator[str]:
    """Yield the files that a stimulus names without their hashes."""
    if stimulus.path and not stimulus.sha256:
        yield stimulus.path
    if stimulus.mask and not stimulus.mask_sha256:
        yield stimulus.mask
    if stimulus.recipe:
        found: dict[str, str] = {}
        _rewritten(stimulus.recipe, lambda path: found.setdefault(path, ""))
        yield from found


def _with_hashes(stimulus: Stimulus, hashes: dict[str, str]) -> Stimulus:
    recipe = stimulus.recipe
    if recipe:
        recipe = _rewritten(recipe, lambda path: f"@{hashes[path][:DIGITS]}" if path in hashes else "")
    sha256 = stimulus.sha256 or hashes.get(stimulus.path, "")
    mask_sha256 = stimulus.mask_sha256 or hashes.get(stimulus.mask, "")
    if (sha256, mask_sha256, recipe) == (stimulus.sha256, stimulus.mask_sha256, stimulus.recipe):
        return stimulus
    return replace(stimulus, sha256=sha256, mask_sha256=mask_sha256, recipe=recipe)


def _rewritten(recipe: str, ending: Callable[[str], str]) -> str:
    """Return a recipe in which every file without a hash has an ending, which is made from its path."""
    if "file" not in recipe and "black" not in recipe:
        return recipe
    steps = []
    for step in recipe.split(";"):
        name, mark, query = step.partition("?")
        pairs = []
        for pair in query.split("&"):
            text = unquote_plus(pair.partition("=")[2])
            prefix = next((prefix for prefix in (FILE, BLACK) if text.startswith(prefix)), "")
            path = text.removeprefix(prefix) if prefix else ""
            pairs.append(pair + ending(path) if path and not HASHED.fullmatch(path) else pair)
        steps.append(name + mark + "&".join(pairs))
    return ";".join(steps)
