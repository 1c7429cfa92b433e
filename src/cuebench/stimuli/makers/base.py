"""What a maker of stimuli declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuebench.errors import UserError, all_problems, did_you_mean
from cuebench.registry import makers
from cuebench.types import StimulusSet

Progress = Callable[[int, int], None]
_RESERVED = frozenset({"name", "out", "seed", "count", "progress"})

# ``make(out, *, seed=0, count=0, progress=None, **own options) -> StimulusSet``: same arguments, same bytes; resumable.
Make = Callable[..., StimulusSet]


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
        ``progress(done, total)`` is called as it goes on.
    options : mapping of str to a value
        Further options and their defaults; values given as text are converted to the default's type.
    protocol : str
        The protocol that shows the set, where it has another name.
    """

    name: str
    about: str
    make: Make
    options: Mapping[str, Any] = field(default_factory=dict)
    protocol: str = ""


def make(
    name: str, out: Path, *, seed: int = 0, count: int = 0, progress: Progress | None = None, **options: Any
) -> StimulusSet:
    """Make a stimulus set by the name of its maker.

    Parameters
    ----------
    name : str
        Name of a maker (``cuebench list stimuli``).
    out : Path
        A data root: the set is written to a sub-folder of it.
    seed : int
        The same seed gives the same bytes.
    count : int
        How many stimuli; 0 is the maker's default.
    progress : callable, optional
        ``progress(done, total)``.
    **options
        The maker's own options; unknown ones are refused with the nearest known one.
    """
    maker: Maker = makers.get(name)
    if seed < 0:
        raise UserError(f"seed is {seed}", "accepted: a whole number ≥ 0")
    chosen = dict(maker.options) | {k: _option(maker, k, v) for k, v in options.items()}
    return maker.make(Path(out).expanduser(), seed=seed, count=count, progress=progress, **chosen)


def parse_options(settings: Sequence[str]) -> dict[str, str]:
    """Turn ``["size=224"]`` into ``{"size": "224"}``; report everything that is not ``key=value`` at once."""
    pairs = [s.partition("=") for s in settings]
    bad = [f"{s!r} is not key=value" for s, (key, sign, _) in zip(settings, pairs) if not (key.strip() and sign)]
    reserved = [f"{key!r} has its own flag" for key, _, _ in pairs if key.strip() in _RESERVED]
    if bad or reserved:
        raise all_problems("--set", bad + reserved)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _option(maker: Maker, key: str, value: Any) -> Any:
    if key not in maker.options:
        raise did_you_mean(f"option of maker '{maker.name}'", key, maker.options)
    kind = type(maker.options[key])
    if kind is bool and isinstance(value, str):
        return value.lower() in {"1", "true", "yes", "on"}
    try:
        return kind(value)
    except (TypeError, ValueError):
        raise UserError(f"option {key} is {value!r}, expected a {kind.__name__}") from None
