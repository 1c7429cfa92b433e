"""TAV bars: the strongest texture–class pairs of a model with their intervals (figure 7 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import table, tooltip
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import OBSERVER, PROTOCOL, Run, choose_observer, observers_of, scores
from cuebench.reports.text import distinct, shorten, words
from cuebench.reports.theme import INK, SOFT, TEXTURE
from cuebench.reports.vega import alt

_ROW = 10.0


def tav_bars(run: Run, *, observer: str = "", number: int = 50) -> Picture:
    """Draw the pairs with the largest TAV as bars, with their 95 % intervals over pictures.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with ``texture_association``.
    observer : str
        Whole name or a part of it; default: the first of the run.
    number : int
        How many pairs; a run keeps the 50 strongest.
    """
    of_pairs = [s for s in scores(run, PROTOCOL, "texture_association") if s.condition.startswith("pair/")]
    if not of_pairs:
        raise UserError(f"{run} has no texture that is tied to a class", "were the textures shown? see run.json")
    chosen = choose_observer((s.observer for s in of_pairs), observer)
    observers = observers_of(run)
    records = []
    for record in observers.records([s for s in of_pairs if s.observer == chosen][:number]):
        _, texture, label = record["condition"].split("/", 2)
        pair = {"texture": texture.removeprefix("texture="), "class": label.removeprefix("class=")}
        records.append({**record, **pair})
    return Picture(
        f"Strongest texture associations of {observers.name(chosen)}",
        lambda room: _chart(records, room),
        records,
        "Texture → class; texture association value (TAV); whiskers: 95 %, over pictures of the texture",
        f"Strongest of {len(records)} pairs: {words(records[0]['texture'])} with {shorten(records[0]['class'])}, "
        f"{records[0]['value']:.2f}.",
    )


def _chart(records: Sequence[dict[str, Any]], room: float) -> Any:
    names = distinct([f"{words(r['texture'])} → {shorten(r['class'], 24)}" for r in records], 60)
    data = table({**r, "pair": name} for r, name in zip(records, names))
    top = max(max(r["value"], r["high"] if r["high"] == r["high"] else 0) for r in records)
    axis = alt.Axis(title="TAV", tickCount=5, format=".2f")
    scale = alt.Scale(domain=[0, max(top, 0.01)], nice=True)
    base = alt.Chart(data).encode(y=alt.Y("pair:N", sort=names, axis=alt.Axis(title=None, labelLimit=170, ticks=False)))
    tips = tooltip("texture", "class", value=".3f", low=".3f", high=".3f", n=",")
    bars = base.mark_bar(color=TEXTURE, height=6).encode(x=alt.X("value:Q", scale=scale, axis=axis), tooltip=tips)
    spans = base.mark_rule(color=INK).encode(x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q")
    values = base.mark_text(align="left", dx=4, color=SOFT).encode(
        x=alt.value(room), text=alt.Text("value:Q", format=".3f")
    )
    return alt.layer(bars, spans, values).properties(width=room, height=_ROW * len(records))


FIGURE = Figure(
    "tav_bars",
    "Strongest texture associations",
    tav_bars,
    protocol=PROTOCOL,
    options={
        "observer": OBSERVER,
        "number": Option(50, "how many pairs", low=1),
    },
)
