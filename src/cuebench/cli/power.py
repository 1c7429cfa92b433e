"""The verb ``power``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cuebench.cli._json import print_json


def command(
    run: Annotated[list[Path], typer.Argument(help="Run folders with the answers of at least two observers.")],
    protocol: Annotated[
        list[str] | None, typer.Option("--protocol", "-p", help="Headlines of these only; repeat. Default: all.")
    ] = None,
    observer: Annotated[
        list[str] | None, typer.Option("--observer", "-o", help="From the pairs of these only; repeat. Default: all.")
    ] = None,
    difference: Annotated[
        float | None, typer.Option(help="A true difference to be found in four of five studies.")
    ] = None,
    comparisons: Annotated[int, typer.Option(help="Pairs that will be compared at once.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Say how many images, shapes and textures tell two models apart.

    For the headline of each protocol: what the difference of two observers varies with, and the smallest true
    difference that is found in four of five studies (p ≤ .05) by this design and by larger ones. New sources come with
    their images. With --difference: what alone would be enough for it.
    """
    from cuebench.reports.power import plan_runs

    plans = plan_runs(run, protocol, observer or (), difference=difference, comparisons=comparisons)
    if as_json:
        print_json([plan.as_dict() for plan in plans])
        return
    from cuebench.cli._console import plain_console
    from cuebench.cli._fit import Column, print_columns
    from cuebench.reports.paired import SOURCES

    console = plain_console()
    nouns = {"images": "images", **SOURCES}
    for plan in plans:
        kinds = list(plan.components.numbers)
        columns = [Column("design", [d.name for d in plan.designs], needed=True, number=False)]
        columns += [Column(nouns[k], [f"{d.numbers[k]:,}" for d in plan.designs], needed=True) for k in kinds]
        columns.append(Column("smallest\ndifference", [f"{d.smallest:.3f}" for d in plan.designs], needed=True))
        title = f"{plan.protocol} · {plan.metric} · {plan.condition}, from {plan.pairs} pair{'s' * (plan.pairs != 1)}"
        print_columns(console, columns, title=title)
        shares = ", ".join(f"{nouns[kind]} {share:.0%}" for kind, share in plan.shares.items())
        console.print(f"what a difference varies with: {shares}", style="dim")
        console.print(plan.advice)
        for name, numbers in plan.needed.items():
            text = ", ".join(f"{n:,} {nouns[kind]}" for kind, n in numbers.items()) or "no number of them is enough"
            console.print(f"to find {plan.difference:g} by more {name.removeprefix('of ')}: {text}")
        for note in plan.notes:
            console.print(note, style="dim")
        console.print()
