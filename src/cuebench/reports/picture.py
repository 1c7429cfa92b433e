"""What a figure returns: a chart with its title, its data and a text that says what it shows; saved by the name."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Literal, NamedTuple

from cuebench.csv_text import csv_text
from cuebench.errors import UserError, printable
from cuebench.files import ending_of, is_printed, write_atomic
from cuebench.reports import theme, vega
from cuebench.reports.text import wrapped
from cuebench.reports.theme import WIDTHS, Width

Row = Mapping[str, Any]
ENDINGS = (".pdf", ".png", ".svg", ".html", ".json", ".csv")
_PRINTED = ".svg"
"""What a picture can be saved as: by its ending."""
TABLE = ".data.csv"
"""Ending of the table that lies beside a saved picture."""
_NARROWEST = 60.0
_SLACK = 4.0
"""Points by which a picture may be narrower than it should; nobody sees them, and it is drawn once less."""
_OF_WIDTH = 0.95
"""Part of the width at which titles are broken: fonts that stand in for a missing one are a little wider."""


class Fit(NamedTuple):
    """A picture of one width: its specification, its drawing, by how much it is too wide, and what is not plots."""

    spec: dict[str, Any]
    svg: str
    excess: float
    margin: float


class Saved(NamedTuple):
    """The files that were written: the picture, and its data."""

    file: Path
    data: Path


@dataclass(frozen=True)
class Picture:
    """A chart, and everything that it is shown with.

    Parameters
    ----------
    title : str
        What is shown.
    build : callable
        ``build(room) -> altair chart`` without title and configuration; ``room`` is the width of the plots in points.
        A picture asks again until the whole chart, with labels and legends, is as wide as a column or a page.
    data : sequence of mapping
        What is shown, as a tidy table; a record for each mark.
    subtitle : str
        What the marks and whiskers are, and of how many.
    alt : str
        What a reader who cannot see the picture should know; default: title and subtitle.
    footnote : str
        Where the numbers are from: version of the protocol, n, intervals, partial sets. A figure of the registry that
        is drawn from a run gets it when it is called.

    Examples
    --------
    >>> rows = [{"model": "a", "shape bias": 0.2}, {"model": "b", "shape bias": 0.7}]
    >>> def bars(room):
    ...     from cuebench.reports.vega import alt, data
    ...     return alt.Chart(data(rows)).mark_bar().encode(x="shape bias:Q", y="model:N").properties(width=room)
    >>> picture = Picture("Shape bias", bars, rows)
    >>> print(picture.csv())
    model,shape bias
    a,0.2
    b,0.7
    <BLANKLINE>
    """

    title: str
    build: Callable[[float], Any] = field(repr=False)
    data: Sequence[Row] = field(repr=False)
    subtitle: str = ""
    alt: str = ""
    footnote: str = ""
    _fits: dict[str, Fit] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def description(self) -> str:
        """The text for a reader who cannot see the picture."""
        text = self.alt or ". ".join(filter(None, (self.title, self.subtitle)))
        return printable(" ".join(filter(None, (text, self.footnote))))

    def spec(self, width: Width = "page", theme_name: Literal["light", "dark"] = "light") -> dict[str, Any]:
        """Return the Vega-Lite specification, with the data in it, as wide as a column or a page.

        Parameters
        ----------
        width : str
            ``column`` (3.3 inches) or ``page`` (7 inches).
        theme_name : str
            ``light`` or ``dark``.
        """
        spec = self._fitted(width).spec
        return spec if theme_name == "light" else theme.in_dark(spec)

    def _fitted(self, name: Width) -> Fit:
        """Draw it until the whole, whose labels and legends nobody can measure before, has the width."""
        if name not in WIDTHS:
            raise UserError(f"unknown width {name!r}", f"choose one of {', '.join(WIDTHS)}")
        if name in self._fits:
            return self._fits[name]
        width = WIDTHS[name]
        other = next(iter(self._fits.values()), None)
        tried: list[tuple[float, float]] = []
        best: Fit | None = None
        # What labels and legends take from the room is about the same for both widths.
        room = width - (other.margin if other and other.margin < width / 2 else 0.1 * width)
        for _ in range(6):
            spec = self.unfitted(room, width)
            drawn = vega.svg(spec)
            excess = vega.width_of_svg(drawn) - width
            if best is None or abs(excess) < abs(best.excess):
                best = Fit(spec, drawn, excess, width + excess - room)
            tried.append((room, excess))
            if -_SLACK <= excess <= 1 or room <= _NARROWEST or (len(tried) > 1 and tried[-2][1] == excess):
                break
            room = max(room - excess / _slope(tried), _NARROWEST)
        assert best is not None
        self._fits[name] = best
        return best

    def unfitted(self, room: float, width: float, *, validate: bool = False) -> dict[str, Any]:
        """Return the specification with plots of a width, below a title that is broken at another one."""
        title, subtitle, footnote = (
            wrapped(text, _OF_WIDTH * width - 6, theme.SIZES[size], bold=size == "title")
            for text, size in ((self.title, "title"), (self.subtitle, "subtitle"), (self.footnote, "footnote"))
        )
        spec = vega.as_spec(lambda: self.build(room), theme.config(), validate=validate)
        heading = {"text": title, **({"subtitle": subtitle} if subtitle else {})}
        spec = vega.with_footnote(spec, footnote) if footnote else spec
        return {**spec, "title": heading, "description": self.description}

    def svg(self, width: Width = "page") -> str:
        """Return the picture as SVG; its size is given in points."""
        text = self._fitted(width).svg
        for side in ("width", "height"):
            head, mark, rest = text.partition(f' {side}="')
            number, _, rest = rest.partition('"')
            text = f'{head}{mark}{number}pt"{rest}' if mark else text
        names = f"<title>{escape(printable(self.title))}</title><desc>{escape(self.description)}</desc>"
        head, _, rest = text.partition(">")
        return f'{head} role="img">{names}{rest}\n'

    def png(self, width: Width = "page", dpi: float = vega.DPI) -> bytes:
        """Return the picture as PNG."""
        return vega.png(self.spec(width), dpi)

    def pdf(self, width: Width = "page") -> bytes:
        """Return the picture as PDF."""
        return vega.pdf(self.spec(width))

    def html(self, width: Width = "page") -> str:
        """Return one interactive page that needs nothing from anywhere."""
        from cuebench.reports.embed import page

        return page([self], title=self.title, width=width)

    def json(self, width: Width = "page") -> str:
        """Return the Vega-Lite specification as JSON."""
        return json.dumps(self.spec(width), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def csv(self) -> str:
        """Return the data as CSV, with the footnote as a column; needs no drawing library."""
        columns = list(dict.fromkeys(column for row in self.data for column in row))
        footnote = {"footnote": self.footnote} if self.footnote else {}
        rows = ([{**row, **footnote}.get(column) for column in (*columns, *footnote)] for row in self.data)
        return csv_text([*columns, *footnote], rows)

    def save(self, path: str | Path, width: Width = "page") -> Saved:
        """Write the picture by the ending of the name, and its data beside it.

        Parameters
        ----------
        path : path
            Ends in ``.pdf``, ``.png``, ``.svg``, ``.html`` (one interactive file), ``.json`` (Vega-Lite) or ``.csv``
            (the data only). Beside a picture ``x.pdf`` lies its data as ``x.data.csv``. ``-`` prints an SVG alone.
        width : str
            ``column`` or ``page``.

        Returns
        -------
        Saved
            The file of the picture and the file of its data.
        """
        target = picture_file(path)
        ending = ending_of(target, _PRINTED)
        if ending == ".csv":
            write_atomic(target, self._encoded(self.csv()))
            return Saved(target, target)
        if ending in (".pdf", ".png"):
            content = self.pdf(width) if ending == ".pdf" else self.png(width)
        else:
            content = self._encoded({".svg": self.svg, ".html": self.html, ".json": self.json}[ending](width))
        write_atomic(target, content)
        if is_printed(target):
            return Saved(target, target)
        data = target.with_suffix(TABLE)
        write_atomic(data, self._encoded(self.csv()))
        return Saved(target, data)

    @staticmethod
    def _encoded(text: str) -> bytes:
        return text.encode("utf-8", "backslashreplace")

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Show the picture in a notebook: interactive where Vega-Lite is known, as PNG elsewhere.

        Not as SVG: a browser without the font that widths were measured with would cut long texts off.
        """
        bundle = {
            "application/vnd.vegalite.v6+json": self.spec(),
            "image/png": base64.b64encode(self.png(dpi=2 * 96)).decode(),
            "text/plain": "\n".join(filter(None, (self.title, self.subtitle, self.footnote))),
        }
        return bundle, {"image/png": {"width": round(WIDTHS["page"] * 96 / 72)}}  # points as pixels


def picture_file(path: str | Path) -> Path:
    """Return the file that a picture is written to; one whose ending says no format is a mistake."""
    target = Path(path).expanduser()
    if ending_of(target, _PRINTED) not in ENDINGS:
        raise UserError(f"cannot write a figure as {target.name!r}", f"end its name in {', '.join(ENDINGS)}")
    return target


def _slope(tried: list[tuple[float, float]]) -> float:
    """Return how much wider the whole gets with each point of room: 1, unless titles or legends grow otherwise."""
    if len(tried) < 2 or tried[-1][0] == tried[-2][0]:
        return 1.0
    (first, before), (second, after) = tried[-2:]
    return min(max((after - before) / (second - first), 0.4), 1.6)
