"""Altair and vl-convert, imported when a figure is drawn: from charts to SVG, PNG and PDF, without a browser."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

from cuebench.errors import MissingExtra, UserError
from cuebench.files import write_atomic
from cuebench.reports import theme

DPI = 300
"""Dots per inch of a PNG."""
_COUNTED = re.compile(r'"((?:view|param|concat|layer|selector)_)(\d+)')
_DEFINED = re.compile(r"\b(clip|gradient)[_]?(\d+)\b")


class _Lazy:
    """A module that is imported when something of it is used; where it is missing, the error has the command."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        try:
            module = importlib.import_module(self._module)
        except ImportError as error:
            raise MissingExtra("drawing a figure", "report", error.name or self._module) from None
        return getattr(module, name)


alt: Any = _Lazy("altair")
"""Altair; importing this name costs nothing."""
_convert: Any = _Lazy("vl_convert")


CHOSEN = "chosen"
"""Name of what a reader of the interactive form points at: a value of the field ``name``."""
_POINTED_AT = {"type": "point", "fields": ["name"], "on": "pointerover", "clear": "pointerout"}


_SELECTABLE = "selectable"
_WHOLE = "concat_0"
"""What Vega-Lite calls the only part of a chart that has a footnote; see `with_footnote`."""


class _Making(NamedTuple):
    """What is collected while a specification is made: tables by name, and views whose marks can be pointed at."""

    tables: dict[str, Any]
    views: list[str]


_MAKING: ContextVar[_Making | None] = ContextVar("making", default=None)


def data(rows: list[dict[str, Any]]) -> Any:
    """Return rows as the data of a chart.

    While a specification is made, the chart holds only their name: Altair copies a chart at every step of its making.
    """
    making = _MAKING.get()
    if making is None:
        return alt.Data(values=rows)
    tables = making.tables
    name = next((name for name, known in tables.items() if known == rows), f"table{len(tables) + 1}")
    tables[name] = rows
    return alt.NamedData(name=name)


def selectable(chart: Any) -> Any:
    """Return a layer whose marks can be pointed at: `CHOSEN` then holds the name of that mark."""
    making = _MAKING.get()
    if making is None:
        return chart.add_params(alt.selection_point(name=CHOSEN, fields=["name"], on="pointerover", clear="pointerout"))
    making.views.append(f"{_SELECTABLE}{len(making.views) + 1}")
    return chart.properties(name=making.views[-1])


def as_spec(build: Callable[[], Any], config: Mapping[str, Any], *, validate: bool = False) -> dict[str, Any]:
    """Return the Vega-Lite specification of an Altair chart: the same chart, the same bytes.

    Tables that several layers use are written once, and what Altair counts through in a process begins at 1.

    Parameters
    ----------
    build : callable
        Returns the chart.
    config : mapping
        The theme.
    validate : bool
        Compare all of it with the schema of Vega-Lite.
    """
    making = _Making({}, [])
    token = _MAKING.set(making)
    try:
        with alt.theme.enable("none"), _shallow_copies():
            spec: dict[str, Any] = build().to_dict(validate=validate)
    finally:
        _MAKING.reset(token)
    spec = _hoisted(spec, making.tables)
    if views := sorted(_names(spec)):
        spec["params"] = [*spec.get("params", ()), {"name": CHOSEN, "select": _POINTED_AT, "views": views}]
    order: dict[str, str] = {}

    def renamed(match: re.Match[str]) -> str:
        return '"' + order.setdefault(match[1] + match[2], f"{match[1]}{len(order) + 1}")

    spec = json.loads(_COUNTED.sub(renamed, json.dumps(spec, ensure_ascii=False)))
    return {**spec, "config": dict(config), **({"datasets": making.tables} if making.tables else {})}


def with_footnote(spec: Mapping[str, Any], lines: Sequence[str]) -> dict[str, Any]:
    """Return a specification with a text below everything that it draws, legends included: the title of the whole.

    What is drawn becomes the only part of a larger chart, whose own title stands above.
    """
    outside = {key: spec[key] for key in ("$schema", "config", "datasets", "params") if key in spec}
    inside = {key: value for key, value in spec.items() if key not in outside}
    legends = dict.fromkeys(("color", "fill", "stroke", "shape", "size", "opacity"), "independent")
    # Legends stay with the part, above the footnote.
    part = {**inside, "title": {"text": list(lines), **theme.FOOTNOTE}}
    return {**outside, "vconcat": [part], "resolve": {"scale": legends}}


@contextmanager
def _shallow_copies() -> Iterator[None]:
    """Let Altair copy charts without all that is in them, which takes a fifth of the time.

    It copies the parts of a layered chart only to set a few of their attributes, never what those hold.
    """
    base = importlib.import_module("altair.utils.schemapi").SchemaBase
    copy = base.copy

    def shallow(self: Any, deep: Any = True, ignore: Any = None) -> Any:
        return copy(self, deep=False if deep is True else deep, ignore=ignore)

    base.copy = shallow
    try:
        yield
    finally:
        base.copy = copy


def _names(part: Any) -> Iterator[str]:
    """Yield the names of the views whose marks can be pointed at, as Altair has completed them."""
    if isinstance(part, dict):
        if str(part.get("name", "")).startswith(_SELECTABLE):
            yield part["name"]
        for value in part.values():
            yield from _names(value)
    elif isinstance(part, list):
        for value in part:
            yield from _names(value)


def _hoisted(part: Any, datasets: dict[str, Any]) -> Any:
    """Replace inline tables by names, each table once."""
    if isinstance(part, list):
        return [_hoisted(p, datasets) for p in part]
    if not isinstance(part, dict):
        return part
    result = {}
    for key, value in part.items():
        if key == "data" and isinstance(value, dict) and "values" in value:
            name = next((n for n, rows in datasets.items() if rows == value["values"]), f"table{len(datasets) + 1}")
            datasets[name] = value["values"]
            result[key] = {"name": name}
        else:
            result[key] = _hoisted(value, datasets)
    return result


def svg(spec: Mapping[str, Any]) -> str:
    """Return a specification drawn as SVG; nothing is fetched from anywhere."""
    text: str = _called("vegalite_to_svg", spec)
    names: dict[str, str] = {}
    digest = hashlib.sha256(json.dumps(spec, sort_keys=True).encode("utf-8", "backslashreplace")).hexdigest()[:8]

    def renamed(match: re.Match[str]) -> str:
        return names.setdefault(match[0], f"{match[1]}-{digest}-{len(names) + 1}")

    # Clip paths and gradients are counted through in a process; several drawings in one page must not share a name.
    text = re.sub(r'(?<=id=")[^"]*(?=")|(?<=url\(#)[^)]*(?=\))', lambda m: _DEFINED.sub(renamed, m[0]), text)
    return text


def width_of_svg(text: str) -> float:
    """Return the width that an SVG declares."""
    match = re.search(r'<svg[^>]*? width="([\d.]+)', text)
    return float(match[1]) if match else 0.0


def png(spec: Mapping[str, Any], dpi: float = DPI) -> bytes:
    """Return a specification drawn as PNG."""
    data: bytes = _called("vegalite_to_png", spec, ppi=dpi)
    return data


def pdf(spec: Mapping[str, Any]) -> bytes:
    """Return a specification drawn as PDF, with its fonts."""
    data: bytes = _called("vegalite_to_pdf", spec)
    return data


def drawn(spec: Mapping[str, Any]) -> dict[str, Counter[str]]:
    """Return what Vega draws of the data: panel → kind of mark (``symbol``, ``line``, ``rect``, …) → how many.

    Parameters
    ----------
    spec : mapping
        A Vega-Lite specification.

    Returns
    -------
    dict
        A line is counted by its points. Axes, legends and titles are not counted; the panel of a plain chart is ``""``.
    """
    panels: dict[str, Counter[str]] = {}

    def walk(node: Mapping[str, Any], panel: str) -> None:
        items, name = node.get("items") or [], str(node.get("name") or "")
        if node.get("role") == "scope" and not name.endswith("pathgroup"):  # the lines of one layer
            panel = name.removesuffix("_group")
            panel = panel.removeprefix(_WHOLE).removeprefix("_") if len(spec.get("vconcat", ())) == 1 else panel
        if node.get("role") == "mark" and node["marktype"] != "group":
            panels.setdefault(panel, Counter())[node["marktype"]] += len(items)
        for item in items if node["marktype"] == "group" else ():
            for inner in item.get("items") or []:
                walk(inner, panel)

    walk(_called("vegalite_to_scenegraph", spec)["scenegraph"], "")
    return panels


def _called(name: str, spec: Mapping[str, Any], **options: Any) -> Any:
    try:
        return getattr(_convert, name)(dict(spec), allowed_base_urls=[], **options)
    except ValueError as error:  # what vl-convert raises for a specification that Vega cannot draw
        raise UserError(f"Vega cannot draw this figure: {str(error).splitlines()[0]}", "see its .json") from error


def bundle() -> str:
    """Return the JavaScript of Vega, Vega-Lite and Vega-Embed; vl-convert makes it once, the user's cache keeps it."""
    version = _convert.__version__
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cuebench"
    file = folder / f"vega-embed-{version}.js"
    if file.is_file():
        return file.read_text("utf-8")
    script: str = _convert.javascript_bundle()
    try:
        write_atomic(file, script.encode())
    except UserError:  # a home that cannot be written to: it is made again next time
        return script
    return script
