"""What a user can choose for a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cuebench.errors import UserError
from cuebench.runs.score import check_numbers


@dataclass(frozen=True)
class RunOptions:
    """What a user can choose for a run; stored in ``run.json``.

    Parameters
    ----------
    device : str
        ``auto``, ``cpu``, ``cuda``, ``cuda:1``, ``mps``.
    precision : str
        ``float32``, or ``bfloat16`` / ``float16`` autocast; part of the cache key.
    batch_size : int
        Stimuli in a batch and in a shard.
    workers : int or None
        Decoding processes; None: one for each core, eight at most.
    limit : int
        Show only so many stimuli of each set, drawn by the seed, all pictures of an image together; 0: all. The result
        says that it is partial.
    seed : int
        All randomness.
    resamples : int
        Bootstrap resamples of the intervals.
    offline : bool
        Guarantee that nothing is downloaded.
    allow_unreadable : float
        Share of unreadable stimuli that does not stop the run.
    common : bool
        Score every observer on the stimuli that all of them saw.
    fresh : bool
        Delete what an earlier run wrote to this folder, once it is clear that this one can begin.
    settings : mapping
        Options of single protocols: ``{"triplets.draw": "all"}``.
    features : str
        Layers whose outputs are stored beside the penultimate features: names with commas between them, or ``all``.
    baselines : int
        Random initialisations of every network, for the protocols that compare with them.
    """

    device: str = "auto"
    precision: str = "float32"
    batch_size: int = 32
    workers: int | None = None
    limit: int = 0
    seed: int = 0
    resamples: int = 10_000
    offline: bool = False
    allow_unreadable: float = 0.01
    common: bool = False
    fresh: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    features: str = ""
    baselines: int = 0

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise UserError(f"batch size must be 1 or more; got {self.batch_size}")
        if self.limit < 0:
            raise UserError(f"limit must be 0 (all) or more; got {self.limit}")
        if self.precision not in {"float32", "bfloat16", "float16"}:
            raise UserError(f"precision {self.precision!r}; one of float32, bfloat16, float16")
        if not 0 <= self.allow_unreadable <= 1:
            raise UserError(f"allow_unreadable is a share between 0 and 1; got {self.allow_unreadable}")
        check_numbers(self.seed, self.resamples)
        if self.baselines < 0:
            raise UserError(f"baselines must be 0 (none) or more; got {self.baselines}")
