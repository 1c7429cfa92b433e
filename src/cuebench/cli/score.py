"""The verb ``score``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cuebench.options import split


def command(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    seed: Annotated[int | None, typer.Option(help="Default: as the run was made.")] = None,
    resamples: Annotated[int | None, typer.Option(help="Bootstrap resamples; default: as the run was made.")] = None,
    common: Annotated[
        bool | None, typer.Option("--common/--all", help="Only the stimuli that all observers saw, or all.")
    ] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="PROTOCOL.OPTION=VALUE; repeat for more.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No table.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Result on stdout as JSON.")] = False,
) -> int:
    """Score a run again from its stored answers, without the model."""
    from cuebench.cli.run import report
    from cuebench.runs.score import score

    scores = score(run, seed=seed, resamples=resamples, common=common, settings=split(settings or []))
    return report(scores.rows, scores.out, scores.failures, quiet=quiet, as_json=as_json)
