"""A whole calibration: simulate, write the tables, say how far to trust each number."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from cuebench._version import __version__
from cuebench.calibration.designs import DESIGNS
from cuebench.calibration.studies import calibrate, claims_record, settings_record
from cuebench.calibration.tables import write_tables
from cuebench.calibration.trust import Trust, read_trust
from cuebench.options import SEED, WORKERS, Option, parse
from cuebench.registry import protocols

QUICK = (48, 8)
"""Studies for each setting of the intervals, and at each point of the grid, of a quick calibration."""
ON_GRID = 25
"""So many times fewer studies are done on the grid: means need fewer than coverages."""


NUMBERS = {
    "studies": Option(1000, "simulated studies", low=2, high=1_000_000),
    "seed": SEED,
    "workers": WORKERS,
}


class Calibration(NamedTuple):
    """What was simulated, and what is known of each number since."""

    settings: dict[str, Any]
    trust: list[Trust]


def calibration(
    folder: str | Path,
    names: Sequence[str] = (),
    *,
    studies: int = 1000,
    quick: bool = False,
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Calibration:
    """Simulate studies of planted observers and write what was found.

    Parameters
    ----------
    folder : path
        For ``recovered.csv``, ``coverage.csv`` and ``settings.json``; rows of other protocols in it are kept.
    names : sequence of str
        Protocols; default: all that can be simulated.
    studies : int
        In the two main settings of the intervals; a quarter of it in the two others, and one of 25 at each point of the
        grid, at least 8.
    quick : bool
        48 studies in each main setting, whatever ``studies`` says.
    seed, workers : int
        Of the simulation; number of processes (default: one for each core).
    progress : callable, optional
        ``progress(studies done, studies in all)``.

    Examples
    --------
    >>> found = calibration("calibration", ["imagenet_accuracy"], quick=True)  # doctest: +SKIP
    """
    given = parse(NUMBERS, {"studies": studies, "seed": seed, "workers": workers or 0}, "a calibration")
    studies, seed = given["studies"], given["seed"]
    number, on_grid = QUICK if quick else (studies, max(QUICK[1], studies // ON_GRID))
    processes = (os.cpu_count() or 1) if workers is None else workers
    results = calibrate(names, studies=number, on_grid=on_grid, seed=seed, workers=processes, progress=progress)
    settings = {
        "date": datetime.now(UTC).date().isoformat(),
        "cuebench": __version__,
        **settings_record(number, on_grid, seed),
    }
    simulated = list(dict.fromkeys(r.protocol for r in results))
    target = Path(folder).expanduser()
    record = {
        name: {
            "version": protocols.get(name).version,
            "stimuli": DESIGNS[name].stimuli,
            "weight": DESIGNS[name].weight,
            "sources": DESIGNS[name].sources,
            **claims_record(DESIGNS[name]),
            **settings,
        }
        for name in simulated
    }
    write_tables(results, record, target)
    known = [t for t in read_trust(target).values() if t.protocol in simulated]
    return Calibration(settings, sorted(known, key=lambda t: simulated.index(t.protocol)))
