"""Accuracy by condition: the curves of model-vs-human, one panel for each data set, people as a band.

Geirhos et al. 2021, figures 2 and 4 to 8. Conditions go from the easiest to the hardest; those that are outside all
means (control conditions, and conditions in which people are right in less than 20 % of the trials) lie on grey.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cuebench.errors import UserError
from cuebench.observers.model_vs_human import DATA_SETS
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import MOST_WHISKERS, columns_for, curves, panels, share_axis, table, ticks, whiskers
from cuebench.reports.observers import Series
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import PEOPLE, Run, observers_of, scores, shown_observers
from cuebench.reports.theme import FAINT
from cuebench.reports.theme import PEOPLE as INK
from cuebench.reports.vega import alt

PROTOCOL = "human_alignment"
ONE = "one condition each"
"""The panel of the data sets that have a single condition."""
CHANCE = 1 / 16
_SHORT = {"cue-conflict": "conflict"}
_AXES = {
    "colour": "colour or greyscale",
    "contrast": "contrast (%)",
    "high-pass": "SD of the filter (pixels)",
    "low-pass": "SD of the filter (pixels)",
    "phase-scrambling": "width of the noise (degrees)",
    "power-equalisation": "power spectrum",
    "false-colour": "colours",
    "rotation": "rotation (degrees)",
    "uniform-noise": "half width of the noise",
}
_TICKS = {"cr": "colour", "bw": "grey", "pow": "equalised", "true": "true", "false": "opponent", "inf": "none"}


def accuracy_by_condition(run: Run, *, people: str = "pooled") -> Picture:
    """Draw the accuracy of every observer in every condition.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with ``human_alignment``.
    people : str
        ``pooled``: the mean of people, with a band (95 %, other people); ``each``: every person too.
    """
    numbers = scores(run, PROTOCOL, "accuracy", kind="images")
    observers = observers_of(run)
    shown = shown_observers((s.observer for s in numbers), observers, people)
    places = _places({s.condition for s in numbers})
    if not places:
        raise UserError(f"no data set of model-vs-human in {run}", f"cuebench run -p {PROTOCOL} … --out DIR")
    band = {s.condition: s for s in scores(run, PROTOCOL, "accuracy", kind="subjects") if s.observer == "people"}
    records = []
    for record in observers.records(s for s in numbers if s.observer in shown and s.condition in places):
        panel, position, left_out = places[record["condition"]]
        crowd = band.get(record["condition"]) if record["kind"] == "people" else None
        if crowd is not None:
            record = {**record, "low": crowd.ci_low, "high": crowd.ci_high, "interval": crowd.ci_kind}
        records.append({**record, "data_set": panel, "position": position, "left_out": left_out})
    series = observers.series(shown)
    crowd_shown = f"; band: people, 95 % over people{whiskers(series, 'over images')}" if band else ""
    sets = len({c.partition("/")[0] for c in places})
    return Picture(
        "Accuracy by condition",
        lambda room: _chart(records, places, series, room),
        records,
        f"{sets} data sets, from the easiest condition to the hardest; grey: outside all means (control condition, or "
        f"people right in less than 20 %); dotted: chance{crowd_shown}",
        f"Accuracy of {len(shown)} observers in {len(places)} conditions of {sets} data sets.",
    )


def _places(conditions: set[str]) -> dict[str, tuple[str, int, bool]]:
    """Return condition → its panel, its place there, and whether it is outside all means."""
    places: dict[str, tuple[str, int, bool]] = {}
    single = [name for name, d in DATA_SETS.items() if not d.conditions and name in conditions]
    places |= {name: (ONE, k, False) for k, name in enumerate(single)}
    for name, d in DATA_SETS.items():
        present = [c for c in d.conditions if f"{name}/{c}" in conditions]
        places |= {f"{name}/{c}": (name, k, c in d.left_out) for k, c in enumerate(present)}
    return places


def _label(condition: str) -> str:
    """Return what stands below a tick: the level without what all levels of its data set share."""
    name, _, level = condition.partition("/")
    if not level:
        return _SHORT.get(name, name)
    if name.startswith("eidolon"):
        return level.partition("-")[0]
    return _TICKS.get(level, level.removeprefix("c").lstrip("0") if name == "contrast" else level)


def _chart(
    records: Sequence[dict[str, Any]], places: Mapping[str, tuple[str, int, bool]], series: Series, room: float
) -> Any:
    names = list(dict.fromkeys(panel for panel, _, _ in places.values()))
    columns = columns_for(room, len(names))
    wide = (room - 30 * (columns - 1)) / columns
    charts = []
    for k, name in enumerate(names):
        ordered = sorted((position, c) for c, (panel, position, _) in places.items() if panel == name)
        title = "reach" if name.startswith("eidolon") else _AXES.get(name)
        narrow = wide < 120 and name != ONE
        axis = ticks([_label(c) for _, c in ordered], title, labelOverlap=narrow, labelAngle=-40 if name == ONE else 0)
        y = share_axis("accuracy" if k % columns == 0 else None)
        here = [r for r in records if r["data_set"] == name]
        plot = curves(
            here, series, width=wide, height=0.62 * wide, x=axis, y=y, legend=series.legend(room), chance=CHANCE,
            title=name,
        )  # fmt: skip
        if name == ONE:  # data sets beside each other are no curve
            plot.layer = [layer for layer in plot.layer if getattr(layer.mark, "type", layer.mark) != "line"]
        charts.append(_with_people(plot, here, len(series.names), axis, y))
    return panels(charts, columns)


def _with_people(plot: Any, records: Sequence[dict[str, Any]], observers: int, x: Any, y: Any) -> Any:
    """Put the grey of left-out conditions and the band of people below the curves of a panel."""
    last = max((r["position"] for r in records), default=0)
    ends = alt.X("from:Q", scale=alt.Scale(domain=[-0.3, last + 0.3], nice=False, zero=False), axis=x)
    height = alt.Y("low:Q", scale=alt.Scale(domain=[0, 1], clamp=True), axis=y)
    # Where curves have whiskers they stand beside each other, that of people first.
    aside = -0.18 if 1 < observers <= MOST_WHISKERS else 0.0
    crowd = [
        {"from": r["position"] + aside, "to": r["position"] + aside, "low": r["low"], "high": r["high"]}
        for r in records
        if r["kind"] == "people"
    ]
    grey = [
        {"from": max(p - 0.5, -0.3), "to": min(p + 0.5, last + 0.3)}
        for p in sorted({r["position"] for r in records if r["left_out"]})
    ]
    below = []
    if grey:
        below.append(alt.Chart(table(grey)).mark_rect(color=FAINT, opacity=0.6).encode(x=ends, x2="to:Q"))
    if crowd and records[0]["data_set"] == ONE:
        wide = [{**r, "from": r["from"] - 0.08, "to": r["to"] + 0.08} for r in crowd]
        bars = alt.Chart(table(wide)).mark_rect(color=INK, opacity=0.2)
        below.append(bars.encode(x=ends, x2="to:Q", y=height, y2="high:Q"))
    elif crowd:
        area = alt.Chart(table(crowd)).mark_area(color=INK, opacity=0.16)
        below.append(area.encode(x=ends, y=height, y2="high:Q"))
    plot.layer = [*below, *plot.layer]
    return plot


FIGURE = Figure(
    "accuracy_by_condition",
    "Accuracy by condition",
    accuracy_by_condition,
    protocol=PROTOCOL,
    options={"people": PEOPLE},
)
