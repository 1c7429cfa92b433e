"""The verb ``correlate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuebench.cli._idle import idle_with, needs
from cuebench.cli._json import print_json

if TYPE_CHECKING:
    from cuebench.reports.correlate import Pair

MOST = 20
"""Correlations that are printed unless all are asked for."""

COLUMNS = idle_with("corrected")


def command(
    runs: Annotated[list[Path], typer.Argument(help="Run folders; the same name is the same observer in all of them.")],
    x: Annotated[
        str, typer.Option(help="metric@condition, or a protocol for its headline; default: every column."), COLUMNS
    ] = "",
    y: Annotated[
        str, typer.Option(help="metric@condition, or a protocol for its headline; default: every column."), COLUMNS
    ] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="All columns where none is named; all lines."), COLUMNS
    ] = False,
    method: Annotated[str, typer.Option(help="spearman, pearson or kendall."), COLUMNS] = "spearman",
    kind: Annotated[list[str] | None, typer.Option(help="Kind of observer; repeat. Default: model.")] = None,
    seed: Annotated[
        int, typer.Option(help="--corrected: of the eigenvalues that chance would give."), needs("corrected")
    ] = 0,
    corrected: Annotated[
        bool, typer.Option("--corrected", help="Headlines, corrected for what other images would change.")
    ] = False,
    protocol: Annotated[
        list[str] | None,
        typer.Option("--protocol", "-p", help="--corrected: these only; repeat. Default: of shape."),
        needs("corrected"),
    ] = None,
    same: Annotated[
        list[str] | None,
        typer.Option(metavar="A=B", help="--corrected: observer A goes by the name B; repeat."),
        needs("corrected"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="--corrected: draw it: .pdf, .png, .svg …"), needs("corrected")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Result on stdout as JSON.")] = False,
) -> None:
    """Correlate columns of scores over models, with intervals.

    Without --x and --y: the headlines of the protocols. With --corrected: do they measure one thing? Reliabilities,
    correlations of what is repeatable, a common factor, and what each headline has of its own.
    """
    if corrected:
        _corrected(runs, protocol or (), kind or ("model",), same or (), seed, out, as_json=as_json)
        return
    from cuebench.reports.correlate import correlate_columns

    kinds, headlines = kind or ("model",), not everything
    pairs = correlate_columns(runs, x, y, method=method, kinds=kinds, headlines=headlines)  # type: ignore[arg-type]
    if as_json:
        rows = [{"x": p.x, "y": p.y, **p.correlation._asdict(), "observers": list(p.observers)} for p in pairs]
        print_json(rows)
        return
    _print(pairs, everything=everything)


def _corrected(
    runs: Sequence[Path],
    protocols: Sequence[str],
    kinds: Sequence[str],
    same: Sequence[str],
    seed: int,
    out: Path | None,
    *,
    as_json: bool,
) -> None:
    from cuebench.cli._structure import print_structure, structure_json
    from cuebench.errors import UserError
    from cuebench.registry import figures
    from cuebench.registry import protocols as registered
    from cuebench.reports.correlate import headline_structure
    from cuebench.reports.picture import picture_file

    wrong = [text for text in same if "=" not in text]
    if wrong:
        raise UserError(f"--same {wrong[0]} names one observer", "write --same OTHER_NAME=NAME")
    names = {text.split("=", 1)[0]: text.split("=", 1)[1] for text in same}
    wanted = [registered.resolve(name) for name in protocols]
    if out is not None:
        picture_file(out)
    structure = headline_structure(runs, wanted, kinds=kinds, same=names, seed=seed)
    if out is not None:
        figures.get("one_thing")({"": structure}).save(out)
    if as_json:
        print_json(structure_json(structure))
        return
    print_structure(structure)
    if out is not None:
        print(f"figure: {out}")


def _print(pairs: Sequence[Pair], *, everything: bool) -> None:
    """Print the strongest correlations as a table; all of them where that was asked for."""
    from cuebench.cli._console import plain_console
    from cuebench.cli._fit import Column, print_columns
    from cuebench.reports.paired import p_text

    console = plain_console()
    ranked = sorted(pairs, key=lambda p: -abs(p.correlation.value) if p.correlation.value == p.correlation.value else 0)
    shown = ranked if everything else ranked[:MOST]
    correlations = [p.correlation for p in shown]
    columns = [
        Column("x", [p.x for p in shown], needed=True, number=False),
        Column("y", [p.y for p in shown], needed=True, number=False),
        Column("correlation", [r.text for r in correlations], needed=True),
        Column("n", [str(r.n) for r in correlations], needed=True),
        Column("p", [p_text(r.p) for r in correlations]),
    ]
    print_columns(console, columns)
    if len(shown) < len(pairs):
        console.print(f"the {len(shown)} strongest of {len(pairs):,}; --all prints them all", style="dim")
    if len(pairs) > 1:
        console.print(f"p is not corrected for {len(pairs):,} correlations", style="dim")
    for note in sorted({p.correlation.note for p in pairs if p.correlation.note}):
        console.print(note, style="dim")
