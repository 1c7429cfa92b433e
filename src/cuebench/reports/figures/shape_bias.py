"""Shape bias class by class: the plot of the field, shape on the left, texture on the right, a mark for each observer.

Geirhos et al. 2019, figure 4; Geirhos et al. 2021, figure 3. Rows are the classes of the shapes, a vertical line is an
observer's shape bias over all images, and people are black. The narrow plot shows how many answers the bias is made of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from cuebench.errors import UserError
from cuebench.protocols.headline import headline_column
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import MOST_WHISKERS, highlighted, table, tooltip, whiskers
from cuebench.reports.observers import Series
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import PEOPLE, Run, all_scores, observers_of, rows, scores, shown_observers
from cuebench.reports.text import words
from cuebench.reports.theme import FAINT, PAPER
from cuebench.reports.vega import alt, selectable

PROTOCOL = "cue_conflict"
ALL = "all classes"
_ROW = 13.0
_SIZE = {"people": 46, "person": 12}


def shape_bias(run: Run, *, people: str = "pooled") -> Picture:
    """Draw the share of shape decisions in each class and over all classes.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with ``cue_conflict``.
    people : str
        ``pooled``: the pooled answers of people; ``each``: every person too.
    """
    numbers = scores(run, PROTOCOL, "shape_bias")
    headline = headline_column(all_scores(run), PROTOCOL)
    if headline is None:
        raise UserError(f"no observer of {run} has a shape bias", "its notes say why: cuebench report RUN")
    among = headline.condition
    observers = observers_of(run)
    shown = shown_observers(headline.rows, observers, people)
    by_class = [s for s in numbers if s.condition.startswith(f"{among}/class=") and s.observer in shown]
    total = [headline.rows[o] for o in shown]
    decided = _decided(run, among)
    records = []
    for record in observers.records([*by_class, *total]):
        _, _, label = record["condition"].partition("/class=")
        share = decided.get((record["observer"], label or ALL))
        records.append({**record, "class": words(label) if label else ALL, "decided": share})
    series = observers.series(shown)
    least, most = min(s.n for s in total), max(s.n for s in total)
    trials = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    low, *_, high = sorted(total, key=lambda s: s.value) * 2
    return Picture(
        "Shape or texture? Decisions class by class",
        lambda room: _chart(records, series, room),
        records,
        "Cue conflict. A mark: the decisions of one observer in one class of shapes; lines and last row: all classes "
        f"({trials} decided answers each){whiskers(series, 'widest interval')}",
        f"Share of shape decisions of {len(shown)} observers in {len({s.condition for s in by_class})} classes. Over "
        f"all classes, highest: {observers.name(high.observer)}, {high.value:.2f}; "
        f"lowest: {observers.name(low.observer)}, {low.value:.2f}.",
    )


def _decided(run: Run, among: str) -> dict[tuple[str, str], float]:
    """Return (observer, class of the shape) → share of the conflict trials that were answered by shape or texture."""
    answers: Counter[tuple[str, str]] = Counter()
    decided: Counter[tuple[str, str]] = Counter()
    for record in rows(run, "confusion", PROTOCOL):
        if record["condition"] == among and record["shape"] != record["texture"]:
            for label in (record["shape"], ALL):
                key = record["observer"], label
                answers[key] += record["count"]
                decided[key] += record["count"] * (record["response"] in (record["shape"], record["texture"]))
    return {key: decided[key] / count for key, count in answers.items() if count}


def _chart(records: Sequence[dict[str, Any]], series: Series, room: float) -> Any:
    classes = sorted({r["class"] for r in records} - {ALL})
    looks = [{**r, "size": _SIZE.get(r["kind"], 26), "front": r["kind"] == "people"} for r in records]
    data = table(sorted(looks, key=lambda r: r["front"]))
    rows_of_plot = alt.Y(
        "class:N",
        sort=[*classes, ALL],
        scale=alt.Scale(padding=0.6),
        axis=alt.Axis(title=None, grid=True, ticks=False, domain=False, labelLimit=90, labelPadding=6),
    )
    height = _ROW * (len(classes) + 1)
    legend = series.legend(room)
    aside = min(74.0, 0.2 * room)
    bias = alt.Scale(domain=[0, 1], reverse=True)
    base = alt.Chart(data).encode(color=series.colour(legend=legend), opacity=highlighted())
    total = base.transform_filter(f"datum.class == '{ALL}'")
    texture = alt.Axis(
        title="share of texture decisions →", orient="bottom", labelExpr="format(1 - datum.value, '.1f')", tickCount=6
    )
    shape = alt.Axis(title="← share of shape decisions", orient="top", format=".1f", tickCount=6, grid=False)
    tips = tooltip("name", "class", value=".3f", low=".3f", high=".3f", n=",", decided=".0%")
    points = base.mark_point(stroke=PAPER, strokeWidth=0.4).encode(
        y=rows_of_plot, shape=series.mark(legend=legend), size=alt.Size("size:Q", scale=None), tooltip=tips
    )
    layers = [
        total.mark_rule(strokeWidth=1.1).encode(opacity=highlighted(0.75), x=alt.X("value:Q", scale=bias, axis=shape)),
        selectable(points).encode(x=alt.X("value:Q", scale=bias, axis=texture)),
    ]
    if len(series.names) <= MOST_WHISKERS:
        span = total.mark_rule().encode(x=alt.X("low:Q", scale=bias, axis=None), x2="high:Q", y=rows_of_plot)
        layers.insert(1, span)
    plot = alt.layer(*layers).resolve_axis(x="independent").properties(width=room - aside - 14, height=height)
    share = alt.Axis(title="answers decided", values=[0, 0.5, 1], format="%", gridColor=FAINT)
    narrow = points.encode(
        x=alt.X("decided:Q", scale=alt.Scale(domain=[0, 1]), axis=share),
        y=rows_of_plot.axis(alt.Axis(labels=False, title=None, ticks=False, domain=False)),
    ).properties(width=aside, height=height)
    return alt.hconcat(plot, narrow, spacing=14).resolve_scale(color="shared", shape="shared", y="shared")


FIGURE = Figure("shape_bias", "Shape bias class by class", shape_bias, protocol=PROTOCOL, options={"people": PEOPLE})
