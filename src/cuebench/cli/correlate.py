"""The verb ``correlate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cuebench.cli._json import print_json


def command(
    runs: Annotated[list[Path], typer.Argument(help="Run folders; the same name is the same observer in all of them.")],
    x: Annotated[
        str, typer.Option(help="metric@condition, or a protocol for its headline; default: every column.")
    ] = "",
    y: Annotated[
        str, typer.Option(help="metric@condition, or a protocol for its headline; default: every column.")
    ] = "",
    method: Annotated[str, typer.Option(help="spearman, pearson or kendall.")] = "spearman",
    kind: Annotated[list[str] | None, typer.Option(help="Kind of observer; repeat. Default: model.")] = None,
    seed: Annotated[int, typer.Option(help="Of the bootstrap over observers.")] = 0,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples.")] = 10_000,
    as_json: Annotated[bool, typer.Option("--json", help="Result on stdout as JSON.")] = False,
) -> None:
    """Correlate columns of scores over models, with intervals."""
    from cuebench.reports.correlate import correlate_columns

    pairs = correlate_columns(
        runs,
        x,
        y,
        method=method,  # type: ignore[arg-type]
        kinds=kind or ("model",),
        seed=seed,
        resamples=resamples,
    )
    if as_json:
        rows = [{"x": p.x, "y": p.y, **p.correlation._asdict(), "observers": list(p.observers)} for p in pairs]
        print_json(rows)
        return
    for p in pairs:
        r = p.correlation
        print(f"{r.value:+.3f} [{r.low:+.2f}, {r.high:+.2f}]  p = {r.p:.2g}  n = {r.n}  {p.x}  ~  {p.y}")
    for note in sorted({p.correlation.note for p in pairs if p.correlation.note}):
        print(note)
