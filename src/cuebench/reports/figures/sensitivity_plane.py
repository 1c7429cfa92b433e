"""Shape against texture: two sensitivities of every observer with their intervals, the published models behind them.

The plane of REFINED-BIAS; any protocol that measures both cues has one.
"""

from __future__ import annotations

from typing import Any

from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.protocols.captions import caption
from cuebench.protocols.headline import headline_column, headline_of
from cuebench.published.measures import measures
from cuebench.reports.figures.base import Figure
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import PEOPLE, Run, all_scores, how_to_get, observers_of, shown_observers
from cuebench.reports.scatter import dots, line, scatter, span
from cuebench.reports.text import words

PROTOCOL = "refined_bias"
_PUBLISHED = {PROTOCOL: ("refined_bias/shape_sens", "refined_bias/texture_sens")}


def sensitivity_plane(run: Run, *, protocol: str = PROTOCOL, people: str = "pooled", published: bool = True) -> Picture:
    """Draw the shape axis against the texture axis.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with the protocol.
    protocol : str
        One that measures shape and texture apart: ``refined_bias``, ``cue_conflict``.
    people : str
        ``pooled``: the pooled answers of people; ``each``: every person too.
    published : bool
        Show the models of the paper in grey, where there are some.
    """
    plane = headline_of(protocol).plane
    if plane is None:
        raise UserError(f"{protocol} does not measure shape and texture apart", f"--set protocol={PROTOCOL}")
    numbers = all_scores(run)
    shape, texture = (headline_column(numbers, protocol, axis) for axis in plane)
    if shape is None or texture is None:
        raise UserError(f"no observer has the two numbers of {protocol}", how_to_get(run, protocol))
    observers = observers_of(run)
    shown = shown_observers((o for o in shape.rows if o in texture.rows), observers, people)
    both = zip(observers.records(shape.rows[o] for o in shown), observers.records(texture.rows[o] for o in shown))
    records = [
        {
            "source": "run",
            "name": s["name"],
            "observer": s["observer"],
            "kind": s["kind"],
            "condition": s["condition"],
            "shape": s["value"],
            "shape_low": s["low"],
            "shape_high": s["high"],
            "texture": t["value"],
            "texture_low": t["low"],
            "texture_high": t["high"],
            "n": s["n"],
        }
        for s, t in both
    ]
    behind = _published(protocol) if published else []
    series = observers.series(shown)
    titles = [words(axis.metric) for axis in plane]
    grey = f"; grey: the {len(behind)} models of the paper" if behind else ""
    return Picture(
        "Sensitivity to shape and to texture",
        lambda room: _chart(records, behind, series, titles, room),
        [*records, *behind],
        f"Protocol: {words(protocol)}, {shape.condition}. Whiskers: 95 %, widest interval{grey}; above the dotted line "
        "shape counts more",
        f"{titles[0]} against {titles[1]} of {len(records)} observers.",
        footnote=caption((c.rows[o] for c in (shape, texture) for o in shown), short=True),
    )


def _published(protocol: str) -> list[dict[str, Any]]:
    if protocol not in _PUBLISHED:
        return []
    shape, texture = (measures()[name] for name in _PUBLISHED[protocol])
    return [
        {"source": "published", "name": shape.labels[w], "observer": w, "shape": value, "texture": texture.values[w]}
        for w, value in shape.values.items()
        if w in texture.values
    ]


def _chart(
    records: list[dict[str, Any]], behind: list[dict[str, Any]], series: Any, titles: list[str], room: float
) -> Any:
    everyone = [*records, *behind]
    keys = [f"{cue}{end}" for cue in ("shape", "texture") for end in ("", "_low", "_high")]
    # One scale for both: the diagonal leads from corner to corner, and distances from it can be compared.
    x, y = (span(title, [r[key] for r in everyone for key in keys if key in r]) for title in titles[::-1])
    points = [
        {
            **{f"x{end}": r[f"texture{end}"] for end in ("", "_low", "_high")},
            **{f"y{end}": r[f"shape{end}"] for end in ("", "_low", "_high")},
            "name": r["name"],
        }
        for r in records
    ]
    grey = [{"x": r["texture"], "y": r["shape"], "model": r["name"]} for r in behind]
    below = [line([(x.low, x.low), (x.high, x.high)], x, y), *([dots(grey, x, y, "model")] if grey else [])]
    return scatter(points, series, x, y, width=room, height=min(0.8 * room, 300), below=below)


FIGURE = Figure(
    "sensitivity_plane",
    "Sensitivity to shape and to texture",
    sensitivity_plane,
    protocol=PROTOCOL,
    options={
        "protocol": Option(PROTOCOL, "one that measures shape and texture apart"),
        "people": PEOPLE,
        "published": Option(True, "show the models of the paper in grey"),
    },
)
