"""What is printed: names are shown as they are, and nothing that comes from a file can command the terminal."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from cuebench.errors import is_printable, printable

if TYPE_CHECKING:
    from rich.console import Console


PACKAGE = Path(__file__).parents[1]
PIPED = 10_000
"""Width of what is not printed to a terminal: nothing is left out or folded."""


def plain_console(*, stderr: bool = False) -> Console:
    """Return a console that reads no markup: ``net[a1]`` keeps its brackets and ``a:cat:b`` becomes no picture.

    What is to be styled is given as ``rich.text.Text``. Escape codes and control characters in what is printed are
    replaced; those of the console itself, its colours, are not. Into a file or another program lines are printed whole,
    unless COLUMNS says how long they may be.
    """
    from rich.console import Console
    from rich.segment import Segment

    class CleanConsole(Console):
        def render(self, *arguments: Any, **options: Any) -> Iterable[Segment]:
            for segment in super().render(*arguments, **options):
                yield segment if segment.control else Segment(printable(segment.text), segment.style)

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPED
    return CleanConsole(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)


class Pipe:
    """A text stream that outlives its reader: what is printed when nobody reads any more goes nowhere.

    A run goes on then, and a model that prints has not failed. Everything else is done by the stream behind it.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.left = False
        """Whether the reader has left."""

    def write(self, text: str) -> int:
        """Write a text."""
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            self._forget_reader()
            return len(text)

    def flush(self) -> None:
        """Write what is kept back."""
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._forget_reader()

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _forget_reader(self) -> None:
        self.left = True
        to_nowhere(self._stream)


def to_nowhere(stream: TextIO) -> None:
    """Let a stream write nowhere from now on, also what it has kept back; child processes print there, too."""
    with suppress(OSError, ValueError):  # it has no file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class _CleanStream:
    """A text stream that replaces control characters; everything else is done by the stream behind it."""

    def __init__(self, stream: Pipe) -> None:
        # Rich looks for this name and writes its colours to it: what it prints was cleaned before.
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        """Write a text without what could command a terminal."""
        self.rich_proxied_file.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


@contextmanager
def clean_output() -> Iterator[Pipe]:
    """Replace control characters in everything that is printed to standard output, and in warnings.

    Both standard streams outlive their readers meanwhile; standard output is yielded.
    """
    before, errors, show = sys.stdout, sys.stderr, warnings.showwarning
    pipe = Pipe(before)

    def show_clean(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        # A name from a file may stand in the text of a warning, ours or of a library.
        clean = message if is_printable(str(message)) else printable(str(message))
        if category is RuntimeWarning and Path(filename).is_relative_to(PACKAGE):  # ours: a sentence for the user
            print(f"warning: {clean}", file=file or sys.stderr)
            return
        show(clean, category, printable(filename), lineno, file, line)

    sys.stdout, sys.stderr, warnings.showwarning = _CleanStream(pipe), Pipe(errors), show_clean
    try:
        yield pipe
    finally:
        sys.stdout, sys.stderr, warnings.showwarning = before, errors, show
