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
from cuebench.errors import UserError
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


@pytest.mark.slow
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


DIES = """
import ctypes, os
from pathlib import Path
import numpy as np
import cuebench as cb

asked = []

def die(pixels):
    asked.append(len(pixels))
    switch = Path(__file__).with_name("dies")
    if sum(asked) > 20 and switch.exists():
        os._exit(3) if switch.read_text() == "exit" else ctypes.string_at(0)
    return np.eye(4, dtype=np.float32)[[0] * len(pixels)]

def make():
    plain, labels = cb.Preprocess(size=32), ("cat", "dog", "car", "clock")
    return cb.wrap(die, preprocess=plain, labels=labels, name="d", fingerprint="d")
"""


@pytest.mark.parametrize(("how", "end"), [("exit", {"exit": 3}), ("segfault", {"signal": signal.SIGSEGV})])
def test_a_model_that_ends_the_process_is_told_and_the_same_command_goes_on(
    run_command: Callable[..., list[str]], commands: Any, contents: Any, tmp_path: Path, how: str, end: dict[str, int]
) -> None:
    (tmp_path / "dies.py").write_text(DIES)
    (tmp_path / "dies").write_text(how)

    def run(name: str) -> dict[str, Any]:
        result: dict[str, Any] = commands(*run_command(tmp_path / name, f"python:{tmp_path / 'dies.py'}:make"))
        return result

    assert run("run").items() >= end.items()
    with pytest.raises(UserError, match=r"(?s)was not finished.*status: running.*it goes on where it stopped"):
        cb.load(tmp_path / "run")
    said = commands("report", tmp_path / "run")
    assert said["status"] == 2
    assert "was not finished" in said["output"]
    with pytest.warns(RuntimeWarning, match=r"was not finished.*the same command again"):
        cb.score(tmp_path / "run")
    (tmp_path / "dies").unlink()
    assert run("run")["status"] == 0
    assert run("whole")["status"] == 0
    assert cb.load(tmp_path / "run").record.status == "complete"
    files = [{n: d for n, d in contents(tmp_path / name).items() if n != "run.json"} for name in ("run", "whole")]
    assert files[0] == files[1]


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
