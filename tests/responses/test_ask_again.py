"""Asking again: another answer sets what is stored aside, the same one does not, an unsteady one is noted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from counting import Counting, answers, job

import cuebench
from cuebench.observers.base import Answers, Batch
from cuebench.responses.again import FIRST, HALF_TOLERANCE, STIMULI, TOLERANCE, compare
from cuebench.responses.collect import collect
from cuebench.responses.events import Event
from cuebench.responses.job import Job, Progress
from cuebench.responses.part import Part
from cuebench.responses.pictures import DecodePool
from cuebench.stimuli.readers.cue_conflict import read
from cuebench.types import StimulusSet


@pytest.fixture
def stimuli(data_root: Path) -> StimulusSet:
    return read(data_root / "cue_conflict" / "stimuli")


def run(jobs: list[Job], seed: int = 0) -> tuple[Progress, list[Event]]:
    events: list[Event] = []
    with DecodePool(0) as pool:
        progress = collect(jobs, pool, shard_size=8, on_event=events.append, seed=seed)
    return progress, events


@dataclass(eq=False)
class Noisy(Counting):
    """Answers with the mean colours and noise."""

    noise: float = 0.0
    seed: int = 0

    def respond(self, batch: Batch, needs: Sequence[str]) -> Answers:
        logits = super().respond(batch, needs)["logits"]
        rng = np.random.default_rng([self.seed, len(self.seen)])
        return {"logits": logits + (self.noise * rng.normal(size=logits.shape)).astype(np.float32)}


@dataclass(eq=False)
class Sociable(Counting):
    """Answers depend on how many are asked together, and on nothing else."""

    def respond(self, batch: Batch, needs: Sequence[str]) -> Answers:
        return {"logits": super().respond(batch, needs)["logits"] * (1 + 0.1 * (len(batch) < 8))}


def stale(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.glob("*.stale-*"))


def test_another_answer_sets_everything_aside(stimuli: StimulusSet, tmp_path: Path) -> None:
    first = job(Counting(), stimuli, tmp_path)
    run([first])
    old = answers(first)
    changed = job(Counting(value=1.01), stimuli, tmp_path)  # the same fingerprint, as after a change that no hash sees
    progress, events = run([changed])
    np.testing.assert_allclose(answers(changed), old * 1.01, rtol=1e-6)
    name = f"{changed.shards.folder.name}.stale-1"
    assert stale(tmp_path) == [name]
    assert len(list((tmp_path / name).glob("*.parquet"))) == 4
    assert changed.record.asked_again["set_aside"] == name
    assert changed.record.asked_again["stimuli"] == FIRST + STIMULI
    assert 0 < changed.record.asked_again["largest_difference"] < 0.02
    (notice,) = progress.notices
    assert name in notice
    assert "does not answer as it did: 6 of 6 answers differ, by up to" in notice
    assert [e.message for e in events if e.kind == "notice"] == [notice]
    assert progress.done == progress.total == 32
    run([job(Counting(value=1.5), stimuli, tmp_path)])
    assert stale(tmp_path) == [name, name.replace("stale-1", "stale-2")]


def test_a_part_that_is_stored_is_asked_again_too(stimuli: StimulusSet, tmp_path: Path) -> None:
    first = job(Counting(), stimuli, tmp_path)
    run([first])
    for start in (0, 16, 24):
        first.shards.path(stimuli.stimuli[start : start + 8]).unlink()
    changed = job(Counting(value=2), stimuli, tmp_path)
    run([changed])
    assert len(stale(tmp_path)) == 1
    assert len(answers(changed)) == 32


def test_the_same_answer_within_the_tolerance_keeps_what_is_stored(stimuli: StimulusSet, tmp_path: Path) -> None:
    run([job(Counting(), stimuli, tmp_path)])
    again = job(Counting(value=1 + TOLERANCE / 10), stimuli, tmp_path)
    progress, _ = run([again])
    assert not stale(tmp_path)
    assert not progress.notices
    assert again.record.notes == ()
    assert 0 < again.record.asked_again["largest_difference"] < TOLERANCE


def test_an_observer_that_is_not_deterministic_is_noted_and_kept(stimuli: StimulusSet, tmp_path: Path) -> None:
    first = job(Noisy(noise=5, seed=1), stimuli, tmp_path)
    progress, _ = run([first])
    assert "not deterministic" in first.record.notes[-1]
    assert "2 of 2 answers differ, by up to" in first.record.notes[-1]
    assert progress.notices
    stored = answers(first)
    again = job(Noisy(noise=5, seed=2), stimuli, tmp_path)
    run([again])
    assert not stale(tmp_path)
    assert "not deterministic" in again.record.notes[-1]
    np.testing.assert_array_equal(answers(again), stored)


def test_one_that_is_not_deterministic_and_changes_is_set_aside(stimuli: StimulusSet, tmp_path: Path) -> None:
    run([job(Noisy(noise=0.5, seed=1), stimuli, tmp_path)])
    run([job(Noisy(noise=0.5, seed=2, value=-1), stimuli, tmp_path)])
    assert len(stale(tmp_path)) == 1


def test_dependence_on_company_is_noted_alike_in_every_run(stimuli: StimulusSet, tmp_path: Path) -> None:
    first = job(Sociable(), stimuli, tmp_path)
    run([first])
    again = job(Sociable(), stimuli, tmp_path)
    run([again])
    assert not stale(tmp_path)
    assert "shown together" in first.record.notes[-1]
    assert again.record.notes == first.record.notes  # or a killed run would end in other bytes


def test_a_folder_that_several_sets_share_is_set_aside_once(stimuli: StimulusSet, tmp_path: Path) -> None:
    def both(value: float) -> list[Job]:
        halves = [replace(stimuli, stimuli=part) for part in (stimuli.stimuli[:16], stimuli.stimuli[16:])]
        return [job(Counting(value=value), half, tmp_path) for half in halves]

    run(both(1))
    changed = both(2)
    progress, _ = run(changed)
    assert len(stale(tmp_path)) == len(progress.notices) == 1
    assert [len(answers(j)) for j in changed] == [16, 16]


def test_an_observer_that_cannot_answer_any_more_fails_and_keeps_its_answers(
    stimuli: StimulusSet, tmp_path: Path
) -> None:
    first = job(Counting(), stimuli, tmp_path)
    run([first])
    progress, _ = run([job(Counting(explode=ZeroDivisionError("gone")), stimuli, tmp_path)])
    assert progress.failures[0].reason == "ZeroDivisionError: gone"
    assert len(answers(first)) == 32


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_model_that_ends_python_is_a_failure(stimuli: StimulusSet, tmp_path: Path, after: int) -> None:
    ending: Any = SystemExit(0)
    good = job(Counting("good"), stimuli, tmp_path)
    progress, _ = run([job(Counting("bad", explode=ending, after=after), stimuli, tmp_path), good])
    assert [(f.observer, f.reason) for f in progress.failures] == [("bad", "SystemExit: 0")]
    assert len(answers(good)) == 32


def columns(**values: Any) -> dict[str, Any]:
    arrays = {name: np.asarray(value) for name, value in values.items()}
    return {"stimulus": np.arange(len(next(iter(arrays.values())))), **arrays}


@pytest.mark.parametrize(
    ("name", "stored", "again", "differing"),
    [
        ("logits", [[0.0, 10.0]], [[0.009, 10.0]], 0),
        ("logits", [[0.0, 10.0]], [[0.02, 10.0]], 1),
        ("logits", [[1e4, 1e4 + 0.1]], [[1e4 + 0.005, 1e4 + 0.1]], 0),  # what float32 keeps of such numbers
        ("logits", [[-np.inf, 1.0, 2.0]], [[-np.inf, 1.0, 2.0]], 0),
        ("logits", [[-np.inf, 1.0, 2.0]], [[0.0, 1.0, 2.0]], 1),
        ("logits", [[0.0, 0.0]], [[1e-9, 0.0]], 1),
        # classes that may not be answered: their constant is no measure of the others
        ("logits", [[-1e9, 1.0, 2.0]], [[-1e9, 2.0, 1.0]], 1),
        ("logits", [[-1e3, 1.0, 2.0]], [[-1e3, 1.01, 2.0]], 1),
        ("logits", [[-3.4e38, 1.0, 2.0]], [[-3.4e38, 1.01, 2.0]], 1),
        ("logits", [[-1e4, 0.0, 10.0]], [[-1e4, 0.009, 10.0]], 0),
        ("logits", [[-1e9, 0.0, 10.0]], [[-1e9 - 64, 0.0, 10.0]], 0),
        ("logits", [[-1e9, 0.0, 10.0]], [[0.0, 0.0, 10.0]], 1),
        ("logits", [[*[-1e9] * 20, 0.0, 1.0, 2.0]], [[*[-1e9] * 20, 0.01, 1.0, 2.0]], 1),
        # … also where most classes share it, whatever it is
        ("logits", [[*[-50.0] * 20, 0.0, 0.3, 0.5]], [[*[-50.0] * 20, 0.02, 0.3, 0.5]], 1),
        ("logits", [[*[-50.0] * 20, 0.0, 0.3, 0.5]], [[*[-50.0] * 20, 0.0002, 0.3, 0.5]], 0),
        ("logits", [[*[-10.0] * 20, 0.1, 0.2]], [[*[-10.0] * 20, 0.105, 0.2]], 1),
        ("logits", [[*[-46.05] * 900, -0.69, -0.7, -3.0]], [[*[-46.05] * 900, -0.695, -0.69, -3.0]], 1),
        ("logits", [[*[0.0] * 20, 1.0, 10.0]], [[*[0.0] * 20, 1.009, 10.0]], 0),
        ("logits", [[*[-50.0] * 20, 3.0]], [[*[-50.0] * 20, 3.01]], 0),
        ("logits", [[2.0] * 20], [[2.0] * 20], 0),
        # one that is far above says nothing of the others
        ("logits", [[0.0, 1.0, 2.0, 3.0, 5e3]], [[0.5, 1.0, 2.0, 3.0, 5e3]], 1),
        ("logits", [[0.0, 1.0, 2.0, 3.0, 5e3]], [[0.0005, 1.0, 2.0, 3.0, 5e3 + 1]], 0),
        ("logits", [[-1e9, 0.0, 1.0, 50.0]], [[-1e9, 1.0, 0.0, 50.0]], 1),
        # probabilities are scored by their logarithms
        ("logits", [[0.999, 0.0008, 0.0002]], [[0.999, 0.0002, 0.0008]], 1),
        ("logits", [[1.0, 1e-20, 1e-22]], [[1.0, 1e-22, 1e-20]], 1),
        ("logits", [[1.0, 1e-40, 0.0]], [[1.0, 0.0, 1e-40]], 0),
        ("logits", [[0.5, 0.3, 0.2]], [[0.50001, 0.29999, 0.2]], 0),
        ("features", [[1e4, *range(200)]], [[1e4, *range(1, 201)]], 1),
        ("features", [[1e4, *np.linspace(0, 1, 200)]], [[1e4, *np.linspace(0, 1.1, 200)]], 1),
        ("features", [[1e4, *np.linspace(0, 1, 200)]], [[1e4 + 1, *np.linspace(0, 1.0001, 200)]], 0),
        (
            "features",
            [[1e4, *[0.0] * 150, *np.linspace(0.1, 1, 49)]],
            [[1e4, *[0.0] * 150, *np.linspace(0.1, 1.1, 49)]],
            1,
        ),
        ("features", [[1e4, *[0.0] * 150, *np.linspace(0.1, 1, 49)]], [[1e4, *[0.0] * 199]], 1),
        ("features", [[1e4, 9e3, -8e3, *np.linspace(0, 1, 97)]], [[1e4, 9e3, -8e3, *np.linspace(0, 1.1, 97)]], 1),
        ("features", [[0.0, 0.0, 0.0, 5.0]], [[0.0, 0.0, 0.0, 5.004]], 0),
        ("features", [[1e4, np.nan]], [[1e4, np.nan]], 0),
        ("features", [[1.0, 2.0], [3.0, 5.0]], [[1.0, 2.0], [3.0, 4.0]], 1),
        ("decisions", ["cat", "dog"], ["cat", "car"], 1),
        ("answer", [3, 4], [3, 5], 1),
        ("rt", [0.5, np.nan], [0.5, np.nan], 0),
        ("counts", [[5000, 5000]], [[4999, 5001]], 0),
        ("counts", [[5000, 5000]], [[4000, 6000]], 1),
        ("masks", [[[1, 2], [3, 4]]], [[[1, 2], [3, 5]]], 1),
    ],
)
def test_what_is_another_answer(name: str, stored: Any, again: Any, differing: int) -> None:
    assert compare(columns(**{name: stored}), columns(**{name: again})).differing == differing


def test_another_number_of_answers_or_other_columns_differ() -> None:
    one, two = columns(decisions=["cat"]), columns(decisions=["cat", "dog"])
    assert compare(one, two).differing == 2
    assert compare(one, {**one, "rt": np.array([1.0])}).differing == 1


def test_probabilities_of_half_precision_are_coarse() -> None:
    stored, again = columns(logits=[[1.0, 6e-8, 6e-6]]), columns(logits=[[1.0, 1.2e-7, 3e-6]])
    assert compare(stored, again, HALF_TOLERANCE).differing == 0
    assert compare(stored, again, TOLERANCE).differing == 1


def test_processes_that_share_a_run_must_hold_the_same_observer(stimuli: StimulusSet, tmp_path: Path) -> None:
    def share(observer: Counting, i: int) -> Progress:
        with DecodePool(0) as pool:
            return collect(
                [job(observer, stimuli, tmp_path)], pool, shard_size=8, on_event=lambda _: None, part=Part(i, 2)
            )

    assert not share(Counting(), 1).failures
    (failure,) = share(Counting(value=2), 2).failures
    assert "does not answer as it did" in failure.reason
    same = share(Counting(), 2)
    assert not same.failures
    assert len(answers(job(Counting(), stimuli, tmp_path))) == 32


# ------------------------------------------------------------------------------------------ whole runs


def evaluated(data_root: Path, out: Path, function: Any, **options: Any) -> Any:
    plain = cuebench.Preprocess(size=32, mean=(0, 0, 0), std=(1, 1, 1), scale=1)
    observer = cuebench.wrap(function, preprocess=plain, labels=CLASSES, name="mine", fingerprint="1")
    return cuebench.evaluate(
        observer, "cue_conflict", data_root=data_root, out=out, workers=0, shard_size=8, resamples=100, **options
    )


CLASSES = ("cat", "dog", "car", "clock")


def by_red(pixels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return -np.abs(pixels[:, 0].mean(axis=(1, 2))[:, None] - 40 * np.arange(4)[None]).astype(np.float32)


def by_green(pixels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return by_red(pixels[:, 1:])


def test_a_run_with_a_changed_model_has_the_scores_of_the_changed_model(data_root: Path, tmp_path: Path) -> None:
    events: list[Event] = []
    old = evaluated(data_root, tmp_path / "run", by_red)
    new = evaluated(data_root, tmp_path / "run", by_green, on_event=events.append)
    fresh = evaluated(data_root, tmp_path / "fresh", by_green)
    values = [[(r.metric, r.condition, r.value) for r in scores.rows] for scores in (old, new, fresh)]
    assert repr(values[0]) != repr(values[1]) == repr(values[2])
    assert "set_aside" in new.record.jobs[0].asked_again
    assert any("does not answer as it did" in e.message for e in events if e.kind == "notice")


def test_a_model_that_is_not_deterministic_is_noted_in_its_rows(data_root: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    scores = evaluated(data_root, tmp_path / "run", lambda x: rng.normal(size=(len(x), 4)))
    assert all("not deterministic" in row.note for row in scores.rows if row.value is not None)


def test_recorded_and_ideal_observers_are_asked_again_too(data_root: Path, tmp_path: Path) -> None:
    for _ in range(2):
        scores = cuebench.evaluate(
            "ideal:mixture?shape=0.4", "cue_conflict", data_root=data_root, out=tmp_path / "run", resamples=100
        )
    assert scores.record.jobs[0].asked_again == {"stimuli": FIRST + STIMULI, "differing": 0, "largest_difference": 0.0}
    assert not list((tmp_path / "run" / "responses").glob("*.stale-*"))
