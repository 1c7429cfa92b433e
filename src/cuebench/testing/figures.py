"""The check of a figure: drawn twice from a planted run, as SVG and PNG, with something in every panel."""

from __future__ import annotations

import io
import math
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch
from xml.etree import ElementTree

from cuebench.errors import UserError
from cuebench.options import parse
from cuebench.registry import figures, protocols
from cuebench.reports.drawing import FAINT, INK, PAPER, SOFT, Drawing, Shape
from cuebench.reports.figures.base import Figure
from cuebench.reports.panels import Panel
from cuebench.runs.evaluate import evaluate
from cuebench.testing.base import require
from cuebench.testing.planted import IDEAL

RESAMPLES = 200


def check_figure(
    figure: str | Figure,
    source: Any = None,
    *,
    options: Mapping[str, Any] | None = None,
    data_root: str | Path | None = None,
) -> None:
    """Check one figure: it draws, the same each time, valid SVG and PNG, with marks in every panel.

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
                    _check_drawing(part, source, {**(options or {}), key: choice}, name)


def _check_description(figure: Figure, name: str) -> None:
    require(figure.name.isidentifier(), f"{name}: expected a name of letters, digits and underscores")
    require(figure.title, f"{name} has no title")
    require(figure.__doc__, f"{name}: its function has no docstring")
    kinds = ("run", "file", "nothing", "objects")
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


def _check_drawing(figure: Figure, source: Any, options: Mapping[str, Any], name: str) -> None:
    label = f"{name} with {dict(options)}" if options else name
    with _panels() as panels:
        page = _drawn(figure, source, options)
    require(isinstance(page, Drawing), f"{label}: expected a Drawing, got a {type(page).__name__}")
    size = f"{page.width:g} × {page.height:g}"
    require(min(page.width, page.height) > 0, f"{label}: expected a width and a height above 0, got {size}")
    for shape in page.shapes:
        finite = all(math.isfinite(number) for number in shape.at)
        require(finite, f"{label}: expected finite coordinates, got a {shape.kind} at {shape.at}")
    require(any(_is_mark(shape) for shape in page.shapes), f"{label}: expected marks, got nothing but text and axes")
    for panel in panels:
        values = [value for line in panel.lines for _, value in line.points]
        filled = any(math.isfinite(value) for value in values)
        require(filled, f"{label}: expected a curve in every panel, the one titled {panel.title!r} is empty")
    svg, png = page.svg(), page.png(scale=1.0)
    _check_svg(svg, label)
    _check_png(png, label)
    again = _drawn(figure, source, options)
    require(again.svg() == svg, f"{label}: expected the same SVG each time, got another one")
    require(again.png(scale=1.0) == png, f"{label}: expected the same PNG each time, got another one")


def _drawn(figure: Figure, source: Any, options: Mapping[str, Any]) -> Drawing:
    values = parse(figure.options, options, f"figure {figure.name!r}")
    if figure.needs == "objects":
        return figure(*source, **values)
    return figure(**values) if figure.needs == "nothing" else figure(source, **values)


@contextmanager
def _panels() -> Iterator[list[Panel]]:
    """Note the panels that are drawn meanwhile."""
    drawn: list[Panel] = []
    original = Panel.draw

    def note(panel: Panel) -> None:
        drawn.append(panel)
        original(panel)

    with patch.object(Panel, "draw", note):
        yield drawn


def _is_mark(shape: Shape) -> bool:
    """Tell whether a shape shows data: an image, a disc, or a line or area that has not the colour of an axis."""
    if shape.kind in ("image", "circle"):
        return True
    return shape.kind != "text" and not {shape.fill, shape.stroke} <= {"none", INK, SOFT, FAINT, PAPER}


def _check_svg(svg: str, label: str) -> None:
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError as error:
        require(False, f"{label}: expected valid XML: {error}")
        return
    require(root.tag.endswith("svg"), f"{label}: expected an svg element, got {root.tag}")


def _check_png(png: bytes, label: str) -> None:
    from PIL import Image

    with Image.open(io.BytesIO(png), formats=("PNG",)) as image:
        colours = image.convert("RGB").getcolors(maxcolors=image.width * image.height)
    require(colours is None or len(colours) > 1, f"{label}: expected a picture, got a PNG of one colour")
