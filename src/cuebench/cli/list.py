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
    from cuebench import registry
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

    columns = [column for column in (listed[0] if listed else ()) if _is_shown(column, listed)]
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column in {"name", "kind", "version"})
    for row in listed:
        table.add_row(*(_cell(column, row) for column in columns))
    plain_console().print(table)
    if kind in registry.KINDS:
        print("\nmore about one of them: cuebench explain NAME")


def _is_shown(column: str, listed: list[dict[str, str]]) -> bool:
    """Tell whether a column has a place of its own on a terminal."""
    if column == "origin":
        return len({row["origin"] for row in listed}) > 1
    return column not in {"form", "example", "status"}  # of observers: `explain` has the form, `_cell` the others


def _cell(column: str, row: dict[str, str]) -> str:
    """Return a cell; of an observer, the summary is followed by an example, and by what is missing."""
    text = row[column].replace("``", "")
    if column != "summary" or "example" not in row:
        return text
    missing = [row["status"]] if row["status"].startswith("needs") else []
    return "\n".join([text, *([f"e.g. {row['example']}"] if row["example"] else []), *missing])
