"""What a run tells while it works. The same events feed the progress bar, ``--json`` and the tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

EventKind = Literal["start", "probe", "batch", "excluded", "failed", "notice", "scored", "finished"]


@dataclass(frozen=True)
class Event:
    """One thing that happened.

    ``done`` and ``total`` count answers (stimuli × observers) of the whole run, so that one bar with one ETA is enough.
    """

    kind: EventKind
    message: str = ""
    done: int = 0
    total: int = 0
    fields: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the event as a flat JSON-ready record."""
        return {"event": self.kind, "message": self.message, "done": self.done, "total": self.total, **self.fields}


OnEvent = Callable[[Event], None]


def ignore(event: Event) -> None:
    """Listen to nothing."""
