"""The verb ``explain``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

import typer

from cuebench.cli._json import print_json


def command(
    name: Annotated[str, typer.Argument(help="A metric, a protocol, a cue, a maker or a kind of observer.")],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Say exactly what a number, an experiment or a cue is: formula, denominator, reference, caveats."""
    facts = explain(name)
    if as_json:
        print_json(facts)
        return
    from rich.table import Table

    from cuebench.cli._console import plain_console

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for key, value in facts.items():
        if value not in ("", [], (), None):
            table.add_row(key.replace("_", " "), _text(value))
    plain_console().print(table)


def explain(name: str) -> dict[str, Any]:
    """Return what is known of a part of cuebench."""
    from cuebench import registry
    from cuebench.errors import did_you_mean

    kinds: dict[str, tuple[registry.Registry, Callable[[str], dict[str, Any]]]] = {
        "metric": (registry.metrics, lambda n: asdict(registry.metrics.get(n))),
        "protocol": (registry.protocols, _protocol),
        "cue": (registry.cues, _cue),
        "maker": (registry.makers, _maker),
        "observer": (registry.adapters, _observer),
    }
    found = {kind: tell(name) for kind, (parts, tell) in kinds.items() if name in parts}
    if not found:
        known = sorted({n for parts, _ in kinds.values() for n in parts})
        raise did_you_mean("metric, protocol, cue, maker or observer", name, known)
    (_, first), *others = found.items()
    # texture_association is a metric and a protocol: both are told.
    return {**first, **{f"{kind}: {key}": value for kind, facts in others for key, value in facts.items()}}


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


def _maker(name: str) -> dict[str, Any]:
    import inspect

    from cuebench import registry

    maker = registry.makers.get(name)
    return {
        "name": name,
        "about": maker.about,
        "options": [f"{key}={value!r}" for key, value in maker.options.items()],
        "shown by": maker.protocol or name,
        "documentation": inspect.getdoc(maker.make) or "",
    }


def _observer(name: str) -> dict[str, Any]:
    import inspect

    from cuebench import registry

    adapter = registry.adapters.get(name)
    documentation = inspect.getdoc(registry.adapters.module(name)) or ""
    return {"name": name, "form": adapter.form, "extra": adapter.extra, "documentation": documentation}


def _cue(name: str) -> dict[str, Any]:
    import inspect

    from cuebench import registry

    function = registry.cues.get(name)
    info = registry.cues.get(name).info
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
