"""The verb ``compare``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuebench.cli._idle import idle_with
from cuebench.cli._json import print_json

if TYPE_CHECKING:
    from rich.console import Console

    from cuebench.protocols.headline import Column
    from cuebench.reports.comparison import Comparison
    from cuebench.reports.paired import Pair, Paired

MOST = 15
"""Pairs of a protocol that are printed unless all are asked for."""


def command(
    run: Annotated[list[Path], typer.Argument(help="Run folders.")],
    observer: Annotated[
        list[str] | None, typer.Option("--observer", "-o", help="Compare these only; repeat. Default: all.")
    ] = None,
    protocol: Annotated[
        list[str] | None, typer.Option("--protocol", "-p", help="Headlines of these only; repeat. Default: all.")
    ] = None,
    families: Annotated[Path | None, typer.Option(help="Family file: what each training should do.")] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help=f"Print every pair, also where there are more than {MOST}."),
        idle_with("as_json", hint="leave it out: the JSON has every pair"),
    ] = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all pairs: .csv, .md or .tex.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Compare observers on the same stimuli: who differs, by how much.

    For the headline of each protocol. Differences are paired; their intervals hold for other sources (shapes, textures,
    classes) and other people, p is where such an interval reaches 0, corrected by Holm for all pairs of a protocol.
    Observers that share a letter cannot be told apart; one that decided fewer than three trials is not compared.
    """
    from cuebench.reports.comparison import compare_runs, pairs_file, write_pairs

    if out is not None:
        pairs_file(out)
    comparison = compare_runs(run, families, protocol, observer or ())
    if out is not None:
        write_pairs(comparison, out)
    if as_json:
        print_json(_as_json(comparison))
        return
    _print(comparison, every=every)
    if out is not None:
        print(f"{len(comparison.pair_rows()):,} pairs in {out}")


def _as_json(comparison: Comparison) -> dict[str, Any]:
    return {
        "measures": {c.protocol: f"{c.metric}@{c.condition}" for c in comparison.columns},
        "models": comparison.rows(),
        "intervals": comparison.intervals(),
        "pairs": comparison.pair_rows(),
        "groups": {name: dict(paired.groups) for name, paired in comparison.paired.items()},
        "notes": {name: list(paired.notes) for name, paired in comparison.paired.items() if paired.notes},
        "families": comparison.family_rows(),
        "agreement": {pair: c._asdict() for pair, c in comparison.agreement().items()},
        "omitted": comparison.omitted,
    }


def _print(comparison: Comparison, *, every: bool) -> None:
    from cuebench.cli._console import plain_console
    from cuebench.reports.paired import Paired

    console = plain_console()
    for column in comparison.columns:
        _print_protocol(console, column, comparison.paired.get(column.protocol, Paired()), every=every)
    _print_families(console, comparison)
    for pair, tau in comparison.agreement().items():
        console.print(f"Kendall's τ, {pair}: {tau.text}, {tau.n} observers", style="dim")
    for protocol, reason in comparison.omitted.items():
        console.print(f"not shown: {protocol}: {reason}", style="dim")


def _print_protocol(console: Console, column: Column, paired: Paired, *, every: bool) -> None:
    """Print the observers of a protocol in order, with their tie groups, then the pairs."""
    from cuebench.cli import _fit
    from cuebench.cli._tables import larger_means, print_cautions, value_with_interval
    from cuebench.protocols.cautions import cautions

    rows = sorted(column.rows.values(), key=lambda row: -row.value)
    kinds = list(dict.fromkeys(row.ci_kind for row in rows if row.ci_kind))
    columns = [
        _fit.Column("observer", [row.observer for row in rows], needed=True, number=False),
        _fit.Column(column.metric.replace("_", "\n", 1), [value_with_interval(row) for row in rows], needed=True),
        _fit.Column("n", [f"{row.n:,}" for row in rows], needed=True),
    ]
    if paired.groups:
        letters = [paired.groups.get(row.observer, "") for row in rows]
        columns.append(_fit.Column("tied", letters, needed=True, number=False))
    _fit.print_columns(console, columns, title=f"{column.protocol} · {column.condition}")
    interval = f"; [95 % interval]: {', '.join(kinds)}" if kinds else ""
    console.print(f"{column.protocol}: {larger_means(column.protocol, column.condition)}{interval}", style="dim")
    print_cautions(console, cautions(rows, column.metric))
    if paired.pairs:
        _print_pairs(console, paired.pairs, every=every)
    for note in paired.notes:
        console.print(note, style="dim")
    console.print()


def _print_pairs(console: Console, pairs: Sequence[Pair], *, every: bool) -> None:
    from cuebench.cli._fit import Column, fits, print_columns
    from cuebench.reports.paired import difference_text, p_text

    apart = sum(pair.separable for pair in pairs)
    kinds = list(dict.fromkeys(p.difference.interval.kind for p in pairs if p.difference.interval))
    shown = pairs if every or len(pairs) <= MOST else ()
    advice = [_advice(p) for p in shown]
    console.print()
    for between in (" − ", "\n− "):
        columns = [
            Column("pair", [f"{p.first}{between}{p.second}" for p in shown], needed=True, number=False),
            Column("difference", [difference_text(p, 2) for p in shown], needed=True),
            Column("p\n(Holm)", [p_text(p.p_holm) for p in shown], needed=True),
            Column("to tell\nthem apart", advice, needed=True),
            Column("n", [f"{p.difference.n:,}" for p in shown]),
            Column("p\n(alone)", [p_text(p.difference.p) for p in shown]),
        ]
        if fits(console, [c for c in columns if c.needed]):
            break
    if shown:
        print_columns(console, columns)
    text = f"{apart} of {len(pairs)} pairs differ (p ≤ .05 after Holm's correction)"
    more = "" if shown else "; --all prints them, --out pairs.csv writes them"
    console.print(f"{text}{more}; paired [95 % interval]: {', '.join(kinds)}", style="dim")
    if len(shown) == 1 and not shown[0].separable:
        console.print(f"{shown[0].first} and {shown[0].second} are {shown[0].verdict}")
    elif any("×" in cell for cell in advice):
        text = (
            "5×: so many times the sources (shapes, textures, classes) and images; images of the same would hardly help"
        )
        console.print(text, style="dim")


def _advice(pair: Pair) -> str:
    """Say in a few characters what it would take to tell a pair apart."""
    if pair.separable:
        return "different"
    if pair.difference.note:
        return pair.difference.note
    images, times = pair.advice
    return f"+{images:,} images" if images else f"{times:g}×" if times else "too alike"


def _print_families(console: Console, comparison: Comparison) -> None:
    from rich.table import Table

    if not comparison.tests:
        return
    title = "Each family against the baseline (one-sample t-test)"
    families = Table("family", "expected", *comparison.tests, title=title, title_justify="left")
    for row in comparison.family_rows():
        cells = [_verdict(row[protocol], row["expected"]) for protocol in comparison.tests]
        families.add_row(row["family"], row["expected"], *cells)
    console.print(families)


def _verdict(cell: dict[str, Any], expected: str) -> str:
    from cuebench.reports.paired import p_is

    if not cell["says"]:
        return str(cell["note"])
    mark = "✓" if cell["says"] == expected else "✗"
    return f"{mark} {cell['says']}, {p_is(cell['p'])}"
