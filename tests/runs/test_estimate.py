"""What a run would cost: near what it then takes, without what is stored, and without a trace in the run folder."""

from __future__ import annotations

import json
import time
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import cuebench as cb
from cuebench.cli import invoke
from cuebench.cli._plan import duration, print_plan, size
from cuebench.errors import UserError
from cuebench.runs.cost import NodesCost, ObserverCost, RunCost
from cuebench.runs.estimate import estimate_cost

CLASSES = ("cat", "dog", "car", "clock")


def slow(seconds: float, name: str = "slow") -> cb.Observer:
    """An observer that needs so long for each picture."""

    def respond(pixels: np.ndarray) -> np.ndarray:
        time.sleep(seconds * len(pixels))
        return pixels.mean(axis=(2, 3))[:, [0, 1, 2, 0]].astype(np.float32)

    plain = cb.Preprocess(size=32, mean=(0, 0, 0), std=(1, 1, 1), scale=1)
    return cb.wrap(respond, preprocess=plain, labels=CLASSES, name=name, fingerprint=f"{name}-1")


def test_the_time_is_near_what_the_run_takes(data_root: Path, tmp_path: Path) -> None:
    for attempt in range(3):  # others use this machine too
        common = {"data_root": data_root, "out": tmp_path / f"run{attempt}", "workers": 1, "batch_size": 8}
        observers = [slow(0.03), slow(0.01, "faster")]
        cost = estimate_cost(observers, "cue_conflict", **common)
        start = time.perf_counter()
        cb.evaluate(observers, "cue_conflict", **common)
        ratio = cost.seconds / (time.perf_counter() - start)
        if 1 / 2 < ratio < 2:
            break
    assert 1 / 2 < ratio < 2
    assert cost.forward_seconds == pytest.approx(32 * 0.04, rel=0.5)
    assert cost.dominated_by in ("forward", "start")


def test_stored_answers_are_not_counted(data_root: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    cb.evaluate(slow(0), "cue_conflict", data_root=data_root, out=out, workers=1, shard_size=8)
    before = sorted((p, p.stat().st_mtime_ns) for p in out.rglob("*"))
    both = estimate_cost([slow(0), slow(0, "other")], "cue_conflict", data_root=data_root, out=out, workers=1)
    assert (both.answers, both.stored, both.stimuli_to_decode) == (32, 32, 32)
    assert {c.observer: (c.answers, c.stored) for c in both.observers} == {"slow": (0, 32), "other": (32, 0)}
    next(out.rglob("responses/*/*.parquet")).unlink()
    part = estimate_cost(slow(0), "cue_conflict", data_root=data_root, out=out, workers=1)
    assert (part.answers, part.stored, part.stimuli_to_decode) == (8, 24, 8)
    anew = estimate_cost(slow(0), "cue_conflict", data_root=data_root, out=out, workers=1, fresh=True)
    assert anew.answers == 32
    after = {p: p.stat().st_mtime_ns for p in out.rglob("*")}
    changed = [p for p, when in before if p.suffix and after.get(p, when) != when]
    assert not changed
    assert len(after) == len(before) - 1


def test_a_finished_run_costs_its_start_only(data_root: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    cb.evaluate("ideal:shape", "cue_conflict", data_root=data_root, out=out)
    cost = estimate_cost("ideal:shape", "cue_conflict", data_root=data_root, out=out)
    assert (cost.answers, cost.dominated_by, cost.disk_bytes) == (0, "", 0)
    assert cost.seconds == cost.start_seconds


def test_conditions_of_the_folder_are_checked_as_in_a_run(data_root: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    cb.evaluate("ideal:shape", "cue_conflict", data_root=data_root, out=out)
    with pytest.raises(UserError, match="seed was 0, now 1"):
        estimate_cost("ideal:shape", "cue_conflict", data_root=data_root, out=out, seed=1)


def test_disk_is_what_the_answers_take(data_root: Path, tmp_path: Path) -> None:
    common = {"data_root": data_root, "out": tmp_path / "run", "workers": 1, "batch_size": 32}
    cost = estimate_cost(slow(0), "cue_conflict", **common)
    cb.evaluate(slow(0), "cue_conflict", **common)
    taken = sum(p.stat().st_size for p in (tmp_path / "run").rglob("responses/*/*.parquet"))
    assert cost.disk_bytes == pytest.approx(taken, rel=0.2)
    assert cost.memory_bytes > 20 * 2**20


def test_pixels_in_the_cache_are_not_decoded(data_root: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    common = {"data_root": data_root, "workers": 1, "cache": cache}
    first = estimate_cost(slow(0), "cue_conflict", **common)
    assert (first.stimuli_to_decode, first.cache_bytes) == (32, 32 * 32 * 32 * 3)
    assert not cache.exists()
    cb.evaluate(slow(0), "cue_conflict", out=tmp_path / "run", **common)
    again = estimate_cost(slow(0, "other"), "cue_conflict", **common)
    assert (again.stimuli_to_decode, again.cache_bytes, again.answers) == (0, 0, 32)


def test_machines_divide_the_stored_files(data_root: Path) -> None:
    cost = estimate_cost(
        slow(0.01), "cue_conflict", data_root=data_root, workers=1, shard_size=8, nodes=(1, 2, 4, 100), price=36.0
    )
    collecting = cost.nodes[0].seconds - cost.start_seconds - (cost.score_seconds or 0)
    assert [n.nodes for n in cost.nodes] == [1, 2, 4, 100]
    gained = [cost.nodes[0].seconds - n.seconds for n in cost.nodes]
    assert gained == pytest.approx([0, collecting / 2, 3 * collecting / 4, 3 * collecting / 4])
    assert cost.nodes[0].price == pytest.approx(cost.seconds / 100)
    assert cost.nodes[3].price == cost.nodes[2].price  # there are four files: nobody pays for more machines


def test_a_broken_observer_is_a_failure_of_its_own(data_root: Path) -> None:
    def breaks(pixels: np.ndarray) -> np.ndarray:
        raise RuntimeError("no")

    plain = cb.Preprocess(size=32)
    broken = cb.wrap(breaks, preprocess=plain, labels=CLASSES, name="broken", fingerprint="b")
    cost = estimate_cost([broken, slow(0)], "cue_conflict", data_root=data_root, workers=0)
    assert [c.observer for c in cost.observers] == ["slow"]
    assert [(f.observer, f.reason) for f in cost.failures] == [("broken", "RuntimeError: no")]


@pytest.mark.parametrize(
    ("nodes", "price", "reason"),
    [
        ((0,), None, "nodes=.*: expected .*1"),
        ((), None, "no numbers of machines"),
        ((1,), -1.0, "price=-1.0: expected a number ≥ 0"),
        ((1,), float("inf"), "price=inf: expected"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(
    data_root: Path, nodes: tuple[int, ...], price: float | None, reason: str
) -> None:
    with pytest.raises(UserError, match=reason):
        estimate_cost("ideal:shape", "cue_conflict", data_root=data_root, nodes=nodes, price=price)


def test_the_command_prints_json_with_documented_keys(
    data_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    command = ["run", "-o", "ideal:shape", "-p", "cue_conflict", "--data-root", str(data_root), "--out", str(out)]
    assert invoke([*command, "--plan", "--json", "--nodes", "1,4"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == [f.name for f in fields(RunCost)]
    assert all(name in (RunCost.__doc__ or "") for name in found)
    assert list(found["observers"][0]) == [f.name for f in fields(ObserverCost)]
    assert [list(row) for row in found["nodes"]] == [[f.name for f in fields(NodesCost)]] * 2
    assert found["answers"] == 32
    assert not out.exists()


def test_the_command_prints_a_table(data_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "-o", "ideal:shape", "-p", "cue_conflict", "--data-root", str(data_root)]
    command += ["--out", str(tmp_path / "run"), "--plan"]
    assert invoke([*command, "--nodes", "1,2", "--price", "2.5"]) == 0
    printed = capsys.readouterr().out
    assert "32 answers to collect" in printed
    assert all(words in printed for words in ("machines", "price", "what helps:"))
    assert invoke([*command, "--nodes", "two"]) == 2
    assert "for example: --nodes 1,4,16" in capsys.readouterr().err


def test_words_for_times_and_sizes() -> None:
    assert [duration(s) for s in (0.44, 12.3, 600, 7200)] == ["0.4 s", "12 s", "10 min", "2.0 h"]
    assert [size(b) for b in (12, 2048, 3 * 2**20, 5 * 2**30)] == ["12 B", "2 KiB", "3 MiB", "5.0 GiB"]


def test_the_longest_observers_are_listed_and_the_others_added_up(capsys: pytest.CaptureFixture[str]) -> None:
    rows = tuple(ObserverCost(f"net{i}", "p", "", 10, 0, 10 / (i + 1), i + 1.0, 32, 100) for i in range(13))
    cost = RunCost(130, 0, 10, 2, 5.0, 1.0, 2.0, 91.0, 0.1, None, 94.0, 1300, 0, 2**30, 0, rows, (), "forward", "rest")
    print_plan(cost)
    printed = capsys.readouterr().out
    assert [f"net{i} " in printed for i in range(13)] == [False] * 3 + [True] * 10
    assert "3 others" in printed
    assert "6.0 s" in printed.split("3 others")[1].splitlines()[0]
    assert "unknown" in printed  # the scoring
