"""One run, several processes (``--shard i/n``): the same bytes as one process, whichever dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cuebench as cb
from cuebench.errors import UserError
from cuebench.protocols.cue_conflict import PROTOCOL
from cuebench.responses.events import Event
from cuebench.runs.share import parse_shard

MODEL = """
import os
import time
import numpy as np
import cuebench as cb

def slow(pixels):
    time.sleep(float(os.environ.get("SECONDS_TO_THINK", 0)))
    level = pixels[:, 0].mean(axis=(1, 2))
    if FAILS and level[0] >= 80:
        raise ValueError("no such layer")
    return -np.abs(level[:, None] - 40 * np.arange(4)[None]).astype(np.float32)

FAILS = False

def factory():
    plain = cb.Preprocess(size=32, mean=(0, 0, 0), std=(1, 1, 1), scale=1)
    return cb.wrap(slow, preprocess=plain, labels=("cat", "dog", "car", "clock"), name="slow", fingerprint="slow-1")
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


def results(out: Path) -> dict[str, bytes]:
    paths = [p for p in out.rglob("*") if p.suffix == ".parquet" or p.name == "scores.json"]
    return {str(p.relative_to(out)): p.read_bytes() for p in paths}


def run(model: Path, data_root: Path, out: Path, shard: tuple[int, int] | None = None, **options: Any) -> cb.Scores:
    observers = [f"python:{model}:factory", "ideal:mixture?shape=0.4"]
    settings = {"data_root": data_root, "shard_size": 2, "workers": 0, "resamples": 100, "on_event": lambda e: None}
    return cb.evaluate(observers, "cue_conflict", out=out, shard=shard, **{**settings, **options})


@pytest.mark.slow
def test_three_processes_at_once_one_killed_and_repeated(model: Path, data_root: Path, tmp_path: Path) -> None:
    whole, shared = tmp_path / "whole", tmp_path / "shared"
    run(model, data_root, whole, workers=1)
    base = [sys.executable, "-m", "cuebench", "run", "-o", f"python:{model}:factory", "-o", "ideal:mixture?shape=0.4"]
    base += ["-p", "cue_conflict", "--data-root", str(data_root), "--out", str(shared)]
    base += ["--shard-size", "2", "--workers", "1", "--resamples", "100"]
    kept = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    slowly = {**os.environ, "SECONDS_TO_THINK": "0.3"}  # the second is to be killed before it has finished
    processes = [subprocess.Popen([*base, "--shard", f"{i}/3"], env=slowly, **kept) for i in (1, 2, 3)]
    deadline = time.monotonic() + 120
    while not list(shared.glob("responses/slow--*/*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.01)
    processes[1].kill()
    texts = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, -9, 0]
    assert all("scores:" not in out for out, _ in texts)
    assert any("1 of 3 parts is missing (2/3); the last one scores, or: cuebench score" in err for _, err in texts)
    assert not (shared / "scores.json").exists()
    last = subprocess.run([*base, "--shard", "2/3"], check=True, timeout=120, capture_output=True, text=True)
    assert "scores:" in last.stdout
    assert results(shared) == results(whole)
    assert json.loads((shared / "run.json").read_text())["status"] == "complete"


def test_parts_do_not_overlap_and_the_last_one_scores(model: Path, data_root: Path, tmp_path: Path) -> None:
    whole, shared = tmp_path / "whole", tmp_path / "shared"
    run(model, data_root, whole)
    events: list[Event] = []
    for i in (3, 1):
        assert len(run(model, data_root, shared, (i, 3), on_event=events.append)) == 0
    said = [event.message for event in events if event.kind == "notice"]
    assert said[0].startswith("2 of 3 parts are missing (1/3, 2/3); the last one scores, or: cuebench score")
    assert said[1].startswith("1 of 3 parts is missing (2/3)")
    assert len(run(model, data_root, shared, (2, 3))) > 0
    assert results(shared) == results(whole)
    decoded = [json.loads((out / "run.json").read_text())["images_decoded"] for out in (shared, whole)]
    assert decoded[0] == decoded[1] == 32


@pytest.mark.parametrize("common", [False, True])
def test_what_is_there_is_scored_before_the_last_part(
    model: Path, data_root: Path, tmp_path: Path, common: bool
) -> None:
    whole, shared = tmp_path / "whole", tmp_path / "shared"
    run(model, data_root, whole)
    run(model, data_root, shared, (1, 2))
    events: list[Event] = []
    scores = cb.score(shared, common=common, on_event=events.append)
    assert scores.failures == []
    (said,) = [event.message for event in events if event.kind == "notice"]
    assert "not all of its processes (--shard i/n) have come to their end" in said
    assert "only what it has is scored" in said
    assert {row.observer for row in scores} == {"slow", "ideal:mixture?shape=0.4"}
    which = "all observers saw" if common else "are answered"
    assert all(f"of 32 stimuli that {which}" in row.note for row in scores)
    assert all(0 < row.n < 32 for row in scores if row.metric == "shape_bias")
    run(model, data_root, shared, (2, 2))
    assert cb.score(shared, common=False).rows == cb.load(whole).rows


def test_a_shard_that_a_finished_run_has_lost_is_a_failure(model: Path, data_root: Path, tmp_path: Path) -> None:
    run(model, data_root, tmp_path)
    next(tmp_path.glob("responses/slow--*/*.parquet")).unlink()
    (failure,) = cb.score(tmp_path, on_event=lambda event: None).failures
    assert "slow" in failure
    assert "no stored answers" in failure


def test_parts_may_know_the_data_root_by_other_names(model: Path, data_root: Path, tmp_path: Path) -> None:
    """On another machine it may be mounted elsewhere: the part that scores has not written the manifest last."""
    elsewhere, whole, shared = tmp_path / "elsewhere", tmp_path / "whole", tmp_path / "shared"
    elsewhere.symlink_to(data_root)
    run(model, data_root, whole)
    others: list[int] = []

    def meanwhile(event: Event) -> None:
        if event.kind == "batch" and not others:
            others.append(len(run(model, elsewhere, shared, (2, 2))))

    assert len(run(model, data_root, shared, (1, 2), on_event=meanwhile)) > 0
    assert others == [0]
    assert (shared / "scores.json").read_bytes() == (whole / "scores.json").read_bytes()
    assert cb.score(shared).rows == cb.load(whole).rows


def test_another_number_of_parts_finds_what_is_stored(model: Path, data_root: Path, tmp_path: Path) -> None:
    whole, shared = tmp_path / "whole", tmp_path / "shared"
    run(model, data_root, whole)
    run(model, data_root, shared, (1, 3))
    before = {p: p.stat().st_mtime_ns for p in shared.glob("responses/*/*.parquet")}
    assert 0 < len(before) < len(list(whole.glob("responses/*/*.parquet")))
    run(model, data_root, shared, (2, 2))
    assert sorted(p.name for p in (shared / "parts").iterdir()) == ["2-of-2.json"]
    assert len(run(model, data_root, shared, (1, 2))) > 0
    assert {p: p.stat().st_mtime_ns for p in before} == before
    assert results(shared) == results(whole)


def test_a_failure_of_one_part_is_a_row_until_it_is_repeated(model: Path, data_root: Path, tmp_path: Path) -> None:
    whole, shared = tmp_path / "whole", tmp_path / "shared"
    run(model, data_root, whole)
    model.write_text(MODEL.replace("FAILS = False", "FAILS = True"))
    run(model, data_root, shared, (1, 2))
    scores = run(model, data_root, shared, (2, 2))
    (failure,) = scores.record.failures
    assert (failure.observer, failure.reason) == ("slow", "ValueError: no such layer")
    assert {row.observer for row in scores if row.metric == "failed"} == {"slow"}
    model.write_text(MODEL)
    run(model, data_root, shared, (1, 2))
    assert len(run(model, data_root, shared, (2, 2)).record.failures) == 0
    assert results(shared) == results(whole)


def test_a_run_without_parts_takes_over_what_they_said(model: Path, data_root: Path, tmp_path: Path) -> None:
    whole, shared = tmp_path / "whole", tmp_path / "shared"
    run(model, data_root, whole)
    model.write_text(MODEL.replace("FAILS = False", "FAILS = True"))
    for i in (1, 2):
        run(model, data_root, shared, (i, 2))
    model.write_text(MODEL)
    run(model, data_root, shared)
    assert results(shared) == results(whole)
    assert not (shared / "parts").exists()
    assert len(run(model, data_root, shared, (1, 2))) == 0  # the second part has not said anything yet
    assert not run(model, data_root, shared, (2, 2)).record.failures
    assert results(shared) == results(whole)


@pytest.mark.parametrize("shard", [None, (1, 2)])
def test_what_parts_said_of_others_is_not_forgotten(
    model: Path, data_root: Path, tmp_path: Path, shard: tuple[int, int] | None
) -> None:
    model.write_text(MODEL.replace("FAILS = False", "FAILS = True"))
    run(model, data_root, tmp_path / "run", (1, 2))
    cb.evaluate(
        "ideal:shape", "cue_conflict", out=tmp_path / "run", data_root=data_root, shard_size=2, workers=0,
        resamples=100, on_event=lambda e: None, shard=shard,
    )  # fmt: skip
    failures = cb.score(tmp_path / "run").record.failures
    assert ("slow", "ValueError: no such layer") in {(f.observer, f.reason) for f in failures}


def test_parts_are_added_to_a_run_that_holds_more(model: Path, data_root: Path, tmp_path: Path) -> None:
    """Observers and protocols need not be a rectangle."""
    twin = replace(PROTOCOL, name="twin")
    options = {"data_root": data_root, "shard_size": 2, "workers": 0, "resamples": 100, "on_event": lambda e: None}
    for out, parts in (("whole", [None]), ("shared", [(1, 2), (2, 2)])):
        cb.evaluate("ideal:shape", ["cue_conflict", twin], out=tmp_path / out, **options)
        for shard in parts:
            scores = cb.evaluate(["ideal:texture", "ideal:random"], twin, out=tmp_path / out, shard=shard, **options)
        for shard in parts:
            scores = cb.evaluate("ideal:texture", "cue_conflict", out=tmp_path / out, shard=shard, **options)
    assert {(job.observer, job.protocol) for job in scores.record.jobs} == {
        *((name, protocol) for name in ("ideal:shape", "ideal:texture") for protocol in ("cue_conflict", "twin")),
        ("ideal:random", "twin"),
    }
    assert results(tmp_path / "shared") == results(tmp_path / "whole")


def test_too_many_unreadable_files_of_all_parts_together(model: Path, data_root: Path, tmp_path: Path) -> None:
    for path in sorted((data_root / "cue_conflict" / "stimuli").rglob("*.png"))[:8:2]:
        path.write_bytes(path.read_bytes()[:40])
    shared, allowed = tmp_path / "shared", {"allow_unreadable": 0.1}  # 4 of 32; each part has two of them
    run(model, data_root, shared, (1, 2), **allowed)
    with pytest.raises(UserError, match="too many unreadable stimuli"):
        run(model, data_root, shared, (2, 2), **allowed)
    run(model, data_root, shared, (2, 2), allow_unreadable=0.2)
    assert len(json.loads((shared / "run.json").read_text())["unreadable"]) == 4


@pytest.mark.parametrize("text", ["²/3", "1", "a/b", "1/", "/2", "-1/2"])
def test_a_shard_that_cannot_be_read(text: str) -> None:
    with pytest.raises(UserError, match="--shard"):
        parse_shard(text)


@pytest.mark.parametrize("shard", [(0, 3), (4, 3), (1, 0)])
def test_a_part_that_there_is_not(model: Path, data_root: Path, tmp_path: Path, shard: tuple[int, int]) -> None:
    with pytest.raises(UserError, match="the first number counts the parts"):
        run(model, data_root, tmp_path / "run", shard)


def test_fresh_and_shard_do_not_go_together(model: Path, data_root: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--fresh and --shard"):
        run(model, data_root, tmp_path / "run", (1, 2), fresh=True)


def test_many_parts_cost_nothing_and_more_are_refused(model: Path, data_root: Path, tmp_path: Path) -> None:
    events: list[Event] = []
    scores = run(model, data_root, tmp_path / "run", (7, 100_000), on_event=events.append)
    assert not scores.rows
    assert any("99,999 of 100,000 parts are missing" in event.message for event in events)
    for shard in ((1, 100_001), (1, 99_999_999_999)):
        with pytest.raises(UserError, match="100,000 parts at most"):
            run(model, data_root, tmp_path / "other", shard)
