"""The verb ``merge``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    runs: Annotated[list[Path], typer.Argument(help="Two or more finished run folders.", metavar="RUN…")],
    out: Annotated[Path, typer.Option(help="The new run folder.")],
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No table.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Result on stdout as JSON.")] = False,
) -> int:
    """Join runs of several machines into a new one, and score it."""
    from cuebench.cli.run import show_result
    from cuebench.runs.merge import merge

    scores = merge(runs, out)
    return show_result(scores, quiet=quiet, as_json=as_json)
