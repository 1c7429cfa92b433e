"""How correlations of headlines that are corrected for their errors are printed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuebench.statistics.reliability import Range, Structure


def print_structure(structure: Structure, title: str = "") -> None:
    """Print the pairs, the reliabilities, what each headline adds, and the factor."""
    from cuebench.cli._console import plain_console
    from cuebench.cli._fit import Column, print_columns

    console = plain_console()
    links = sorted(structure.links, key=lambda link: -_size(link.observed.value))
    columns = [
        Column("headline", [link.first for link in links], needed=True, number=False),
        Column("headline ", [link.second for link in links], needed=True, number=False),
        Column("correlation", [_text(link.observed) for link in links], needed=True),
        Column("corrected\nfor error", [_text(link.corrected) for link in links], needed=True),
    ]
    given = [link.given_others for link in links if link.given_others]
    if given:
        columns.append(Column("given\nthe others", [_text(r) for r in given], needed=True))
    print_columns(console, columns, title=f"{title + ': ' if title else ''}{len(structure.observers)} observers")
    for note in dict.fromkeys(link.note for link in links if link.note):
        console.print(note, style="dim")
    console.print()
    parts = {s.name: s for s in structure.shares}
    columns = [
        Column("headline", list(structure.names), needed=True, number=False),
        Column("reliability", [_text(structure.reliability[n]) for n in structure.names], needed=True),
    ]
    if parts:
        columns += [
            Column("predicted by\nthe others", [_text(parts[n].shared) for n in structure.names], needed=True),
            Column("of its own,\nrepeatable", [_text(parts[n].own) for n in structure.names], needed=True),
        ]
    if structure.factor is not None and structure.factor.loadings:
        columns.append(Column("loading", [_text(structure.factor.loadings[n]) for n in structure.names]))
    print_columns(console, columns)
    if structure.factor is not None:
        pairs = ", ".join(
            f"{e:.2f} ({c:.2f})" for e, c in zip(structure.factor.eigenvalues, structure.factor.by_chance)
        )
        console.print(f"eigenvalues (of unrelated columns): {pairs}: {_factors(structure.factor.number)}", style="dim")
    for note in structure.notes:
        console.print(note, style="dim")
    console.print("[95 % interval], for other observers of the same kind; correlations are Pearson's", style="dim")


def _factors(number: int) -> str:
    return {0: "no common factor", 1: "one common factor"}.get(number, f"{number} common factors")


def _size(value: float) -> float:
    return abs(value) if math.isfinite(value) else -1.0


def _text(estimate: Range) -> str:
    if not math.isfinite(estimate.value):
        return "–"
    interval = f" [{estimate.low:+.2f}, {estimate.high:+.2f}]" if math.isfinite(estimate.low) else ""
    return f"{estimate.value:+.2f}{interval}"


def structure_json(structure: Structure) -> dict[str, Any]:
    """Return everything as JSON."""
    return {
        "observers": list(structure.observers),
        "reliability": {name: _range(r) for name, r in structure.reliability.items()},
        "pairs": [
            {
                "x": link.first,
                "y": link.second,
                "observed": _range(link.observed),
                "corrected": _range(link.corrected),
                "given_others": link.given_others and _range(link.given_others),
                "note": link.note,
            }
            for link in structure.links
        ],
        "shares": {
            s.name: {"shared": _range(s.shared), "own": _range(s.own), "error": _range(s.error)}
            for s in structure.shares
        },
        "factor": None
        if structure.factor is None
        else {
            "number": structure.factor.number,
            "loadings": {name: _range(r) for name, r in structure.factor.loadings.items()},
            "eigenvalues": list(structure.factor.eigenvalues),
            "by_chance": list(structure.factor.by_chance),
        },
        "notes": list(structure.notes),
    }


def _range(estimate: Range) -> dict[str, float | None]:
    return {k: v if math.isfinite(v) else None for k, v in estimate._asdict().items()}
