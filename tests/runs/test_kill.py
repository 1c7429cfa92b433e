"""A run can die at any instruction: kill -9 at random moments, go on by the same command, end in the same bytes."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

MODEL = """
import time
import numpy as np
import cuebench as cb

def slow(pixels):
    time.sleep(0.02)
    level = pixels[:, 0].mean(axis=(1, 2))
    return -np.abs(level[:, None] - 40 * np.arange(4)[None]).astype(np.float32)

def factory():
    plain = cb.Preprocess(size=32, mean=(0, 0, 0), std=(1, 1, 1), scale=1)
    return cb.wrap(slow, preprocess=plain, labels=("cat", "dog", "car", "clock"), name="slow", fingerprint="slow-1")
"""
FILES = ("scores.json", "scores.parquet")


def command(model: Path, data_root: Path, out: Path) -> list[str]:
    base = [sys.executable, "-m", "cuebench", "run", "-o", f"python:{model}:factory", "-o", "ideal:mixture?shape=0.4"]
    return [*base, "-p", "cue_conflict", "--data-root", str(data_root), "--out", str(out), "--shard-size", "2", "-q"]


def shards(out: Path) -> int:
    return len(list(out.glob("responses/*/*.parquet")))


@pytest.mark.slow
def test_kill_at_random_moments_and_resume(data_root: Path, tmp_path: Path) -> None:
    model = tmp_path / "slow_model.py"
    model.write_text(MODEL)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run(command(model, data_root, whole), check=True, timeout=120)
    moments = random.Random(0)
    seen = []
    for _ in range(3):  # tests/faults kills every verb, many times
        process = subprocess.Popen(command(model, data_root, killed))
        before = shards(killed)
        # Wait until this attempt has stored something more, then kill it a random moment later.
        deadline = time.monotonic() + 60
        while shards(killed) <= before and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.08))
        process.kill()
        process.wait()
        seen.append(shards(killed))
    assert seen == sorted(seen)
    assert seen[0] < shards(whole), "the kill came too late to test anything"
    subprocess.run(command(model, data_root, killed), check=True, timeout=120)
    assert {f: (killed / f).read_bytes() for f in FILES} == {f: (whole / f).read_bytes() for f in FILES}
    assert not list(killed.rglob("*.tmp")) or shards(killed) == shards(whole)
