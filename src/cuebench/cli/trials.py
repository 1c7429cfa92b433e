"""The verb ``trials``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from cuebench.cli._json import print_json

MOST = 30
"""Lines of a protocol that are printed."""


def command(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    protocol: Annotated[list[str] | None, typer.Option("--protocol", "-p", help="Only these; repeat.")] = None,
    observer: Annotated[list[str] | None, typer.Option("--observer", "-o", help="Only these; repeat.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all rows: .parquet or .csv.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: the counts; with --out also the file.")] = False,
) -> None:
    """Write the single answers of a run as one tidy table.

    One row for each observer, stimulus and condition; without --out the outcomes are counted.
    """
    from cuebench.runs.trials import Trials

    trials = Trials(run.expanduser(), tuple(protocol or ()), tuple(observer or ()))
    if out is not None:
        written = trials.write(out)
        if as_json:
            print_json({"file": str(written.file), "rows": written.rows, "without_a_row": dict(written.without)})
            return
        print(f"{written.rows:,} rows in {written.file}")
        for why, number in written.without.items():
            print(f"without a row: {number:,} {why}")
        return
    counts = trials.count()
    if as_json:
        print_json({"counts": counts, "without_a_row": {k: v for k, v in trials.without.items() if v}})
        return
    _print(counts)
    for why, number in trials.without.items():
        if number:
            print(f"without a row: {number:,} {why}")
    print(f"all rows: cuebench trials {run} --out trials.parquet (or .csv)")


def _print(counts: Sequence[Mapping[str, Any]]) -> None:
    """Print how often each outcome occurred, for every observer and condition."""
    from cuebench.cli._console import plain_console
    from cuebench.cli._fit import Column, print_columns

    console = plain_console()
    for protocol in dict.fromkeys(row["protocol"] for row in counts):
        protocol_rows = [row for row in counts if row["protocol"] == protocol]
        shown = protocol_rows[:MOST]
        outcomes = list(dict.fromkeys(name for row in shown for name in row["outcomes"]))
        columns = [
            Column("observer", [row["observer"] for row in shown], needed=True, number=False),
            Column("condition", [row["condition"] for row in shown], needed=True, number=False),
            Column("rows", [f"{row['rows']:,}" for row in shown], needed=True),
            Column("correct", ["–" if row["correct"] is None else f"{row['correct']:.3f}" for row in shown]),
            *(Column(name, [f"{row['outcomes'].get(name, 0):,}" for row in shown]) for name in outcomes),
        ]
        print_columns(console, columns, title=protocol)
        if len(protocol_rows) > len(shown):
            console.print(f"{len(protocol_rows) - len(shown):,} more lines: --json", style="dim")
        console.print()
