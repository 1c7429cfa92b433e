"""``--fresh`` deletes what a run wrote: only that, only when the new run can begin, and it says what it could not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import cuebench as cb
from cuebench.errors import UserError
from cuebench.runs.forget import forget


def names(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and p.name != ".lock")


@pytest.fixture
def out(data_root: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    cb.evaluate("ideal:shape", "cue_conflict", data_root=data_root, out=folder, resamples=100)
    return folder


@pytest.mark.parametrize("wrong", [{"observers": "ideal:shap"}, {"data_root": "/nowhere"}])
def test_a_mistake_costs_nothing_that_was_measured(data_root: Path, out: Path, wrong: dict) -> None:
    before = {name: (out / name).read_bytes() for name in names(out)}
    call = {"observers": "ideal:shape", "data_root": data_root, **wrong}
    with pytest.raises(UserError):
        cb.evaluate(call["observers"], "cue_conflict", data_root=call["data_root"], out=out, fresh=True)
    assert {name: (out / name).read_bytes() for name in names(out)} == before


def test_a_folder_that_is_no_run_is_refused(data_root: Path) -> None:
    folder = data_root / "cue_conflict"
    before = names(folder)
    with pytest.raises(UserError, match=r"not a run folder.*labels\.json, stimuli"):
        cb.evaluate("ideal:shape", "cue_conflict", data_root=data_root, out=folder, fresh=True)
    assert names(folder) == before


def test_a_folder_that_is_still_empty_is_no_obstacle(data_root: Path, tmp_path: Path) -> None:
    cb.evaluate("ideal:shape", "cue_conflict", data_root=data_root, out=tmp_path / "new", resamples=100, fresh=True)
    assert (tmp_path / "new" / "scores.json").is_file()


def test_only_what_the_run_wrote_is_deleted(data_root: Path, out: Path) -> None:
    other = ["stimuli/cat/cat1.png", "responses/people.csv", "responses/mine--0123456789abcdef/a.txt", "tables/own.csv"]
    other += ["notes.txt", "tables/summary.of.mine.parquet", "stimuli/photos-0123456789ab.parquet"]
    for name in other:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("mine")
    ours = [name for name in names(out) if name not in other]
    assert any(n.startswith("tables/cue_conflict.") for n in ours)
    forget(out)
    assert names(out) == sorted([*other, "run.json"])  # until the new record replaces it
    cb.evaluate("ideal:shape", "cue_conflict", data_root=data_root, out=out, resamples=100)
    assert names(out) == sorted(other + ours)


def test_everybody_is_asked_again(data_root: Path, out: Path) -> None:
    calls: list[int] = []

    def model(pixels: object) -> object:
        import numpy as np

        calls.append(len(pixels))  # type: ignore[arg-type]
        return np.eye(4, dtype=np.float32)[[0] * calls[-1]]

    plain = cb.Preprocess(size=32)
    observer = cb.wrap(model, preprocess=plain, labels=("cat", "dog", "car", "clock"), name="m", fingerprint="1")
    for fresh, asked in ((False, 35), (False, 6), (True, 35)):
        calls.clear()
        cb.evaluate(observer, "cue_conflict", data_root=data_root, out=out, resamples=100, fresh=fresh)
        assert sum(calls) == asked  # one is the probe, two are asked twice; stored answers: six are asked again
    assert not list(out.glob("responses/ideal*"))


def test_what_cannot_be_deleted_is_named(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = next(out.glob("responses/*/[0-9a-f]*.parquet"))
    original = os.unlink

    def unlink(path: Path, *args: object, **kwargs: object) -> None:
        if Path(path) == stuck:
            raise PermissionError(13, "Permission denied")
        original(path, *args, **kwargs)

    monkeypatch.setattr(os, "unlink", unlink)
    with pytest.raises(UserError, match="not everything in") as caught:
        forget(out)
    assert str(stuck) in caught.value.message
    assert stuck.is_file()


def test_answers_that_were_set_aside_are_deleted(out: Path) -> None:
    answers = next((out / "responses").iterdir())
    answers.rename(answers.with_name(f"{answers.name}.stale-1"))
    forget(out)
    assert not (out / "responses").exists()


def test_answers_of_other_runs_in_the_same_place_stay(data_root: Path, tmp_path: Path) -> None:
    answers = tmp_path / "answers"

    def run(observer: str, **options: object) -> cb.Scores:
        out = tmp_path / observer.replace(":", "-")
        return cb.evaluate(
            observer, "cue_conflict", data_root=data_root, out=out, responses=answers, resamples=100, **options
        )

    first, second = run("ideal:shape"), run("ideal:texture")
    (folder,) = {job.folder for job in first.record.jobs}
    (answers / f"{folder}.stale-1").mkdir()
    (answers / f"{folder}.stale-1" / "key.json").write_text("{}")
    kept = {job.folder for job in second.record.jobs}
    run("ideal:shape", fresh=True)
    assert {path.name for path in answers.iterdir()} == {folder, *kept}
    assert cb.score(second.out).rows == second.rows
