"""The verb ``figure``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from cuebench.cli._complete import names_of
from cuebench.cli._json import print_json


def command(
    name: Annotated[
        str,
        typer.Argument(
            help="A figure (see `cuebench list figures`), or python:FILE.py:NAME.", autocompletion=names_of("figures")
        ),
    ],
    run: Annotated[list[Path] | None, typer.Argument(help="The run folder that it is drawn from, or several.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="File: .pdf, .png, .svg, .html, .json (Vega-Lite), .csv. Default: NAME.svg here."),
    ] = None,
    width: Annotated[
        Literal["column", "page"], typer.Option(help="Width in print: a column (3.3 inches) or a page (7 inches).")
    ] = "page",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="OPTION=VALUE of the figure; repeat. See `cuebench explain NAME`.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Result on stdout as JSON.")] = False,
) -> None:
    """Draw a figure from a finished run, with its data as CSV."""
    from cuebench.options import split
    from cuebench.registry import figures
    from cuebench.reports.draw import draw

    figure = figures.resolve(name)
    source = (run[0] if len(run) == 1 else run) if run else None
    saved = draw(figure, source, split(settings or [])).save(out or Path(f"{figure}.svg"), width)
    if as_json:
        print_json({"figure": figure, "file": str(saved.file), "data": str(saved.data)})
    else:
        print(saved.file)
