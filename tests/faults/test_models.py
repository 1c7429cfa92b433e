"""Models that raise, end Python, hang, change their minds or are in training mode; worker processes that die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuebench as cb
from cuebench.processes import ProcessPool, WorkerDied

CLASSES = ("cat", "dog", "car", "clock")


def wrapped(respond: Callable[[np.ndarray], np.ndarray], name: str = "odd") -> cb.Observer:
    return cb.wrap(respond, preprocess=cb.Preprocess(size=32), labels=CLASSES, name=name, fingerprint=name)


@pytest.fixture
def measure(data: Path, tmp_path: Path) -> Any:
    def run(*observers: Any, **options: Any) -> cb.Scores:
        options = {
            "data_root": data,
            "out": tmp_path / "run",
            "resamples": 100,
            "shard_size": 8,
            "workers": 0,
            **options,
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return cb.evaluate(observers, "cue_conflict", **options)

    return run


@pytest.mark.parametrize(
    "error", [ValueError("odd"), SystemExit(0), SystemExit("bye"), MemoryError(), AssertionError()]
)
@pytest.mark.parametrize("calls", [0, 2])
def test_a_model_that_raises_or_exits_is_a_row(measure: Any, error: BaseException, calls: int) -> None:
    asked: list[int] = []

    def respond(pixels: np.ndarray) -> np.ndarray:
        asked.append(len(pixels))
        if len(asked) > calls:
            raise error
        return np.eye(4, dtype=np.float32)[[0] * len(pixels)]

    scores = measure(wrapped(respond), "ideal:shape")
    assert [f.observer for f in scores.record.failures] == ["odd"]
    assert scores.record.status == "complete"
    assert scores.value("ideal:shape", "shape_bias") == 1


HANGS = """
import time
import numpy as np
import cuebench as cb

def hang(pixels):
    time.sleep(600)

def make():
    plain, labels = cb.Preprocess(size=32), ("cat", "dog", "car", "clock")
    return cb.wrap(hang, preprocess=plain, labels=labels, name="h", fingerprint="h")
"""


def test_a_model_that_hangs_can_be_stopped_and_left_out(
    run_command: Callable[..., list[str]], measure: Any, tmp_path: Path
) -> None:
    """There is no time limit for a model; Ctrl-C ends the run, says so, and keeps what the others answered."""
    (tmp_path / "hangs.py").write_text(HANGS)
    arguments = run_command(tmp_path / "run", "ideal:shape", f"python:{tmp_path / 'hangs.py'}:make")
    process = subprocess.Popen([sys.executable, "-m", "cuebench", *arguments], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "run").glob("responses/h--*/key.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, text = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Stopped" in text
    scores = measure("ideal:shape")
    assert scores.value("ideal:shape", "shape_bias") == 1


def test_a_model_that_changes_its_mind_is_told(measure: Any) -> None:
    """Another answer to the same picture is never passed over in silence."""
    draw = np.random.default_rng()

    def respond(pixels: np.ndarray) -> np.ndarray:
        return draw.normal(size=(len(pixels), 4)).astype(np.float32)

    scores = measure(wrapped(respond))
    again = measure(wrapped(respond))
    text = " ".join(row.note for row in [*scores, *again]) + " ".join([*scores.record.notices, *again.record.notices])
    assert any(words in text for words in ("not deterministic", "differ", "another answer")), text[:500]


def test_a_network_in_training_mode_is_switched_to_evaluation(measure: Any) -> None:
    torch = pytest.importorskip("torch")
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Dropout(0.5), torch.nn.Linear(3 * 32 * 32, 4)).train()
    observer = cb.wrap(network, preprocess=cb.Preprocess(size=32), labels=CLASSES, name="net")
    first = measure(observer)
    second = measure(observer, fresh=True)
    assert [repr(row) for row in first] == [repr(row) for row in second]


def test_a_dead_worker_is_replaced_and_never_hangs() -> None:
    told: list[str] = []
    with ProcessPool(1, tell=told.append) as pool:
        with pytest.raises(WorkerDied, match="killed two worker processes"):
            pool.submit(os._exit, 3).result(60)
        assert pool.submit(abs, -3).result(60) == 3
    assert len(told) == 2


def test_workers_that_are_killed_during_a_run_change_nothing(data: Path, measure: Any, tmp_path: Path) -> None:
    model = f"python:{data / 'model.py'}:make"
    whole = measure(model, out=tmp_path / "whole")
    killed: list[int] = []

    def kill_workers(event: Any) -> None:
        if event.kind == "batch" and not killed:
            children = subprocess.run(["pgrep", "-P", str(os.getpid()), "-f", "_process_main"], capture_output=True)
            for pid in map(int, children.stdout.split()):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    scores = measure(model, workers=1, on_event=kill_workers)
    assert killed
    assert [repr(row) for row in scores] == [repr(row) for row in whole]
