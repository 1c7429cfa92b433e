"""Every person of a study: their share of right answers or of answers by shape, by task and group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cuebench.errors import UserError
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import columns_for, panels, share_axis, table, tooltip
from cuebench.reports.picture import Picture
from cuebench.reports.study_rows import HINT, IMAGES, OVER_PEOPLE, SHARES, StudyRow, group_colours, share_rows
from cuebench.reports.text import words
from cuebench.reports.theme import INK, MARKS, NEUTRAL, PEOPLE_MARK
from cuebench.reports.vega import alt


def study_people(source: str | Path | Mapping[str, Any]) -> Picture:
    """Draw every person, from the lowest share to the highest, in a panel for each task.

    Parameters
    ----------
    source : path or mapping
        The file of ``cuebench study analyse --out``, or what it holds.
    """
    rows = share_rows(source)
    people = [row for row in rows if row.part.startswith("person=")]
    if not people:
        raise UserError("the analysis names no single person", HINT)
    by_task: dict[str, list[StudyRow]] = {row.task: [] for row in people}
    for row in sorted(people, key=lambda row: (row.value, row.name)):
        by_task[row.task].append(row)
    groups = sorted({row.note for row in people})
    whole = {row.task: row for row in rows if not row.part}
    records = {task: [_record(row, i) for i, row in enumerate(task_rows)] for task, task_rows in by_task.items()}
    ranges = [
        f"{words(task)}: {task_rows[0].value:.2f} to {task_rows[-1].value:.2f}" for task, task_rows in by_task.items()
    ]
    columns = len(records)

    def draw(room: float) -> Any:
        wide = room / columns_for(room, columns) - 40
        charts = [
            _chart(records[task], task_rows[0], whole.get(task), groups, wide) for task, task_rows in by_task.items()
        ]
        return panels(charts, columns_for(room, columns))

    return Picture(
        "Every person of the study",
        draw,
        [record for task_records in records.values() for record in task_records],
        f"{len({row.name for row in people}):,} people; whiskers: 95 % over images; line: all people, band: 95 % over "
        "people",
        f"{'; '.join(ranges)}.",
    )


def _record(row: StudyRow, place: int) -> dict[str, Any]:
    low, high = row.ends.get(IMAGES, (None, None))
    return {
        "task": row.task,
        "person": row.name,
        "place": place + 1,
        "group": row.note,
        "value": row.value,
        "low": low,
        "high": high,
        "n": row.n,
    }


def _chart(
    records: Sequence[dict[str, Any]], first: StudyRow, whole: StudyRow | None, groups: Sequence[str], wide: float
) -> Any:
    axis, scale = share_axis(SHARES[first.measure], grid=True), alt.Scale(domain=[0, 1])
    nothing = alt.Axis(title="people, in order", labels=False, ticks=False, grid=False)
    across = alt.X("place:Q", axis=nothing, scale=alt.Scale(domain=[0, len(records) + 1], nice=False))
    several, colours = len(groups) > 1, group_colours(groups)
    key = alt.Legend(title=None, orient="bottom")
    paint = alt.Color("group:N", scale=alt.Scale(domain=list(colours), range=list(colours.values())), legend=key)
    marks = [MARKS[i % len(MARKS)] for i in range(len(groups))]
    form = alt.Shape("group:N", scale=alt.Scale(domain=list(colours), range=marks), legend=key)
    base = alt.Chart(table(records)).encode(x=across, color=paint if several else alt.value(INK))
    layers = []
    if whole is not None:
        low, high = whole.ends.get(OVER_PEOPLE, (whole.value, whole.value))
        mean = alt.Chart(table([{"value": whole.value, "low": low, "high": high}]))
        band = mean.mark_rect(color=NEUTRAL, opacity=0.25)
        layers += [
            band.encode(y=alt.Y("low:Q", axis=axis, scale=scale), y2="high:Q"),
            mean.mark_rule(color=NEUTRAL).encode(y=alt.Y("value:Q", axis=axis, scale=scale)),
        ]
    whisker = base.mark_rule(strokeWidth=0.7, opacity=0.7)
    layers += [
        whisker.encode(y=alt.Y("low:Q", axis=axis, scale=scale), y2="high:Q"),
        base.mark_point(filled=True, size=18).encode(
            y=alt.Y("value:Q", axis=axis, scale=scale),
            shape=form if several else alt.value(PEOPLE_MARK),
            tooltip=tooltip("person", "group", value=".3f", low=".3f", high=".3f", n=","),
        ),
    ]
    return alt.layer(*layers).properties(width=wide, height=130, title=words(first.task).capitalize())


FIGURE = Figure("study_people", "Every person of a study", study_people, needs="file")
