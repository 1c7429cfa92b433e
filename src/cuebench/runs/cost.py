"""What a run would cost, as ``cuebench run --plan`` tells it; ``runs/estimate.py`` measures it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from cuebench.responses.pictures import available_cores
from cuebench.runs.record import RunOptions
from cuebench.types import Failure


@dataclass(frozen=True)
class ObserverCost:
    """What one observer costs in one protocol and view.

    Parameters
    ----------
    observer, protocol, view : str
        Which.
    answers, stored : int
        Stimuli that it has to answer still, and those whose answers are stored.
    per_second : float
        Answers a second, without decoding.
    seconds : float
        Time of all answers, without decoding.
    batch_size : int
        Stimuli that it is shown at once.
    disk_bytes : int
        What its answers will take.
    requests, cost : int, float
        The most that is sent to somebody else's machine, and its price; 0 where nothing is, or no price is known.
    """

    observer: str
    protocol: str
    view: str
    answers: int
    stored: int
    per_second: float
    seconds: float
    batch_size: int
    disk_bytes: int
    requests: int = 0
    cost: float = 0.0


@dataclass(frozen=True)
class NodesCost:
    """Time of a run on several machines like this one, and its price where one for an hour was given."""

    nodes: int
    seconds: float
    price: float | None


@dataclass(frozen=True)
class RunCost:
    """What a run would cost on this machine; ``as_json`` has the same names.

    Parameters
    ----------
    answers, stored : int
        Answers that are to be collected, and those that are stored already.
    stimuli_to_decode : int
        Pictures that are to be decoded: once for all observers that fit the device together.
    workers : int
        Decoding processes.
    decode_per_second : float
        Pictures that all of them decode in a second, in all geometries; 0 where nothing is decoded.
    start_seconds, decode_seconds, forward_seconds, write_seconds : float
        Reading stimuli, loading observers and starting processes; decoding; answering; writing. Decoding, answering and
        writing overlap, so ``seconds`` is less than the sum of all.
    score_seconds : float or None
        Scoring; None where it could not be tried on a few answers.
    seconds : float
        The whole run.
    disk_bytes, cache_bytes : int
        What the answers take, and what ``--cache`` takes for pixels that it does not hold yet.
    memory_bytes, device_bytes : int
        Most main memory of all processes together, and of the GPU; 0 where it cannot be measured.
    observers : tuple of ObserverCost
        For each observer, protocol and view.
    nodes : tuple of NodesCost
        The time on several machines.
    dominated_by : str
        The stage that takes longest: ``start``, ``decode``, ``forward``, ``write`` or ``score``; empty: all is stored.
    advice : str
        What would make the run faster.
    failures : tuple of Failure
        Observers that could not be planned or asked.
    """

    answers: int
    stored: int
    stimuli_to_decode: int
    workers: int
    decode_per_second: float
    start_seconds: float
    decode_seconds: float
    forward_seconds: float
    write_seconds: float
    score_seconds: float | None
    seconds: float
    disk_bytes: int
    cache_bytes: int
    memory_bytes: int
    device_bytes: int
    observers: tuple[ObserverCost, ...] = ()
    nodes: tuple[NodesCost, ...] = ()
    dominated_by: str = ""
    advice: str = ""
    failures: tuple[Failure, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return everything as a JSON-ready record."""
        return asdict(self)


def on_nodes(
    nodes: int, start: float, collecting: float, scoring: float, shards: int, price: float | None
) -> NodesCost:
    """Divide the shards among machines; a machine too many has nothing to do, and costs nothing."""
    busy = min(nodes, shards)
    share = -(-shards // busy) / shards
    seconds = start + collecting * share + scoring
    machine_seconds = busy * (start + collecting * share) + scoring
    return NodesCost(nodes, seconds, None if price is None else price * machine_seconds / 3600)


def advice(longest: str, options: RunOptions, workers: int, on_gpu: bool) -> str:
    """Say what would help against the stage that takes longest."""
    cores = available_cores()
    if longest == "decode":
        more = f"--workers {cores}, " if workers < cores else ""
        cache = "" if options.cache else "--cache FOLDER (decodes once, for all later models and runs), "
        return f"{more}{cache}or more machines: --shard i/n"
    if longest == "forward":
        half = "--precision bfloat16, " if on_gpu and options.precision == "float32" else ""
        device = "" if on_gpu else "a GPU (--device cuda), "
        return f"{half}{device}more machines (--shard i/n), or a part of the stimuli: --limit"
    return {
        "write": "a run folder on a faster disk",
        "score": "more --workers; texture_association: fewer --resamples",
        "start": "several observers in one run: they share the reading and hashing of the stimuli",
        "": "nothing to do: all answers are stored",
    }[longest]
