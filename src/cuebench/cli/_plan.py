"""What ``cuebench run --plan`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cuebench.cli._json import print_json
from cuebench.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console

    from cuebench.runs.cost import RunCost

MOST = 10
"""Observers that are listed, those that take longest; the others are one line."""
STAGES = {
    "start": "reading, hashing, loading",
    "decode": "decoding",
    "forward": "answering",
    "write": "writing",
    "score": "scoring",
}


def show_plan(
    observers: Sequence[str],
    protocols: Sequence[str],
    *,
    nodes: str,
    price: float | None,
    quiet: bool,
    as_json: bool,
    **arguments: Any,
) -> int:
    """Print what a run would cost; return the exit status. ``arguments``: those of ``evaluate``."""
    from cuebench.cli._display import Display
    from cuebench.runs.estimate import estimate_cost
    from cuebench.runs.record import RunOptions

    known = {"data_root", "out", *RunOptions.__dataclass_fields__}
    chosen = {name: value for name, value in arguments.items() if name in known}
    numbers = node_numbers(nodes)
    with Display(quiet=quiet, as_json=as_json) as display:
        cost = estimate_cost(observers, protocols, nodes=numbers, price=price, on_event=display, **chosen)
    if as_json:
        print_json(cost.as_json())
    else:
        print_plan(cost)
    return 1 if cost.failures else 0


def node_numbers(text: str) -> tuple[int, ...]:
    """Read ``1,4,16``."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UserError(f"--nodes {text!r} is no list of whole numbers", "for example: --nodes 1,4,16") from None


def print_plan(cost: RunCost, console: Console | None = None) -> None:
    """Print what a run would cost."""
    from rich.table import Table
    from rich.text import Text

    from cuebench.cli._console import plain_console

    console = console or plain_console()
    stored = f" ({cost.stored:,} more are stored)" if cost.stored else ""
    console.print(Text.assemble((f"{cost.answers:,} answers to collect", "bold"), stored))
    if not cost.answers:
        return
    times = Table(box=None, pad_edge=False)
    for name, justify in (("", "left"), ("time", "right"), ("", "left")):
        times.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    times.add_row(STAGES["start"], duration(cost.start_seconds), "")
    if cost.stimuli_to_decode:
        speed = f"{cost.stimuli_to_decode:,} pictures, {rate(cost.decode_per_second)} with {cost.workers} processes"
        times.add_row(STAGES["decode"], duration(cost.decode_seconds), speed)
    asked = sorted((row for row in cost.observers if row.answers), key=lambda row: -row.seconds)
    for row in asked[:MOST]:
        name = f"{row.observer} · {row.protocol}" + (f" · {row.view}" if row.view else "")
        speed = f"{row.answers:,} answers, {rate(row.per_second)}, {row.batch_size} at once"
        if row.requests:
            to_pay = f", at most {row.cost:,.2f} to pay" if row.cost else ""
            speed = f"up to {row.requests:,} requests, {row.batch_size} at once{to_pay}; the time is a guess"
        times.add_row(name, duration(row.seconds), speed)
    if others := asked[MOST:]:
        answers = f"{sum(row.answers for row in others):,} answers"
        times.add_row(f"{len(others)} others", duration(sum(row.seconds for row in others)), answers)
    times.add_row(STAGES["write"], duration(cost.write_seconds), size(cost.disk_bytes))
    scoring = "unknown" if cost.score_seconds is None else duration(cost.score_seconds)
    times.add_row(STAGES["score"], scoring, "")
    times.add_row("in all", duration(cost.seconds), "decoding, answering and writing overlap")
    console.print(times)
    memory = f"memory {size(cost.memory_bytes)}" + (f", GPU {size(cost.device_bytes)}" if cost.device_bytes else "")
    disk = f"disk {size(cost.disk_bytes)}" + (f", cache {size(cost.cache_bytes)}" if cost.cache_bytes else "")
    console.print(f"\n{memory} · {disk}")
    if len(cost.nodes) > 1 or any(row.price is not None for row in cost.nodes):
        machines = Table(box=None, pad_edge=False)
        for name in ("machines", "time", *(["price"] if cost.nodes[0].price is not None else [])):
            machines.add_column(name, justify="right")
        for machine in cost.nodes:
            price = [] if machine.price is None else [f"{machine.price:,.2f}"]
            machines.add_row(f"{machine.nodes:,}", duration(machine.seconds), *price)
        console.print(machines)
    console.print(f"\nmost of it is {STAGES[cost.dominated_by]}; what helps: {cost.advice}")
    for failure in cost.failures:
        console.print(Text.assemble(("failed", "red"), f": {failure.observer}: {failure.reason}"))


def duration(seconds: float) -> str:
    """Return a time as people say it: ``0.4 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:,.1f} h"


def rate(per_second: float) -> str:
    """Return a speed."""
    return f"{per_second:,.0f} /s" if per_second >= 10 else f"{per_second:.1f} /s"


def size(count: float) -> str:
    """Return a number of bytes as people say it."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:,.1f} GiB"
