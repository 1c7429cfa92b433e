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
    shapes: Annotated[Path | None, typer.Option(help="Own shapes, <class>/<image>; same as --set shapes=…")] = None,
    textures: Annotated[Path | None, typer.Option(help="Own textures, <class>/<image>.")] = None,
    by: Annotated[str, typer.Option(help="How own shapes and textures are joined: composition, quilting, style.")] = "",
    network: Annotated[str, typer.Option(help="With --by style: a torch network, SOURCE:NAME.")] = "",
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
    named = {"source": source, "shapes": shapes, "textures": textures, "by": by, "network": network, "cues": cues}
    options |= {name: str(value) for name, value in named.items() if value}
    with progress_bar(f"make {name}", quiet=quiet or as_json) as progress:
        stimuli = make(name, out, seed=seed, count=count, progress=progress, **options)
    if as_json:
        about = {"name": stimuli.name, "root": stimuli.root, "stimuli": len(stimuli), "targets": stimuli.targets}
        print_json({**about, "notes": list(stimuli.notes)})
    elif not quiet:
        maker, folder = makers.get(name), Path(stimuli.root).name
        protocol = folder if folder in protocols else maker.protocol or maker.name
        print(f"{len(stimuli):,} stimuli in {stimuli.root}")
        for note in stimuli.notes:
            print(note)
        print(f"use them: cuebench run -p {protocol} --data-root {out} -o …")
