"""The verb ``demo``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuebench.cli._json import print_json
from cuebench.cli.run import REPORT, ReportTo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from cuebench.analyses.demo.findings import Line

THUMBNAIL = 16
"""Columns of a small picture in the terminal; it has half as many lines."""


def command(
    out: Annotated[Path, typer.Option(help="Run folder.")] = Path("runs/demo"),
    seed: Annotated[int, typer.Option(help="All randomness.")] = 0,
    report_to: ReportTo = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No bar, no table.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Events on stderr, result on stdout, as JSON.")] = False,
) -> int:
    """Run every protocol in a small form, on drawings.

    Draws things, textures, novel objects and scenes, shows them to observers of known bias (ideal ones, and small
    networks trained here) and to a real network, and makes a report. Nothing is fetched; two minutes or so.
    """
    from cuebench.analyses.demo import PROTOCOLS, SEGMENTATION, run_demo
    from cuebench.analyses.demo.findings import sentences, table
    from cuebench.cli._console import plain_console
    from cuebench.cli._display import Display
    from cuebench.reports.html.report import page_file, report

    page_file(report_to or out / REPORT)
    console = plain_console()
    talk = not (quiet or as_json)
    shown = Display(quiet=quiet, as_json=as_json)

    def stage(text: str) -> None:
        if talk:
            console.print(f"· {text}")
        if talk and text.startswith("stimuli: "):
            _print_thumbnails(console, out / "data")

    with shown as display:
        demo = run_demo(out, seed=seed, stage=stage, on_event=display)
    rows: Any = demo.rows
    names = (*PROTOCOLS[:5], SEGMENTATION, *PROTOCOLS[5:])
    lines = sentences(rows, names)
    if talk:
        console.print("· write the report")
    title = "Demo: drawn stimuli, observers of known bias, one real network"
    page = report([demo.scores, demo.segmentation], report_to or out / REPORT, title=title).path
    if as_json:
        paths = {"out": str(out), "data": str(demo.data), "stimuli": str(demo.sheet), "report": str(page)}
        print_json({**paths, "findings": lines, "failures": demo.failures, "scores": [asdict(row) for row in rows]})
    elif not quiet:
        _print_table(console, table(rows, names))
        console.print()
        for line in lines:
            console.print(line)
        console.print(
            f"\nstimuli: {demo.sheet} · scores: {out / 'scores.json'}, {out / 'segmentation' / 'scores.json'}"
        )
        console.print(f"report: {page} (open it in a browser)")
        run = f"cuebench run -p cue_conflict -o lite:efficientnet_lite0 --data-root {demo.data} --out runs/mine"
        console.print(f"next: your model instead of lite:… (cuebench list observers): {run}")
    return 1 if demo.failures else 0


def _print_table(console: Console, lines: Sequence[Line]) -> None:
    """Print one line for each protocol, with a 95 % interval below each number."""
    from rich.table import Table

    from cuebench.analyses.demo.findings import COLUMNS

    grid = Table(box=None, padding=(0, 1), title="Headlines on drawn stimuli, [95 % interval]", title_justify="left")
    grid.add_column("protocol")
    for heading in COLUMNS:
        grid.add_column(heading.replace(" ", "\n", 1).replace("-Lite0", "-\nLite0"), justify="right")
    for line in lines:
        larger = f" ({line.larger})" if line.larger else ""
        cells = [
            "–"
            if c is None
            else f"{c.value:.2f}" + ("" if c.ci_low != c.ci_low else f"\n[{c.ci_low:.2f}, {c.ci_high:.2f}]")
            for c in line.cells
        ]
        grid.add_row(f"{line.protocol}\n  {line.metric}{larger}", *cells)
    console.print()
    console.print(grid)


def _print_thumbnails(console: Console, data: Path) -> None:
    """Print some stimuli as coloured blocks, where the terminal can."""
    if not console.is_terminal or console.color_system != "truecolor":
        return
    from PIL import Image
    from rich.text import Text

    files = sorted((data / "cue_conflict" / "stimuli").glob("*/*.png"))
    number = max(1, (console.width - 2) // (THUMBNAIL + 1))
    chosen = files[3 :: max(1, len(files) // number)][:number]
    side = (THUMBNAIL, THUMBNAIL)
    pictures = [
        Image.open(file, formats=("PNG",)).convert("RGB").resize(side, Image.Resampling.LANCZOS) for file in chosen
    ]
    for y in range(0, THUMBNAIL, 2):
        line = Text("  ")
        for picture in pictures:
            for x in range(THUMBNAIL):
                upper, lower = ("#{:02x}{:02x}{:02x}".format(*picture.getpixel((x, y + k))) for k in (0, 1))  # type: ignore[misc]
                line.append("▀", style=f"{upper} on {lower}")
            line.append(" ")
        console.print(line)
