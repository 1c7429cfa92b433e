"""A chat model whose run is killed while the endpoint misbehaves: nothing is lost, doubled or overspent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "endpoints"))
from chat_server import ChatServer, problem, write_pictures

BIG = pytest.mark.skipif(os.environ.get("CUEBENCH_FAULTS") != "all", reason="the long form: make faults")


def start(server: ChatServer, data: Path, out: Path, at_once: int, budget: int) -> subprocess.Popen[str]:
    spec = f"chat:eye?url={server.url}&concurrency={at_once}&max_requests={budget}&retries=12&timeout=10&pixels=16"
    arguments = ["run", "-p", "cue_conflict", "-o", spec, "--data-root", str(data), "--out", str(out)]
    options = ["--workers", "1", "--resamples", "100", "--shard-size", "64", "--json"]
    command = [sys.executable, "-m", "cuebench", *arguments, *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def kill_after(process: subprocess.Popen[str], server: ChatServer, answers: int) -> None:
    deadline = time.monotonic() + 120
    while sum(server.answered.values()) < answers and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()


def misbehave(number: int, body: dict[str, Any]) -> Any:
    """429 with Retry-After, 500, broken JSON, a closed connection, and a refusal in words."""
    if number % 23 == 7:
        return problem(429, "slow down", Retry_After="0.05")
    if number % 29 == 11:
        return problem(500, "oops")
    if number % 31 == 13:
        return 200, {}, b'{"choices": ['
    if number % 37 == 17:
        raise ConnectionAbortedError
    time.sleep(0.2 if number % 41 == 0 else 0.01)
    return None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("instances", "at_once", "kills"),
    [pytest.param(4, 8, (0.4,)), pytest.param(63, 32, (0.3, 0.65), marks=BIG)],
)
def test_killed_and_resumed(tmp_path: Path, instances: int, at_once: int, kills: tuple[float, ...]) -> None:
    pictures = write_pictures(tmp_path / "data", instances)
    budget = 2 * pictures
    with ChatServer(misbehave) as server:
        for share in kills:
            process = start(server, tmp_path / "data", tmp_path / "run", at_once, budget)
            kill_after(process, server, int(share * pictures))
            time.sleep(0.5)  # what was on its way ends at the server
        process = start(server, tmp_path / "data", tmp_path / "run", at_once, budget)
        output, _ = process.communicate(timeout=600)
        assert process.returncode == 0, output
        answered = server.answered
        again = sum(answered.values()) - pictures
        print(f"{pictures} pictures, {server.requests} requests, {again} answered twice, "
              f"{server.most_together} at once, most for one picture {max(answered.values())}")  # fmt: skip
    assert len(answered) == pictures  # none is missing
    assert max(answered.values()) <= 2  # asked once more at most
    assert again <= len(kills) * at_once  # only what was on its way at the kills
    assert server.most_together <= at_once
    assert server.requests <= budget
    import cuebench

    scores = cuebench.load(tmp_path / "run")
    assert scores.value("chat:eye?pixels=16", "shape_bias", "4-way") == 1
    row = next(r for r in scores.rows if r.metric == "decided_fraction" and r.condition == "4-way")
    assert row.n == pictures * 3 // 4


@BIG
@pytest.mark.slow
def test_the_budget_holds_through_a_kill(tmp_path: Path) -> None:
    pictures = write_pictures(tmp_path / "data", 6)
    with ChatServer(lambda n, b: time.sleep(0.01)) as server:
        kill_after(start(server, tmp_path / "data", tmp_path / "run", 8, 60), server, 30)
        time.sleep(0.3)
        process = start(server, tmp_path / "data", tmp_path / "run", 8, 60)
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 1
        assert "the budget of 60 requests is used up" in output
        assert pictures > 60 >= server.requests > 50
