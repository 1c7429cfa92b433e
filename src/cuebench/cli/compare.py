"""The verb ``compare``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuebench.cli._json import print_json

if TYPE_CHECKING:
    from cuebench.reports.comparison import Comparison


def command(
    run: Annotated[list[Path], typer.Argument(help="Run folders.")],
    families: Annotated[Path | None, typer.Option(help="Family file: what each training should do.")] = None,
    protocol: Annotated[
        list[str] | None,
        typer.Option("--protocol", "-p", help="Compare these protocols; default: where larger means more shape."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Compare the headlines of protocols for the same observers."""
    from cuebench.reports.comparison import compare_runs

    comparison = compare_runs(run, families, protocol)
    if as_json:
        print_json(
            {
                "measures": {c.protocol: f"{c.metric}@{c.condition}" for c in comparison.columns},
                "models": comparison.rows(),
                "intervals": comparison.intervals(),
                "families": comparison.family_rows(),
                "agreement": {pair: c._asdict() for pair, c in comparison.agreement().items()},
                "omitted": comparison.omitted,
            }
        )
    else:
        _print(comparison)


def _print(comparison: Comparison) -> None:
    from rich.table import Table

    from cuebench.cli._console import plain_console
    from cuebench.cli._tables import larger_means, value_with_interval

    console = plain_console()
    table = Table("observer", *(f"{c.protocol}\n{c.metric}" for c in comparison.columns))
    for observer in comparison.observers:
        rows = [c.rows.get(observer) for c in comparison.columns]
        table.add_row(observer, *("–" if row is None else value_with_interval(row) for row in rows))
    console.print(table)
    if comparison.tests:
        title = "Each family against the baseline (one-sample t-test)"
        families = Table("family", "expected", *comparison.tests, title=title, title_justify="left")
        for row in comparison.family_rows():
            cells = [_verdict(row[protocol], row["expected"]) for protocol in comparison.tests]
            families.add_row(row["family"], row["expected"], *cells)
        console.print(families)
    for c in comparison.columns:
        kinds = ", ".join(dict.fromkeys(s.ci_kind for s in c.rows.values() if s.ci_kind))
        interval = f"; 95 % interval, the widest: {kinds}" if kinds else ""
        console.print(f"{c.protocol}: {c.metric} in {c.condition}; {larger_means(c.protocol)}{interval}", style="dim")
    for pair, tau in comparison.agreement().items():
        interval = f" [{tau.low:.2f}, {tau.high:.2f}]" if math.isfinite(tau.low) else " (too few for an interval)"
        console.print(f"Kendall's τ, {pair}: {tau.value:.2f}{interval}, {tau.n} observers", style="dim")
    for protocol, reason in comparison.omitted.items():
        console.print(f"not shown: {protocol}: {reason}", style="dim")


def _verdict(cell: dict[str, Any], expected: str) -> str:
    if not cell["says"]:
        return str(cell["note"])
    mark = "✓" if cell["says"] == expected else "✗"
    return f"{mark} {cell['says']}, p = {cell['p']:.2g}"
