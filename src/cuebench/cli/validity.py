"""Ask what a benchmark measures: classes, difficulty, label space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuebench.cli._idle import idle_with, needs
from cuebench.cli._json import print_json

if TYPE_CHECKING:
    from cuebench.types import Estimate

Runs = Annotated[list[Path], typer.Argument(help="Run folders; observers of the same name are the same.")]
Space = Annotated[str, typer.Option(help="Label space of cue conflict, silhouettes and edges: 16-way or 1000-way.")]
View = Annotated[str, typer.Option(help="View of REFINED-BIAS: faithful or native.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
NAMES = frozenset(
    {"", "class", "observer", "cue conflict", "pure cue", "benchmark", "over", "metric", "protocol", "cue"}
)
"""Columns of words: they may be folded, numbers not."""


def classes(runs: Runs, space: Space = "16-way", view: View = "faithful", as_json: Json = False) -> None:
    """List how well people and models recognise each class, by shape and by texture.

    From runs of cue_conflict, pure_shape and refined_bias. Intervals are over people and over models.
    """
    from cuebench.analyses.class_wise import SOURCES, by_class, read_panel

    rows = by_class(read_panel(runs, space=space, view=view))
    if as_json:
        print_json([{**r._asdict(), "people": _estimate(r.people), "models": _estimate(r.models)} for r in rows])
        return
    used = {source: about for source, about in SOURCES.items() if any(r.source == source for r in rows)}
    cells = [(r.source, r.label, _text(r.people), _text(r.models)) for r in rows]
    _print(("", "class", "people", "models"), cells, [f"{source}: {about}" for source, about in used.items()])


def agreement(
    runs: Runs,
    proxy: Annotated[
        Path | None, typer.Option(help="Run of refined_bias on proxies of its cues (quilted textures, depth maps).")
    ] = None,
    space: Annotated[Space, idle_with("proxy")] = "16-way",
    view: View = "faithful",
    seed: Annotated[int, typer.Option(help="Of the bootstrap over models."), idle_with("proxy")] = 0,
    as_json: Json = False,
) -> None:
    """Correlate the outcomes of cue conflict with the recognition of pure shape and texture, over classes.

    Kendall's τ with a 95 % interval over classes, for each model and for the mean of all models. With --proxy: the
    cues of REFINED-BIAS with proxies of them, in the same way.
    """
    from cuebench.analyses.class_agreement import class_agreement, mean_taus
    from cuebench.analyses.class_wise import read_panel

    if proxy is not None:
        _proxies(runs, proxy, view, as_json=as_json)
        return
    panel = read_panel(runs, space=space, view=view)
    rows = class_agreement(panel)
    means = mean_taus(rows, panel.models, seed=seed)
    if as_json:
        taus = [{**r._asdict(), "tau": r.tau._asdict()} for r in rows]
        print_json({"space": space, "view": view, "taus": taus, "means": [m._asdict() for m in means]})
        return
    cells = [(r.observer, r.outcome, r.pure, _interval(*r.tau[:3]), f"{r.tau.n}") for r in rows]
    cells += [("mean of the models' τ", m.outcome, m.pure, _interval(m.value, m.low, m.high), "") for m in means]
    notes = [f"decisions {space}; [95 % interval] over classes, of the mean τ over {len(panel.models)} models"]
    _print(("observer", "cue conflict", "pure cue", "Kendall's τ", "classes"), cells, notes)


def _proxies(runs: Sequence[Path], proxy: Path, view: str, *, as_json: bool) -> None:
    from cuebench.analyses.recognition import proxy_agreement
    from cuebench.errors import UserError
    from cuebench.runs.results import read_scores

    cue = [s for run in runs for s in read_scores(run.expanduser())]
    others = read_scores(proxy.expanduser())
    by_metric = {}
    for metric in ("shape_top1", "texture_top1"):
        try:
            by_metric[metric] = proxy_agreement(cue, others, metric, view)
        except UserError as error:  # a proxy is of one cue as a rule
            missing = error
    if not by_metric:
        raise missing
    if as_json:
        print_json({metric: {o: c._asdict() for o, c in of.items()} for metric, of in by_metric.items()})
        return
    cells = [(o, m, _interval(*c[:3]), f"{c.n}") for m, of in by_metric.items() for o, c in of.items()]
    _print(("observer", "metric", "Kendall's τ", "classes"), cells, ["[95 % interval] by Fisher's z"])


def difficulty(
    runs: Annotated[list[Path] | None, typer.Argument(help="Run folders; none: only the people of the paper.")] = None,
    space: Annotated[Space, needs("runs", "a run folder")] = "16-way",
    view: Annotated[View, needs("runs", "a run folder")] = "faithful",
    as_json: Json = False,
) -> None:
    """Show how much easier shape is than texture in a benchmark: the gap of both accuracies with its interval."""
    from cuebench.analyses.class_wise import read_panel
    from cuebench.analyses.difficulty import difficulty_gaps
    from cuebench.reports.published_gaps import published_gaps

    gaps = [*(difficulty_gaps(read_panel(runs, space=space, view=view)) if runs else ()), *published_gaps()]
    if as_json:
        print_json([g._asdict() for g in gaps])
        return
    cells = [
        (g.benchmark, g.observer, f"{g.shape:.3f}", f"{g.texture:.3f}", _interval(g.gap, g.low, g.high), g.over)
        for g in gaps
    ]
    notes = ["gap: accuracy on shape minus accuracy on texture, [95 % interval] over what the last column says"]
    notes += ["cue conflict: both accuracies come from one answer to each image, unless people answered twice"]
    _print(("benchmark", "observer", "shape", "texture", "gap", "over"), cells, notes)


def distortion(runs: Runs, as_json: Json = False) -> None:
    """Count the answers that are correct only because all classes but those of the stimuli were removed."""
    from cuebench.analyses.recognition import distortions
    from cuebench.errors import UserError
    from cuebench.protocols.headline import measured, one_row_each
    from cuebench.runs.results import read_scores

    rows = distortions([s for run in runs for s in one_row_each(measured(read_scores(run.expanduser())))])
    if not rows:
        raise UserError("no observer has decided in both label spaces", "run cue_conflict or refined_bias with models")
    if as_json:
        print_json([{**r._asdict(), "distorted": r.distorted} for r in rows])
        return
    cells = [(r.observer, r.protocol, r.cue, f"{r.full:,}", f"{r.restricted:,}", f"{r.distorted:,}") for r in rows]
    _print(("observer", "protocol", "cue", "among all", "among the set's", "distorted"), cells, [])


def _print(columns: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]) -> None:
    from cuebench.cli._console import plain_console
    from cuebench.cli._fit import Column, print_columns

    console = plain_console()
    cells = zip(*rows) if rows else ((),) * len(columns)
    print_columns(
        console, [Column(name, of, needed=True, number=name not in NAMES) for name, of in zip(columns, cells)]
    )
    for note in notes:
        console.print(note, style="dim")


def _interval(value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return "–"
    return f"{value:.2f} [{low:.2f}, {high:.2f}]" if math.isfinite(low) else f"{value:.2f}"


def _text(estimate: Estimate) -> str:
    if not estimate.n:
        return "–"
    (interval,) = estimate.intervals
    return f"{_interval(estimate.value, max(0.0, interval.low), min(1.0, interval.high))} (n = {estimate.n})"


def _estimate(estimate: Estimate) -> dict[str, Any] | None:
    if not estimate.n:
        return None
    (interval,) = estimate.intervals
    return {"value": estimate.value, "low": interval.low, "high": interval.high, "n": estimate.n}


COMMANDS = {"classes": classes, "agreement": agreement, "difficulty": difficulty, "distortion": distortion}
