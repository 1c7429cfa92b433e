"""Texture judgements: how often people name the texture that TID found, by texture (figure 4 of Hoak et al.)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuebench.analyses.texture_judgements import WORDS, identified, judge, read_judgements
from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import line_at, share_axis, table, tooltip
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import OBSERVER, PROTOCOL, Run, folders, observers_of
from cuebench.reports.text import distinct, words
from cuebench.reports.theme import NEUTRAL, PEOPLE
from cuebench.reports.vega import alt
from cuebench.types import Estimate

ANSWERS = Option(
    "",
    "what people answered: the export of a study, or a CSV with image, answer (words joined by ;), optionally subject "
    "and options",
)


def texture_judgements(run: Run, *, answers: str = "", observer: str = "") -> Picture:
    """Draw the agreement of people with the identified textures.

    Parameters
    ----------
    run : path or sequence of paths
        Run folder with ``texture_association`` on the photographs that people judged.
    answers : str
        File of what people answered.
    observer : str
        Whole name or a part of it; default: the first of the run.
    """
    name, textures = identified(folders(run)[0], observer)
    if not answers:
        raise UserError("nobody's answers were given", "--set answers=FILE.csv; trials: analyses.texture_judgements")
    judged = judge(read_judgements(answers), textures)
    order = sorted(judged.by_texture, key=lambda t: (-judged.by_texture[t].value, t))
    short = dict(zip(order, distinct([words(t) for t in order], 24)))
    records = [{"texture": f"{short[t]} ({judged.by_texture[t].n})", **_numbers(judged.by_texture[t])} for t in order]
    whole = _numbers(judged.overall)
    people = len({j.subject for j, _ in judged.rows})
    return Picture(
        f"People and identified textures: {observers_of(run).name(name)}",
        lambda room: _chart(records, whole["value"], room),
        [*records, {"texture": "all", **whole}],
        f"Share of answers that name the texture of TID (how many); {len(judged.rows):,} answers of {people} people; "
        f"whiskers: 95 %, over images; solid line: all ({whole['value']:.2f}); dotted: chance with {WORDS} words and "
        "one answer",
        f"Agreement over all: {whole['value']:.2f} [{whole['low']:.2f}, {whole['high']:.2f}].",
    )


def _numbers(estimate: Estimate) -> dict[str, Any]:
    interval = estimate.intervals[0]
    return {"value": estimate.value, "low": interval.low, "high": interval.high, "n": estimate.n}


def _chart(records: Sequence[dict[str, Any]], whole: float, room: float) -> Any:
    axis, scale = share_axis("agreement", grid=True), alt.Scale(domain=[0, 1])
    names = [r["texture"] for r in records]
    base = alt.Chart(table(records)).encode(y=alt.Y("texture:N", sort=names, axis=alt.Axis(title=None, ticks=False)))
    dots = base.mark_point(color=PEOPLE, shape="diamond", filled=True).encode(
        x=alt.X("value:Q", axis=axis, scale=scale),
        tooltip=tooltip("texture", value=".3f", low=".3f", high=".3f", n=","),
    )
    spans = base.mark_rule(color=PEOPLE).encode(x=alt.X("low:Q", axis=axis, scale=scale), x2="high:Q")
    line = alt.Chart(table([{"at": whole}])).mark_rule(color=NEUTRAL).encode(x=alt.X("at:Q", axis=axis, scale=scale))
    layers = alt.layer(line_at(1 / WORDS, axis, "x"), line, spans, dots)
    return layers.properties(width=room, height=max(40, 10 * len(names)))


FIGURE = Figure(
    "texture_judgements",
    "People and identified textures",
    texture_judgements,
    protocol=PROTOCOL,
    options={"answers": ANSWERS, "observer": OBSERVER},
)
