"""The verb ``steer``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cuebench.cli._json import print_json


def command(
    run: Annotated[list[Path], typer.Argument(help="Run folders with answers under several prompts.")],
    protocol: Annotated[str, typer.Option("--protocol", "-p", help="Whose answers; default: all.")] = "",
    neutral: Annotated[str, typer.Option(help="Recording of answers under a neutral prompt.")] = "",
    shape: Annotated[str, typer.Option(help="Recording of answers to a question about the shape.")] = "",
    texture: Annotated[str, typer.Option(help="Recording of answers to a question about the texture.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Say how far prompts and orders of options move the shape bias."""
    from cuebench.analyses.steering import steering
    from cuebench.observers.chat.prompts import STEERING

    named = {prompt: name for prompt, name in zip(STEERING, (neutral, shape, texture)) if name}
    results = steering(run, protocol=protocol, prompts=named)
    rows = [row for result in results for row in result.rows()]
    if as_json:
        print_json(rows)
        return
    from rich.table import Table

    from cuebench.cli._console import plain_console

    console = plain_console()
    for result in results:
        title = f"{result.model} · {result.protocol}, {result.images:,} conflict images"
        table = Table("", "value", "95 % interval", "n", title=title, title_justify="left", box=None, pad_edge=False)
        for row in result.rows():
            interval = "–" if row["low"] is None else f"[{row['low']:.3f}, {row['high']:.3f}]"
            table.add_row(row["quantity"], f"{row['value']:.3f}", interval, f"{row['n']:,}")
        console.print(table)
    console.print(
        "differences are paired over images; the widest interval of images, sources, both is shown", style="dim"
    )
