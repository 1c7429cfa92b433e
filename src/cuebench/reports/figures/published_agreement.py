"""Agreement of protocols: rank correlations over the same models, in the papers and in runs, strongest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from cuebench.errors import UserError
from cuebench.published.agree import PUBLISHED, Agreement
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import table, tooltip
from cuebench.reports.picture import Picture
from cuebench.reports.text import distinct
from cuebench.reports.theme import CONDITIONS, NEUTRAL, SOFT
from cuebench.reports.vega import alt

_ROW = 11.0


def published_agreement(agreements: Sequence[Agreement]) -> Picture:
    """Draw the correlations with their intervals.

    Parameters
    ----------
    agreements : sequence of Agreement
        What ``cuebench.published.agree.agree`` returned.
    """
    defined = sorted((a for a in agreements if a.spearman == a.spearman), key=lambda a: -a.spearman)
    if not defined:
        raise UserError("no pair of protocols shares enough models to draw", "name runs that measured the same models")
    records = [{"pair": _pair(a), **asdict(a)} for a in defined]
    return Picture(
        "Do the protocols agree?",
        lambda room: _chart(records, room),
        records,
        "Rank correlation (Spearman) over the models that both measured; whiskers: 95 %; at the right: models",
        f"{len(records)} rank correlations, {records[-1]['spearman']:.2f} to {records[0]['spearman']:.2f}.",
    )


def _pair(a: Agreement) -> str:
    (first, _, measure), (second, _, other) = a.first.partition("/"), a.second.partition("/")
    return f"{first}: {measure} · {other}" if first == second else f"{a.first} · {a.second}"


def _chart(records: Sequence[dict[str, Any]], room: float) -> Any:
    names = distinct([r["pair"] for r in records], 64 if room > 300 else 40)
    rows = [
        {**r, "name": name, "of": "papers" if r["source"] == PUBLISHED else "runs"} for r, name in zip(records, names)
    ]
    axis = alt.Axis(title="rank correlation", values=[-1, -0.5, 0, 0.5, 1], format=".1f")
    scale = alt.Scale(domain=[-1, 1])
    several = len({r["of"] for r in rows}) > 1
    base = alt.Chart(table(rows)).encode(
        y=alt.Y("name:N", sort=names, axis=alt.Axis(title=None, ticks=False, domain=False, labelLimit=260)),
        color=alt.Color(
            "of:N",
            scale=alt.Scale(domain=["papers", "runs"], range=[NEUTRAL, CONDITIONS[0]]),
            legend=alt.Legend(title=None, orient="bottom") if several else None,
        ),
    )
    tips = tooltip("pair", "source", spearman=".2f", low=".2f", high=".2f", n=",")
    return alt.layer(
        base.mark_rule(strokeWidth=1.4, opacity=0.7).encode(x=alt.X("low:Q", axis=axis, scale=scale), x2="high:Q"),
        base.mark_point(size=26).encode(x=alt.X("spearman:Q", axis=axis, scale=scale), tooltip=tips),
        base.mark_text(align="left", dx=5).encode(x=alt.value(room), text="n:N", color=alt.value(SOFT)),
    ).properties(width=room, height=_ROW * len(rows))


FIGURE = Figure("published_agreement", "Do the protocols agree?", published_agreement, needs="objects")
