"""How correlations of headlines that are corrected for their errors are printed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuebench.statistics.reliability import Range, Structure


def print_structure(found: Structure, title: str = "") -> None:
    """Print the pairs, the reliabilities, what each headline adds, and the factor."""
    from cuebench.cli._console import plain_console
    from cuebench.cli._fit import Column, print_columns

    console = plain_console()
    links = sorted(found.links, key=lambda link: -_size(link.observed.value))
    columns = [
        Column("headline", [link.first for link in links], needed=True, number=False),
        Column("headline ", [link.second for link in links], needed=True, number=False),
        Column("correlation", [_text(link.observed) for link in links], needed=True),
        Column("corrected\nfor error", [_text(link.corrected) for link in links], needed=True),
    ]
    given = [link.given_others for link in links if link.given_others]
    if given:
        columns.append(Column("given\nthe others", [_text(r) for r in given], needed=True))
    print_columns(console, columns, title=f"{title + ': ' if title else ''}{len(found.observers)} observers")
    for note in dict.fromkeys(link.note for link in links if link.note):
        console.print(note, style="dim")
    console.print()
    parts = {s.name: s for s in found.shares}
    columns = [
        Column("headline", list(found.names), needed=True, number=False),
        Column("reliability", [_text(found.reliability[n]) for n in found.names], needed=True),
    ]
    if parts:
        columns += [
            Column("predicted by\nthe others", [_text(parts[n].shared) for n in found.names], needed=True),
            Column("of its own,\nrepeatable", [_text(parts[n].own) for n in found.names], needed=True),
        ]
    if found.factor is not None and found.factor.loadings:
        columns.append(Column("loading", [_text(found.factor.loadings[n]) for n in found.names]))
    print_columns(console, columns)
    if found.factor is not None:
        pairs = ", ".join(f"{e:.2f} ({c:.2f})" for e, c in zip(found.factor.eigenvalues, found.factor.by_chance))
        console.print(f"eigenvalues (of unrelated columns): {pairs}: {_factors(found.factor.number)}", style="dim")
    for note in found.notes:
        console.print(note, style="dim")
    console.print("[95 % interval], for other observers of the same kind; correlations are Pearson's", style="dim")


def _factors(number: int) -> str:
    return {0: "no common factor", 1: "one common factor"}.get(number, f"{number} common factors")


def _size(value: float) -> float:
    return abs(value) if math.isfinite(value) else -1.0


def _text(found: Range) -> str:
    if not math.isfinite(found.value):
        return "–"
    interval = f" [{found.low:+.2f}, {found.high:+.2f}]" if math.isfinite(found.low) else ""
    return f"{found.value:+.2f}{interval}"


def structure_json(found: Structure) -> dict[str, Any]:
    """Return everything as JSON."""
    return {
        "observers": list(found.observers),
        "reliability": {name: _range(r) for name, r in found.reliability.items()},
        "pairs": [
            {
                "x": link.first,
                "y": link.second,
                "observed": _range(link.observed),
                "corrected": _range(link.corrected),
                "given_others": link.given_others and _range(link.given_others),
                "note": link.note,
            }
            for link in found.links
        ],
        "shares": {
            s.name: {"shared": _range(s.shared), "own": _range(s.own), "error": _range(s.error)} for s in found.shares
        },
        "factor": None
        if found.factor is None
        else {
            "number": found.factor.number,
            "loadings": {name: _range(r) for name, r in found.factor.loadings.items()},
            "eigenvalues": list(found.factor.eigenvalues),
            "by_chance": list(found.factor.by_chance),
        },
        "notes": list(found.notes),
    }


def _range(found: Range) -> dict[str, float | None]:
    return {k: v if math.isfinite(v) else None for k, v in found._asdict().items()}
