"""The verb ``make``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cuebench.cli._complete import names_of
from cuebench.cli._json import print_json


def command(
    name: Annotated[
        str, typer.Argument(help="A maker; see `cuebench list stimuli`.", autocompletion=names_of("makers"))
    ],
    out: Annotated[Path, typer.Option("--out", help="A data root; the set goes to a sub-folder of it.")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
    count: Annotated[int, typer.Option(help="Number of stimuli; 0: the maker's default.")] = 0,
    source: Annotated[Path | None, typer.Option("--source", help="Folder that the stimuli are made from.")] = None,
    cues: Annotated[
        str, typer.Option(help="List of cues, for makers that decompose images; same as --set cues=…")
    ] = "",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="key=value: an option of the maker; see `cuebench explain MAKER`.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no summary.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Result on stdout as JSON.")] = False,
) -> None:
    """Make a stimulus set.

    The same command continues where it was stopped.
    """
    from cuebench.cli._progress import progress_bar
    from cuebench.options import split
    from cuebench.registry import makers, protocols
    from cuebench.stimuli.makers.base import FLAGS, make

    options = split(settings or [], FLAGS)
    options |= ({"source": str(source)} if source else {}) | ({"cues": cues} if cues else {})
    with progress_bar(f"make {name}", quiet=quiet or as_json) as progress:
        stimuli = make(name, out, seed=seed, count=count, progress=progress, **options)
    if as_json:
        print_json({"name": stimuli.name, "root": stimuli.root, "stimuli": len(stimuli), "targets": stimuli.targets})
    elif not quiet:
        maker, folder = makers.get(name), Path(stimuli.root).name
        protocol = folder if folder in protocols else maker.protocol or maker.name
        print(f"{len(stimuli):,} stimuli in {stimuli.root}")
        print(f"use them: cuebench run -p {protocol} --data-root {out} -o …")
