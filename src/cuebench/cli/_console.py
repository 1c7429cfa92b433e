"""The console that results are printed on: names are shown as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def plain_console(*, stderr: bool = False) -> Console:
    """Return a console that reads no markup: ``net[a1]`` keeps its brackets and ``a:cat:b`` becomes no picture.

    What is to be styled is given as ``rich.text.Text``.
    """
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)
