"""The verb ``report``."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuebench.cli._idle import Counts
from cuebench.cli._json import print_json
from cuebench.errors import UserError

if TYPE_CHECKING:
    from cuebench.runs.scores import Scores


class Format(StrEnum):
    """How the scores are written."""

    table = "table"
    html = "html"
    markdown = "markdown"
    latex = "latex"
    csv = "csv"
    json = "json"


SUFFIXES = {
    ".html": Format.html,
    ".htm": Format.html,
    ".txt": Format.table,
    ".md": Format.markdown,
    ".tex": Format.latex,
    ".csv": Format.csv,
    ".json": Format.json,
}
"""Ending of the file to write → format, where none is named."""
WIDTH = 120
"""Columns of a table that is written to a file."""


def _format(given: Mapping[str, Any]) -> Format:
    out = given["out"]
    by_ending = SUFFIXES.get(out.suffix.lower()) if out else None
    return given["format_"] or by_ending or (Format.json if given["as_json"] else Format.table)


PAGE = Counts(lambda given: _format(given) is Format.html, "in a table", "for the page: --out report.html")
PRINTED = Counts(
    lambda given: given["out"] or not given["as_json"] or given["format_"] in (Format.json, Format.html),
    "with --json and no --out",
    "leave out one of them, or write that format to a file: --out FILE",
)


def command(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="A run folder; several for one HTML report.")],
    format_: Annotated[
        Format | None, typer.Option("--format", "-f", help="Default: by the ending of FILE, else table."), PRINTED
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to this file instead of the screen.")] = None,
    headlines: Annotated[
        bool, typer.Option("--headlines", help="Only the headline of each protocol: the table of a paper.")
    ] = False,
    title: Annotated[str, typer.Option(help="Heading of an HTML report."), PAGE] = "",
    images: Annotated[int, typer.Option(help="Pictures in the gallery of an HTML report; 0: none."), PAGE] = 100,
    figures: Annotated[bool, typer.Option("--figures/--no-figures", help="Figures in an HTML report."), PAGE] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Result on stdout as JSON.")] = False,
) -> None:
    """Print the scores of a run, export them, or make a page to send.

    Every number is one row with its widest interval; scores.parquet in the run folder has all intervals.
    The page (--out report.html) is one file that needs no network: findings in sentences, figures, tables, stimuli with
    all answers, methods and provenance.
    """
    import cuebench
    from cuebench.cli._tables import print_scores
    from cuebench.files import is_printed, write_atomic
    from cuebench.protocols.headline import measured, one_row_each

    if out is not None and not (format_ or is_printed(out) or out.suffix.lower() in SUFFIXES):
        raise UserError(f"the format of {out} is not known", f"end it in {', '.join(SUFFIXES)}, or give --format")
    chosen = _format({"out": out, "format_": format_, "as_json": as_json})
    if chosen is Format.html and headlines:
        raise UserError("--headlines is for tables", "leave it out: the page begins with the headlines")
    if chosen is Format.html:
        _write_page(runs, out, title=title, images=images, figures=figures, as_json=as_json)
        return
    if len(runs) > 1:
        raise UserError(
            f"several runs make one report as HTML only; got {len(runs)} runs",
            "cuebench report RUN… --out report.html, or side by side in the terminal: cuebench compare RUN…",
        )
    scores = cuebench.load(runs[0])
    scores = scores.headline() if headlines else scores
    if out is not None:
        write_atomic(out.expanduser(), _text(scores, chosen).encode())
        number = len(one_row_each(measured(scores)))
        print_json({"file": str(out), "numbers": number}) if as_json else print(f"{number:,} numbers in {out}")
    elif as_json or chosen is Format.json:
        print_json([asdict(row) for row in one_row_each(scores)])
    elif chosen is Format.table:
        print_scores(scores)
    else:
        print(_text(scores, chosen), end="")


def _write_page(runs: list[Path], out: Path | None, *, title: str, images: int, figures: bool, as_json: bool) -> None:
    """Write the report as HTML and say what is in it."""
    from cuebench.reports.html.report import report

    if out is None:
        raise UserError("a report as HTML is a file", "say where: --out report.html")
    made = report(runs, out, title=title, images=images, figures=figures)
    if as_json:
        facts = {name: value for name, value in made._asdict().items() if name not in ("path", "size")}
        print_json({"file": str(made.path), "bytes": made.size, **facts})
        return
    print(f"{made.path}: {made.size / 1e6:.1f} MB, {made.images} pictures, {made.figures} figures")
    for warning in made.warnings:
        print(f"  read with care: {warning}")


def _text(scores: Scores, chosen: Format) -> str:
    """Return the scores as the text of a file."""
    from rich.console import Console

    from cuebench.cli._tables import print_scores
    from cuebench.files import json_text
    from cuebench.protocols.headline import one_row_each

    if chosen is Format.json:
        return json_text([asdict(row) for row in one_row_each(scores)])
    if chosen is Format.table:
        text = io.StringIO()
        print_scores(scores, Console(file=text, width=WIDTH, highlight=False, markup=False, emoji=False))
        return text.getvalue()
    writers = {Format.markdown: scores.to_markdown, Format.latex: scores.to_latex, Format.csv: scores.to_csv}
    return f"{writers[chosen]()}".rstrip("\n") + "\n"
