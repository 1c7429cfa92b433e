"""The verb ``list``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from cuebench.cli._json import print_json


class Part(StrEnum):
    """What can be listed."""

    protocols = "protocols"
    observers = "observers"
    cues = "cues"
    metrics = "metrics"
    stimuli = "stimuli"
    labels = "labels"
    suites = "suites"
    figures = "figures"


def command(
    part: Annotated[Part, typer.Argument(help="What to list.")],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List the parts of cuebench: protocols, observers, cues, metrics, stimuli, labels, suites, figures."""
    from cuebench.catalogue import rows

    found = rows(part.value)
    if as_json:
        print_json(found)
        return
    from rich.table import Table

    from cuebench.cli._console import plain_console

    table = Table(box=None, pad_edge=False)
    for column in found[0] if found else ():
        table.add_column(column, overflow="fold", no_wrap=column in {"name", "kind"})
    for row in found:
        table.add_row(*row.values())
    plain_console().print(table)
