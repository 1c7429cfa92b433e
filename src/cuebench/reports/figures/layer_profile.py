"""Layer profile: triplet shape bias of every layer of a model, from the first to the last."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cuebench.errors import UserError
from cuebench.reports.figures._lines import Line, Panel, colour_of, legend
from cuebench.reports.figures._svg import SOFT, Drawing, short_name
from cuebench.reports.run_data import of_observer, scores

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
        A run folder with ``triplets`` and ``--features all`` (or a list of layers).
    observer : str
        Whole name or a part of it; default: the first of the run.
    conditions : sequence of str
        One curve each; those that the run does not have are left out.
    """
    found = [s for s in scores(run, "triplet_shape_bias", "triplets") if "/layer=" in s.condition]
    if not found:
        raise UserError(f"{run} has no layers", "measure them with: cuebench run -p triplets --features all …")
    name, own = of_observer([{"observer": s.observer, "score": s} for s in found], observer)
    rows = [r["score"] for r in own]
    layers = list(dict.fromkeys(s.condition.partition("/layer=")[2] for s in rows))
    by = {tuple(s.condition.split("/layer=")): s for s in rows}
    there = [c for c in conditions if any((c, layer) in by for layer in layers)]
    page = Drawing(80 + _W + 290, 110 + _H + 120)
    page.title = f"Shape bias by layer: {short_name(name)}"
    page.text(30, 36, page.title, 19, bold=True)
    page.text(30, 57, "triplets; each layer averaged over positions; whiskers: 95 % over anchors", 12, SOFT)
    plot = Panel(page, 80, 100, _W, _H, ticks=[(_place(i, layers), n) for i, n in enumerate(layers)], turned=True)
    for k, condition in enumerate(there):
        points = [(_place(i, layers), by[condition, n]) for i, n in enumerate(layers) if (condition, n) in by]
        values, spans = [(p, s.value) for p, s in points], [(s.ci_low, s.ci_high) for _, s in points]
        plot.lines.append(Line(condition, colour_of(k), values, spans))
    plot.draw()
    legend(page, 80 + _W + 24, 116, [(c, colour_of(k), False) for k, c in enumerate(there)])
    return page


def _place(number: int, layers: Sequence[str]) -> float:
    return number / max(1, len(layers) - 1)
