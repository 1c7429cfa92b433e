"""The contents of a set: the cues and conflicts of this call, and those that it was made with before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cuebench.errors import UserError
from cuebench.stimuli.decomposition import conflicts as mixing
from cuebench.stimuli.decomposition.cue_list import SHAPE, Part, parse

ROUNDED = ("rounding", "round")
"""Of EED: always recorded, and an option only where it is another."""
_HINT = "give the same options as then, or choose another --out"


class Wanted(NamedTuple):
    """All parts of a set, in the order in which they can be made, and its cue-conflict candidates."""

    parts: list[Part]
    candidates: tuple[mixing.Candidate, ...]

    def described(self) -> dict[str, Any]:
        """Return what ``made.json`` records of them."""
        cues = {p.name: {"cue": p.cue or p.name, "of": p.source, **(p.options or {})} for p in self.parts[1:]}
        if SHAPE in cues:
            cues[SHAPE].setdefault(*ROUNDED)
        return {"cues": cues, "conflicts": [c.condition.removeprefix(mixing.PREFIX) for c in self.candidates]}


def wanted(cues: str, conflicts: str, eed_options: Mapping[str, Any], before: Mapping[str, Any]) -> Wanted:
    """Return the parts and candidates of a set, earlier ones first.

    Parameters
    ----------
    cues, conflicts : str
        As in this call.
    eed_options : mapping
        Of the diffusion, in this call.
    before : mapping
        ``made.json`` of the set; empty for a new one.

    Raises
    ------
    UserError
        Where the diffusion is asked for with other options than it was made with.
    """
    now = mixing.parse(conflicts)
    asked = parse(",".join([cues, *([SHAPE] * bool(now)), *(c.texture for c in now)]), eed_options)
    earlier: Mapping[str, Any] = before.get("cues", {})
    stored = {k: v for k, v in earlier.get(SHAPE, {}).items() if k not in {"cue", "of"} and (k, v) != ROUNDED}
    if stored and stored != dict(eed_options) and any(p.name == SHAPE for p in asked):
        raise UserError(f"the set has {SHAPE} made with {_words(stored)}, now {_words(eed_options)}", _HINT)
    names = [*earlier, *(p.name for p in asked[1:])]
    candidates = [*mixing.parse(",".join(before.get("conflicts", []))), *now]
    return Wanted(parse(",".join(names), stored or eed_options), tuple(dict.fromkeys(candidates)))


def _words(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{k}={v if isinstance(v, str) else format(v, 'g')}" for k, v in options.items())
