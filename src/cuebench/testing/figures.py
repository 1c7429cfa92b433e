"""The check of a figure: drawn twice from a planted run, with something in every panel, as wide as it should be."""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, get_args
from xml.etree import ElementTree

from cuebench.errors import UserError
from cuebench.options import parse
from cuebench.registry import figures, protocols
from cuebench.reports import vega
from cuebench.reports.figures.base import Figure, Needs
from cuebench.reports.picture import Picture
from cuebench.reports.theme import WIDTHS, Width
from cuebench.runs.evaluate import evaluate
from cuebench.testing.base import require
from cuebench.testing.planted import IDEAL

RESAMPLES = 200
_UNDEFINED = re.compile(r' (?:x|y|x1|x2|y1|y2|cx|cy|r|d|width|height|transform)="[^"]*(?:NaN|Infinity|undefined)[^"]*"')


def check_figure(
    figure: str | Figure,
    source: Any = None,
    *,
    options: Mapping[str, Any] | None = None,
    data_root: str | Path | None = None,
) -> None:
    """Check one figure: it draws the same each time, valid Vega-Lite, SVG and PNG, with marks in every panel and data.

    Parameters
    ----------
    figure : str or Figure
        A name, ``python:FILE.py:NAME``, or the object.
    source : path or tuple, optional
        The run folder or file to draw from, or the objects that the figure takes. Default for a figure of a run: ideal
        observers are measured with the figure's protocol first.
    options : mapping, optional
        Options to draw it with; every choice of every option is tried besides.
    data_root : path, optional
        For that measurement, where the protocol needs data.

    Raises
    ------
    CheckFailed
        With what was expected and what came.
    UserError
        Where there is nothing to draw it from.
    """
    part: Figure = figures.get(figure) if isinstance(figure, str) else figure
    require(isinstance(part, Figure), f"expected a Figure, got a {type(part).__name__}: {part!r}")
    name = f"figure {part.name!r}"
    _check_description(part, name)
    with ExitStack() as stack:
        if source is None and part.needs != "nothing":
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            source = _planted_run(part, Path(folder) / "run", data_root)
        _check_drawing(part, source, dict(options or {}), name)
        for key, option in part.options.items():
            for choice in option.choices if not isinstance(option.default, tuple) else ():
                if choice and choice != option.default:
                    _check_choice(part, source, {**(options or {}), key: choice}, name)


def _check_description(figure: Figure, name: str) -> None:
    require(figure.name.isidentifier(), f"{name}: expected a name of letters, digits and underscores")
    require(figure.title, f"{name} has no title")
    require(figure.__doc__, f"{name}: its function has no docstring")
    kinds = get_args(Needs)
    require(figure.needs in kinds, f"{name}: expected needs to be one of {', '.join(kinds)}, got {figure.needs!r}")
    known = not figure.protocol or figure.protocol in protocols
    require(known, f"{name} shows the protocol {figure.protocol!r}, which is not known")
    for key, option in figure.options.items():
        require(option.about, f"{name}: option {key!r} does not say what it changes")
    if figure.needs == "run":
        with tempfile.TemporaryDirectory() as empty:
            try:
                _drawn(figure, Path(empty) / "absent", {})
            except UserError as error:
                require(error.hint, f"{name}: expected a hint for a run that is not there, got: {error.message}")
            else:
                require(False, f"{name}: expected an error for a run that is not there; it draws")


def _planted_run(figure: Figure, folder: Path, data_root: str | Path | None) -> Path:
    if figure.needs != "run" or not figure.protocol:
        raise UserError(f"figure {figure.name!r} is drawn from {figure.needs}", "give source=")
    evaluate(IDEAL, figure.protocol, data_root=data_root, out=folder, resamples=RESAMPLES, workers=0)
    return folder


def _check_choice(figure: Figure, source: Any, options: Mapping[str, Any], name: str) -> None:
    """Check that another choice of an option draws something, too."""
    label = f"{name} with {dict(options)}"
    picture = _drawn(figure, source, options)
    require(isinstance(picture, Picture), f"{label}: expected a Picture, got a {type(picture).__name__}")
    _check_marks(_unfitted(picture), label)


def _check_drawing(figure: Figure, source: Any, options: Mapping[str, Any], name: str) -> None:
    label = f"{name} with {dict(options)}" if options else name
    picture = _drawn(figure, source, options)
    require(isinstance(picture, Picture), f"{label}: expected a Picture, got a {type(picture).__name__}")
    require(picture.title, f"{label}: its picture has no title")
    require(picture.data, f"{label}: expected the data that it shows, got none")
    try:
        _unfitted(picture, validate=True)
    except Exception as error:  # noqa: BLE001  Altair raises its own kinds of errors, which are not needed to import this
        require(False, f"{label}: expected valid Vega-Lite: {error}")
    again = _drawn(figure, source, options)
    same = again.csv() == picture.csv() and _unfitted(again) == _unfitted(picture)
    require(same, f"{label}: expected the same picture each time, got another one")
    foreign = sorted(set(_addresses(_unfitted(picture))))
    require(not foreign, f"{label}: expected no data from elsewhere, got {foreign}")
    for width in get_args(Width):
        _check_svg(picture.svg(width), WIDTHS[width], f"{label}, as wide as a {width}")
    _check_marks(picture.spec("column"), label)
    _check_png(picture.png("column", dpi=72), label)


def _unfitted(picture: Picture, *, validate: bool = False) -> dict[str, Any]:
    return picture.unfitted(WIDTHS["page"], WIDTHS["page"], validate=validate)


def _drawn(figure: Figure, source: Any, options: Mapping[str, Any]) -> Picture:
    values = parse(figure.options, options, f"figure {figure.name!r}")
    if figure.needs == "objects":
        return figure(*source, **values)
    return figure(**values) if figure.needs == "nothing" else figure(source, **values)


def _check_marks(spec: Mapping[str, Any], label: str) -> None:
    panels = vega.drawn(spec)
    require(panels, f"{label}: expected marks, got nothing but text and axes")
    for panel, marks in panels.items():
        number = sum(count for kind, count in marks.items() if kind != "text")
        where = f"the panel {panel!r}" if panel else "the chart"
        require(number, f"{label}: expected marks in every panel, {where} has none")


def _addresses(part: Any) -> Iterator[str]:
    """Yield every address that a specification would load something from."""
    if isinstance(part, Mapping):
        for key, value in part.items():
            if key in ("url", "href") and isinstance(value, str) and not value.startswith("data:"):
                yield value
            yield from _addresses(value)
    elif isinstance(part, list):
        for value in part:
            yield from _addresses(value)


def _check_svg(svg: str, width: float, label: str) -> None:
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError as error:
        require(False, f"{label}: expected valid XML: {error}")
        return
    require(root.tag.endswith("svg"), f"{label}: expected an svg element, got {root.tag}")
    actual = vega.width_of_svg(svg)
    require(0 < actual <= width + 3, f"{label}: expected at most {width:g} points, got {actual:g}: use the given room")
    undefined = _UNDEFINED.search(svg)
    require(not undefined, f"{label}: expected numbers as coordinates, got {undefined[0][:60] if undefined else ''}")


def _check_png(png: bytes, label: str) -> None:
    from PIL import Image

    with Image.open(io.BytesIO(png), formats=("PNG",)) as image:
        colours = image.convert("RGB").getcolors(maxcolors=image.width * image.height)
    require(colours is None or len(colours) > 1, f"{label}: expected a picture, got a PNG of one colour")
