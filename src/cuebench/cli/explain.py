"""The verb ``explain``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from cuebench.cli._json import print_json


def command(
    name: Annotated[str, typer.Argument(help="A metric, a protocol or a cue.")],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Say exactly what a number, an experiment or a cue is: formula, denominator, reference, caveats."""
    facts = explain(name)
    if as_json:
        print_json(facts)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for key, value in facts.items():
        if value not in ("", [], (), None):
            table.add_row(key.replace("_", " "), _text(value))
    Console(highlight=False).print(table)


def explain(name: str) -> dict[str, Any]:
    """Return what is known of a metric, a protocol or a cue."""
    from cuebench import registry
    from cuebench.errors import did_you_mean

    if name in registry.metrics:
        return asdict(registry.metrics.get(name))
    if name in registry.protocols:
        return _protocol(name)
    if name in registry.cues:
        return _cue(name)
    raise did_you_mean("metric, protocol or cue", name, [*registry.metrics, *registry.protocols, *registry.cues])


def _protocol(name: str) -> dict[str, Any]:
    from cuebench import registry

    protocol = registry.protocols.get(name)
    return {
        "name": protocol.name,
        "version": protocol.version,
        "title": protocol.title,
        "needs": [" and ".join(alternative) for alternative in protocol.needs],
        "views": [view.name for view in protocol.views],
        "metrics": list(protocol.metrics),
        "published values": [
            f"{r.observer}: {r.metric} ({r.condition}) = {r.value}; {r.source}" for r in protocol.reference
        ],
        "citation": protocol.citation.text,
        "url": protocol.citation.url,
        "licence": protocol.citation.licence,
        "bibtex": protocol.citation.bibtex,
    }


def _cue(name: str) -> dict[str, Any]:
    import inspect

    from cuebench import registry

    function = getattr(registry.cues.module(name), name)
    info = registry.cues.get(name)
    return {
        "name": name,
        "kind": info.kind,
        "call": f"{name}{inspect.signature(function)}",
        "reference": info.reference,
        "published levels": [f"{key}: {list(values)}" for key, values in info.levels.items()],
        "documentation": inspect.getdoc(function) or "",
    }


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "\n".join(f"• {v}" if isinstance(v, str) else str(v) for v in value)
    return str(value)
