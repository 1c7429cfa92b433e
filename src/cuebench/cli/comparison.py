"""The verb ``comparison``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuebench.cli._json import print_json

if TYPE_CHECKING:
    from cuebench.reports.comparison import Comparison


def command(
    run: Annotated[list[Path], typer.Argument(help="Run folders: cue_conflict, triplets, cue_decomposition …")],
    families: Annotated[Path | None, typer.Option(help="Family file: what each training should do.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Put benchmarks side by side for the same models, with what each says about each training family."""
    from cuebench.reports.comparison import compare_runs

    found = compare_runs(run, families)
    if as_json:
        agreement = {pair: c._asdict() for pair, c in found.agreement().items()}
        conditions = {m.protocol: f"{m.metric}@{found.conditions[m.protocol]}" for m in found.measures}
        data = {"measures": conditions, "models": found.rows(), "families": found.family_rows(), "agreement": agreement}
        print_json(data)
    else:
        _print(found)


def _print(found: Comparison) -> None:
    from rich.table import Table

    from cuebench.cli._console import plain_console

    console = plain_console()
    models = Table("model", *(f"{m.title}\n{m.metric}" for m in found.measures), title="More shape is larger")
    for name in found.models:
        models.add_row(name, *(_cell(found, m.protocol, name) for m in found.measures))
    console.print(models)
    if found.tests:
        titles = [m.title for m in found.measures if m.protocol in found.tests]
        families = Table("family", "expected", *titles, title="Family against the baseline (one-sample t-test)")
        for row in found.family_rows():
            cells = [row[p] for p in found.tests]
            families.add_row(row["family"], row["expected"], *(_said(c, row["expected"]) for c in cells))
        console.print(families)
    for m in found.measures:
        console.print(f"{m.title}: {m.metric} in {found.conditions[m.protocol]}; intervals: images", style="dim")
    for pair, c in found.agreement().items():
        between = f" [{c.low:.2f}, {c.high:.2f}]" if c.low == c.low else " (too few for an interval)"
        console.print(f"Kendall's τ, {pair}: {c.value:.2f}{between}, {c.n} models", style="dim")


def _cell(found: Comparison, protocol: str, model: str) -> str:
    value = found.values[protocol].get(model)
    if value is None:
        return "–"
    low, high = found.intervals[protocol][model]
    return f"{value:.3f} [{low:.2f}, {high:.2f}]"


def _said(cell: dict[str, object], expected: str) -> str:
    if not cell["says"]:
        return str(cell["note"])
    mark = "✓" if cell["says"] == expected else "✗"
    return f"{mark} {cell['says']}, p = {cell['p']:.2g}"
