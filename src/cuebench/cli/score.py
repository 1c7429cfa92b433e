"""The verb ``score``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cuebench.options import split


def command(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    seed: Annotated[int | None, typer.Option(help="Default: as the run was made.")] = None,
    resamples: Annotated[
        int | None, typer.Option(help="Of intervals that are bootstraps; default: as the run was made.")
    ] = None,
    common: Annotated[
        bool | None, typer.Option("--common/--all", help="Only the stimuli that all observers saw, or all.")
    ] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="PROTOCOL.OPTION=VALUE; repeat for more.")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Scoring processes; default one for each core where it pays, 0: none.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No bar, no table.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Events on stderr, result on stdout, as JSON.")] = False,
) -> int:
    """Score a run again from its stored answers, without the model."""
    from cuebench.cli._display import Display
    from cuebench.cli.run import show_result
    from cuebench.runs.score import score

    with Display(quiet=quiet, as_json=as_json) as display:
        scores = score(
            run,
            seed=seed,
            resamples=resamples,
            common=common,
            settings=split(settings or []),
            workers=workers,
            on_event=display,
        )
    return show_result(scores, quiet=quiet, as_json=as_json)
