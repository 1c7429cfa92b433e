"""What a maker of stimuli declares, and how one is run by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuebench.options import Option, parse
from cuebench.registry import makers
from cuebench.types import StimulusSet

Progress = Callable[[int, int], None]
Make = Callable[..., StimulusSet]
"""``make(out, *, seed=0, count=0, progress=None, **options) -> StimulusSet``: same arguments, same bytes; resumable.

On another kind of CPU a few values of a drawing may differ by a grey level."""

LARGEST_SIDE, MOST_PICTURES = 4096, 10_000_000
"""Side in pixels of a picture that is drawn, and pictures of a set."""
COMMON: Mapping[str, Option] = {
    "seed": Option(0, "the same seed gives the same bytes", low=0),
    "count": Option(0, "number of stimuli; 0: the maker's default", low=0, high=MOST_PICTURES),
}
"""What every maker accepts besides its own options."""
FLAGS = {"name": "the first argument", "out": "--out", "seed": "--seed", "count": "--count", "progress": "--quiet"}
"""What ``--set`` does not accept → where it is given instead."""


@dataclass(frozen=True)
class Maker:
    """A stimulus set that cuebench can make.

    Parameters
    ----------
    name : str
        Public name: the file name.
    about : str
        What comes out, in a sentence or two.
    make : callable
        ``make(out, *, seed, count, progress, **options)`` writes the set below ``out`` and returns it as read back;
        ``progress(done, total)`` is called after each stimulus.
    options : mapping of str to Option
        Further options; ``make`` gets all of them, parsed.
    protocol : str
        The protocol that shows the set, where it has another name.
    """

    name: str
    about: str
    make: Make
    options: Mapping[str, Option] = field(default_factory=dict)
    protocol: str = ""


def make(
    name: str | Maker, out: Path, *, seed: int = 0, count: int = 0, progress: Progress | None = None, **options: Any
) -> StimulusSet:
    """Make a stimulus set by the name of its maker.

    Parameters
    ----------
    name : str or Maker
        Name of a maker (``cuebench list stimuli``), ``python:FILE.py:NAME``, or a maker itself.
    out : Path
        A data root: the set is written to a sub-folder of it.
    seed : int
        The same seed gives the same bytes.
    count : int
        How many stimuli; 0 is the maker's default.
    progress : callable, optional
        ``progress(done, total)``.
    **options
        The maker's own options; unknown names and values out of range are refused.
    """
    maker: Maker = makers.get(makers.resolve(name))
    part = f"maker {maker.name!r}"
    common = parse(COMMON, {"seed": seed, "count": count}, part)
    values = parse(maker.options, options, part)
    return maker.make(Path(out).expanduser(), **common, progress=progress, **values)
