"""The engine on a Ray cluster of two nodes against the local one, on the same cores of one machine, in one run.

``python -m benchmarks.ray_engine [COUNT [TURNS]]``. The same pictures and the same network; only ratios mean something.
The start of processes is told apart from the answers: what a run takes more than one with a quarter of the stimuli. The
start of the cluster is not counted at all.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

OBSERVER = "lite:efficientnet_lite0"
COUNT, SHARD = 1536, 64
"""Stimuli, and stimuli in a stored file."""


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


def measure(root: Path, out: Path, engine: str, limit: int) -> float:
    """Return the seconds of a whole run on so many stimuli."""
    import cuebench as cb

    start = time.perf_counter()
    cb.evaluate(
        OBSERVER, "imagenet_accuracy", data_root=root, out=out, engine=engine, shard_size=SHARD, device="cpu",
        resamples=100, limit=limit, on_event=lambda event: None,
    )  # fmt: skip
    return time.perf_counter() - start


def digests(out: Path) -> dict[str, str]:
    paths = [p for p in out.rglob("*") if p.suffix == ".parquet" or p.name == "scores.json"]
    return {str(p.relative_to(out)): hashlib.sha256(p.read_bytes()).hexdigest() for p in paths}


def main(count: int = COUNT, turns: int = 2) -> float:
    """Print both engines, in turns, and the ratio of the best; return it."""
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
                few = measure(root, folder / f"{name}{turn}-few", engine, count // 4)
                every = measure(root, folder / f"{name}{turn}", engine, 0)
                found[name].append((few, every))
                print(f"  {name:6} {count // 4} stimuli {few:6.1f} s, {count} stimuli {every:6.1f} s")
        cluster.shutdown()
        same = digests(folder / "local0") == digests(folder / "ray0")
        seconds = {name: min(every - few for few, every in times) for name, times in found.items()}
        ratio = seconds["ray"] / seconds["local"]
        whole = min(t[1] for t in found["ray"]) / min(t[1] for t in found["local"])
        print(f"  ray / local: {ratio:.2f} without the start, {whole:.2f} with it; the same bytes: {same}")
        return ratio
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])) > 1.10)
