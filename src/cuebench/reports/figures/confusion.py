"""Confusion: which class an observer answers to each class of shapes, and to each class of textures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import heading, table, tooltip
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import OBSERVER, Run, observers_of, of_observer, rows
from cuebench.reports.text import distinct, words
from cuebench.reports.theme import HEAT, INK, PAPER
from cuebench.reports.vega import alt

PROTOCOL = "cue_conflict"
NONE = "none"


def confusion(run: Run, *, observer: str = "", by: str = "both", condition: str = "") -> Picture:
    """Draw the share of the answers to each class, in the conflict trials.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with ``cue_conflict``.
    observer : str
        Whole name or a part of it; default: the first of the run.
    by : str
        Rows are the classes of the ``shape``, of the ``texture``, or ``both`` in two plots.
    condition : str
        Way of deciding, such as ``16-way``; default: the first of the table.
    """
    name, counts = of_observer(rows(run, "confusion", PROTOCOL), observer)
    condition = condition or str(counts[0]["condition"])
    counts = [r for r in counts if r["condition"] == condition and r["shape"] != r["texture"]]
    if not any(r["count"] > 0 for r in counts):
        raise UserError(
            f"{name} answered no image in conflict in {condition}", "show more images, or another condition"
        )
    cues = ("shape", "texture") if by == "both" else (by,)
    records = []
    for cue in cues:
        answered: Counter[tuple[str, str]] = Counter()
        asked: Counter[str] = Counter()
        for r in counts:
            answered[r[cue], r["response"] or NONE] += r["count"]
            asked[r[cue]] += r["count"]
        records += [
            {"observer": name, "condition": condition, "cue": cue, "class": truth, "answer": answer, "answers": number,
             "share": number / asked[truth], "of": asked[truth]}
            for (truth, answer), number in sorted(answered.items())
            if asked[truth]
        ]  # fmt: skip
    total = sum(r["count"] for r in counts)
    label = observers_of(run).name(name)
    return Picture(
        f"What {label} answers to each shape and each texture",
        lambda room: _chart(records, cues, room),
        records,
        f"Share of the answers in each row; cue conflict, {condition}, {total:,} answers to images in conflict. A "
        "strong diagonal: the answer follows that cue",
        f"Confusions of {label} by {' and by '.join(cues)}.",
    )


def _chart(records: Sequence[dict[str, Any]], cues: Sequence[str], room: float) -> Any:
    classes = sorted({r["class"] for r in records} | ({r["answer"] for r in records} - {NONE}))
    order = [*classes, *([NONE] if any(r["answer"] == NONE for r in records) else [])]
    beside = len(cues) > 1 and room > 300
    wide = (room - 12) / 2 if beside else room
    charts = [
        _panel(cue, [r for r in records if r["cue"] == cue], classes, order, wide, first=not (beside and k))
        for k, cue in enumerate(cues)
    ]
    if len(charts) == 1:
        return charts[0]
    return alt.hconcat(*charts, spacing=12) if beside else alt.vconcat(*charts, spacing=10)


def _panel(
    cue: str,
    records: Sequence[dict[str, Any]],
    classes: Sequence[str],
    order: Sequence[str],
    wide: float,
    *,
    first: bool,
) -> Any:
    short = dict(zip(order, distinct([words(c) for c in order], 18)))
    filled = {(r["class"], r["answer"]): r for r in records}
    cells = [
        {
            "class": short[c],
            "answer": short[a],
            "share": filled[c, a]["share"] if (c, a) in filled else 0.0,
            "answers": filled[c, a]["answers"] if (c, a) in filled else 0,
        }
        for c in classes
        for a in order
        if any(r["class"] == c for r in records)
    ]
    cell = wide / len(order)
    base = alt.Chart(table(cells)).encode(
        x=alt.X(
            "answer:N",
            sort=list(short.values()),
            axis=alt.Axis(title="answer", labelAngle=-60, ticks=False, domain=False, labelOverlap=cell < 7),
        ),
        y=alt.Y(
            "class:N",
            sort=[short[c] for c in classes],
            axis=alt.Axis(title=f"class of the {cue}", ticks=False, domain=False, labels=first, labelOverlap=cell < 7),
        ),
    )
    squares = base.mark_rect(stroke=PAPER, strokeWidth=0.3).encode(
        color=alt.Color(
            "share:Q",
            scale=alt.Scale(domain=[0, 1], range=list(HEAT)),
            legend=alt.Legend(title="share", format="%", values=[0, 0.5, 1], orient="right"),
        ),
        tooltip=tooltip("class", "answer", share=".1%", answers=","),
    )
    layers = [squares]
    if cell >= 11:
        numbers = base.transform_filter("datum.share >= 0.05").mark_text(fontSize=5.5)
        dark = alt.condition("datum.share > 0.45", alt.value(PAPER), alt.value(INK))
        layers.append(numbers.encode(text=alt.Text("share:Q", format=".0%"), color=dark))
    return alt.layer(*layers).properties(
        width=wide, height=min(cell, 16) * len(classes), title=heading(f"By the class of the {cue}", wide)
    )


FIGURE = Figure(
    "confusion",
    "Confusions by shape and by texture",
    confusion,
    protocol=PROTOCOL,
    options={
        "observer": OBSERVER,
        "by": Option("both", "classes of the rows", choices=("both", "shape", "texture")),
        "condition": Option("", "way of deciding, such as 16-way; default: the first"),
    },
)
