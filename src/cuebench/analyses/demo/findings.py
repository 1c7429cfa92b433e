"""What came out of the demo: a table of headlines, and three sentences that are computed from the scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cuebench.analyses.planted_order import Order, planted_order, planted_sign
from cuebench.protocols.headline import headline_column
from cuebench.types import Score

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "ideal: shape": ("ideal:shape",),
    "trained on shape": ("control:shape", "control:segment_shape"),
    "trained on both": ("control:both",),
    "trained on texture": ("control:texture", "control:segment_texture"),
    "ideal: texture": ("ideal:texture",),
    "EfficientNet-Lite0": ("lite:efficientnet_lite0",),
}
"""Heading → observers; of networks that classify and those that segment, whichever the protocol asks for."""
LARGER = {1: "more shape", -1: "more texture", 0: ""}


class Line(NamedTuple):
    """The headline of one protocol: what it is, what a larger value means, and one score for each column."""

    protocol: str
    metric: str
    larger: str
    cells: tuple[Score | None, ...]


def table(rows: Sequence[Score], protocols: Sequence[str]) -> list[Line]:
    """Return the headline of every protocol for every column."""
    lines = []
    for protocol in protocols:
        column = headline_column(rows, protocol)
        if column is not None:
            cells = [next((column.rows[n] for n in names if n in column.rows), None) for names in COLUMNS.values()]
            lines.append(Line(protocol, column.metric, LARGER[planted_sign(protocol)], tuple(cells)))
    return lines


def orders(rows: Sequence[Score], protocols: Sequence[str]) -> list[Order]:
    """Return how the networks trained on shape and on texture stand to each other, where a protocol measures that."""
    names = {"shape": COLUMNS["trained on shape"], "texture": COLUMNS["trained on texture"]}
    planted_orders = [planted_order(rows, protocol, **names) for protocol in protocols if planted_sign(protocol)]
    return [order for order in planted_orders if order is not None]


def sentences(rows: Sequence[Score], protocols: Sequence[str]) -> list[str]:
    """Say in three sentences what came out, with intervals."""
    return [_order_sentence(orders(rows, protocols)), _both_sentence(rows), _network_sentence(rows)]


def _order_sentence(compared: Sequence[Order]) -> str:
    right = [o for o in compared if o.as_planted]
    apart = [o for o in right if o.apart]
    wrong = [o.protocol for o in compared if not o.as_planted]
    extra = f"; not in {', '.join(wrong)}" if wrong else ""
    return (
        f"{len(right)} of the {len(compared)} protocols that measure shape or texture put the network trained on shape "
        f"on the side of shape and the one trained on texture on the other{extra}, {len(apart)} of them with intervals "
        "that do not overlap."
    )


def _both_sentence(rows: Sequence[Score]) -> str:
    """Say where the protocols disagree about the network that was trained on both cues."""
    values = []
    for protocol in ("cue_conflict", "refined_bias", "triplets"):
        column = headline_column(rows, protocol)
        if column is not None and "control:both" in column.rows:
            values.append(f"{number(column.rows['control:both'])} in {protocol}")
    if not values:
        return "The network trained on things whose shape and material agree could not be measured."
    return (
        "The same network, trained on things whose shape and material agree, has a share of shape of "
        f"{', '.join(values)}: what a bias is depends on how one asks."
    )


def _network_sentence(rows: Sequence[Score]) -> str:
    column = headline_column(rows, "cue_conflict")
    score = None if column is None else column.rows.get("lite:efficientnet_lite0")
    if score is None:
        return "EfficientNet-Lite0 could not be measured."
    return (
        f"EfficientNet-Lite0, trained on photographs, goes by the shape in {number(score)} of the {score.n} conflicts "
        "that it decides: a number of these drawings; on the published images it has another one (README)."
    )


def number(score: Score) -> str:
    """Return a value with its interval."""
    if math.isnan(score.ci_low) or math.isnan(score.ci_high):
        return f"{score.value:.2f}"
    return f"{score.value:.2f} [{score.ci_low:.2f}, {score.ci_high:.2f}]"
