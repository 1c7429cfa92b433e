"""What a run starts before anything else, and what it leaves alone."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from cuebench.runs.record import RunOptions
from cuebench.runs.starting import _warm_up, start_decoders


@pytest.mark.parametrize(("observers", "workers"), [(["recorded:a.csv", "ideal:shape"], 0), (["timm:a", "ideal:b"], 2)])
def test_decoders_are_started_where_somebody_looks_at_pixels(observers: list[str], workers: int) -> None:
    with start_decoders(observers, RunOptions(workers=2), print) as pool:
        assert pool.workers == workers


def test_an_unknown_source_starts_nothing_but_decoders() -> None:
    with start_decoders(["nowhere:a"], RunOptions(workers=1), print) as pool:
        assert pool.workers == 1


@pytest.mark.torch
@pytest.mark.parametrize("device", ["cpu", "auto", "cuda:99", "nonsense"])
def test_warming_up_never_fails(device: str) -> None:
    pytest.importorskip("torch")
    _warm_up(device, "bfloat16")


ALLOCATOR = "; import pyarrow; print(pyarrow.default_memory_pool().backend_name)"


def allocator(code: str, **environment: str) -> str:
    """Return the allocator of Arrow after some code."""
    others = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    command = [sys.executable, "-c", code + ALLOCATOR]
    return subprocess.run(command, env={**others, **environment}, capture_output=True, text=True, check=True).stdout


def test_only_the_command_chooses_arrows_allocator() -> None:
    ours, usual = "from cuebench.cli import take_less_memory; take_less_memory()", allocator("pass")
    assert allocator(ours) == "system\n" != usual
    assert allocator(ours, ARROW_DEFAULT_MEMORY_POOL=usual.strip()) == usual
    assert allocator("import cuebench") == usual
