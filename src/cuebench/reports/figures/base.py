"""What a figure declares: what it is drawn from, its options, and the function that draws it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from cuebench.errors import UserError
from cuebench.options import Option, parse
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import footnote, reading_once

Needs = Literal["run", "file", "nothing", "objects"]


@dataclass(frozen=True)
class Figure:
    """A figure: callable, and described for ``cuebench list`` and ``cuebench explain``.

    Parameters
    ----------
    name, title : str
        Public name and a human one.
    draw : callable
        ``draw(source, **options) -> Picture``; a figure that needs nothing takes options only.
    needs : str
        What it is drawn from: ``run`` (a run folder), ``file``, ``nothing``, or ``objects`` of Python, which
        ``cuebench figure`` cannot give.
    protocol : str
        The protocol whose results it shows; empty where it shows none.
    options : mapping of str to Option
        Keyword arguments of ``draw`` that a user can set, with the same defaults.
    pictures : bool
        It shows stimuli as they are: large, and left out of a report, whose gallery shows them.

    Examples
    --------
    >>> def numbers(*, most: int = 9) -> Picture:
    ...     rows = [{"number": k} for k in range(most)]
    ...     return Picture("Numbers", lambda room: alt.Chart(table(rows)).mark_point().encode(x="number:Q"), rows)
    >>> figure = Figure("numbers", "Numbers", numbers, needs="nothing", options={"most": Option(9, "the last", low=1)})
    >>> len(figure(most=5).data)
    5
    """

    name: str
    title: str
    draw: Callable[..., Picture]
    needs: Needs = "run"
    protocol: str = ""
    options: Mapping[str, Option] = field(default_factory=dict)
    pictures: bool = False

    def __post_init__(self) -> None:
        parameters = inspect.signature(self.draw).parameters
        for name, option in self.options.items():
            default = parameters[name].default if name in parameters else inspect.Parameter.empty
            if default != option.default:
                raise UserError(
                    f"figure {self.name!r}: option {name!r} has the default {option.default!r}, its function does not",
                    f"give {self.draw.__name__} a keyword argument {name}={option.default!r}",
                )
        object.__setattr__(self, "__doc__", inspect.getdoc(self.draw))

    def __call__(self, *sources: Any, **options: Any) -> Picture:
        """Draw the figure from its source, with options as values or as text."""
        with reading_once():
            values = parse(self.options, options, f"figure {self.name!r}")
            picture = self.draw(*sources, **values)
            if self.needs != "run" or picture.footnote:
                return picture
            return replace(
                picture, footnote=footnote(sources[0], picture.data, values.get("protocol") or self.protocol)
            )
