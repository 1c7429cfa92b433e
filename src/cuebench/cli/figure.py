"""The verb ``figure``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cuebench.cli._json import print_json


def command(
    name: Annotated[str, typer.Argument(help="A figure (see `cuebench list figures`), or python:FILE.py:NAME.")],
    run: Annotated[Path | None, typer.Argument(help="The run folder that it is drawn from.")] = None,
    out: Annotated[Path | None, typer.Option(help="File, .svg or .png. Default: NAME.svg here.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="OPTION=VALUE of the figure; repeat. See `cuebench explain NAME`.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Result on stdout as JSON.")] = False,
) -> None:
    """Draw a figure from a finished run, as SVG or PNG."""
    from cuebench.options import split
    from cuebench.registry import figures
    from cuebench.reports.draw import draw

    figure = figures.resolve(name)
    target = draw(figure, run, split(settings or [])).save(out or Path(f"{figure}.svg"))
    if as_json:
        print_json({"figure": figure, "file": str(target)})
    else:
        print(target)
