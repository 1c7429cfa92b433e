"""TAV heatmap: which textures a model ties to which classes; similar rows and columns are neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import table, tooltip
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import OBSERVER, PROTOCOL, Run, observers_of, of_observer, rows
from cuebench.reports.text import distinct, words
from cuebench.reports.theme import HEAT
from cuebench.reports.vega import alt
from cuebench.runs.results import Row

_CELL = 8.5


def tav_heatmap(run: Run, *, observer: str = "", textures: int = 36, classes: int = 48) -> Picture:
    """Draw the strongest part of the association matrix.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with ``texture_association``.
    observer : str
        Whole name or a part of it; default: the first of the run.
    textures, classes : int
        How many rows and columns at most: those with the largest value. A column of a page has room for fewer classes.

    Returns
    -------
    Picture
        Colour is the square root of the TAV, so that weak ties are seen too; the legend says which value it stands for.
    """
    name, records = of_observer(rows(run, "tav"), observer)
    matrix, row_names, column_names = _matrix(records)
    i, j = _strongest(matrix, textures, classes)
    shown = [
        {"observer": name, "texture": row_names[a], "class": column_names[b], "tav": float(matrix[a, b])}
        for a in i
        for b in j
    ]
    strongest = max(shown, key=lambda r: r["tav"])
    return Picture(
        f"Texture association of {observers_of(run).name(name)}",
        lambda room: _chart(matrix[np.ix_(i, j)], [row_names[a] for a in i], [column_names[b] for b in j], room),
        shown,
        "Textures (rows) by the classes they are answered with (columns); colour: texture association value (TAV), the "
        "strongest rows and columns",
        f"{len(i)} textures by {len(j)} classes; strongest: {words(strongest['texture'])} with {strongest['class']}, "
        f"{strongest['tav']:.2f}.",
    )


def _matrix(records: Sequence[Row]) -> tuple[Array, list[str], list[str]]:
    textures = sorted({str(r["texture"]) for r in records})
    classes = sorted({str(r["label"]) for r in records})
    row, column = ({n: k for k, n in enumerate(names)} for names in (textures, classes))
    matrix = np.zeros((len(textures), len(classes)))
    for r in records:
        matrix[row[r["texture"]], column[r["label"]]] += r["tav"]
    if not ((matrix >= 0) & (matrix < np.inf)).all():
        raise UserError("texture associations are not between 0 and 1", "score the run again: cuebench score RUN")
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


def _chart(matrix: Array, textures: list[str], classes: list[str], room: float) -> Any:
    """Draw as many of the strongest classes as there is room for, similar rows and columns beside each other."""
    kept = min(len(classes), max(4, int(room // _CELL)))
    matrix = matrix[:, :kept]
    order, across = _clustered(matrix), _clustered(matrix.T)
    row_names = distinct([words(textures[k]) for k in order], 24)
    column_names = distinct([words(classes[k]) for k in across], 24)
    data = table(
        {"texture": row_names[a], "class": column_names[b], "tav": float(matrix[order[a], across[b]])}
        for a in range(len(order))
        for b in range(len(across))
    )
    chart = (
        alt.Chart(data)
        .mark_rect()
        .encode(
            x=alt.X(
                "class:N",
                sort=column_names,
                axis=alt.Axis(orient="top", labelAngle=-60, title=None, ticks=False, domain=False, labelOverlap=False),
            ),
            y=alt.Y(
                "texture:N",
                sort=row_names,
                axis=alt.Axis(title=None, ticks=False, domain=False, labelOverlap=False),
            ),
            color=alt.Color(
                "tav:Q",
                scale=alt.Scale(type="sqrt", domainMin=0, range=list(HEAT)),
                legend=alt.Legend(title="TAV", orient="right", format=".2f", tickCount=4),
            ),
            tooltip=tooltip("texture", "class", tav=".3f"),
        )
    )
    return chart.properties(width=room, height=_CELL * len(row_names))


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
