"""The verb ``list``."""

from __future__ import annotations

from typing import Annotated

import typer

from cuebench.cli._json import print_json

KINDS = "protocols, metrics, cues, observers, readers, makers, sources, datasets, figures, stimuli, labels, suites"


def command(
    kind: Annotated[str, typer.Argument(help=f"One of: {KINDS}.")],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List the parts of cuebench and of installed plug-ins."""
    from cuebench.catalogue import kinds, rows
    from cuebench.errors import did_you_mean

    if kind not in kinds():
        raise did_you_mean("kind of part:", kind, kinds())
    listed = rows(kind)
    if as_json:
        print_json(listed)
        return
    from rich.table import Table

    from cuebench.cli._console import plain_console

    table = Table(box=None, pad_edge=False)
    for column in listed[0] if listed else ():
        table.add_column(column, overflow="fold", no_wrap=column in {"name", "kind", "version"})
    for row in listed:
        table.add_row(*row.values())
    plain_console().print(table)
