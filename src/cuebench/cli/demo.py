"""The verb ``demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cuebench.cli.run import ReportTo, show_result

OBSERVERS = ("ideal:shape", "ideal:texture", "ideal:mixture?shape=0.7", "ideal:random", "lite:efficientnet_lite0")


def command(
    out: Annotated[Path, typer.Option(help="Run folder.")] = Path("runs/demo"),
    seed: Annotated[int, typer.Option(help="All randomness.")] = 0,
    report_to: ReportTo = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No bar, no table.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Events on stderr, result on stdout, as JSON.")] = False,
) -> int:
    """Measure observers of known bias and a network on drawn stimuli."""
    from cuebench.cli._display import Display
    from cuebench.files import make_folder
    from cuebench.runs.evaluate import evaluate
    from cuebench.stimuli.makers.base import make

    make_folder(out)
    make("cue_conflict", out / "data", seed=seed)
    with Display(quiet=quiet, as_json=as_json) as display:
        scores = evaluate(OBSERVERS, "cue_conflict", data_root=out / "data", out=out, on_event=display, seed=seed)
    return show_result(scores, quiet=quiet, as_json=as_json, report_to=report_to)
