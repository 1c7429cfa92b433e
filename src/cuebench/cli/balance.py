"""The verb ``balance``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cuebench.cli._json import print_json
from cuebench.files import write_json


def command(
    run: Annotated[Path, typer.Argument(help="Run folder of refined_bias; its observers are the panel.")],
    classes: Annotated[int, typer.Option(help="Classes of each cue.")] = 10,
    measure: Annotated[str, typer.Option(help="sensitivity, top1 or top5.")] = "sensitivity",
    condition: Annotated[str, typer.Option(help="faithful or native.")] = "faithful",
    out: Annotated[Path | None, typer.Option(help="Write the choice, for `make --set classes=FILE`.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Choose classes so that shape and texture cues are equally recognisable for a panel of observers."""
    from cuebench.analyses.recognition import balanced
    from cuebench.runs.results import read_scores

    rows = [s for s in read_scores(run.expanduser()) if s.protocol == "refined_bias" and s.metric != "failed"]
    panel = {s.observer for s in rows}
    found = balanced(rows, classes, measure=measure, condition=condition)
    choice = {"shape": sorted(found.shape), "texture": sorted(found.texture)}
    if out:
        write_json(out, choice)
    if as_json:
        print_json({**choice, "means": found.means, "gap": found.gap})
        return
    from rich.table import Table

    from cuebench.cli._console import plain_console

    table = Table("shape class", measure, "texture class", measure, title=f"a panel of {len(panel)}")
    for (a, x), (b, y) in zip(found.shape.items(), found.texture.items()):
        table.add_row(a, f"{x:.3f}", b, f"{y:.3f}")
    table.add_section()
    table.add_row("mean", f"{found.means[0]:.3f}", "mean", f"{found.means[1]:.3f}")
    plain_console().print(table)
