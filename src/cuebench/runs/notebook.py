"""Progress in a notebook: one line with a bar and an ETA that is drawn anew in its place, and what went wrong below."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from types import TracebackType
from typing import Any, Self

from cuebench.errors import UserError, printable
from cuebench.responses.events import Event, OnEvent, ignore

EVERY = 0.2
"""Seconds between two drawings: each is a message that the notebook stores and sends."""
MOST_LINES = 20
"""Failures, exclusions and notices that are shown; further ones are counted."""
COLOURS = {"failed": "#c62828", "excluded": "#b26a00", "notice": "#00838f"}


def in_notebook() -> bool:
    """Tell whether the code runs in the kernel of a notebook; nothing is imported to find out."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return getattr(shell, "kernel", None) is not None


@contextmanager
def listening(on_event: OnEvent | None) -> Iterator[OnEvent]:
    """Yield who is told of progress: the listener that was given; else a bar in a notebook, and nobody elsewhere."""
    if on_event is not None and not callable(on_event):
        raise UserError(f"on_event is {on_event!r:.60}", "a function of one event: on_event=print")
    if on_event is not None:
        yield on_event
    elif in_notebook():
        with Bar() as bar:
            yield bar
    else:
        yield ignore


class Bar:
    """Shows the events of a run in the output of a cell.

    Needs no widgets: the one output is replaced, so that a saved notebook shows how the run ended.
    """

    def __init__(self) -> None:
        self._handle: Any = None
        self._name, self._done, self._total = "loading", 0, 0
        self._lines: list[tuple[str, str]] = []
        self._hidden = 0
        self._end = ""
        self._started = self._drawn = time.monotonic()
        self._first = (0, self._started)
        """Answers that were there before this run, and when the first new one came: what the ETA counts from."""

    def __enter__(self) -> Self:
        from IPython.display import display

        self._handle = display(self._bundle(), raw=True, display_id=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        took = _duration(time.monotonic() - self._started)
        if kind is not None:
            self._end = f"stopped after {took}"
        elif not self._end:
            self._end = f"finished in {took}"
        self._draw()

    def __call__(self, event: Event) -> None:
        """Take in one event, and draw the line if the last drawing is old enough."""
        if event.kind in COLOURS:
            hint = f" → {event.fields['hint']}" if event.fields.get("hint") else ""
            if len(self._lines) < MOST_LINES:
                self._lines.append((event.kind, event.message + hint))
            else:
                self._hidden += 1
        elif event.kind == "finished":
            self._end = f"{event.message}, in {_duration(time.monotonic() - self._started)}"
        elif event.total:
            name = event.message if event.kind in ("batch", "scored") else event.kind
            if self._total == 0 or (event.kind == "scored") != self._scoring:  # the pace of answers says nothing of it
                self._first = (event.done, time.monotonic())
            self._scoring = event.kind == "scored"
            self._name, self._done, self._total = name, event.done, event.total
        if time.monotonic() - self._drawn >= EVERY:
            self._draw()

    _scoring = False

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        self._handle.update(self._bundle(), raw=True)

    def _bundle(self) -> dict[str, str]:
        return {"text/plain": self._text(), "text/html": self._html()}

    def _numbers(self) -> str:
        """Return ``128/1,280 · 0:12 · ETA 1:48``."""
        now = time.monotonic()
        parts = [f"{self._done:,}/{self._total:,}"] if self._total else []
        parts.append(_duration(now - self._started))
        before, since = self._first
        if self._done > before and self._done < self._total:
            left = (self._total - self._done) * (now - since) / (self._done - before)
            parts.append(f"ETA {_duration(left)}")
        return " · ".join(parts)

    def _text(self) -> str:
        first = self._end or f"{self._name[:60]}  {self._numbers()}"
        more = [f"and {self._hidden} more"] if self._hidden else []
        return printable("\n".join([first, *(f"{kind}: {text}" for kind, text in self._lines), *more]))

    def _html(self) -> str:
        if self._end:
            first = escape(printable(self._end))
        else:
            value = f' value="{self._done}" max="{self._total}"' if self._total else ""
            name, numbers = escape(printable(self._name[:60])), escape(self._numbers())
            first = (
                f'<progress{value} style="width:16em;vertical-align:middle"></progress> '
                f'<span style="font-variant-numeric:tabular-nums">{numbers}</span> &nbsp;{name}'
            )
        lines = [
            f'<div><b style="color:{COLOURS[kind]}">{kind}</b>: {escape(printable(text))}</div>'
            for kind, text in self._lines
        ]
        lines += [f"<div>and {self._hidden} more</div>"] if self._hidden else []
        return f'<div style="white-space:nowrap;overflow:hidden">{first}</div>{"".join(lines)}'


def _duration(seconds: float) -> str:
    """Return ``1:05`` or ``2:00:07``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
