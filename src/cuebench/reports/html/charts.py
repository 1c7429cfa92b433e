"""The figures of a report: those of the registry that fit its protocols."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from cuebench.errors import MissingExtra, UserError
from cuebench.processes import ProcessPool
from cuebench.registry import OBJECT, SCHEME, figures
from cuebench.reports import embed
from cuebench.reports.html.material import Material
from cuebench.reports.run_data import reading_once

OVERVIEW = ("profile", "sensitivity_plane", "intervals", "accuracy_vs_bias")
"""Figures of the overview, in this order; those that show several protocols and are named nowhere follow."""
FIRST = ("shape_bias", "triplet_curves", "corruption_curves")
"""Figures that their protocol is known for: they stand before its others."""
PEOPLE = ("agreement_matrix",)
"""Figures of the section about people."""
FEW = 3
"""Figures up to which starting processes takes longer than it saves."""
MOST_PROCESSES = 4


class Task(NamedTuple):
    """Figures to be drawn, and the run folders that they are drawn from."""

    names: list[str]
    folders: list[Path]


class Drawn(NamedTuple):
    """Figure → its element of the page; figure that could not be drawn → why."""

    elements: dict[str, str]
    problems: dict[str, str]


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

    @property
    def number(self) -> int:
        """How many figures there are."""
        return len(self.overview) + len(self.people) + sum(map(len, self.protocols.values()))


class Drawing:
    """Figures that are being drawn; `charts` waits for them."""

    def __init__(self, names: Sequence[str], futures: Sequence[Future[Drawn]]) -> None:
        self._names, self._futures = names, futures

    def charts(self) -> Charts:
        """Return the figures, each where it belongs."""
        drawn = [future.result() for future in self._futures]
        elements = {name: element for part in drawn for name, element in part.elements.items()}
        charts = Charts(left_out={name: why for part in drawn for name, why in part.problems.items()})
        for number, name in enumerate(name for name in self._names if name in elements):
            element, protocol = _with_own_ids(elements[name], number), figures.get(name).protocol
            if name in PEOPLE:
                charts.people.append(element)
            elif name in OVERVIEW or not protocol:
                charts.overview.append(element)
            else:
                charts.protocols.setdefault(protocol, []).append(element)
        if charts.number:
            charts.head, charts.scripts = embed.head(), embed.scripts()
        return charts


@contextmanager
def drawing(material: Material, *, wanted: bool = True) -> Iterator[Drawing]:
    """Begin to draw every figure that is made from a run and fits its protocols, in processes of their own.

    A figure that these runs lack the numbers for is left out, with the reason.
    """
    names = _fitting(material.protocols) if wanted else []
    # A figure of this session or of a file is not known to another process.
    here = [n for n in names if figures.origin(n).startswith((OBJECT, SCHEME))]
    elsewhere = [n for n in names if n not in here]
    workers = _workers() if len(elsewhere) > FEW else 0
    folders = [run.folder.absolute() for run in material.runs]
    shares = _shares(elsewhere, max(workers, 1))
    with ProcessPool(workers) as pool:
        futures = [pool.submit(draw, Task(share, folders)) for share in shares if share]
        with ProcessPool(0) as mine:
            yield Drawing(names, [*futures, *([mine.submit(draw, Task(here, folders))] if here else [])])


def draw(task: Task) -> Drawn:
    """Draw some figures of the same runs, in whichever process this is."""
    result = Drawn({}, {})
    with reading_once():
        for name in task.names:
            try:
                picture = figures.get(name)(task.folders[0] if len(task.folders) == 1 else task.folders)
                result.elements[name] = embed.chart(picture)
            except MissingExtra:
                raise
            except UserError as error:  # these runs lack what it is drawn from
                result.problems[name] = error.message
    return result


def _fitting(protocols: Sequence[str]) -> list[str]:
    """Return the figures for these protocols, those of the overview first."""
    usable = dict(figures.usable())
    fitting = [n for n, f in usable.items() if f.needs == "run" and (not f.protocol or f.protocol in protocols)]
    order = {name: i for i, name in enumerate((*OVERVIEW, *FIRST))}
    return sorted((n for n in fitting if not usable[n].pictures), key=lambda n: order.get(n, len(order)))


def _shares(names: Sequence[str], number: int) -> list[list[str]]:
    """Deal figures to processes, to and fro: those with many panels follow each other."""
    shares: list[list[str]] = [[] for _ in range(number)]
    for place, name in enumerate(names):
        turn, at = divmod(place, number)
        shares[at if turn % 2 == 0 else number - 1 - at].append(name)
    return shares


def _workers() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_PROCESSES) if cores > 1 else 0


_ID = re.compile(r'(?<= id=")[^"]+(?=")|(?<=url\(#)[^)]+(?=\))')


def _with_own_ids(element: str, number: int) -> str:
    """Return a drawing whose clip paths are its own: ids of a page are shared by all its drawings."""
    before, tag, data = element.partition("<script")
    return _ID.sub(lambda match: f"chart{number}-{match[0]}", before) + tag + data
