"""Layer profile: triplet shape bias of every layer of a model, from the first to the last."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cuebench.errors import UserError
from cuebench.options import Option
from cuebench.reports.drawing import SOFT, Drawing, short_name
from cuebench.reports.figures.base import Figure
from cuebench.reports.panels import Line, Panel, aside, colour_of, legend
from cuebench.reports.run_data import OBSERVER, choose_observer, scores

CONDITIONS = (
    "experiment1/alpha=0.0",
    "experiment1/alpha=1.0",
    "experiment2/size=0.4/unaligned",
    "experiment3/size=0.4/aligned",
    "experiment3/size=0.4/unaligned",
    "experiment3/size=1.0/aligned",
)
_W, _H = 720, 300


def layer_profile(run: str | Path, *, observer: str = "", conditions: Sequence[str] = CONDITIONS) -> Drawing:
    """Draw where in the network shape wins.

    Parameters
    ----------
    run : path
        A run folder with ``triplets`` and ``--set triplets.layers=all`` (or a list of layers).
    observer : str
        Whole name or a part of it; default: the first of the run.
    conditions : sequence of str
        One curve each; those that the run does not have are left out.
    """
    of_layers = [s for s in scores(run, "triplets", "triplet_shape_bias") if "/layer=" in s.condition]
    if not of_layers:
        raise UserError(
            f"{run} has no layers",
            "measure them in another folder: cuebench run -p triplets --set triplets.layers=all … --out NEW_FOLDER",
        )
    name = choose_observer((s.observer for s in of_layers), observer)
    rows = [s for s in of_layers if s.observer == name]
    layers = list(dict.fromkeys(s.condition.partition("/layer=")[2] for s in rows))
    by = {tuple(s.condition.split("/layer=")): s for s in rows}
    present = [c for c in conditions if any((c, layer) in by for layer in layers)]
    page = Drawing(80 + _W + 290, 110 + _H + 120)
    page.title = f"Shape bias by layer: {short_name(name)}"
    page.text(30, 36, page.title, 19, bold=True)
    page.text(30, 57, "triplets; each layer averaged over positions; whiskers: 95 % over anchors", 12, SOFT)
    places = [i / max(1, len(layers) - 1) for i in range(len(layers))]
    plot = Panel(page, 80, 100, _W, _H, ticks=list(zip(places, layers)), turned=True)
    for k, condition in enumerate(present):
        placed = [(p, by[condition, n]) for p, n in zip(places, layers) if (condition, n) in by]
        shift = aside(k, len(present)) / 3  # a network has many layers
        points, whiskers = [(p + shift, s.value) for p, s in placed], [(s.ci_low, s.ci_high) for _, s in placed]
        plot.lines.append(Line(condition, colour_of(k), points, whiskers))
    plot.draw()
    legend(page, 80 + _W + 24, 116, [(c, colour_of(k), False) for k, c in enumerate(present)])
    return page


FIGURE = Figure(
    "layer_profile",
    "Shape bias by layer",
    layer_profile,
    protocol="triplets",
    options={
        "observer": OBSERVER,
        "conditions": Option(CONDITIONS, "one curve each; those that the run does not have are left out"),
    },
)
