"""The verb ``new``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cuebench.cli._json import print_json


def command(
    kind: Annotated[str, typer.Argument(help="cue, metric, protocol, figure or observer.")],
    name: Annotated[str, typer.Argument(help="Its name: lower-case letters, digits and underscores.")],
    to: Annotated[Path, typer.Option("--to", help="Folder; that of cuebench's own parts makes it one of them.")] = Path(
        "."
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Result on stdout as JSON.")] = False,
) -> None:
    """Begin a part of your own: its one file, and a failing test."""
    from cuebench.testing.new import new_part

    begun = new_part(kind, name, to)
    if as_json:
        print_json({key: None if value is None else str(value) for key, value in begun._asdict().items()})
        return
    print(f"written: {begun.file}" + (f" and {begun.test}" if begun.test else ""))
    print(f"1. fill the hole in {begun.file}: it says NotImplementedError, with an example above")
    print(f"2. until it passes: {begun.run_test}")
    print(f"3. use it: {begun.use}")
