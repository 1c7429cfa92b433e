"""What people see while a run works: one bar with an ETA, or one JSON event a line for machines."""

from __future__ import annotations

import json
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from cuebench.cli._console import plain_console
from cuebench.cli._json import escaped
from cuebench.errors import printable
from cuebench.responses.events import Event

if TYPE_CHECKING:
    from rich.console import Console


class Display:
    """Listens to events. ``quiet`` shows errors only; ``as_json`` writes every event as a line to standard error."""

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        self._quiet, self._json = quiet, as_json
        self._bar: Any = None
        self._console: Console | None = None
        self._task: Any = None
        self._scoring = False

    def __enter__(self) -> Self:
        if not (self._quiet or self._json):
            self._console = plain_console(stderr=True)
            if self._console.is_interactive:  # nobody sees a bar in a file
                self._bar = _bar(self._console)
                self._bar.start()
                self._task = self._bar.add_task("loading", total=None)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        if self._json:
            print(escaped(json.dumps(event.as_json(), ensure_ascii=False)), file=sys.stderr, flush=True)
        elif self._console is not None:
            self._show(event, self._console)
        elif event.kind in {"failed", "excluded"}:
            print(printable(f"{event.kind}: {event.message}"), file=sys.stderr)

    def _show(self, event: Event, console: Console) -> None:
        if event.kind in {"failed", "excluded", "notice"}:
            from rich.text import Text

            colour = {"failed": "red", "excluded": "yellow", "notice": "cyan"}[event.kind]
            console.print(Text.assemble((event.kind, colour), f": {event.message}"))
            if hint := event.fields.get("hint"):
                console.print(Text.assemble(("  → ", "bold cyan"), str(hint)))
        elif event.total and self._bar is not None:
            name = event.message if event.kind in {"batch", "scored"} else event.kind
            if event.kind == "scored" and not self._scoring:  # its own bar: the pace of answers says nothing of it
                self._bar.remove_task(self._task)
                self._task, self._scoring = self._bar.add_task("scoring", total=event.total), True
            self._bar.update(self._task, completed=event.done, total=event.total, description=name[:36])


def _bar(console: Console) -> Any:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description:36s}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
