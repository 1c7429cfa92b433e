"""Write the report of one or several runs: one HTML file that needs nothing else, and asks nobody for anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from cuebench._version import __version__
from cuebench.errors import UserError, printable
from cuebench.files import ending_of, write_atomic
from cuebench.options import check_types
from cuebench.reading import user_path
from cuebench.reports.comparison import LARGER
from cuebench.reports.html.banners import banners
from cuebench.reports.html.charts import drawing
from cuebench.reports.html.findings import findings
from cuebench.reports.html.gallery import OUTCOMES, Gallery, make_gallery
from cuebench.reports.html.material import Material, headline, read_runs
from cuebench.reports.html.methods import methods
from cuebench.reports.html.page import ASSETS, colours, json_for_script, policy, template
from cuebench.reports.html.pairs import all_pairs
from cuebench.reports.html.people import people_section
from cuebench.reports.html.sections import section
from cuebench.reports.html.tables import Table, of_score, words
from cuebench.reports.html.text import counted, listed
from cuebench.reports.html.trust import trust
from cuebench.runs.scores import Scores

MANY = 3
"""Columns of the overview from which on bars stand below their numbers."""
IMAGES = 100
"""Pictures of the gallery, unless another number is asked for."""


@dataclass(frozen=True)
class _Arguments:
    """Types of what `report` is given."""

    title: str
    images: int
    figures: bool


class ReportFile(NamedTuple):
    """What was written."""

    path: Path
    size: int
    images: int
    figures: int
    warnings: tuple[str, ...]


def report(
    runs: str | Path | Scores | Sequence[str | Path | Scores],
    out: str | Path,
    *,
    title: str = "",
    images: int = IMAGES,
    figures: bool = True,
) -> ReportFile:
    """Write the report of one or several runs as one HTML file.

    Parameters
    ----------
    runs : path, Scores or a sequence of them
        Run folders, or what `cuebench.load` and `cuebench.evaluate` return.
    out : path
        The file to write, usually ``report.html``.
    title : str
        Heading; default: ``Shape or texture?``.
    images : int
        Pictures in the gallery, at most; 0: no gallery. They are read from the data root, and left out where the files
        are gone.
    figures : bool
        Draw the figures that fit the protocols.

    Returns
    -------
    ReportFile
        Path, size in bytes, number of pictures and figures, and the warnings that the report begins with.

    Examples
    --------
    >>> cuebench.report("runs/first", "first.html")                # doctest: +SKIP
    >>> cuebench.report(cuebench.load("runs/first"), "first.html")  # doctest: +SKIP
    """
    check_types({"title": title, "images": images, "figures": figures}, _Arguments, "report")
    if images < 0:
        raise UserError(f"images must be 0 (no gallery) or more; got {images}")
    target = page_file(out)
    page_template = template("report.html.jinja")
    material = read_runs(runs)
    with drawing(material, wanted=figures) as begun:
        gallery = make_gallery(material, images)
        page = _page(material, gallery)
        charts = begun.charts()
    scripts = [(ASSETS / name).read_text("utf-8") for name in ("page.js", "report.js")] + list(charts.scripts)
    data = page_template.render(
        page, title=title or "Shape or texture?", charts=charts, scripts=scripts, policy=policy(scripts)
    ).encode("utf-8", "backslashreplace")
    write_atomic(target, data)
    warnings = tuple(banner.text for banner in page["banners"])
    return ReportFile(target, len(data), len(gallery.pictures), charts.number, warnings)


def page_file(out: str | Path) -> Path:
    """Return the file that a page is written to; one of another ending, or a folder, is a mistake."""
    target = user_path(out)
    if ending_of(target, ".html") not in (".html", ".htm") or target.is_dir():
        what = "is a folder" if target.is_dir() else "does not end in .html"
        raise UserError(f"{target} {what}: a report is one file", "for example report.html")
    return target


def _page(material: Material, gallery: Gallery) -> dict[str, Any]:
    """Return everything that the template shows, but for the figures and the scripts."""
    sections = [section(material, name) for name in material.protocols]
    outcomes = {a.outcome for p in gallery.pictures for a in p.answers.values()}
    answering = {o for p in gallery.pictures for o in p.answers}
    pairs = all_pairs(material)
    data = {
        "observers": [printable(o) for o in material.observers],
        "numbers": {s.name: s.numbers for s in sections},
        "gallery": gallery.data(material.observers),
        "outcomes": OUTCOMES,
    }
    return {
        "about": _about(material),
        "lede": _lede(material),
        "version": __version__,
        "css": colours() + (ASSETS / "report.css").read_text("utf-8"),
        "banners": banners(material),
        "findings": findings(material, {name: compared.sentence for name, compared in pairs.items()}),
        "pairs": pairs,
        "overview": _overview(material),
        "directions": _directions(material),
        "sections": sections,
        "gallery": gallery,
        "gallery_protocols": list(dict.fromkeys(p.protocol for p in gallery.pictures)),
        "gallery_observers": [o for o in material.observers if o in answering],
        "gallery_outcomes": [(key, words) for key, words in OUTCOMES.items() if key in outcomes],
        "observers": material.observers,
        "people": people_section(material),
        "trust": trust(material),
        "methods": methods(material),
        "data": json_for_script(data),
    }


# --------------------------------------------------------------------------------------------------- the beginning


def _about(material: Material) -> str:
    names = listed([run.folder.resolve().name for run in material.runs], 3)
    return f"{counted(len(material.runs), 'run')}: {names}" if len(material.runs) > 1 else f"Run {names}"


def _lede(material: Material) -> str:
    finished = sorted(run.scores.record.finished for run in material.runs if run.scores.record.finished)
    when = f", measured {_day(finished[-1])}" if finished else ""
    return (
        f"{counted(len(material.observers), 'observer')} in {counted(len(material.protocols), 'protocol')}{when}. "
        "Numbers stand with 95 % intervals, with what they were divided by and with what was left out."
    )


def _day(stamp: str) -> str:
    try:
        moment = datetime.fromisoformat(stamp).astimezone(UTC)
    except ValueError:
        return stamp
    return f"{moment.day} {moment:%B %Y}"


def _overview(material: Material) -> Table:
    """Return the headlines: observers down, protocols across."""
    columns = {name: column for name in material.protocols if (column := material.headline(name))}
    rows = [
        [words(o), *(of_score(column.rows.get(o), bar=True) for column in columns.values())]
        for o in material.observers
        if any(o in column.rows for column in columns.values())
    ]
    names = ["observer", *(name.replace("_", " ") for name in columns)]
    return Table("overview", "Headlines of all protocols", names, rows, stacked=len(columns) > MANY)


def _directions(material: Material) -> str:
    """Say what a larger headline means, for all protocols at once."""
    by_direction: dict[str, list[str]] = {}
    for name in material.protocols:
        if axis := headline(name):
            by_direction.setdefault(LARGER[axis.direction], []).append(name)
    return " ".join(f"A larger value means {what} in {listed(names)}." for what, names in by_direction.items())
