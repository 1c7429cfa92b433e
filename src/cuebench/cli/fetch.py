"""The verb ``fetch``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cuebench.cli._idle import idle_with
from cuebench.cli._json import print_json


def command(
    name: Annotated[str, typer.Argument(help="A dataset; see `cuebench list stimuli`.")],
    data_root: Annotated[Path, typer.Option("--data-root", help="Folder that holds the data.")],
    mirror: Annotated[
        list[str] | None, typer.Option("--mirror", help="Address of a copy; tried first."), idle_with("offline")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="No network: verify, and name what is missing.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no summary.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Result on stdout as JSON.")] = False,
) -> None:
    """Fetch a published stimulus set and verify it.

    The same command resumes where an earlier fetch stopped.
    """
    from dataclasses import asdict

    from cuebench.cli._progress import progress_bar
    from cuebench.stimuli.fetch import fetch

    with progress_bar(f"fetch {name}", quiet=quiet or as_json) as progress:
        result = fetch(name, data_root, mirrors=mirror or (), offline=offline, progress=progress)
    if as_json:
        print_json(asdict(result))
    elif not quiet:
        print(result)
