"""Bias over training: what ``cuebench.callbacks.BiasOverTraining`` measured, epoch by epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuebench.errors import UserError
from cuebench.options import Option, check_types
from cuebench.reading import read_json, user_path
from cuebench.reports.drawing import SOFT, Drawing, shorten
from cuebench.reports.figures.base import Figure
from cuebench.reports.panels import Line, Panel, colour_of, legend

_W, _H = 560, 280


def bias_over_training(run: str | Path | Sequence[Mapping[str, Any]], *, show: str = "all") -> Drawing:
    """Draw one curve for each number of the callback.

    Parameters
    ----------
    run : path or sequence of records
        The file that ``BiasOverTraining.save`` wrote, or its ``history``.
    show : str
        ``all`` numbers, or the ``headline`` of each protocol only.
    """
    history = _history(run)
    names = list(dict.fromkeys(name for record in history for name in record["values"]))
    headlines = {name for record in history for name in record.get("headline", {}).values()}
    names = [name for name in names if name in headlines] if show == "headline" and headlines else names
    epochs = [int(record["epoch"]) for record in history]
    first, span = min(epochs), max(max(epochs) - min(epochs), 1)
    page = Drawing(80 + _W + 330, max(110 + _H + 70, 126 + 20 * len(names)))
    page.title = "Shape bias over training"
    page.text(30, 36, page.title, 19, bold=True)
    common = [p for p in names[0].split("/") if all(p in n.split("/") for n in names)]
    subtitle = f"{' '.join(common)} on a fixed set of pictures; whiskers: 95 %, widest interval"
    page.text(30, 57, subtitle.strip(), 12, SOFT)
    plot = Panel(page, 80, 100, _W, _H, label="epoch")
    step = max(1, len(epochs) // 10)
    plot.ticks = [((e - first) / span, str(e)) for e in epochs[::step]]
    for k, name in enumerate(names):
        rows = [r for r in history if r["values"].get(name) is not None]
        points = [((int(r["epoch"]) - first) / span, float(r["values"][name])) for r in rows]
        bounds = [(_number(r, "low", name), _number(r, "high", name)) for r in rows]
        plot.lines.append(Line(name, colour_of(k), points, bounds))
    plot.draw()
    legend(page, 80 + _W + 24, 116, [(shorten(n, 44), colour_of(k), False) for k, n in enumerate(_distinct(names))])
    return page


def _distinct(names: Sequence[str]) -> list[str]:
    """Leave out the parts that all names share: ``metric/condition`` → ``condition``."""
    parts = [name.split("/") for name in names]
    if len(names) < 2 or len({len(p) for p in parts}) > 1:
        return list(names)
    differ = [k for k in range(len(parts[0])) if len({p[k] for p in parts}) > 1]
    return ["/".join(p[k] for k in differ) for p in parts]


@dataclass(frozen=True)
class _Epoch:
    """What is measured at the end of one epoch: number → value; ``headline`` names one for each protocol."""

    epoch: int
    values: Mapping[str, float | None]
    low: Mapping[str, float | None] = field(default_factory=dict)
    high: Mapping[str, float | None] = field(default_factory=dict)
    headline: Mapping[str, str] = field(default_factory=dict)


def _history(run: str | Path | Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    hint = "write it with BiasOverTraining.save(path)"
    what = f"record of a training {run}" if isinstance(run, str | Path) else "record of a training"
    if isinstance(run, str | Path):
        run = read_json(user_path(run), "record of a training", hint=hint)
    epochs = [record for record in run if isinstance(record, Mapping)] if isinstance(run, Sequence) else []
    if not isinstance(run, Sequence) or len(epochs) < len(run):
        raise UserError(f"{what} is no list of epochs", hint)
    records = [check_types(record, _Epoch, what) for record in epochs]
    if any(not {"epoch", "values"} <= set(record) for record in records):
        raise UserError(f"{what}: an epoch lacks its number or its values", hint)
    if not any(record["values"] for record in records):
        raise UserError("nothing was measured yet", "call the callback at the end of an epoch")
    return records


def _number(record: Mapping[str, Any], field: str, name: str) -> float:
    value = record.get(field, {}).get(name)
    return float("nan") if value is None else float(value)


FIGURE = Figure(
    "bias_over_training",
    "Shape bias over training",
    bias_over_training,
    needs="file",
    options={"show": Option("all", "all numbers, or the headline of each protocol only", choices=("all", "headline"))},
)
