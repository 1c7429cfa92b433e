"""The figures of a report: those of the registry that fit its protocols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cuebench.errors import MissingExtra, UserError
from cuebench.registry import figures
from cuebench.reports import embed
from cuebench.reports.html.material import Material
from cuebench.reports.run_data import reading_once

OVERVIEW = ("profile", "sensitivity_plane", "intervals", "accuracy_vs_bias")
"""Figures of the overview, in this order; those that show several protocols and are named nowhere follow."""
PEOPLE = ("agreement_matrix",)
"""Figures of the section about people."""
LEFT_OUT = frozenset({"decisions"})
"""Figures of a single image: the gallery shows what they show."""


@dataclass
class Charts:
    """The figures of a report by section, as elements of a page, and the scripts that bring them to life."""

    overview: list[str] = field(default_factory=list)
    people: list[str] = field(default_factory=list)
    protocols: dict[str, list[str]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    """Figure that fits the protocols and could not be drawn → why."""
    head: str = ""
    scripts: tuple[str, ...] = ()

    def add(self, name: str, element: str) -> None:
        """Put a figure where it belongs."""
        protocol = figures.get(name).protocol
        if name in PEOPLE:
            self.people.append(element)
        elif name in OVERVIEW or not protocol:
            self.overview.append(element)
        else:
            self.protocols.setdefault(protocol, []).append(element)

    @property
    def number(self) -> int:
        """How many figures there are."""
        return len(self.overview) + len(self.people) + sum(map(len, self.protocols.values()))


def make_charts(material: Material) -> Charts:
    """Draw every figure that is made from a run and fits its protocols; one that lacks its numbers is left out."""
    charts = Charts()
    folders = [run.folder for run in material.runs]
    with reading_once():
        for name in _fitting(material.protocols):
            try:
                element = embed.chart(figures.get(name)(folders[0] if len(folders) == 1 else folders))
            except MissingExtra:
                raise
            except UserError as error:  # these runs lack what it is drawn from
                charts.left_out[name] = error.message
                continue
            charts.add(name, element)
    if charts.number:
        charts.head, charts.scripts = embed.head(), embed.scripts()
    return charts


def _fitting(protocols: Sequence[str]) -> list[str]:
    """Return the figures for these protocols, those of the overview first."""
    usable = dict(figures.usable())
    fitting = [n for n, f in usable.items() if f.needs == "run" and (not f.protocol or f.protocol in protocols)]
    order = {name: i for i, name in enumerate(OVERVIEW)}
    return sorted((n for n in fitting if n not in LEFT_OUT), key=lambda n: order.get(n, len(order)))
