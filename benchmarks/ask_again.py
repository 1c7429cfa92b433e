"""What asking again costs (``responses/again.py``), as a share of a run: of a fresh one, and of one that is resumed.

    python -m benchmarks ask_again                                two cores, some two minutes
    python -m benchmarks.ask_again --count 1000 --model resnet18

Everything happens in one process, so a busy machine slows the run and the asking alike: only the ratio means something.
CPU time is that of all threads of the process. What other threads do while an answer is asked again counts as asking,
so the share is rather too large than too small. The resumed run finds half of its files of answers deleted.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import cuebench as cb
from benchmarks import _jpegs
from cuebench.observers.base import LoadOptions
from cuebench.observers.load import load
from cuebench.responses import again, collect

BAR = 0.02
"""Largest share of a run that asking again may cost."""


PICTURES = 128
"""Different pictures; more stimuli are links to them."""


class Cost(NamedTuple):
    """CPU seconds and seconds of the clock."""

    cpu: float
    wall: float

    @classmethod
    def now(cls) -> Cost:
        """Return both clocks."""
        return cls(time.process_time(), time.perf_counter())

    def since(self, start: Cost) -> Cost:
        """Return what has passed."""
        return Cost(self.cpu - start.cpu, self.wall - start.wall)


class Meter:
    """Adds up what a function costs."""

    def __init__(self) -> None:
        self.cost, self.calls = Cost(0, 0), 0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, measured."""

        @wraps(function)
        def measured(*arguments: Any, **options: Any) -> Any:
            start = Cost.now()
            try:
                return function(*arguments, **options)
            finally:
                spent = Cost.now().since(start)
                self.cost = Cost(self.cost.cpu + spent.cpu, self.cost.wall + spent.wall)
                self.calls += 1

        return measured


def measured_run(observer: Any, data: Path, out: Path) -> tuple[Cost, Meter]:
    """Return what a run costs, and what asking again costs in it."""
    meter = Meter()
    twice, examine = collect.first_asked_twice, again.Examiner.examine
    collect.first_asked_twice = meter.around(twice)
    again.Examiner.examine = meter.around(examine)  # type: ignore[method-assign]
    start = Cost.now()
    try:
        cb.evaluate(observer, "imagenet_accuracy", data_root=data, out=out, workers=0, device="cpu", resamples=100)
    finally:
        collect.first_asked_twice = twice
        again.Examiner.examine = examine  # type: ignore[method-assign]
    return Cost.now().since(start), meter


def main(arguments: list[str] | None = None) -> bool:
    """Print the shares; return whether all are below the bar."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000, help="stimuli")
    parser.add_argument("--model", default="resnet18", help="of torchvision, without trained weights")
    chosen = parser.parse_args(arguments or [])
    warnings.simplefilter("ignore", RuntimeWarning)
    (observer,) = load(f"torchvision:{chosen.model}?weights=random&name={chosen.model}", LoadOptions(device="cpu"))
    passed = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _jpegs.make(folder / "pictures", min(chosen.count, PICTURES), 1)
        data = _jpegs.link(folder / "pictures", folder / "data", chosen.count)
        for kind in ("fresh", "resumed"):
            if kind == "resumed":
                shards = sorted((folder / "run" / "responses").glob("*/*.parquet"))
                for path in shards[: len(shards) // 2]:
                    path.unlink()
            run, meter = measured_run(observer, data, folder / "run")
            cpu, wall = meter.cost.cpu / run.cpu, meter.cost.wall / run.wall
            passed &= cpu < BAR
            print(f"{kind:8s} {chosen.count:,} stimuli, {chosen.model}: asking again ({meter.calls} times) takes "
                  f"{cpu:.2%} of the CPU time ({meter.cost.cpu:.2f} of {run.cpu:.1f} s), "
                  f"{wall:.2%} of the wall time ({meter.cost.wall:.2f} of {run.wall:.1f} s)", flush=True)  # fmt: skip
    print("below the bar of 2 % of the CPU time" if passed else "ABOVE the bar of 2 % of the CPU time")
    return passed


if __name__ == "__main__":
    import sys

    sys.exit(0 if main(sys.argv[1:]) else 1)
