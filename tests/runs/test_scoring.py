"""Scoring many observers: the same bytes in any number of processes, workers that die, memory that stays bounded."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

import cuebench as cb
from cuebench.errors import UserError
from cuebench.responses.events import Event
from cuebench.runs import measuring
from cuebench.runs.measuring import choose_workers
from cuebench.runs.record import RunRecord
from cuebench.stimuli.manifest import read_manifest, write_manifest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def made_up() -> ModuleType:
    """The benchmark that writes run folders without any model."""
    spec = importlib.util.spec_from_file_location("made_up_runs", REPOSITORY / "benchmarks" / "scoring.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def conflict(made_up: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three models on 300 cue-conflict stimuli."""
    folder = tmp_path_factory.mktemp("conflict")
    made_up.write_run(folder, "cue_conflict", 3, 300, classes=16)
    return folder


@pytest.fixture
def run(conflict: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(conflict, tmp_path / "run"))


def files(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in [*folder.glob("scores.*"), *folder.glob("tables/*")]}


@pytest.mark.parametrize(
    ("protocol", "size", "several"), [("refined_bias", 500, (0, 1, 2)), ("cue_decomposition", 80, (0, 1))]
)
@pytest.mark.slow
def test_the_same_bytes_with_any_number_of_workers(made_up, tmp_path, protocol, size, several):
    made_up.write_run(tmp_path, protocol, 4, size, classes=1000)  # sums of 250 × 1000 draws: BLAS may split them
    found = []
    for workers in several:
        cb.score(tmp_path, resamples=1000, workers=workers)
        found.append(files(tmp_path))
    assert len(found[0]) >= 4
    assert all(other == found[0] for other in found)


MORTAL = """
import os
from cuebench.runs.measuring import measure

def dies_once(work):
    died = work.manifests.folder / "died"
    if not died.exists():
        died.touch()
        os._exit(9)
    return measure(work)

def dies(work):
    os._exit(9)
"""


@pytest.fixture
def mortal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module that workers can import, with functions that kill them."""
    (tmp_path / "mortal_scoring.py").write_text(MORTAL)
    monkeypatch.syspath_prepend(str(tmp_path))
    return importlib.import_module("mortal_scoring")


def test_a_worker_that_dies_is_replaced_and_changes_nothing(run, mortal, monkeypatch):
    cb.score(run, resamples=200, workers=0)
    before = files(run)
    monkeypatch.setattr(measuring, "measure", mortal.dies_once)
    events: list[Event] = []
    cb.score(run, resamples=200, workers=1, on_event=events.append)
    assert files(run) == before
    assert [e.message for e in events if e.kind == "notice"] == [
        "a worker process died (it ended with status 9); another one takes its place"
    ]


def test_an_observer_that_kills_two_workers_is_named_with_what_to_do(run, mortal, monkeypatch):
    monkeypatch.setattr(measuring, "measure", mortal.dies)
    with pytest.raises(UserError, match="model000 could not be scored for cue_conflict") as error:
        cb.score(run, resamples=200, workers=1)
    assert "--workers 1, or 0" in error.value.hint


def test_progress_counts_observers_to_the_end(run):
    events: list[Event] = []
    cb.score(run, resamples=200, workers=0, on_event=events.append)
    scored = [e for e in events if e.kind == "scored"]
    assert [(e.done, e.total) for e in scored] == [(1, 3), (2, 3), (3, 3)]
    assert "model002" in scored[-1].message


def test_who_cannot_be_read_does_not_restrict_the_others(run):
    """``common``: stimuli that all observers saw, of those whose answers there are."""
    cb.score(run, resamples=200)
    alone = [r for r in cb.load(run).rows if r.observer == "model000"]
    record = RunRecord.read(run)
    first, second, _ = record.jobs
    shown = read_manifest(run / "stimuli" / first.stimuli)
    fewer = shown.only(shown.stimuli[:100])
    name = f"cue_conflict-{fewer.fingerprint[:12]}.parquet"
    write_manifest(fewer, run / "stimuli" / name)
    record.jobs = [first, replace(second, stimuli=name)]  # no file of answers is cut like that
    record.write(run)
    rows = cb.score(run, resamples=200, common=True)
    assert [repr(r) for r in rows if r.observer == "model000"] == [repr(r) for r in alone]
    assert "no stored answers" in next(r.note for r in rows if r.observer == "model001")


def test_only_the_stimuli_that_all_saw_are_scored(run):
    record = RunRecord.read(run)
    first, second, _ = record.jobs
    shown = read_manifest(run / "stimuli" / first.stimuli)
    fewer = shown.only(shown.stimuli[:256])  # one whole file of answers
    name = f"cue_conflict-{fewer.fingerprint[:12]}.parquet"
    write_manifest(fewer, run / "stimuli" / name)
    record.jobs = [first, replace(second, stimuli=name)]
    record.write(run)
    for workers in (0, 2):
        rows = cb.score(run, resamples=200, common=True, workers=workers)
        n = {r.observer: r.n + r.n_excluded for r in rows if r.metric == "decided_fraction"}
        assert n == {"model000": 256, "model001": 256}
        assert any("only the 256 of 300 stimuli that all observers saw" in r.note for r in rows)


def test_workers_are_started_where_they_pay():
    assert choose_workers(None, 49_999, 100) == 0
    assert choose_workers(None, 10**6, 1) == 0
    assert choose_workers(None, 10**6, 1000) >= 1
    assert choose_workers(8, 10, 3) == 3
    with pytest.raises(UserError, match="workers must be 0"):
        choose_workers(-1, 10, 3)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak memory from /proc")
@pytest.mark.slow
def test_memory_does_not_grow_with_the_answers(made_up, tmp_path):
    """Four thousand stimuli more are 32 MB more of logits; what is kept of them is a few numbers each."""
    code = (
        "import sys; from cuebench.runs.score import score; score(sys.argv[1], resamples=100, workers=0)\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    peaks = []
    for stimuli in (1_000, 5_000):
        folder = tmp_path / str(stimuli)
        made_up.write_run(folder, "imagenet_accuracy", 2, stimuli, classes=1000)
        done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout) / 1024)
        shutil.rmtree(folder)
    assert peaks[1] - peaks[0] < 16, f"{peaks} MiB"
