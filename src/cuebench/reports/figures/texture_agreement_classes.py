"""Texture agreement by class: whose usual texture natural adversarial images show, for each true class.

Figure 13 of Hoak et al.: among the images whose texture is the usual one of the answered class or of the true class,
but not of both, the share of each, class by class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import share_axis, table, tooltip
from cuebench.reports.observers import Series
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import OBSERVER, PROTOCOL, Run, observers_of, of_observer, rows
from cuebench.reports.text import distinct, words
from cuebench.reports.theme import CONDITIONS, TEXTURE
from cuebench.reports.vega import alt

_PREDICTION, _LABEL = "texture of the predicted class", "texture of the true class"


def texture_agreement_classes(run: Run, *, observer: str = "", classes: int = 60) -> Picture:
    """Draw the share of both textures in every class, those with the most images of the true class's texture first.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with ``texture_association`` on ``imagenet_val`` and ``imagenet_a``.
    observer : str
        Whole name or a part of it; default: the first of the run.
    classes : int
        How many at most; the subtitle says how many there are and in how many of them the prediction is ahead.
    """
    hint = "natural adversarial images are needed: imagenet_a beside imagenet_val"
    name, records = of_observer(rows(run, "agreement", hint=hint), observer)
    judged = [r for r in records if r["prediction"] + r["own"] > 0]
    if not judged:
        raise UserError(f"no image of {run} shows the usual texture of one class only", "show more images")
    total = len(judged)
    ahead = sum(r["prediction"] > r["own"] for r in judged)
    alone = sum(r["own"] == 0 for r in judged)
    judged = sorted(judged, key=lambda r: (-r["own"] / (r["own"] + r["prediction"]), r["label"]))[:classes]
    short = distinct([words(r["label"]) for r in judged], 26)
    bars = [
        {
            "class": label,
            "images": kind,
            "value": r[key] / (r["prediction"] + r["own"]),
            "n": r["prediction"] + r["own"],
        }
        for label, r in zip(short, judged)
        for key, kind in (("prediction", _PREDICTION), ("own", _LABEL))
    ]
    return Picture(
        f"Textures of adversarial images: {observers_of(run).name(name)}",
        lambda room: _chart(bars, short, room),
        bars,
        f"Images that show the usual texture of one of the two classes; {total} true classes, {len(judged)} of them "
        f"here. More images with the texture of the prediction: {ahead / total:.0%}; only such images: "
        f"{alone / total:.0%}",
        f"In {ahead} of {total} classes more images show the texture of the answer than that of the label.",
    )


def _chart(records: Sequence[dict[str, Any]], classes: Sequence[str], room: float) -> Any:
    series = Series((_PREDICTION, _LABEL), (TEXTURE, CONDITIONS[0]), ("square", "square"))
    legend = series.legend(room)
    return (
        alt.Chart(table(records))
        .mark_bar(height={"band": 0.8})
        .encode(
            y=alt.Y("class:N", sort=list(classes), axis=alt.Axis(title=None, ticks=False, labelOverlap=False)),
            x=alt.X("value:Q", axis=share_axis("share of the images"), scale=alt.Scale(domain=[0, 1]), stack="zero"),
            color=series.colour("images", legend=legend),
            order=alt.Order("images:N"),
            tooltip=tooltip("class", "images", value=".2f", n=","),
        )
        .properties(width=room, height=max(30, 8 * len(classes)))
    )


FIGURE = Figure(
    "texture_agreement_classes",
    "Textures of natural adversarial images, by class",
    texture_agreement_classes,
    protocol=PROTOCOL,
    options={"observer": OBSERVER, "classes": Option(60, "how many at most", low=1)},
)
