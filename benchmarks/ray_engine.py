"""The engine on a Ray cluster of two nodes against the local one, on the same cores of one machine, in one run.

``python -m benchmarks.ray_engine [COUNT [TURNS]]``. The same pictures and the same network; only ratios mean something.
The start of processes is told apart from the answers: a *steady* rate leaves out the first quarter of the answers. The
start of the cluster is not counted at all. On a machine that others use too, look at all turns.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from PIL import Image

OBSERVER = "lite:efficientnet_lite0"
COUNT, SHARD = 1536, 64
"""Stimuli, and stimuli in a stored file."""
SETTLED = 0.25
"""Share of the answers after which the steady rate is measured: all processes have started."""


def make_pictures(root: Path, count: int = COUNT) -> Path:
    """Write a data root of JPEGs of ImageNet's size: smooth noise, which costs what photographs cost to decode."""
    from cuebench.labels import label_space

    rng = np.random.default_rng(0)
    names = label_space("imagenet1k").ids[:16]
    for number in range(count):
        folder = root / "imagenet_val" / names[number % len(names)]
        folder.mkdir(parents=True, exist_ok=True)
        small = rng.integers(0, 256, (64, 86, 3), dtype=np.uint8)
        Image.fromarray(small).resize((341, 256), Image.Resampling.BICUBIC).save(folder / f"{number}.jpg", quality=90)
    return root


def measure(root: Path, out: Path, engine: str) -> tuple[float, float]:
    """Return the seconds of a whole run, and the seconds of its last three quarters."""
    import cuebench as cb

    marks: list[tuple[float, float]] = []

    def listen(event: Any) -> None:
        if event.kind == "batch":
            marks.append((time.perf_counter(), event.done / event.total))

    start = time.perf_counter()
    cb.evaluate(
        OBSERVER, "imagenet_accuracy", data_root=root, out=out, engine=engine, shard_size=SHARD, device="cpu",
        resamples=100, on_event=listen,
    )  # fmt: skip
    whole = time.perf_counter() - start
    (begin, done), (end, _) = next(mark for mark in marks if mark[1] >= SETTLED), marks[-1]
    return whole, (end - begin) / (1 - done) * (1 - SETTLED)


def digests(out: Path) -> dict[str, str]:
    paths = [p for p in out.rglob("*") if p.suffix == ".parquet" or p.name == "scores.json"]
    return {str(p.relative_to(out)): hashlib.sha256(p.read_bytes()).hexdigest() for p in paths}


def main(count: int = COUNT, turns: int = 3) -> float:
    """Print both engines, in turns, and the ratio of the steady rates; return it."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": os.environ.get("RAY_AUTH_MODE", "disabled")}
    try:
        from ray.cluster_utils import Cluster
    except ImportError:
        print("needs the extra 'ray'")
        return float("nan")
    cores = len(os.sched_getaffinity(0))
    folder = Path(tempfile.mkdtemp())
    try:
        root = make_pictures(folder / "data", count)
        begin = time.perf_counter()
        head = {"num_cpus": max(1, cores // 2), "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        cluster.add_node(num_cpus=max(1, cores - cores // 2))
        print(f"{count} JPEGs, {OBSERVER}, {cores} cores; two nodes started in {time.perf_counter() - begin:.1f} s")
        engines = {"local": "local", "ray": f"ray://{cluster.address}"}
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in engines}
        for turn in range(turns):
            for name, engine in engines.items():
                found[name].append(measure(root, folder / f"{name}{turn}", engine))
                whole, steady = found[name][-1]
                print(f"  {name:6} {whole:6.1f} s; the last three quarters of the answers {steady:6.1f} s", flush=True)
        cluster.shutdown()
        same = digests(folder / "local0") == digests(folder / "ray0")
        whole, ratio = (median(r[i] / o[i] for r, o in zip(found["ray"], found["local"])) for i in (0, 1))
        print(f"  ray / local, median of {turns}: {ratio:.2f} steady, {whole:.2f} whole; the same bytes: {same}")
        return ratio
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])) > 1.10)
