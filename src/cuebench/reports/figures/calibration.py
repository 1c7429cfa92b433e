"""Calibration: what each metric measures of observers whose bias is known, and what its intervals hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cuebench.calibration.designs import DESIGNS
from cuebench.calibration.planted import COMPETENCES, GRID
from cuebench.calibration.tables import MISREAD, SHIPPED, Recovered, read_coverage, read_recovered
from cuebench.calibration.trust import VARY, of_protocol
from cuebench.errors import UserError, did_you_mean
from cuebench.options import Option
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import columns_for, heading, panels, table, tooltip
from cuebench.reports.picture import Picture
from cuebench.reports.text import shorten
from cuebench.reports.theme import CONDITIONS, FAINT, NEUTRAL
from cuebench.reports.vega import alt
from cuebench.statistics.measured import LEAST, MOST

_ROW = 11.0
RECOVERED, COVERAGE = "recovered", "coverage"
CLAIMED = "claims to hold for new sources"
OPTIONS = {
    "show": Option(
        RECOVERED, "what comes back of a planted weight, or how often intervals hold", choices=(RECOVERED, COVERAGE)
    ),
    "protocol": Option("", "one protocol, with all of its metrics; default: the headline of each"),
    "folder": Option("", "a folder that cuebench calibrate has written; default: what is shipped with cuebench"),
}


def calibration(*, show: str = RECOVERED, protocol: str = "", folder: str = "") -> Picture:
    """Draw measured against planted values, or the coverage of intervals.

    Parameters
    ----------
    show : str
        ``recovered``: the mean number against the planted weight, for three competences. ``coverage``: how often each
        kind of 95 % interval holds the value for new shapes and textures.
    protocol : str
        One protocol, with all of its metrics; default: the headline of each.
    folder : str
        A folder that ``cuebench calibrate`` has written; default: what is shipped with cuebench.
    """
    place = Path(folder).expanduser() if folder else SHIPPED
    rows = read_recovered(place)
    present = {r.protocol for r in rows}
    known = [name for name in DESIGNS if name in present]
    if not known:
        raise UserError(f"{place} holds no calibration", "cuebench calibrate --out DIR, then --set folder=DIR")
    if protocol and protocol not in known:
        raise did_you_mean("protocol that was calibrated", protocol, known)
    numbers = _numbers([protocol] if protocol else known, place, all_metrics=bool(protocol))
    return _coverage(numbers, place) if show == COVERAGE else _recovered(numbers, rows)


def _numbers(names: Sequence[str], place: Path, *, all_metrics: bool) -> list[tuple[str, str, str]]:
    """Return protocol, condition and metric of what is shown: the headline of each protocol, or all of one."""
    by_protocol = {name: of_protocol(name, place) for name in names}
    return [
        (t.protocol, t.condition, t.metric)
        for each in by_protocol.values()
        for t in (each if all_metrics else each[:1])
    ]


# ---------------------------------------------------------------------------------------------------- recovered


def _recovered(numbers: Sequence[tuple[str, str, str]], rows: Sequence[Recovered]) -> Picture:
    shown = [
        r
        for number in numbers
        for r in rows
        if (r.protocol, r.condition, r.metric) == number and r.setting == GRID and r.studies > 1
    ]
    records = [
        {
            "protocol": r.protocol,
            "metric": r.metric,
            "condition": r.condition,
            "competence": f"{r.competence:g}",
            "planted": r.weight,
            "measured": r.mean,
            "low": r.mean - 1.96 * r.sd,
            "high": r.mean + 1.96 * r.sd,
            "expected": r.truth,
            "studies": r.studies,
        }
        for r in shown
    ]
    studies = min((r.studies for r in shown), default=0)
    return Picture(
        "What comes back of a planted weight",
        lambda room: _panels(numbers, records, room),
        records,
        f"Mean of at least {studies} simulated studies against the planted weight; observers attend to "
        "all, half or a tenth of the pictures; whiskers: 95 % of the studies; dotted: measured = planted",
        f"Measured against planted weight for {len(numbers)} numbers at three competences.",
    )


def _panels(numbers: Sequence[tuple[str, str, str]], records: Sequence[dict[str, Any]], room: float) -> Any:
    columns = columns_for(room, len(numbers))
    wide = (room - 34 * (columns - 1)) / columns
    charts = []
    for k, number in enumerate(numbers):
        here = [r for r in records if (r["protocol"], r["condition"], r["metric"]) == number]
        if here:
            charts.append(_panel(number, here, wide, first=k % columns == 0))
    return panels(charts, columns)


def _panel(number: tuple[str, str, str], records: Sequence[dict[str, Any]], wide: float, *, first: bool) -> Any:
    names = [f"{c:g}" for c in reversed(COMPETENCES)]
    low, high = min(0.0, *(r["measured"] for r in records)), max(1.0, *(r["measured"] for r in records))
    x = alt.Axis(title="planted weight", values=[0, 0.2, 0.5, 0.8, 1], format=".1f", grid=False)
    y = alt.Axis(title="measured" if first else None, format=".1f", tickCount=5)
    across, up = alt.Scale(domain=[-0.06, 1.06], nice=False), alt.Scale(domain=[low, high], nice=False, clamp=True)
    shifts = dict(zip(names, (-0.015, 0.0, 0.015)))
    points = table({**r, "x": r["planted"] + shifts[r["competence"]]} for r in records)
    base = alt.Chart(points).encode(
        x=alt.X("x:Q", scale=across, axis=x),
        color=alt.Color(
            "competence:N",
            sort=names,
            scale=alt.Scale(domain=names, range=list(CONDITIONS[:3])),
            legend=alt.Legend(title="competence", orient="bottom", columns=3),
        ),
    )
    value = alt.Y("measured:Q", scale=up, axis=y)
    tips = tooltip("protocol", "metric", "condition", "competence", planted=".2f", measured=".3f", expected=".3f")
    layers = [
        base.mark_rule(opacity=0.6).encode(y=alt.Y("low:Q", scale=up, axis=y), y2="high:Q"),
        base.mark_line().encode(y=value),
        base.mark_point(size=20).encode(y=value, tooltip=tips),
    ]
    full = [r["measured"] for r in records if r["competence"] == names[0]] or [r["measured"] for r in records]
    if max(full) - min(full) > 0.5:  # a number that has something to do with the weight
        equal = alt.Chart(table([{"x": 0.0, "measured": 0.0}, {"x": 1.0, "measured": 1.0}]))
        dotted = equal.mark_line(strokeDash=[2, 2], strokeWidth=0.8, color=NEUTRAL)
        layers.insert(0, dotted.encode(x=alt.X("x:Q", scale=across, axis=x), y=value))
    return alt.layer(*layers).properties(width=wide, height=0.62 * wide, title=_title(number, wide))


def _title(number: tuple[str, str, str], wide: float) -> Any:
    """Return protocol, metric and condition in three lines, so that all panels of a row begin at one height."""
    protocol, condition, metric = number
    title = heading(shorten(protocol, int(wide / 4.2)), wide)
    title.subtitle, title.subtitleFontSize = [metric, shorten(condition, int(wide / 3.4))], 6.5
    title.subtitlePadding, title.subtitleLineHeight = 1, 8
    return title


# ----------------------------------------------------------------------------------------------------- coverage


def _coverage(numbers: Sequence[tuple[str, str, str]], place: Path) -> Picture:
    shown = [
        c
        for number in numbers
        for c in read_coverage(place)
        if (c.protocol, c.condition, c.metric) == number and c.situation == VARY
    ]
    records = [
        {
            "number": f"{c.protocol}: {c.metric}" + (f", {c.condition}" if len({n[0] for n in numbers}) == 1 else ""),
            "kind": c.over.replace("_", " "),
            "claim": CLAIMED if c.claims else MISREAD,
            "situation": c.situation,
            "coverage": c.coverage,
            "width": c.mean_width,
            "studies": c.studies,
        }
        for c in shown
    ]
    if not records:
        raise UserError(f"{place} holds no coverage", "cuebench calibrate --out DIR, then --set folder=DIR")
    studies = min(c.studies for c in shown)
    return Picture(
        "How often 95 % intervals hold the truth",
        lambda room: _dots(records, room),
        records,
        f"Share of at least {studies:,} simulated studies in which each kind of interval holds the value for new "
        f"sources, which differ; open: kinds that do not claim to, {MISREAD}; grey: {LEAST:.0%} to {MOST:.0%}",
        f"Coverage of {len(records)} intervals of {len(numbers)} numbers.",
    )


def _dots(records: Sequence[dict[str, Any]], room: float) -> Any:
    names = list(dict.fromkeys(r["number"] for r in records))
    kinds = list(dict.fromkeys(r["kind"] for r in records))
    axis = alt.Axis(title="share of studies", format=".0%", values=[0, 0.2, 0.4, 0.6, 0.8, 0.95])
    least = int(10 * min(0.8, *(r["coverage"] for r in records))) / 10
    scale = alt.Scale(domain=[least, 1], nice=False, zero=False)
    colours = (*CONDITIONS, NEUTRAL)
    palette = alt.Scale(domain=kinds, range=[colours[k % len(colours)] for k in range(len(kinds))])
    legend = alt.Legend(title="interval over", orient="bottom", columns=4)  # the same for all three: they are one
    band = alt.Chart(table([{"from": LEAST, "to": MOST}])).mark_rect(color=FAINT)
    points = alt.Chart(table(records)).encode(
        x=alt.X("coverage:Q", axis=axis, scale=scale),
        y=alt.Y(
            "number:N", sort=names, axis=alt.Axis(title=None, ticks=False, domain=False, labelLimit=300, grid=True)
        ),
        stroke=alt.Stroke("kind:N", scale=palette, legend=legend),
        fill=alt.Fill("kind:N", scale=palette, legend=legend),
        shape=alt.Shape("kind:N", scale=alt.Scale(domain=kinds), legend=legend),
        fillOpacity=alt.FillOpacity("claim:N", scale=alt.Scale(domain=[CLAIMED, MISREAD], range=[1, 0]), legend=None),
        tooltip=tooltip("number", "kind", "claim", "situation", coverage=".3f", width=".3f", studies=","),
    )
    layers = alt.layer(
        band.encode(x=alt.X("from:Q", axis=axis, scale=scale), x2="to:Q"), points.mark_point(size=32, opacity=0.9)
    )
    return layers.properties(width=room, height=max(3, len(names)) * _ROW)


FIGURE = Figure("calibration", "What comes back of a planted weight", calibration, needs="nothing", options=OPTIONS)
