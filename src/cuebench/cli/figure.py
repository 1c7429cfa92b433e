"""The verb ``figure``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cuebench.cli._json import print_json


def command(
    name: Annotated[str, typer.Argument(help="A figure; see `cuebench list figures`.")],
    run: Annotated[Path | None, typer.Argument(help="The run folder it is drawn from.")] = None,
    out: Annotated[Path | None, typer.Option(help="File, .svg or .png. Default: NAME.svg here.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="OPTION=VALUE of the figure; repeat.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Result on stdout as JSON.")] = False,
) -> None:
    """Draw a figure from a finished run, as SVG or PNG."""
    from cuebench.reports.draw import draw
    from cuebench.stimuli.makers.base import parse_options

    target = draw(name, run, parse_options(settings or [])).save(out or Path(f"{name}.svg"))
    if as_json:
        print_json({"figure": name, "file": str(target)})
    else:
        print(target)
