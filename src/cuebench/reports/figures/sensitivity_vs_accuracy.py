"""Sensitivities and preference against accuracy and robustness, with r over all models and within families."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from cuebench.analyses.families import Families, read_families
from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.protocols.headline import headline_column, headline_of
from cuebench.published.tables import entries
from cuebench.reports import theme
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import columns_for, heading, panels, table, tooltip
from cuebench.reports.observers import Series
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import Run, all_scores, headline_note, how_to_get, observers_of, shown_observers
from cuebench.reports.scatter import Scale, span
from cuebench.reports.vega import alt
from cuebench.statistics.correlations import correlate
from cuebench.types import Axis, Score

REFINED_BIAS = "refined_bias"
ACROSS = {"imagenet_accuracy": "ImageNet accuracy", "corruption_robustness": "relative robustness to corruptions"}
UP = {
    "shape_sensitivity": "shape sensitivity",
    "texture_sensitivity": "texture sensitivity",
    "shape_preference": "shape preference",
}
TABLES = {"strategies": "C", "architectures": "B"}
RUN, NO_FAMILY = "this run", "no family"
FEWEST = 3
"""Members of a family that an r within it needs."""


class Model(NamedTuple):
    """A model with its family and what is known of it: metric or protocol → value."""

    name: str
    family: str
    values: Mapping[str, float]
    paper: bool = False


def sensitivity_vs_accuracy(run: Run, *, families: str = "", published: str = "none") -> Picture:
    """Draw each sensitivity and the preference against accuracy and robustness (Fig. 8 and 9 of Kim et al. 2026).

    Parameters
    ----------
    run : path or sequence of paths
        Run folders of ``refined_bias`` with ``imagenet_accuracy`` or ``corruption_robustness``.
    families : str
        A family file (``cuebench explain compare``): colours, and an r within each family.
    published : str
        The models of the paper beside those of the run: ``strategies`` (Table C, in the paper's families),
        ``architectures`` (Table B: CNNs and transformers), or ``none``.
    """
    run_models = _of_run(run, read_families(families) if families else None)
    if published == "none" and not any(set(m.values) & set(ACROSS) for m in run_models):
        raise UserError(
            "no model of the run has an accuracy beside its sensitivities", how_to_get(run, "imagenet_accuracy")
        )
    models = [*run_models, *(_published(published) if published != "none" else ())]
    pairs = [
        (x, y) for x in ACROSS for y in UP if sum(x in m.values and y in m.values for m in models) > 1
    ]  # fmt: skip
    if not pairs:
        raise UserError(
            "fewer than two models have both numbers", "measure more models, or show --set published=strategies"
        )
    records = [{"model": m.name, "family": m.family, **m.values} for m in models]
    return Picture(
        "Sensitivity and performance",
        lambda room: _chart(models, pairs, room),
        records,
        "r: Pearson's correlation with 95 % interval (Fisher's z); below it, r within families of three or more models",
        f"{len(models)} models: {', '.join(UP.values())} against {', '.join(ACROSS[x] for x in dict(pairs))}.",
        footnote=headline_note(run, (REFINED_BIAS, *ACROSS)),
    )


def _of_run(run: Run, families: Families | None) -> list[Model]:
    observers, numbers = observers_of(run), all_scores(run)
    family_of = {m: f.name for f in families.members for m in f.models} if families else {}
    columns = {metric: _column(numbers, REFINED_BIAS, metric) for metric in UP}
    columns |= {protocol: _column(numbers, protocol) for protocol in ACROSS}
    shown = [
        o
        for o in shown_observers((o for c in columns.values() for o in c), observers)
        if observers.kinds[o] == "model" and any(o in columns[metric] for metric in UP)
    ]
    if not shown:
        raise UserError("no model of the run has a sensitivity", how_to_get(run, REFINED_BIAS))
    return [
        Model(
            observers.name(o),
            family_of.get(o, NO_FAMILY if families else RUN),
            {key: column[o].value for key, column in columns.items() if o in column},
        )
        for o in shown
    ]


def _column(numbers: Sequence[Score], protocol: str, metric: str = "") -> Mapping[str, Score]:
    axis = Axis(metric, headline_of(protocol).conditions) if metric else None
    column = headline_column(numbers, protocol, axis)
    return column.rows if column else {}


@cache
def _published(which: str) -> tuple[Model, ...]:
    """Return the models of a table of the paper in their families."""
    paper = read_families(Path(__file__).parents[1] / "refined_bias_families.json")
    family_of = {m: f.name for f in paper.members for m in f.models} | {paper.baseline: "Baseline"}
    names = {"shape_sens": "shape_sensitivity", "texture_sens": "texture_sensitivity", "in_domain": "imagenet_accuracy"}
    values: dict[str, dict[str, float]] = {}
    for e in entries(REFINED_BIAS, TABLES[which]):
        if e.metric in names:
            values.setdefault(e.model, {})[names[e.metric]] = float(e.value)
            family_of.setdefault(e.model, {"ViT": "Transformers", "CNN": "CNNs"}.get(e.group, e.group or "others"))
    for numbers in values.values():
        shape, texture = numbers["shape_sensitivity"], numbers["texture_sensitivity"]
        numbers["shape_preference"] = shape / (shape + texture)
    return tuple(Model(name, family_of[name], numbers, paper=True) for name, numbers in values.items())


def _chart(models: Sequence[Model], pairs: Sequence[tuple[str, str]], room: float) -> Any:
    families = Series.of(dict.fromkeys(m.family for m in models), theme.OBSERVERS)
    columns = columns_for(room, min(len(pairs), len(UP)))
    width = (room - 26 * (columns - 1)) / columns
    legend = families.legend(room) if len(families.names) > 1 else None
    return panels([_panel(models, x, y, families, width, legend) for x, y in pairs], columns)


def _panel(models: Sequence[Model], x: str, y: str, families: Series, width: float, legend: Any) -> Any:
    points: list[dict[str, Any]] = [
        {"model": m.name, "family": m.family, "x": m.values[x], "y": m.values[y], "paper": m.paper}
        for m in models
        if x in m.values and y in m.values
    ]
    across, up = (span(title, [p[end] for p in points]) for title, end in ((ACROSS[x], "x"), (UP[y], "y")))
    base = alt.Chart(table(points)).encode(x=_axis(alt.X, "x", across), y=_axis(alt.Y, "y", up))
    marks = base.mark_point(size=24, opacity=0.85).encode(
        color=families.colour("family", legend=legend),
        shape=families.mark("family", legend=legend),
        tooltip=tooltip("model", "family", x=".3f", y=".3f"),
    )
    title = heading(_overall(points), width)
    title.subtitle = _within(points, width) or [" "]
    title.subtitleFontSize, title.subtitleColor = 6.5, theme.SOFT
    return marks.properties(width=width, height=0.85 * width, title=title)


def _axis(channel: Any, field: str, scale: Scale) -> Any:
    ends = alt.Scale(domain=[scale.low, scale.high], nice=False, zero=False)
    return channel(f"{field}:Q", scale=ends, axis=alt.Axis(title=scale.title, tickCount=5, format=".2~f"))


def _overall(points: Sequence[Mapping[str, Any]]) -> str:
    """Return r over all models; where the paper's are shown, over those, and the run's stand below as a family."""
    paper = [p for p in points if p["paper"]]
    points = paper or points
    if len(points) < FEWEST:
        return f"{len(points)} models: no correlation"
    r = correlate([p["x"] for p in points], [p["y"] for p in points], "pearson", how="fisher")
    interval = f" [{r.low:.2f}, {r.high:.2f}]" if r.low == r.low else ""
    whose = "paper: " if paper else ""
    return f"{whose}r = {r.value:.2f}{interval}, n = {r.n}".replace("-", "−")


def _within(points: Sequence[Mapping[str, Any]], width: float) -> list[str]:
    """Return r within each family, in lines that fit the panel."""
    parts = []
    families = dict.fromkeys(p["family"] for p in points)
    for family in families if len(families) > 1 else ():
        members = [p for p in points if p["family"] == family]
        if len(members) >= FEWEST:
            r = correlate([p["x"] for p in members], [p["y"] for p in members], "pearson", how="fisher")
            parts.append(f"{family} {r.value:.2f} ({r.n})".replace("-", "−"))
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(part) + 3 <= width / 3.1:
            lines[-1] += f" · {part}"
        else:
            lines.append(part)
    return lines


FIGURE = Figure(
    "sensitivity_vs_accuracy",
    "Sensitivity and performance",
    sensitivity_vs_accuracy,
    protocol=REFINED_BIAS,
    options={
        "families": Option("", "a family file: colours, and an r within each family"),
        "published": Option("none", "models of the paper beside those of the run", choices=("none", *TABLES)),
    },
)
