"""Drawing any figure by its name: what ``cuebench figure`` calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuebench.errors import UserError
from cuebench.registry import figures
from cuebench.reports.figures.base import Figure
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import Run


def drawable() -> list[str]:
    """Return the figures that need no more than a run folder or a file, and options."""
    return [name for name, figure in figures.usable() if figure.needs != "objects"]


def draw(figure: str | Figure, source: Run | None = None, options: Mapping[str, Any] | None = None) -> Picture:
    """Draw a figure.

    Parameters
    ----------
    figure : str or Figure
        A name (see ``cuebench list figures``), ``python:FILE.py:NAME``, or a `Figure` of your own.
    source : path or sequence of paths, optional
        The run folder (or several) or the file that it is drawn from; a figure such as ``texture_sheet`` needs none.
    options : mapping
        Options of the figure, as values or as text: ``{"observer": "resnet50", "number": "20"}``.

    Raises
    ------
    UserError
        Where the figure or an option is unknown, or the source is missing or not needed.
    """
    name = figures.resolve(figure)
    part: Figure = figures.get(name)
    if part.needs == "objects":
        raise UserError(
            f"the figure {name} is drawn from Python objects, not from a file",
            f"from Python: cuebench.registry.figures.get({name!r})(…); from files: {', '.join(drawable())}",
        )
    if part.needs == "nothing":
        if source is not None:
            raise UserError(f"the figure {name} is not drawn from a run; got {source}", f"cuebench figure {name}")
        return part(**(options or {}))
    if source is None:
        of_protocol = f" of {part.protocol}" if part.protocol else ""
        raise UserError(
            f"the figure {name} is drawn from a {part.needs}{of_protocol}",
            f"cuebench figure {name} {part.needs.upper()} --out {name}.pdf",
        )
    return part(source, **(options or {}))
