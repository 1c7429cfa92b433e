"""The verb ``doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuebench.cli._json import print_json

if TYPE_CHECKING:
    from cuebench.checkup import Finding


def command(
    data_root: Annotated[
        Path | None, typer.Option(help="Also check the data in this folder.", envvar="CUEBENCH_DATA")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> int:
    """Check the installation, plug-ins and data; measure a known bias."""
    from cuebench.checkup import checkup

    findings = checkup(data_root)
    if as_json:
        print_json([vars(f) for f in findings])
    else:
        _print(findings)
    return 1 if any(f.status == "broken" for f in findings) else 0


def _print(findings: list[Finding]) -> None:
    from rich.table import Table
    from rich.text import Text

    from cuebench.cli._console import plain_console

    colours = {"ok": "green", "missing": "yellow", "broken": "red"}
    table = Table(box=None, pad_edge=False)
    for column in ("checked", "state", "details", "what to do"):
        table.add_column(column, overflow="fold")
    for finding in findings:
        table.add_row(finding.what, Text(finding.status, colours[finding.status]), finding.detail, finding.fix)
    plain_console().print(table)
