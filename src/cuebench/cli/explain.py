"""The verb ``explain``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cuebench.cli._json import print_json


def command(
    name: Annotated[
        str, typer.Argument(help="A part, a column, an option, a condition such as 16-way/class=cat, or a word.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Explain a metric, a protocol, a cue, or any printed word."""
    from cuebench.catalogue.explain import explain

    facts = explain(name)
    if as_json:
        print_json(facts)
        return
    from rich.table import Table

    from cuebench.cli._console import plain_console

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for fact, value in facts.items():
        if value not in ("", [], (), None):
            table.add_row(fact.replace("higher_is", "higher is"), _text(value))
    plain_console().print(table)


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "\n".join(f"• {item}" if isinstance(item, str) else str(item) for item in value)
    return str(value)
