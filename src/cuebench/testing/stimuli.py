"""Checks of what gives stimuli: sets of stimuli, readers of folders, and makers."""

from __future__ import annotations

import tempfile
from pathlib import Path

from cuebench.errors import UserError
from cuebench.options import parse
from cuebench.processes import ProcessPool
from cuebench.protocols.feature_suppression.suppressions import LEVELS
from cuebench.registry import SCHEME, cues, makers, readers
from cuebench.stimuli.makers.base import Maker
from cuebench.stimuli.manifest import duplicates
from cuebench.stimuli.readers.base import Reader
from cuebench.stimuli.render import decode, render
from cuebench.testing.base import require
from cuebench.types import REMOVED, Stimulus, StimulusSet

SHOWN = 12
"""Pictures that are made of a set: one of each condition, up to so many."""


def check_stimuli(stimuli: StimulusSet, name: str = "") -> None:
    """Check a set of stimuli: ids are unique, what is removed is marked, pictures can be made in a worker process.

    Parameters
    ----------
    stimuli : StimulusSet
        The set.
    name : str
        How messages name it; default: by its own name.

    Raises
    ------
    CheckFailed
        With the stimulus, what was expected and what came.
    """
    label = name or f"stimulus set {stimuli.name!r}"
    require(len(stimuli), f"{label} has no stimuli")
    repeated = duplicates([s.id for s in stimuli])
    require(not repeated, f"{label}: expected unique ids, got {', '.join(map(repr, repeated[:3]))} more than once")
    for stimulus in stimuli:
        _check_removed(stimulus, label)
    first = {s.condition: s for s in reversed(stimuli.stimuli)}
    _check_shown(list(reversed(first.values()))[:SHOWN], stimuli.root, label)


def removed_by(step: str) -> str:
    """Return which cue a step of a recipe takes away: ``shape``, ``texture``, or empty for neither."""
    for cue in ("shape", "texture"):
        if step in LEVELS[cue]:
            return cue
    kind = cues.get(step).info.kind if step in cues or step.startswith(SCHEME) else ""
    return {"shape": "texture", "texture": "shape"}.get(kind, "")


def _check_removed(stimulus: Stimulus, label: str) -> None:
    for step in [part.partition("?")[0] for part in stimulus.recipe.split(";") if part]:
        cue = removed_by(step)
        kept = getattr(stimulus, cue) if cue else ""
        # Of an ordinary photograph only the label is known; then an ideal observer takes it for both cues.
        known = kept or (stimulus.label if cue and not (stimulus.shape or stimulus.texture) else "")
        require(
            known in ("", REMOVED),
            f"{label}: {stimulus.id!r} is shown through {step!r}, which takes the {cue} away; expected "
            f"Stimulus.{cue}=REMOVED ({REMOVED!r}), got {kept!r} (label {stimulus.label!r})",
        )


def _check_shown(stimuli: list[Stimulus], root: str, label: str) -> None:
    """Make pictures in a worker process, which knows installed cues but nothing of the objects of this session."""
    with ProcessPool(1) as pool:
        futures = [(s, pool.submit(_problem, (root, s))) for s in stimuli if s.path or s.recipe]
        for stimulus, future in futures:
            problem = future.result()
            require(not problem, f"{label}: {stimulus.id!r} cannot be shown (recipe {stimulus.recipe!r}): {problem}")


def _problem(task: tuple[str, Stimulus]) -> str:
    """Say why a picture cannot be made; empty where it can."""
    root, stimulus = task
    try:
        picture = render(root, decode(root, stimulus), stimulus)
    except Exception as error:  # noqa: BLE001 - whatever a source or a cue raises is the problem to report
        return f"{type(error).__name__}: {error}"
    return "" if picture.mode == "RGB" else f"expected an RGB picture, got mode {picture.mode}"


def check_reader(reader: str | Reader, folder: str | Path | None = None) -> None:
    """Check a reader: it shows its layout, refuses a folder that is not there, and reads the same each time.

    Parameters
    ----------
    reader : str or Reader
        A name, ``python:FILE.py:NAME``, or the object.
    folder : path, optional
        A folder of the expected layout.
    """
    part: Reader = readers.get(reader) if isinstance(reader, str) else reader
    require(isinstance(part, Reader), f"expected a Reader, got a {type(part).__name__}: {part!r}")
    label = f"reader {part.name!r}"
    require(part.layout, f"{label} does not show the layout that it expects")
    with tempfile.TemporaryDirectory() as empty:
        absent = Path(empty) / "absent"
        try:
            stimuli = part.read(absent)
        except UserError as error:
            says_where = str(absent) in error.message or part.layout in error.hint + error.message
            require(says_where, f"{label}: expected an error with the folder or the layout, got: {error}")
        else:
            require(False, f"{label}: expected an error for a folder that is not there, got {len(stimuli)} stimuli")
    if folder is not None:
        first, second = part.read(Path(folder)), part.read(Path(folder))
        check_stimuli(first, label)
        require(first.fingerprint == second.fingerprint, f"{label}: expected the same set twice, got two")


def check_maker(maker: str | Maker, *, count: int = 20, **options: object) -> None:
    """Check a maker: the same arguments give the same bytes, the set can be read, wrong options are refused.

    Parameters
    ----------
    maker : str or Maker
        A name, ``python:FILE.py:NAME``, or the object.
    count : int
        Stimuli to make.
    **options
        What it needs besides, such as ``source``.
    """
    part: Maker = makers.get(maker) if isinstance(maker, str) else maker
    require(isinstance(part, Maker), f"expected a Maker, got a {type(part).__name__}: {part!r}")
    label = f"maker {part.name!r}"
    require(part.about, f"{label} does not say what it makes")
    values = parse(part.options, options, label)
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        stimuli = part.make(Path(first), seed=0, count=count, progress=None, **values)
        part.make(Path(second), seed=0, count=count, progress=None, **values)
        check_stimuli(stimuli, label)
        here, there = _files(Path(first)), _files(Path(second))
        require(list(here) == list(there), f"{label}: expected the same files twice, got {len(here)} and {len(there)}")
        different = [path for path in here if here[path] != there[path]]
        require(not different, f"{label}: expected the same bytes twice; {', '.join(map(str, different[:3]))} differ")


def _files(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
