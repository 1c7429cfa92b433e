"""Bias over training: what ``cuebench.callbacks.BiasOverTraining`` measured, epoch by epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuebench.errors import UserError
from cuebench.options import Option, check_types
from cuebench.reading import read_json, user_path
from cuebench.registry import metrics, protocols
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import curves, share_axis, whiskers
from cuebench.reports.observers import Series
from cuebench.reports.picture import Picture
from cuebench.reports.text import distinct
from cuebench.reports.vega import alt


def bias_over_training(run: str | Path | Sequence[Mapping[str, Any]], *, show: str = "metric") -> Picture:
    """Draw one curve for each number of the callback.

    Parameters
    ----------
    run : path or sequence of records
        The file that ``BiasOverTraining.save`` wrote, or its ``history``.
    show : str
        The ``metric`` of each protocol's headline in every condition, its ``headline`` only, or ``all`` numbers,
        accuracies and decided fractions, too.
    """
    history = _history(run)
    numbers = list(dict.fromkeys(name for record in history for name in record["values"]))
    headlines = {name for record in history for name in record.get("headline", {}).values()}
    if headlines and show != "all":
        begins = tuple(map(_metric_of, headlines)) if show == "metric" else ()
        numbers = [name for name in numbers if name in headlines or (begins and name.startswith(begins))]
    if not numbers:
        raise UserError(
            f"no epoch has a value of its headline: {', '.join(sorted(headlines))}", "draw every number: --set show=all"
        )
    names = dict(zip(numbers, distinct(_distinct(numbers), 44)))
    records = [
        {
            "number": number,
            "name": names[number],
            "epoch": int(record["epoch"]),
            "value": float(record["values"][number]),
            "low": _number(record, "low", number),
            "high": _number(record, "high", number),
        }
        for number in numbers
        for record in history
        if record["values"].get(number) is not None
    ]
    neutral = _neutral(numbers)
    common = [part for part in numbers[0].split("/") if all(part in name.split("/") for name in numbers)]
    series = Series.of(names.values())
    return Picture(
        "Shape bias over training",
        lambda room: _chart(records, series, room, neutral),
        records,
        f"{' '.join(common)} on a fixed set of pictures{whiskers(series, 'widest interval')}".strip(),
        f"{len(numbers)} numbers over {len(history)} epochs of training.",
        footnote=str(history[-1].get("about", "")),
    )


def _neutral(numbers: Sequence[str]) -> float | None:
    """Return the value at which neither cue wins; None where the numbers have none, or different ones."""
    declared = {part.headline.metric: part.headline.neutral for _, part in protocols.usable()}
    values = {next((declared[part] for part in number.split("/") if part in declared), None) for number in numbers}
    return values.pop() if len(values) == 1 else None


def _chart(records: Sequence[dict[str, Any]], series: Series, room: float, neutral: float | None) -> Any:
    return curves(
        [{**record, "position": record["epoch"]} for record in records],
        series,
        width=room,
        height=min(0.55 * room, 170),
        x=alt.Axis(title="epoch", tickMinStep=1, format="d", grid=False),
        y=share_axis("value"),
        legend=series.legend(room),
        chance=neutral,
    )


def _metric_of(number: str) -> str:
    """Return the part of a name that ends with its metric: ``cue_conflict/shape_bias/20-way`` → the first two."""
    parts = number.split("/")
    length = next((k for k, part in enumerate(parts, start=1) if part in metrics), len(parts))
    return "/".join(parts[:length]) + ("/" if length < len(parts) else "")


def _distinct(names: Sequence[str]) -> list[str]:
    """Leave out the parts that all names share: ``metric/condition`` → ``condition``."""
    parts = [name.split("/") for name in names]
    if len(names) < 2 or len({len(p) for p in parts}) > 1:
        return list(names)
    differ = [k for k in range(len(parts[0])) if len({p[k] for p in parts}) > 1]
    return ["/".join(p[k] for k in differ) for p in parts]


@dataclass(frozen=True)
class _Epoch:
    """What is measured at the end of one epoch: number → value; ``about``: what the headlines rest on."""

    epoch: int
    values: Mapping[str, float | None]
    low: Mapping[str, float | None] = field(default_factory=dict)
    high: Mapping[str, float | None] = field(default_factory=dict)
    headline: Mapping[str, str] = field(default_factory=dict)
    about: str = ""


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
    options={
        "show": Option(
            "metric",
            "the metric of each protocol's headline in every condition, its headline only, or all numbers",
            choices=("metric", "headline", "all"),
        )
    },
)
