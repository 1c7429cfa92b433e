"""The result of a run, as ``evaluate`` returns it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuebench.errors import UserError, did_you_mean
from cuebench.runs.record import RunRecord
from cuebench.runs.results import scores_table
from cuebench.types import Score

USUAL = "partial"
"""The condition that a metric of several is meant in: all stimuli, decided among the classes of the set."""


@dataclass(frozen=True, repr=False)
class Scores(Sequence[Score]):
    """The rows of a run, with what went wrong; behaves as a list of ``Score``."""

    rows: tuple[Score, ...]
    out: Path
    record: RunRecord = field(repr=False)

    def __repr__(self) -> str:
        who, where = (
            {getattr(r, f): None for r in self.rows if r.metric != "failed"} for f in ("observer", "protocol")
        )
        some = ", ".join(list(who)[:3]) + (" …" if len(who) > 3 else "")
        gaps = f", {len(self.failures)} not measured" if self.failures else ""
        return f"<{len(self.rows)} scores of {some} on {', '.join(where)}{gaps}; {self.out}>"

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    @property
    def failures(self) -> list[str]:
        """Why observers could not be measured."""
        return [f"{f.observer}: {f.reason}" for f in self.record.failures]

    def value(self, observer: str, metric: str, condition: str | None = None, *, protocol: str = "") -> float:
        """Return one number.

        Parameters
        ----------
        observer, metric : str
            As in the rows.
        condition : str, optional
            Default: the only one there is, or ``partial``, the usual one of cue conflict.
        protocol : str
            Where two protocols have the same metric and condition.

        Raises
        ------
        UserError
            Where there is no such row, or more than one number fits; with the names there are.
        """
        own = _named(self.rows, "observer", observer)
        own = _named(own, "protocol", protocol) if protocol else own
        unmeasured = [row for row in own if row.metric in ("failed", "not_applicable")]
        if unmeasured == own:
            raise UserError(f"{observer} was not measured: {own[0].note}")
        own = _named(own, "metric", metric)
        own = _named(own, "condition", _usual(own) if condition is None else condition)
        where = dict.fromkeys(row.protocol for row in own)
        if len(where) > 1:
            raise UserError(f"{metric!r} belongs to several protocols: {', '.join(where)}", "say which with protocol=")
        return own[0].value

    def to_table(self) -> Any:
        """Return the tidy table as a ``pyarrow.Table`` (``.to_pandas()`` where pandas is installed)."""
        return scores_table(self.rows)


def _named(rows: Sequence[Score], field: str, name: str) -> list[Score]:
    found = [row for row in rows if getattr(row, field) == name]
    if not found:
        raise did_you_mean(field, name, {str(getattr(row, field)) for row in rows})
    return found


def _usual(rows: Sequence[Score]) -> str:
    """Return the condition that is meant where none is named."""
    known = dict.fromkeys(row.condition for row in rows)
    if len(known) > 1 and USUAL not in known:
        raise UserError(f"{rows[0].metric!r} has several conditions", f"name one of: {', '.join(known)}")
    return USUAL if USUAL in known else next(iter(known))
