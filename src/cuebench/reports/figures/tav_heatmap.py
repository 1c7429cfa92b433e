"""TAV heatmap: which textures a model ties to which classes; similar rows and columns are neighbours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.options import Option
from cuebench.reports.drawing import FAINT, INK, SOFT, Drawing, heat, short_name, shorten
from cuebench.reports.figures.base import Figure
from cuebench.reports.run_data import OBSERVER, PROTOCOL, of_observer, rows

_CELL, _LEFT, _TOP = 15, 120, 168


def tav_heatmap(run: str | Path, *, observer: str = "", textures: int = 36, classes: int = 48) -> Drawing:
    """Draw the strongest part of the association matrix.

    Parameters
    ----------
    run : path
        A run folder with ``texture_association``.
    observer : str
        Whole name or a part of it; default: the first of the run.
    textures, classes : int
        How many rows and columns at most: those with the largest value.

    Returns
    -------
    Drawing
        Colour is the square root of the TAV, so that weak ties are seen too; the bar says which value it stands for.
    """
    name, records = of_observer(rows(run, "tav"), observer)
    matrix, row_names, column_names = _matrix(records)
    i, j = _strongest(matrix, textures, classes)
    matrix = matrix[np.ix_(i, j)]
    order, across = _clustered(matrix), _clustered(matrix.T)
    matrix = matrix[np.ix_(order, across)]
    labels = [row_names[i[k]] for k in order], [column_names[j[k]] for k in across]
    return _draw(matrix, *labels, f"Texture association of {short_name(name)}")


def _matrix(records: list[dict[str, Any]]) -> tuple[Array, list[str], list[str]]:
    textures = sorted({str(r["texture"]) for r in records})
    classes = sorted({str(r["label"]) for r in records})
    row, column = ({n: k for k, n in enumerate(names)} for names in (textures, classes))
    matrix = np.zeros((len(textures), len(classes)))
    for r in records:
        matrix[row[r["texture"]], column[r["label"]]] += r["tav"]
    return matrix, textures, classes


def _strongest(matrix: Array, textures: int, classes: int) -> tuple[Array, Array]:
    columns = np.argsort(-matrix.max(0), kind="stable")[:classes]
    return np.argsort(-matrix[:, columns].max(1), kind="stable")[:textures], columns


def _clustered(matrix: Array) -> list[int]:
    """Order rows by average linkage of their cosine distances, neighbours as similar as the tree allows."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import pdist

    if len(matrix) < 3:
        return list(range(len(matrix)))
    root = np.sqrt(matrix) + 1e-9  # no row is all zero, so every angle is defined
    return [int(k) for k in leaves_list(linkage(pdist(root, "cosine"), "average", optimal_ordering=True))]


def _draw(matrix: Array, textures: list[str], classes: list[str], title: str) -> Drawing:
    high, wide = matrix.shape
    page = Drawing(_LEFT + wide * _CELL + 110, _TOP + high * _CELL + 24, title)
    page.text(20, 30, title, 17, bold=True)
    page.text(20, 48, "textures (rows) by the classes they are answered with (columns)", 11.5, SOFT)
    top = float(matrix.max(initial=0)) or 1.0
    for a in range(high):
        y = _TOP + a * _CELL
        page.text(_LEFT - 8, y + _CELL - 4, textures[a].replace("_", " "), 10.5, anchor="end")
        for b in range(wide):
            page.rect(_LEFT + b * _CELL, y, _CELL - 1, _CELL - 1, heat((matrix[a, b] / top) ** 0.5))
    for b, label in enumerate(classes):
        page.text(_LEFT + b * _CELL + 11, _TOP - 7, shorten(label, 20), 10.5, turn=-58)
    _bar(page, _LEFT + wide * _CELL + 26, _TOP, min(high * _CELL, 220), top)
    return page


def _bar(page: Drawing, x: float, y: float, height: float, top: float) -> None:
    page.text(x, y - 8, "TAV", 10.5, SOFT)
    steps = 60
    for k in range(steps):
        page.rect(x, y + height * (1 - (k + 1) / steps), 14, height / steps + 0.6, heat(k / (steps - 1)))
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        level = y + height * (1 - share)
        page.line(x + 14, level, x + 18, level, FAINT if share in (0.25, 0.75) else INK)
        page.text(x + 21, level + 4, f"{top * share**2:.2f}", 10)


FIGURE = Figure(
    "tav_heatmap",
    "Texture association",
    tav_heatmap,
    protocol=PROTOCOL,
    options={
        "observer": OBSERVER,
        "textures": Option(36, "rows at most", low=1),
        "classes": Option(48, "columns at most", low=1),
    },
)
