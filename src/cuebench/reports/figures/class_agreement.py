"""Do the outcomes of cue conflict follow the recognition of pure shape and texture? Kendall's τ over classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuebench.analyses.class_agreement import ALL_MODELS, Agreement
from cuebench.analyses.class_agreement import class_agreement as taus_of
from cuebench.analyses.class_wise import PROTOCOLS, PURE, read_panel
from cuebench.reports import theme
from cuebench.reports.figures.base import Figure
from cuebench.reports.figures.class_recognition import SPACE, VIEW
from cuebench.reports.marks import heading, table, tooltip
from cuebench.reports.observers import Observers, Series
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import Run, folders, headline_note, observers_of, shown_observers
from cuebench.reports.vega import alt

_ALL = "all models"


def class_agreement(run: Run, *, space: str = "16-way", view: str = "faithful") -> Picture:
    """Draw Kendall's τ between each outcome of cue conflict and each pure cue, as Fig. 3b of Kim et al. 2026.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with ``cue_conflict`` and ``pure_shape`` (or REFINED-BIAS cues of the same classes).
    space : str
        Label space of cue conflict, silhouettes and edges: ``16-way`` or ``1000-way``.
    view : str
        View of REFINED-BIAS: ``faithful`` or ``native``.
    """
    panel = read_panel(folders(run), space=space, view=view)
    taus, observers = taus_of(panel), observers_of(run)
    shown = shown_observers((a.observer for a in taus if a.observer != ALL_MODELS), observers)
    records = [_record(a, observers) for a in taus if a.observer in (*shown, ALL_MODELS)]
    series = observers.series(shown)
    if any(a.observer == ALL_MODELS for a in taus):
        series = Series(
            (*series.names, _ALL), (*series.colours, theme.INK), (*series.marks, "stroke")
        )  # a line, wider than the marks
    classes = max(a.tau.n for a in taus)
    return Picture(
        "Cue conflict against pure cues",
        lambda room: _chart(records, series, room),
        records,
        f"Kendall's τ over {classes} classes, {space}; black: mean accuracy of all models, whiskers: 95 % over classes",
        "Kendall's correlation between answers by shape or texture in cue conflict and the recognition of pure cues.",
        footnote=headline_note(run, PROTOCOLS, shown),
    )


def _record(a: Agreement, observers: Observers) -> dict[str, Any]:
    return {
        "observer": a.observer,
        "name": _ALL if a.observer == ALL_MODELS else observers.name(a.observer),
        "cue_conflict": a.outcome,
        "pure": a.pure,
        "value": a.tau.value,
        "low": a.tau.low,
        "high": a.tau.high,
        "p": a.tau.p,
        "n": a.tau.n,
    }


def _chart(records: Sequence[dict[str, Any]], series: Series, room: float) -> Any:
    pures = [p for p in PURE if any(r["pure"] == p for r in records)]
    axis = alt.Axis(title="Kendall's τ", values=[-1, -0.5, 0, 0.5, 1], format=".1f")
    across = alt.X("value:Q", axis=axis, scale=alt.Scale(domain=[-1, 1], nice=False))
    legend = series.legend(room)
    layers = []
    for outcome in dict.fromkeys(r["cue_conflict"] for r in records):
        rows = [r for r in records if r["cue_conflict"] == outcome]
        base = alt.Chart(table(rows)).encode(
            y=alt.Y("pure:N", sort=pures, title=None, axis=alt.Axis(labelOverlap=False)),
            x=across,
            color=series.colour(legend=legend),
        )
        single, together = (base.transform_filter(f"datum.name {sign} '{_ALL}'") for sign in ("!=", "=="))
        tips = tooltip("name", "cue_conflict", "pure", value=".2f", low=".2f", high=".2f", p=".2g", n=",")
        span = together.mark_rule(strokeWidth=1.4).encode(
            x=alt.X("low:Q", axis=axis, scale=alt.Scale(domain=[-1, 1], nice=False)), x2="high:Q"
        )
        middle = together.mark_tick(thickness=2.2, height=13).encode(tooltip=tips)
        dots = single.mark_point(size=26).encode(shape=series.mark(legend=legend), tooltip=tips)
        zero = alt.Chart(table([{"value": 0.0}])).mark_rule(strokeDash=[2, 2], color=theme.NEUTRAL)
        layers.append(
            alt.layer(zero.encode(x=across), span, middle, dots).properties(
                width=room, height=26 * len(pures), title=heading(f"Cue conflict, {outcome}", room)
            )
        )
    return alt.vconcat(*layers).resolve_scale(color="shared", shape="shared")


FIGURE = Figure(
    "class_agreement",
    "Cue conflict against pure cues",
    class_agreement,
    protocol="pure_shape",
    options={"space": SPACE, "view": VIEW},
)
