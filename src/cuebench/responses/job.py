"""What the engine has to do, and what it has done so far."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field
from typing import Any

from cuebench.errors import UserError
from cuebench.observers.base import Observer
from cuebench.observers.preprocess import Geometry, Preprocess
from cuebench.responses.events import Event, OnEvent
from cuebench.responses.store import ShardFolder
from cuebench.responses.table import Reduce
from cuebench.types import Capability, Failure, StimulusSet


@dataclass(frozen=True, eq=False)
class Job:
    """One observer, one stimulus set, one way of showing it."""

    protocol: str
    observer: Observer
    stimuli: StimulusSet
    needs: tuple[Capability, ...]
    shards: ShardFolder
    preprocess: Preprocess | None = None
    view: str = ""
    reduce: Reduce | None = None

    @property
    def geometry(self) -> Geometry | None:
        """What the workers must make for this observer; None where it looks at no pixels."""
        return self.preprocess.geometry if self.preprocess else None


@dataclass
class Progress:
    """What the engine has done so far, and whom it tells."""

    on_event: OnEvent
    total: int = 0
    done: int = 0
    failures: list[Failure] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)

    def tell(self, kind: Any, message: str = "", **fields: Any) -> None:
        """Send an event."""
        self.on_event(Event(kind, message, self.done, self.total, fields))

    def fail(self, job: Job, error: Exception) -> None:
        """Note a failed observer: the others go on."""
        failure = failed(job.observer.name, error, job.protocol)
        self.failures.append(failure)
        self.tell("failed", f"{failure.observer}: {failure.reason}", observer=failure.observer, reason=failure.reason)


def failed(observer: str, error: BaseException, protocol: str = "") -> Failure:
    """Return the row of an observer that raised ``error``; what is no mistake of the user keeps its traceback."""
    if isinstance(error, UserError):
        return Failure(observer, error.message, protocol, {"traceback": "", "hint": error.hint})
    details = {"traceback": "".join(traceback.format_exception(error)), "hint": _place(error)}
    return Failure(observer, f"{type(error).__name__}: {error}", protocol, details)


def _place(error: BaseException) -> str:
    """Say where an error was raised: a reader without the traceback can look there."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"raised in {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
