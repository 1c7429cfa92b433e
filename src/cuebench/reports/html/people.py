"""People against models: values side by side, and how alike the errors are."""

from __future__ import annotations

from typing import NamedTuple

from cuebench.protocols.headline import Column
from cuebench.reports.html.material import PEOPLE, Material, headline
from cuebench.reports.html.tables import Cell, Table, of_score, title, words
from cuebench.reports.html.text import number
from cuebench.types import Score

CONSISTENCY, KAPPA = "error_consistency", "κ with people"


class PeopleSection(NamedTuple):
    """A table for each protocol that people took part in, and sentences; empty where nothing is known of people."""

    tables: list[Table]
    remarks: list[str]


def people_section(material: Material) -> PeopleSection:
    """Compare every model with people, for every protocol in which a human value is measured or known."""
    tables, remarks = [], []
    for name in material.protocols:
        column = material.headline(name)
        if column is None:
            continue
        reference, remark = _reference(material, column)
        models = material.of_kind(column.rows, "model")
        if reference is None or not models:
            continue
        remarks.append(remark)
        tables.append(_table(material, column, reference, models))
    return PeopleSection(tables, remarks)


def _reference(material: Material, column: Column) -> tuple[float | None, str]:
    """Return the value of people and where it comes from: pooled people of the run, their mean, or the paper."""
    pooled = material.of_kind(column.rows, "people")
    single = material.of_kind(column.rows, "person")
    if pooled:
        row = column.rows[pooled[0]]
        return row.value, f"{column.protocol}: people are those of this run, pooled: {number(row)}, n = {row.n:,}."
    if single:
        mean = sum(column.rows[o].value for o in single) / len(single)
        return mean, f"{column.protocol}: people are the mean of {len(single)} people of this run: {mean:.3f}."
    axis = headline(column.protocol)
    if axis is None or axis.human is None or not material.shows_published(column.protocol):
        return None, ""
    return axis.human, f"{column.protocol}: people are published, {axis.human:.3f} ({axis.human_source})."


def _table(material: Material, column: Column, reference: float, models: list[str]) -> Table:
    consistency = _consistency(material, column)
    columns = ["observer", title(column.metric), "people", "model − people"]
    columns += [KAPPA] if consistency else []
    rows = []
    for observer in sorted(models, key=lambda o: abs(column.rows[o].value - reference)):
        row = column.rows[observer]
        difference = row.value - reference
        cells = [
            words(observer),
            of_score(row, bar=True),
            Cell(f"{reference:.3f}", reference),
            Cell(f"{difference:+.3f}".replace("-", "−"), difference),
        ]
        rows.append([*cells, *([of_score(consistency.get(observer))] if consistency else [])])
    among = [consistency[o] for o in material.of_kind(consistency, "people")]
    if among:
        people = column.rows.get(among[0].observer)
        rows.append(
            [
                words("people with each other"),
                of_score(people, bar=True),
                Cell(f"{reference:.3f}", reference),
                Cell("0", 0.0),
                of_score(among[0]),
            ]
        )
    caption = f"{column.protocol}: models beside people, the nearest first"
    helps = {KAPPA: "error consistency: agreement of correct and wrong answers beyond chance"}
    return Table(f"people-{column.protocol}", caption, columns, rows, helps)


def _consistency(material: Material, column: Column) -> dict[str, Score]:
    """Return observer → how far its errors agree with those of people."""
    if not material.of_kind(material.observers, *PEOPLE):
        return {}
    return {
        row.observer: row
        for row in material.numbers
        if (row.protocol, row.metric, row.condition) == (column.protocol, CONSISTENCY, column.condition)
    }
