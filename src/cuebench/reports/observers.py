"""Who stands in a figure: short names, and a colour and a mark that are the same in every figure of a run.

People are black diamonds, one person is a small one; ideal observers have the colour of their cue; untrained networks
are grey. Models get the colours and marks of the theme in the order of the run, also where a figure shows only some.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cuebench.observers.baselines import RANDOM
from cuebench.reports import theme
from cuebench.reports.text import distinct, short_name, width_of
from cuebench.reports.vega import alt
from cuebench.runs.record import RunRecord
from cuebench.types import Score

_IDEAL = {"ideal:shape": theme.SHAPE, "ideal:texture": theme.TEXTURE}
_KINDS = {"people": 0, "person": 1, "model": 2, "ideal": 3, "random": 4}
"""Kinds of observers in the order of legends."""


class Look(NamedTuple):
    """How one observer is shown."""

    name: str
    kind: str
    colour: str
    mark: str


class Series(NamedTuple):
    """Names with a colour and a mark each: what a scale and its legend are made of."""

    names: tuple[str, ...]
    colours: tuple[str, ...]
    marks: tuple[str, ...]

    @classmethod
    def of(cls, names: Iterable[str], colours: Sequence[str] = theme.CONDITIONS) -> Series:
        """Give each name a colour of a palette, and a mark."""
        known = tuple(dict.fromkeys(names))
        pick = tuple(colours[k % len(colours)] for k in range(len(known)))
        return cls(known, pick, tuple(theme.MARKS[k % len(theme.MARKS)] for k in range(len(known))))

    def colour(self, field: str = "name", legend: Any = None) -> Any:
        """Return the colour channel of a field that holds these names; ``legend`` from `legend`."""
        scale = alt.Scale(domain=list(self.names), range=list(self.colours))
        return alt.Color(f"{field}:N", scale=scale, legend=legend, title=None)

    def mark(self, field: str = "name", legend: Any = None) -> Any:
        """Return the shape channel of a field that holds these names."""
        scale = alt.Scale(domain=list(self.names), range=list(self.marks))
        return alt.Shape(f"{field}:N", scale=scale, legend=legend, title=None)

    def legend(self, room: float) -> Any:
        """Return a legend below the plots, in as many columns as there is room for."""
        widest = max((width_of(name) for name in self.names), default=0.0) + 22
        columns = max(1, min(int(room // widest), len(self.names)))
        return alt.Legend(
            orient="bottom", direction="horizontal", columns=columns, symbolLimit=0, symbolOpacity=1, title=None
        )


@dataclass(frozen=True)
class Observers:
    """The observers of a run, each with its look.

    Parameters
    ----------
    kinds : mapping of str to str
        Observer → ``model``, ``people``, ``person``, ``ideal`` or ``random`` (an untrained network), in the order of
        the run.
    """

    kinds: Mapping[str, str]

    @classmethod
    def of(cls, runs: Sequence[Path], scores: Iterable[Score] = ()) -> Observers:
        """Read who took part in some runs; observers that only the scores name are added behind."""
        kinds: dict[str, str] = {}
        for run in runs:
            if (run / "run.json").is_file():
                for job in RunRecord.read(run).jobs:
                    kinds.setdefault(job.observer, "random" if job.baseline_of else job.kind)
        for score in scores:
            kinds.setdefault(score.observer, _guessed(score.observer))
        return cls(kinds)

    def looks(self) -> dict[str, Look]:
        """Return observer → its look."""
        names = distinct([short_name(o, list(self.kinds)) for o in self.kinds])
        models = [o for o, kind in self.kinds.items() if kind == "model"]
        looks = {}
        for (observer, kind), name in zip(self.kinds.items(), names):
            k = models.index(observer) if kind == "model" else 0
            colour, mark = theme.OBSERVERS[k % len(theme.OBSERVERS)], theme.MARKS[k % len(theme.MARKS)]
            if kind in ("people", "person"):
                colour, mark = theme.PEOPLE, theme.PEOPLE_MARK
            elif kind == "ideal":
                colour, mark = _IDEAL.get(observer.partition("?")[0], theme.NEUTRAL), theme.IDEAL_MARK
            elif kind == "random":
                colour, mark = theme.NEUTRAL, "circle"
            looks[observer] = Look(name, kind, colour, mark)
        return looks

    def name(self, observer: str) -> str:
        """Return the short name of an observer, different from all others of the run."""
        return self.looks()[observer].name

    def series(self, shown: Iterable[str]) -> Series:
        """Return the scale of some observers, people first."""
        looks = self.looks()
        chosen = sorted((looks[o] for o in dict.fromkeys(shown)), key=lambda look: _KINDS.get(look.kind, 9))
        return (
            Series(*(tuple(column) for column in zip(*((x.name, x.colour, x.mark) for x in chosen))))
            if chosen
            else (Series((), (), ()))
        )

    def records(self, scores: Iterable[Score]) -> list[dict[str, Any]]:
        """Return scores as rows of a figure's table: who, what, the value, its interval and n."""
        looks = self.looks()
        return [
            {
                "observer": s.observer,
                "name": looks[s.observer].name,
                "kind": looks[s.observer].kind,
                "protocol": s.protocol,
                "condition": s.condition,
                "metric": s.metric,
                "value": s.value,
                "low": s.ci_low,
                "high": s.ci_high,
                "interval": s.ci_kind,
                "n": s.n,
            }
            for s in scores
        ]


def _guessed(observer: str) -> str:
    """Return the kind of an observer of whom only the name is known."""
    if RANDOM in observer:
        return "random"
    if observer.startswith("ideal:"):
        return "ideal"
    return "people" if observer == "people" else "model"
