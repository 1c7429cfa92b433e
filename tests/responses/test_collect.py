"""The engine with observers that count, fail, run out of memory, or answer nonsense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuebench.errors import UserError
from cuebench.labels import LabelSpace
from cuebench.observers.base import Answers, Batch
from cuebench.observers.preprocess import Preprocess
from cuebench.responses.collect import Job, Progress, collect
from cuebench.responses.events import Event
from cuebench.responses.store import Key, ShardFolder, batches
from cuebench.responses.workers import DecodePool
from cuebench.stimuli.readers.cue_conflict import read
from cuebench.types import StimulusSet

RGB = LabelSpace("rgb", ("r", "g", "b"))


@dataclass(eq=False)
class Counting:
    """Answers with the mean colour of what it was shown, and counts."""

    name: str = "counting"
    size: int = 32
    most: int = 10_000
    explode: Exception | None = None
    after: int = 0
    value: float = 1.0
    kind: str = "model"
    fingerprint: str = "f"
    labels: Any = RGB
    capabilities: frozenset[str] = frozenset({"logits"})
    seen: list[int] = field(default_factory=list)

    @property
    def preprocess(self) -> Preprocess:
        return Preprocess(size=self.size)

    def respond(self, batch: Batch, needs: Sequence[str]) -> Answers:
        assert batch.images is not None
        if len(batch) > self.most:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
        self.seen.append(len(batch))
        if self.explode is not None and len(self.seen) > self.after:
            raise self.explode
        return {"logits": batch.images.mean(axis=(1, 2)).astype(np.float32) * self.value}


@pytest.fixture
def stimuli(data_root: Path) -> StimulusSet:
    return read(data_root / "cue_conflict" / "stimuli")


def job(observer: Counting, stimuli: StimulusSet, out: Path) -> Job:
    preprocess = observer.preprocess.whole_image()
    key = Key(observer.fingerprint, preprocess.describe(), "", "test/1", "float32", ("logits",))
    shards = ShardFolder(out, observer.name, key)
    return Job("p", observer, stimuli, ("logits",), shards, preprocess)  # type: ignore[arg-type]


def run(jobs: list[Job], *, workers: int = 0, batch_size: int = 8, **options: Any) -> tuple[Progress, int, list[Event]]:
    events: list[Event] = []
    with DecodePool(workers) as pool:
        progress = collect(jobs, pool, batch_size=batch_size, on_event=events.append, **options)
    return progress, pool.decoded, events


def answers(one: Job, batch_size: int = 8) -> np.ndarray[Any, Any]:
    return np.concatenate([one.shards.read(b)[0]["logits"] for _, b in batches(one.stimuli.stimuli, batch_size)])


def test_one_decode_serves_all_models_of_any_size(stimuli: StimulusSet, tmp_path: Path) -> None:
    observers = [Counting("a"), Counting("b"), Counting("c", size=48)]
    jobs = [job(o, stimuli, tmp_path) for o in observers]
    progress, decoded, _ = run(jobs)
    assert decoded == len(stimuli) == 32
    assert progress.done == progress.total == 96
    np.testing.assert_array_equal(answers(jobs[0]), answers(jobs[1]))


def test_answers_are_of_the_right_images(stimuli: StimulusSet, tmp_path: Path) -> None:
    one = job(Counting(), stimuli, tmp_path)
    run([one], workers=2)
    classes = ("cat", "dog", "car", "clock")
    expected = [[40 * classes.index(s.shape), 40 * classes.index(s.texture)] for s in stimuli]
    np.testing.assert_allclose(answers(one)[:, :2], expected)


def test_what_is_stored_is_not_asked_again(stimuli: StimulusSet, tmp_path: Path) -> None:
    run([job(Counting(), stimuli, tmp_path)])
    again = Counting()
    progress, decoded, _ = run([job(again, stimuli, tmp_path)])
    assert (again.seen, decoded, progress.done) == ([], 0, 32)


def test_a_missing_shard_alone_is_made_again(stimuli: StimulusSet, tmp_path: Path) -> None:
    first = job(Counting(), stimuli, tmp_path)
    run([first])
    first.shards.path(stimuli.stimuli[8:16]).unlink()
    again = Counting()
    run([job(again, stimuli, tmp_path)])
    assert again.seen == [1, 8]  # the probe and one batch


def test_out_of_memory_halves_the_batch_and_changes_no_answer(stimuli: StimulusSet, tmp_path: Path) -> None:
    small = Counting("small", most=3)
    plain, halved = job(Counting("plain"), stimuli, tmp_path), job(small, stimuli, tmp_path)
    progress, *_ = run([plain, halved])
    assert not progress.failures
    assert max(small.seen) == 2
    np.testing.assert_array_equal(answers(plain), answers(halved))


def test_a_model_that_never_fits_fails_alone(stimuli: StimulusSet, tmp_path: Path) -> None:
    good = job(Counting("good"), stimuli, tmp_path)
    progress, *_ = run([job(Counting("bad", most=0), stimuli, tmp_path), good])
    assert [f.observer for f in progress.failures] == ["bad"]
    assert len(answers(good)) == 32


@pytest.mark.parametrize("after", [0, 2])
def test_a_broken_model_is_a_failure_with_its_traceback(stimuli: StimulusSet, tmp_path: Path, after: int) -> None:
    bad = Counting("bad", explode=ZeroDivisionError("boom"), after=after)
    good = job(Counting("good"), stimuli, tmp_path)
    progress, _, events = run([job(bad, stimuli, tmp_path), good])
    (failure,) = progress.failures
    assert failure.reason == "ZeroDivisionError: boom"
    assert "respond" in failure.details["traceback"]
    assert [e.kind for e in events].count("failed") == 1
    assert progress.done == progress.total
    assert len(answers(good)) == 32


def test_nan_answers_are_refused(stimuli: StimulusSet, tmp_path: Path) -> None:
    progress, *_ = run([job(Counting(value=float("nan")), stimuli, tmp_path)])
    assert "NaN or infinite logits" in progress.failures[0].reason


def test_an_unreadable_image_is_excluded_and_counted(data_root: Path, tmp_path: Path) -> None:
    folder = data_root / "cue_conflict" / "stimuli"
    (folder / "cat" / "cat1-dog2.png").write_bytes(b"\x89PNG\r\n\x1a\nnot really")
    one = job(Counting(), read(folder), tmp_path)
    progress, _, events = run([one], allow_unreadable=0.05)
    assert list(progress.unreadable) == ["cat1-dog2"]
    assert "cat1-dog2.png" in progress.unreadable["cat1-dog2"]
    assert [e.fields["stimulus"] for e in events if e.kind == "excluded"] == ["cat1-dog2"]
    assert len(answers(one)) == 31


def test_more_than_one_percent_unreadable_stops_the_run(data_root: Path, tmp_path: Path) -> None:
    folder = data_root / "cue_conflict" / "stimuli"
    truncated = folder / "cat" / "cat1-dog2.png"
    truncated.write_bytes(truncated.read_bytes()[:60])
    with pytest.raises(UserError, match=r"cat1-dog2\.png") as caught:
        run([job(Counting(), read(folder), tmp_path)])
    assert "--allow-unreadable" in caught.value.hint


def test_workers_and_batch_sizes_change_no_answer(stimuli: StimulusSet, tmp_path: Path) -> None:
    one, two = job(Counting("one"), stimuli, tmp_path), job(Counting("two"), stimuli, tmp_path)
    run([one], workers=0, batch_size=5)
    run([two], workers=2, batch_size=32)
    np.testing.assert_array_equal(answers(one, 5), answers(two, 32))


def test_a_dead_worker_loses_nothing(stimuli: StimulusSet, tmp_path: Path) -> None:
    one = job(Counting(), stimuli, tmp_path)
    with DecodePool(2) as pool:
        pool._crew[0]._process.kill()
        pool._crew[0]._process.wait()
        collect([one], pool, batch_size=8, on_event=lambda e: None)
    assert len(answers(one)) == 32


def test_many_pictures_of_one_file_are_one_decode(stimuli: StimulusSet, tmp_path: Path) -> None:
    made = tuple(
        replace(s, id=f"{s.id}/{level}", recipe=f"contrast?level={level}&keep_colour=true", seed=level)
        for s in stimuli.stimuli[:4]
        for level in (1, 0.5, 0.1)
    )
    one = job(Counting(), replace(stimuli, stimuli=made), tmp_path)
    _, decoded, _ = run([one], batch_size=2)
    assert decoded == 4
    spread = np.ptp(answers(one, 2).reshape(4, 3, 3), axis=2).astype(float)
    assert (spread[:, 0] >= spread[:, 1]).all()
    assert (spread[:, 1] >= spread[:, 2]).all()
