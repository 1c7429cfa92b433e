"""List and recompute published results; place a run among them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuebench.cli._idle import idle_with
from cuebench.cli._json import print_json

if TYPE_CHECKING:
    from cuebench.published.agree import Agreement

PUBLISHED, OWN = "published", "own runs"
"""Where an agreement comes from, as ``published.agree`` names it."""
Paper = Annotated[str, typer.Option("--paper", help="Only this paper.")]
Table = Annotated[str, typer.Option("--table", help="Only this table.")]
Model = Annotated[str, typer.Option("--model", help="Part of a model's or weights' name.")]
Metric = Annotated[str, typer.Option("--metric", help="Part of a quantity's name.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
ALL_OF_RUN = idle_with("run", what="a run", hint="leave it out: all scores of the run are exported")
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only the summary.")]


def list_tables(
    paper: Paper = "", table: Table = "", model: Model = "", metric: Metric = "", as_json: Json = False
) -> None:
    """List the tables; with --table, --model or --metric their numbers."""
    from cuebench.published import tables

    if table or model or metric:
        rows = [e.exported() for e in tables.entries(paper, table, model=model, metric=metric)]
    else:
        rows = tables.listing(paper)
    _show(rows, as_json=as_json)


def export(
    run: Annotated[
        Path | None, typer.Argument(help="Write the scores of this run in the layout of REFINED-BIAS.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="CSV file; for a run: a folder.")] = None,
    paper: Annotated[Paper, ALL_OF_RUN] = "",
    table: Annotated[Table, ALL_OF_RUN] = "",
    model: Annotated[Model, ALL_OF_RUN] = "",
    metric: Annotated[Metric, ALL_OF_RUN] = "",
    as_json: Json = False,
) -> None:
    """Export the published numbers as CSV, or a run as REFINED-BIAS does."""
    from cuebench.errors import UserError
    from cuebench.published import tables
    from cuebench.published.readme_layout import export_readme_layout

    if run is not None:
        if out is None:
            raise UserError("the export of a run needs a folder", f"cuebench published export {run} --out DIR")
        files = [str(path) for path in export_readme_layout(run, out)]
        print_json({"files": files}) if as_json else print("\n".join(files))
        return
    if out is None:
        raise UserError("export needs a file", "cuebench published export --out published.csv")
    numbers = tables.entries(paper, table, model=model, metric=metric)
    file = tables.export(out, numbers)
    if as_json:
        print_json({"file": str(file), "numbers": len(numbers)})
    else:
        print(f"{len(numbers):,} numbers in {file}")


def check(
    paper: Paper = "",
    everything: Annotated[
        bool, typer.Option("--all", help="Also print what agrees."), idle_with("quiet", "as_json", what="-q or --json")
    ] = False,
    as_json: Json = False,
    quiet: Annotated[Quiet, idle_with("as_json")] = False,
) -> None:
    """Recompute every published number that follows from others."""
    from cuebench.published.check import check as recompute
    from cuebench.published.check import summary

    findings = recompute(paper)
    if as_json:
        print_json([f.row() for f in findings])
        return
    if not quiet:
        rows = []
        for finding in (f for f in findings if everything or not f.agrees):
            row = finding.row()
            shown = {k: f"{v:.5g}" if isinstance(v, float) else str(v) for k, v in row.items()}
            rows.append({**shown, "agrees": "yes" if finding.agrees else "no"})
        _show(rows, as_json=False)
        print()
    for part in summary(findings):
        print(
            f"{part.kind:>8}: {part.agree:,} of {part.total:,} agree ({100 * part.agree / part.total:.1f} %), "
            f"{part.strict:,} of them from the printed digits alone"
        )


def place(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    as_json: Json = False,
) -> int:
    """Place the observers of a run among the published models."""
    from cuebench.published.place import place as place_run

    placement = place_run(run)
    if as_json:
        print_json(placement.as_dict())
    else:
        _show(placement.rows(), as_json=False)
        for reason in placement.refused:
            print(f"not compared: {reason}")
    return 0 if placement.positions else 1


def agree(
    runs: Annotated[list[Path] | None, typer.Argument(help="Run folders: compare their headlines too.")] = None,
    out: Annotated[Path | None, typer.Option(help="Draw the correlations: .pdf, .png, .svg, .html …")] = None,
    corrected: Annotated[
        bool, typer.Option("--corrected", help="Headlines of each paper, corrected for their errors.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Correlate the protocols over the same models."""
    if corrected:
        _corrected(runs or [], out, as_json=as_json)
        return
    from cuebench.published.agree import agree as correlate_protocols
    from cuebench.registry import figures
    from cuebench.reports.picture import picture_file

    if out is not None:
        picture_file(out)
    agreements = correlate_protocols(runs or [])
    if out is not None:
        figures.get("published_agreement")(agreements).save(out)
    if as_json:
        print_json([a.row() for a in agreements])
        return
    _print_agreements(agreements)
    if out is not None:
        print(f"figure: {out}")


def _corrected(runs: Sequence[Path], out: Path | None, *, as_json: bool) -> None:
    """Print whether the headlines that a paper prints of its models measure one thing."""
    from cuebench.cli._structure import print_structure, structure_json
    from cuebench.errors import UserError
    from cuebench.published.one_thing import published_structures
    from cuebench.registry import figures

    if runs:
        raise UserError("--corrected is about the papers' own models", f"cuebench correlate {runs[0]} --corrected")
    structures = published_structures()
    if out is not None:
        figures.get("one_thing")(structures).save(out)
    if as_json:
        print_json({paper: structure_json(s) for paper, s in structures.items()})
        return
    for paper, s in structures.items():
        print_structure(s, paper)
        print()
    if out is not None:
        print(f"figure: {out}")


def _print_agreements(agreements: Sequence[Agreement]) -> None:
    """Print a table for each paper, strongest correlation first, then the pairs without one and why."""
    from cuebench.cli._console import plain_console
    from cuebench.cli._fit import Column, print_columns

    console = plain_console()
    tables: dict[str, list[Agreement]] = {}
    for a in agreements:
        if a.spearman == a.spearman:
            paper = a.first.partition("/")[0] if a.source == PUBLISHED else a.source
            tables.setdefault(paper, []).append(a)
    for name, rows in tables.items():
        rows.sort(key=lambda a: -abs(a.spearman))
        names = [[_without(name, text) for text in (a.first, a.second)] for a in rows]
        columns = [
            Column("first", [first for first, _ in names], needed=True, number=False),
            Column("second", [second for _, second in names], needed=True, number=False),
            Column("Spearman", [f"{a.spearman:+.2f} [{a.low:+.2f}, {a.high:+.2f}]" for a in rows], needed=True),
            Column("models", [str(a.n) for a in rows], needed=True),
            Column("Kendall", [f"{a.kendall:+.2f}" for a in rows]),
        ]
        print_columns(console, columns, title=name if name == OWN else f"{name}, {PUBLISHED}")
        for note in dict.fromkeys(a.note for a in rows if a.note):
            console.print(note, style="dim")
        console.print()
    for a in agreements:
        if a.spearman != a.spearman:
            console.print(f"no correlation: {a.first} and {a.second}: {a.note}", style="dim")


def _without(paper: str, name: str) -> str:
    return name.removeprefix(f"{paper}/")


def _show(rows: Sequence[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json(list(rows))
        return
    if not rows:  # an empty table is an empty line
        return
    from rich.table import Table as RichTable

    from cuebench.cli._console import plain_console

    table = RichTable(box=None, pad_edge=False)
    for name in rows[0] if rows else ():
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    plain_console().print(table)


COMMANDS = {"list": list_tables, "check": check, "place": place, "agree": agree, "export": export}
