"""Scoring of many models: time and peak memory by models × stimuli, on run folders that are made without any model.

    python -m benchmarks scoring                        the small table
    python -m benchmarks.scoring --protocol cue_conflict --classes 1000 --sizes 10x5000,10x20000,40x5000 --workers 0,2

The shards are real: random logits with a signal, drawn by a seed, in the layout that a run writes. Each scoring is a
process of its own; the peak is the resident memory of it and its workers together, sampled from ``/proc``. The folders
go to ``--out`` (default: a temporary folder) and are deleted.

The last lines are fits: seconds and bytes for each answer (models × stimuli), and how far the largest size is from the
line through the others. Nothing is extrapolated that is not linear there.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cuebench.files import hash_file, parquet_bytes
from cuebench.labels import LabelSpace, label_map, label_space
from cuebench.observers.preprocess import Preprocess
from cuebench.protocols.corruption_robustness.corruptions import corruptions
from cuebench.registry import protocols
from cuebench.responses.job import JobRecord
from cuebench.responses.store import Key, ShardFolder, batches
from cuebench.runs.record import RunRecord, now
from cuebench.stimuli.manifest import write_manifest
from cuebench.types import Stimulus, StimulusSet

SHARD = 256
"""Stimuli in a stored file."""
PROTOCOLS = ("cue_conflict", "refined_bias", "imagenet_accuracy", "corruption_robustness", "cue_decomposition")


# ------------------------------------------------------------------------------------------------- a made-up run


def write_run(folder: Path, protocol: str, models: int, stimuli: int, *, classes: int = 1000, seed: int = 0) -> None:
    """Write a run folder with the answers of made-up models, ready to be scored.

    Parameters
    ----------
    folder : Path
        The run folder.
    protocol : str
        One of ``PROTOCOLS``.
    models, stimuli : int
        How many.
    classes : int
        Of the label space: 1000 (ImageNet's), or 16 (those of cue conflict).
    seed : int
        Of the answers.
    """
    shown = stimulus_set(protocol, stimuli)
    space = label_space("imagenet1k") if classes == 1000 else LabelSpace("in16", label_map("in16").names)
    manifest = f"{protocol}-{shown.fingerprint[:12]}.parquet"
    write_manifest(shown, folder / "stimuli" / manifest)
    part = protocols.get(protocol)
    view = part.views[0].name
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((4 * SHARD, classes)).astype(np.float32)
    jobs = []
    for model in range(models):
        name = f"model{model:03d}"
        key = Key(f"{seed}-{model}", asdict(Preprocess()), space.name, "benchmark", "float32", ("logits",))
        shards = ShardFolder(folder / "responses", name, key)
        shards.open()
        reduce = part.reduce(shown, space) if part.reduce else None
        for start, batch in batches(shown.stimuli, SHARD):
            columns = dict(_answers(batch, space, noise, model, start, share=0.3 + 0.6 * model / max(models, 2)))
            if reduce is not None:
                columns = reduce(columns, [s.without_truth for s in batch])
            columns["stimulus"] = np.arange(len(batch), dtype=np.int32)
            _write_shard(shards, batch, columns)
        jobs.append(
            JobRecord(
                observer=name,
                spec=name,
                kind="model",
                protocol=protocol,
                view=view,
                stimuli=manifest,
                folder=shards.folder.name,
                key=key.parts(),
                labels={"name": space.name, "names": list(space.names), "ids": list(space.ids)},
                needs=("logits",),
            )
        )
    record = RunRecord(
        arguments={"batch_size": SHARD, "shard_size": SHARD, "observers": [j.observer for j in jobs]},
        status="complete",
        protocols={protocol: {"version": part.version, "origin": "built in"}},
        jobs=jobs,
        started=now(),
        files={f"stimuli/{manifest}": hash_file(folder / "stimuli" / manifest).sha256},
    )
    record.write(folder)


def _write_shard(shards: ShardFolder, batch: tuple[Stimulus, ...], columns: Mapping[str, np.ndarray]) -> None:
    """Store answers as ``Shards.write`` does, without waiting for the disk."""
    import pyarrow as pa

    from cuebench.responses import store

    table = pa.table({name: store._to_arrow(values) for name, values in columns.items()})
    table = table.replace_schema_metadata({store._ERRORS: b"{}"})
    shards.path(batch).write_bytes(parquet_bytes(table, use_dictionary=False))


def _answers(
    batch: tuple[Stimulus, ...], space: LabelSpace, noise: np.ndarray, model: int, start: int, *, share: float
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the logits of a model that follows shape (or the label) in a share of the stimuli, else texture."""
    rows = (np.arange(len(batch)) * 7 + start * 3 + model * 131) % len(noise)
    logits = np.roll(noise[rows], model * 17 + start % 97, axis=1)
    by_shape = np.random.default_rng((model, start)).random(len(batch)) < share
    for i, s in enumerate(batch):
        word = (s.shape if by_shape[i] or not s.texture else s.texture) or (s.label if by_shape[i] else "")
        members = _members(word, space) if word else ()
        if len(members):
            logits[i, members] += 2.5
    yield "logits", logits


def _members(word: str, space: LabelSpace, memory: dict[tuple[str, str], tuple[int, ...]] = {}) -> tuple[int, ...]:  # noqa: B006
    if (word, space.name) not in memory:
        found: tuple[int, ...] = ()
        for name in ("in16", "refined_bias"):
            targets = label_map(name)
            if word in targets.names:
                found = tuple(targets.resolve(space).members[targets.names.index(word)].tolist())
        position = space.find(word)
        memory[word, space.name] = found or (() if position is None else (position,))
    return memory[word, space.name]


def stimulus_set(protocol: str, size: int) -> StimulusSet:
    """Return about so many stimuli of a protocol, without files."""
    if protocol == "cue_conflict":
        names = label_map("in16").names
        drawn = np.random.default_rng(1).integers(16, size=(size, 2))
        stimuli = [
            Stimulus(f"{names[a]}{i % 40}-{names[b]}{i % 12}-{i}", shape=names[a], texture=names[b],
                     shape_source=f"{names[a]}{i % 40}", texture_source=f"{names[b]}{i % 12}")
            for i, (a, b) in enumerate(drawn.tolist())
        ]  # fmt: skip
        return _named(StimulusSet(protocol, tuple(stimuli), targets="in16"))
    if protocol == "refined_bias":
        names = label_map("refined_bias").names
        shapes, textures = names[:10], names[10:]
        stimuli = [
            Stimulus(f"{shapes[i % 10]}_{i}", shape=shapes[i % 10], shape_source=f"{shapes[i % 10]}_{i}")
            for i in range(size // 2)
        ]
        stimuli += [
            Stimulus(f"{g}x{g}_{textures[i % 10]}_{i}", texture=textures[i % 10], condition=f"patch={g}")
            for i in range(size - size // 2)
            for g in (2 ** (1 + i // 10 % 4),)
        ]
        return _named(StimulusSet(protocol, tuple(stimuli), targets="refined_bias", expected=size))
    labels = label_space("imagenet1k").ids
    if protocol == "imagenet_accuracy":
        photographs = [Stimulus(f"{i:06d}", label=labels[i % 1000]) for i in range(size)]
        return _named(StimulusSet(protocol, tuple(photographs)))
    if protocol == "corruption_robustness":
        planned = corruptions(keep_colour=False)
        images = [Stimulus(f"{i:06d}", label=labels[i % 1000]) for i in range(max(2, size // len(planned)))]
        return _named(StimulusSet(protocol, tuple(c.stimulus(s, "") for s in images for c in planned)))
    if protocol == "cue_decomposition":
        cues = ("original", "eed", "voronoi", "patch_shuffle")
        pictures = [
            Stimulus(f"{i:06d}|{c}", label=labels[i % 1000], condition=c)
            for i in range(max(2, size // 4))
            for c in cues
        ]
        return _named(StimulusSet(protocol, tuple(pictures)))
    raise SystemExit(f"no made-up stimuli for {protocol!r}; one of {', '.join(PROTOCOLS)}")


def _named(stimuli: StimulusSet) -> StimulusSet:
    """Give every stimulus the hash and the size that a file would have."""
    made = (replace(s, sha256=s.id.partition("|")[0], width=224, height=224) for s in stimuli)
    return replace(stimuli, stimuli=tuple(made))


# ------------------------------------------------------------------------------------------------- measuring


class Cost(NamedTuple):
    """Seconds, seconds of all processors (imports included), and the peak memory of all processes in MiB."""

    seconds: float
    cpu: float
    peak: float


def measure(folder: Path, workers: int | None, source: str = "", resamples: int = 10_000) -> Cost:
    """Score a run in a process of its own and return what it took.

    ``source`` is the ``src`` folder of another cuebench to compare with, which may not know of workers.
    """
    given = "" if workers is None else f", workers={workers}"
    code = (
        "import os, sys, time\n"
        + (f"sys.path.insert(0, {source!r})\n" if source else "")
        + "from cuebench.runs.score import score\n"
        + "start = time.perf_counter()\n"
        + f"score({str(folder)!r}, resamples={resamples}{given})\n"
        + "print(time.perf_counter() - start, sum(os.times()[:4]))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, sum(_resident(pid) for pid in _family(process.pid)))
        time.sleep(0.02)
    assert process.stdout is not None
    printed = process.stdout.read().split()
    if process.returncode:
        raise SystemExit(f"the scoring of {folder} ended with status {process.returncode}")
    return Cost(float(printed[-2]), float(printed[-1]), peak)


def _family(pid: int) -> list[int]:
    """Return a process and its descendants."""
    found = [pid]
    for parent in found:
        try:
            text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
        except OSError:
            continue
        found += [int(child) for child in text.split()]
    return found


def _resident(pid: int) -> float:
    """Return the resident memory of a process in MiB; 0 where it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--protocol", default="cue_conflict,imagenet_accuracy,refined_bias,corruption_robustness")
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--sizes", default="4x1000,4x4000,8x4000", help="models x stimuli, several with commas")
    parser.add_argument("--workers", default="0,2", help="several with commas; none: the default")
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--source", default="", help="src folder of another cuebench, to compare with")
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_known_args()[0]
    wanted = [None if w == "none" else int(w) for w in arguments.workers.split(",")]
    head = ("models", "stimuli", "classes", "workers", "seconds", "cpu s", "peak MiB")
    print(f"{'protocol':22}" + "".join(f"{name:>9}" for name in head))
    for protocol in arguments.protocol.split(","):
        found: dict[int | None, list[tuple[int, float, float]]] = {}
        for size in arguments.sizes.split(","):
            models, stimuli = (int(n) for n in size.split("x"))
            folder = Path(tempfile.mkdtemp(dir=arguments.out))
            try:
                write_run(folder, protocol, models, stimuli, classes=arguments.classes)
                for workers in wanted:
                    cost = measure(folder, workers, arguments.source, arguments.resamples)
                    found.setdefault(workers, []).append((models * stimuli, cost.cpu, cost.peak))
                    shown = "" if workers is None else str(workers)
                    cells = [f"{models}", f"{stimuli:,}", f"{arguments.classes}", shown, f"{cost.seconds:.2f}"]
                    cells += [f"{cost.cpu:.2f}", f"{cost.peak:.0f}"]
                    print(f"{protocol:22}" + "".join(f"{cell:>9}" for cell in cells), flush=True)
            finally:
                shutil.rmtree(folder)
        for workers, rows in found.items():
            _print_fit(protocol, workers, rows)


def _print_fit(protocol: str, workers: int | None, rows: list[tuple[int, float, float]]) -> None:
    """Print the line through all sizes but the largest, and how far the largest is from it."""
    if len(rows) < 3:
        return
    *others, largest = sorted(rows)
    answers = [n for n, *_ in others]
    for column, (name, unit, factor) in enumerate((("cpu time", "µs", 1e6), ("memory", "bytes", 2**20)), start=1):
        slope, start = np.polyfit(answers, [row[column] for row in others], 1)
        off = largest[column] / (start + slope * largest[0]) - 1
        print(
            f"  {protocol}, {workers} workers: {name} {slope * factor:.2f} {unit} for each answer + {start:.1f}; "
            f"the largest is {off:+.0%} off that line",
            flush=True,
        )


if __name__ == "__main__":
    main()
