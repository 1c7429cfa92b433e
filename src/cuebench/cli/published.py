"""The verb ``published``."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuebench.cli._json import print_json

if TYPE_CHECKING:
    from cuebench.published.findings import Finding


class Action(StrEnum):
    """What to do with the published results."""

    list = "list"
    export = "export"
    check = "check"
    place = "place"
    agree = "agree"


def command(
    action: Annotated[Action, typer.Argument(help="list, export [RUN], check, place RUN, agree [RUN …].")],
    runs: Annotated[list[Path] | None, typer.Argument(help="Run folders: export, place, agree.")] = None,
    paper: Annotated[str, typer.Option(help="Only this paper.")] = "",
    table: Annotated[str, typer.Option(help="Only this table.")] = "",
    model: Annotated[str, typer.Option(help="Part of a model's or weights' name.")] = "",
    metric: Annotated[str, typer.Option(help="Part of a quantity's name.")] = "",
    out: Annotated[Path | None, typer.Option(help="export: CSV file (or folder, of a run); agree: SVG file.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="check: also print what agrees.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="check: only the summary.")] = False,
) -> int:
    """List, export and recompute the published results; place a run among them; ask whether protocols agree."""
    from cuebench.errors import UserError

    if action is Action.list:
        return _list(paper, table, model, metric, as_json=as_json)
    if action is Action.export:
        return _export_run(runs, out, as_json) if runs else _export(out, paper, table, model, metric, as_json)
    if action is Action.check:
        return _check(paper, everything=everything, as_json=as_json, quiet=quiet)
    if action is Action.place:
        if not runs or len(runs) != 1:
            raise UserError(f"place needs one run folder; got {len(runs or ())}", "cuebench published place runs/mine")
        return _place(runs[0], as_json=as_json)
    return _agree(runs or [], out, as_json=as_json)


def _list(paper: str, table: str, model: str, metric: str, *, as_json: bool) -> int:
    from cuebench.published import tables

    if table or model or metric:
        found = tables.entries(paper, table, model=model, metric=metric)
        _show([e.exported() for e in found], as_json=as_json)
    else:
        _show(tables.listing(paper), as_json=as_json)
    return 0


def _export(out: Path | None, paper: str, table: str, model: str, metric: str, as_json: bool) -> int:
    from cuebench.errors import UserError
    from cuebench.published import tables

    if out is None:
        raise UserError("export needs a file", "cuebench published export --out published.csv")
    found = tables.entries(paper, table, model=model, metric=metric)
    file = tables.export(out, found)
    if as_json:
        print_json({"file": str(file), "numbers": len(found)})
    else:
        print(f"{len(found):,} numbers in {file}")
    return 0


def _export_run(runs: Sequence[Path], out: Path | None, as_json: bool) -> int:
    from cuebench.errors import UserError
    from cuebench.published.readme_layout import export_readme_layout

    if out is None or len(runs) != 1:
        raise UserError("export of a run needs one run and a folder", "cuebench published export runs/mine --out DIR")
    files = [str(path) for path in export_readme_layout(runs[0], out)]
    if as_json:
        print_json({"files": files})
    else:
        print("\n".join(files))
    return 0


def _check(paper: str, *, everything: bool, as_json: bool, quiet: bool) -> int:
    from cuebench.published.check import check, summary

    found = check(paper)
    if as_json:
        print_json([f.row() for f in found])
        return 0
    if not quiet:
        _show([_line(f) for f in found if everything or not f.agrees], as_json=False)
        print()
    for part in summary(found):
        print(
            f"{part.kind:>8}: {part.agree:,} of {part.total:,} agree ({100 * part.agree / part.total:.1f} %), "
            f"{part.strict:,} of them from the printed digits alone"
        )
    return 0


def _line(finding: Finding) -> dict[str, str]:
    row = finding.row()
    shown = {k: f"{row[k]:.5g}" if isinstance(row[k], float) else str(row[k]) for k in ("printed", "recomputed")}
    return {"paper": finding.paper, "table": finding.table, "quantity": finding.quantity, **shown,
            "agrees": "yes" if finding.agrees else "no", "note": finding.note}  # fmt: skip


def _place(run: Path, *, as_json: bool) -> int:
    from cuebench.published.place import place

    placed = place(run)
    if as_json:
        print_json(placed.as_dict())
        return 0
    _show(placed.rows(), as_json=False)
    for reason in placed.refused:
        print(f"not compared: {reason}")
    return 0 if placed.positions else 1


def _agree(runs: Sequence[Path], out: Path | None, *, as_json: bool) -> int:
    from cuebench.published.agree import agree, figure

    found = agree(runs)
    if out is not None:
        figure(found, out)
    _show([f.row() for f in found], as_json=as_json)
    if out is not None and not as_json:
        print(f"figure: {out}")
    return 0


def _show(rows: Sequence[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json(list(rows))
        return
    from rich.table import Table

    from cuebench.cli._console import plain_console

    shown = Table(box=None, pad_edge=False)
    for name in rows[0] if rows else ():
        shown.add_column(name, overflow="fold")
    for row in rows:
        shown.add_row(*(str(value) for value in row.values()))
    plain_console().print(shown)
