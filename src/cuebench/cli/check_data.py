"""The verb ``check-data``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cuebench.cli._json import print_json


def command(
    protocol: Annotated[str, typer.Option("--protocol", "-p", help="refined_bias or feature_suppression.")],
    data_root: Annotated[Path, typer.Option(help="Folder with the datasets.", envvar="CUEBENCH_DATA")],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Look at a protocol's stimuli themselves: defects of the published files, quality of the suppressions."""
    from cuebench.errors import UserError
    from cuebench.registry import protocols

    module = protocols.module(protocol)
    if not hasattr(module, "data_report"):
        known = [p for p in protocols if hasattr(protocols.module(p), "data_report")]
        raise UserError(f"protocol {protocol!r} has no data check", f"those that have one: {', '.join(known)}")
    title, rows = module.data_report(data_root.expanduser())
    if as_json:
        print_json({"summary": title, "rows": rows})
        return
    from rich.table import Table

    from cuebench.cli._console import plain_console

    console = plain_console()
    if rows:
        table = Table(*rows[0])
        for row in rows:
            table.add_row(*(_text(v) for v in row.values()))
        console.print(table)
    console.print(title)


def _text(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
