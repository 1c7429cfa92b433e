"""A progress bar with an ETA for ``progress(done, total)`` callbacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(title: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a callback that moves a bar on standard error; None where nothing is to be shown."""
    from cuebench.cli._console import plain_console

    console = plain_console(stderr=True)
    if quiet or not console.is_interactive:  # nobody sees a bar in a file
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TextColumn("ETA"))
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
