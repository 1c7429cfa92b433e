"""S_cd, R_cd and the qualities behind them, for classification and segmentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from cuebench.metrics.cue_decomposition import robustness_cd, shape_bias_cd
from cuebench.options import Option
from cuebench.protocols.base import Protocol, ScoreOptions
from cuebench.protocols.correctness import Qualities, Table, quality_sums
from cuebench.protocols.cue_decomposition.populations import BOTH, Population, check_population, populations
from cuebench.protocols.trials import Asked
from cuebench.statistics.clustered import Sums
from cuebench.statistics.correlations import correlate
from cuebench.statistics.estimates import derived
from cuebench.stimuli.decomposition.cue_list import ORIGINAL, SHAPE, keeps
from cuebench.tables.engine import Result
from cuebench.types import Axis, Estimate, Headline

if TYPE_CHECKING:
    import pyarrow as pa

OPTIONS = {
    "population": Option(BOTH, "population H of S_cd: run, heinert2025, both, or a file FILE.json", scoring=True),
    "leave_out": Option((), "models that are not members of H; they keep their own scores", scoring=True),
}
HEADLINE = Headline(
    metric="shape_bias_cd",
    conditions=(
        "eed+voronoi H=heinert2025",
        "eed+voronoi H=run",
        "eed+voronoi H=*",
        "eed+* H=heinert2025",
        "eed+* H=run",
        "*",
    ),
    direction="shape",
    plane=(Axis("quality_shape", ("eed", "*")), Axis("quality_texture", ("voronoi", "*"))),
)


def configured(protocol: Protocol, values: Mapping[str, Any]) -> Protocol:
    """Return the protocol; a population that cannot be used fails here, before anything is spent."""
    check_population(values["population"])
    return protocol


def needed(by_condition: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """Return the qualities that S_cd and R_cd are made from: others are not kept of an observer."""
    return {c: quality for c, quality in by_condition.items() if c in (ORIGINAL, SHAPE) or _is_texture(c)}


def _is_texture(condition: str) -> bool:
    return keeps(condition) == "texture" and "/" not in condition


def add_decomposition(result: Result, observers: Sequence[Qualities], dataset: str, values: Mapping[str, Any]) -> None:
    """Add Q_O, Q_S, Q_T, S_cd and R_cd of every observer, for each texture cue and population, and the table of H.

    Parameters
    ----------
    result : Result
        To be added to.
    observers : sequence of Qualities
        Every observer's quality in every condition.
    dataset : str
        Which of the published sets the populations are taken from.
    values : mapping
        The options: ``population`` and ``leave_out``.
    """
    shown = dict.fromkeys(c for o in observers for c in o.by_condition if _is_texture(c))
    models = [o for o in observers if o.responses.kind == "model"] or observers
    run = {o.responses.observer: o.by_condition for o in models}
    choice, left_out = values.get("population", BOTH), values.get("leave_out", ())
    by_texture = {t: populations(choice, dataset, SHAPE, t, run, left_out) for t in shown}
    for observer in observers:
        _add_observer(result, observer, by_texture)
    result.tables["population"] = _population_table(by_texture)


def contributions(pictures: Table, asked: Asked, *, of_areas: bool = False) -> Sums | None:
    """Return S_cd as a function of sums over images; s and t of the population H are held fixed.

    Parameters
    ----------
    pictures : Table
        Correct answers, or areas, of each image in each condition.
    asked : Asked
        The condition, ``eed+voronoi H=run``, and the table of populations.
    of_areas : bool
        The quality is the mean IoU.
    """
    pair, _, name = asked.condition.partition(" H=")
    conditions = pair.split("+")
    if len(conditions) != 2 or not set(conditions) <= set(pictures.conditions):
        return None
    rows = [r for r in asked.table("population").to_pylist() if (r["cues"], r["population"]) == (pair, name)]
    if not rows:
        return None
    s, t = rows[0]["s"], rows[0]["t"]
    assert shape_bias_cd.compute is not None
    bias = shape_bias_cd.compute
    return quality_sums(pictures, conditions, lambda q: bias(q[0], q[1], s, t), of_areas)


def _add_observer(result: Result, observer: Qualities, by_texture: Mapping[str, Sequence[Population]]) -> None:
    qualities = observer.by_condition
    textures = [t for t in by_texture if t in qualities]
    metrics = {ORIGINAL: "quality_original", SHAPE: "quality_shape", **dict.fromkeys(textures, "quality_texture")}
    for condition, metric in metrics.items():
        if condition in qualities:
            observer.add(result, condition, metric, qualities[condition], {condition})
    for texture in textures if SHAPE in qualities else ():
        pair, cues = f"{SHAPE}+{texture}", {SHAPE, texture}
        q_s, q_t, q_o = qualities[SHAPE], qualities[texture], qualities.get(ORIGINAL)
        for h in by_texture[texture]:
            bias = derived(shape_bias_cd, q_s, q_t, h.mean_shape, h.mean_texture, n=q_s.n + q_t.n)
            observer.add(result, f"{pair} H={h.name}", "shape_bias_cd", bias, cues, h.description)
        if q_o is not None:
            observer.add(result, pair, "robustness_cd", derived(robustness_cd, q_s, q_t, q_o), {*cues, ORIGINAL})


def _population_table(by_texture: Mapping[str, Sequence[Population]]) -> pa.Table:
    """Return every H with its members, s and t: S_cd means nothing without them."""
    import pyarrow as pa

    rows = [
        {"population": h.name, "source": h.source, "cues": f"{SHAPE}+{texture}", "model": model,
         "quality_shape": h.shape[model].value, "quality_texture": h.texture[model].value, "s": h.s, "t": h.t}
        for texture, chosen in by_texture.items()
        for h in chosen
        for model in h.shape
    ]  # fmt: skip
    texts, numbers = ("population", "source", "cues", "model"), ("quality_shape", "quality_texture", "s", "t")
    schema = pa.schema([*((name, pa.string()) for name in texts), *((name, pa.float64()) for name in numbers)])
    return pa.Table.from_pylist(rows, schema=schema)


def correlations(result: Result, options: ScoreOptions) -> pa.Table:
    """Return Spearman's rank correlation of every two columns over the models that have both; empty below four models.

    A column is a metric in a condition. Tables II and X of the paper are such correlations.
    """
    import pyarrow as pa

    columns: dict[str, dict[str, float]] = {}
    for m in result.measurements:
        columns.setdefault(f"{m.metric} {m.condition}", {})[m.responses.observer] = m.estimate.value
    rows = []
    for x, y in combinations(columns, 2):
        first, second = columns[x], columns[y]
        both = [m for m in first if m in second and np.isfinite([first[m], second[m]]).all()]
        if len(both) < 4:
            continue
        r = correlate([first[m] for m in both], [second[m] for m in both])
        rows.append({"x": x, "y": y, "spearman": r.value, "low": r.low, "high": r.high, "p": r.p, "n": r.n})
    texts, numbers = ("x", "y"), ("spearman", "low", "high", "p")
    schema = pa.schema([*((t, pa.string()) for t in texts), *((n, pa.float64()) for n in numbers), ("n", pa.int64())])
    return pa.Table.from_pylist(rows, schema=schema)
