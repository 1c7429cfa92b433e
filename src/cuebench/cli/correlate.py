"""The verb ``correlate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuebench.cli._json import print_json

if TYPE_CHECKING:
    from cuebench.reports.correlate import Pair

MOST = 20
"""Correlations that are printed unless all are asked for."""


def command(
    runs: Annotated[list[Path], typer.Argument(help="Run folders; the same name is the same observer in all of them.")],
    x: Annotated[
        str, typer.Option(help="metric@condition, or a protocol for its headline; default: every column.")
    ] = "",
    y: Annotated[
        str, typer.Option(help="metric@condition, or a protocol for its headline; default: every column.")
    ] = "",
    everything: Annotated[bool, typer.Option("--all", help="All columns where none is named; all lines.")] = False,
    method: Annotated[str, typer.Option(help="spearman, pearson or kendall.")] = "spearman",
    kind: Annotated[list[str] | None, typer.Option(help="Kind of observer; repeat. Default: model.")] = None,
    seed: Annotated[int, typer.Option(help="Of the bootstrap over observers.")] = 0,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples.")] = 10_000,
    as_json: Annotated[bool, typer.Option("--json", help="Result on stdout as JSON.")] = False,
) -> None:
    """Correlate columns of scores over models, with intervals.

    Without --x and --y: the headlines of the protocols.
    """
    from cuebench.reports.correlate import correlate_columns

    pairs = correlate_columns(
        runs,
        x,
        y,
        method=method,  # type: ignore[arg-type]
        kinds=kind or ("model",),
        headlines=not everything,
        seed=seed,
        resamples=resamples,
    )
    if as_json:
        rows = [{"x": p.x, "y": p.y, **p.correlation._asdict(), "observers": list(p.observers)} for p in pairs]
        print_json(rows)
        return
    _print(pairs, everything=everything)


def _print(pairs: Sequence[Pair], *, everything: bool) -> None:
    """Print the strongest correlations as a table; all of them where that was asked for."""
    from cuebench.cli._console import plain_console
    from cuebench.cli._fit import Column, print_columns

    console = plain_console()
    ranked = sorted(pairs, key=lambda p: -abs(p.correlation.value) if p.correlation.value == p.correlation.value else 0)
    shown = ranked if everything else ranked[:MOST]
    found = [p.correlation for p in shown]
    columns = [
        Column("x", [p.x for p in shown], needed=True, number=False),
        Column("y", [p.y for p in shown], needed=True, number=False),
        Column("correlation", [f"{r.value:+.2f} [{r.low:+.2f}, {r.high:+.2f}]" for r in found], needed=True),
        Column("n", [str(r.n) for r in found], needed=True),
        Column("p", [f"{r.p:.2g}" for r in found]),
    ]
    print_columns(console, columns)
    if len(shown) < len(pairs):
        console.print(f"the {len(shown)} strongest of {len(pairs):,}; --all prints them all", style="dim")
    if len(pairs) > 1:
        console.print(f"p is not corrected for {len(pairs):,} correlations", style="dim")
    for note in sorted({p.correlation.note for p in pairs if p.correlation.note}):
        console.print(note, style="dim")
