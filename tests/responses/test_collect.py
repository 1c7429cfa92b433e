"""The engine with observers that count, fail, run out of memory, or answer nonsense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from counting import Counting, answers, job

from cuebench.errors import UserError
from cuebench.observers.base import Answers, Batch
from cuebench.observers.preprocess import Geometry, Preprocess
from cuebench.responses.collect import collect
from cuebench.responses.events import Event
from cuebench.responses.job import Job, Progress, out_of_memory
from cuebench.responses.pictures import DecodePool
from cuebench.stimuli.readers.cue_conflict import read
from cuebench.types import StimulusSet


@pytest.fixture
def stimuli(data_root: Path) -> StimulusSet:
    return read(data_root / "cue_conflict" / "stimuli")


def run(jobs: list[Job], *, workers: int = 0, shard_size: int = 8, **options: Any) -> tuple[Progress, int, list[Event]]:
    events: list[Event] = []
    with DecodePool(workers) as pool:
        progress = collect(jobs, pool, shard_size=shard_size, on_event=events.append, **options)
    return progress, pool.decoded, events


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


AGAIN = [6]
"""Stored answers that are asked for again, all at once: the first two, and two of each of two shards."""


def test_what_is_stored_is_not_asked_again(stimuli: StimulusSet, tmp_path: Path) -> None:
    run([job(Counting(), stimuli, tmp_path)])
    again = Counting()
    progress, decoded, _ = run([job(again, stimuli, tmp_path)])
    assert (again.seen, decoded, progress.done) == (AGAIN, 0, 32)


def test_a_missing_shard_alone_is_made_again(stimuli: StimulusSet, tmp_path: Path) -> None:
    first = job(Counting(), stimuli, tmp_path)
    run([first])
    first.shards.path(stimuli.stimuli[8:16]).unlink()
    again = Counting()
    run([job(again, stimuli, tmp_path)])
    assert again.seen == [*AGAIN, 1, 8]  # then the probe and one batch


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
    ((key, reason),) = progress.unreadable.items()
    assert key == f"{one.stimuli.fingerprint[:12]}/cat1-dog2"
    assert "cat1-dog2.png" in reason
    assert [e.fields["stimulus"] for e in events if e.kind == "excluded"] == ["cat1-dog2"]
    assert len(answers(one)) == 31


def test_more_than_one_percent_unreadable_stops_the_run(data_root: Path, tmp_path: Path) -> None:
    folder = data_root / "cue_conflict" / "stimuli"
    truncated = folder / "cat" / "cat1-dog2.png"
    truncated.write_bytes(truncated.read_bytes()[:60])
    with pytest.raises(UserError, match=r"cat1-dog2\.png") as caught:
        run([job(Counting(), read(folder), tmp_path)])
    assert "--allow-unreadable" in caught.value.hint


def broken_files(data_root: Path, number: int) -> StimulusSet:
    folder = data_root / "cue_conflict" / "stimuli"
    for path in sorted(folder.rglob("*.png"))[::4][:number]:
        path.write_bytes(b"\x89PNG\r\n\x1a\nnot really")
    return read(folder)


def test_running_again_does_not_walk_around_the_limit(data_root: Path, tmp_path: Path) -> None:
    stimuli = broken_files(data_root, 4)  # of 32: an eighth
    for _ in range(4):  # each call would store what it had before it stopped, and begin to count at zero
        with pytest.raises(UserError, match="too many unreadable"):
            run([job(Counting(), stimuli, tmp_path)], allow_unreadable=0.1, shard_size=4)
    progress, *_ = run([job(Counting(), stimuli, tmp_path)], allow_unreadable=0.125, shard_size=4)
    assert len(progress.unreadable) == 4
    again, decoded, _ = run([job(Counting(), stimuli, tmp_path)], allow_unreadable=0.125, shard_size=4)
    assert (again.unreadable, decoded) == (progress.unreadable, 0)
    with pytest.raises(UserError, match="too many unreadable"):
        run([job(Counting(), stimuli, tmp_path)], allow_unreadable=0.1, shard_size=4)


def test_the_limit_is_of_each_stimulus_set(data_root: Path, tmp_path: Path) -> None:
    stimuli = broken_files(data_root, 4)  # every fourth of the first sixteen
    sets = [replace(stimuli, stimuli=stimuli.stimuli[:8]), replace(stimuli, stimuli=stimuli.stimuli[8:16])]
    jobs = [job(Counting(name), own, tmp_path) for name, own in zip("ab", sets)]
    progress, *_ = run(jobs, allow_unreadable=0.25)  # two of eight in each; four would be too many for either
    assert len(progress.unreadable) == 4


def test_a_file_that_is_missing_for_a_moment_is_never_stored(data_root: Path, tmp_path: Path) -> None:
    folder = data_root / "cue_conflict" / "stimuli"
    stimuli = read(folder)
    away = folder / stimuli.stimuli[20].path
    data = away.read_bytes()
    away.unlink()
    with pytest.raises(UserError, match=f"{away.name}: the file is missing") as caught:
        run([job(Counting(), stimuli, tmp_path)], allow_unreadable=1)
    assert "same command" in caught.value.hint
    away.write_bytes(data)
    one = job(Counting(), stimuli, tmp_path)
    progress, decoded, _ = run([one], allow_unreadable=1)
    assert (progress.unreadable, len(answers(one))) == ({}, 32)
    assert decoded in (16, 24, 32), "its shard and those after it, and earlier ones that were under way when it failed"


def test_a_hiccup_of_the_disk_is_tried_again(
    stimuli: StimulusSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cuebench.responses import pictures
    from cuebench.stimuli.render import Unreadable

    failed: list[str] = []

    def hiccup(root: str, stimulus: Any) -> Any:
        if stimulus.id == stimuli.stimuli[5].id and not failed:
            failed.append(stimulus.id)
            error = Unreadable("too many open files")
            error.transient = True
            raise error
        return original(root, stimulus)

    original = pictures.decode
    monkeypatch.setattr(pictures, "decode", hiccup)
    one = job(Counting(), stimuli, tmp_path)
    progress, *_ = run([one])
    assert (len(failed), progress.unreadable, len(answers(one))) == (1, {}, 32)


def test_a_geometry_that_cannot_be_made_fails_its_observer_alone(stimuli: StimulusSet, tmp_path: Path) -> None:
    good, bad = job(Counting("good"), stimuli, tmp_path), job(Counting("bad"), stimuli, tmp_path)
    wrong = Preprocess(size=16)
    object.__setattr__(wrong, "resize", -3)  # past the check that users meet
    bad = replace(bad, preprocess=wrong)
    progress, *_ = run([bad, good], workers=1)
    (failure,) = progress.failures
    assert failure.observer == "bad"
    assert "height and width must be > 0" in failure.reason
    assert len(answers(good)) == 32


def test_a_geometry_that_fails_later_fails_its_observer_alone(data_root: Path, tmp_path: Path) -> None:
    from PIL import Image

    folder = data_root / "cue_conflict" / "stimuli"
    stimuli = read(folder)
    Image.new("RGB", (40, 40)).save(folder / stimuli.stimuli[20].path)
    stimuli = read(folder)
    good, exact = job(Counting("good"), stimuli, tmp_path), job(Counting("exact"), stimuli, tmp_path)
    exact = replace(exact, preprocess=_AsItIs(size=32))
    progress, *_ = run([exact, good])
    assert [f.observer for f in progress.failures] == ["exact"]
    assert stimuli.stimuli[20].id in progress.failures[0].reason
    assert len(answers(good)) == 32
    assert progress.done == progress.total


class _AsItIs(Preprocess):
    """Takes images of exactly its size."""

    @property
    def geometry(self) -> Geometry:
        return Geometry((32, 32), resize=None, crop=False)


def test_a_damaged_shard_is_made_again(stimuli: StimulusSet, tmp_path: Path) -> None:
    first = job(Counting(), stimuli, tmp_path)
    run([first])
    path = first.shards.path(stimuli.stimuli[8:16])
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    again = Counting()
    run([job(again, stimuli, tmp_path)])
    assert again.seen == [*AGAIN, 1, 8]
    assert path.read_bytes() == whole


def test_the_first_picture_that_can_be_shown_is_the_probe(data_root: Path, tmp_path: Path) -> None:
    folder = data_root / "cue_conflict" / "stimuli"
    first = folder / read(folder).stimuli[0].path
    first.write_bytes(b"\x89PNG\r\n\x1a\nnot really")
    shown: list[Any] = []

    class Looking(Counting):
        def respond(self, batch: Batch, needs: Sequence[str]) -> Answers:
            shown.append((batch.stimuli[0].id, batch.images))
            return super().respond(batch, needs)

    stimuli = read(folder)
    run([job(Looking(), stimuli, tmp_path)], allow_unreadable=0.1)
    name, image = shown[0]
    assert name == stimuli.stimuli[1].id
    assert image[0, 0, 0].tolist() == shown[1][1][0, 0, 0].tolist()


def test_nobody_can_write_into_the_pictures_of_the_others(stimuli: StimulusSet, tmp_path: Path) -> None:
    class Writing(Counting):
        def respond(self, batch: Batch, needs: Sequence[str]) -> Answers:
            answer = super().respond(batch, needs)
            if len(batch) > 1:
                batch.images[:] = 0
            return answer

    good = job(Counting("good"), stimuli, tmp_path)
    progress, *_ = run([job(Writing("writing"), stimuli, tmp_path), good])
    assert "read-only" in progress.failures[0].reason
    assert answers(good).max() > 100


@pytest.mark.parametrize(
    ("logits", "fits"),
    [
        ([1, -np.inf, 0], True),
        ([-np.inf, -np.inf, -np.inf], False),
        ([1, np.inf, 0], False),
        ([1, np.nan, -np.inf], False),
    ],
)
def test_a_class_may_be_masked_out(stimuli: StimulusSet, tmp_path: Path, logits: list[float], fits: bool) -> None:
    class Masked(Counting):
        def respond(self, batch: Batch, needs: Sequence[str]) -> Answers:
            return {"logits": np.tile(np.array(logits, np.float32), (len(batch), 1))}

    progress, *_ = run([job(Masked(), stimuli, tmp_path)])
    assert bool(progress.failures) != fits


class OnnxError(Exception):
    """As onnxruntime raises them: no RuntimeError."""

    __module__ = "onnxruntime.capi.onnxruntime_pybind11_state"


@pytest.mark.parametrize(
    ("error", "yes"),
    [
        (MemoryError(), True),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), True),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 18014398509481984 bytes"),
            True,
        ),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (OnnxError("Failed to allocate memory for requested buffer of size 4294967296"), True),
        (OnnxError("Got invalid dimensions for input"), False),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("cannot allocate memory for it"), False),
    ],
)
def test_what_is_out_of_memory(error: Exception, yes: bool) -> None:
    assert out_of_memory(error) == yes


def test_a_summary_is_not_shown_the_truth(stimuli: StimulusSet, tmp_path: Path) -> None:
    """Its shard is named by the pixels: what it could read of the truth would outlive a corrected label."""
    seen: list[Any] = []

    def summary(columns: Any, shown: Any) -> dict[str, Any]:
        seen.extend(shown)
        return {"kept": columns["logits"].argmax(axis=1)}

    run([replace(job(Counting(), stimuli, tmp_path), reduce=summary)])
    assert {(s.label, s.shape, s.texture, s.shape_source, s.condition) for s in seen} == {("", "", "", "", "")}
    # The probe comes first; the first two are asked twice. Threads summarise later shards in any order.
    assert sorted(s.sha256 for s in [*seen[1:9], *seen[11:]]) == sorted(s.sha256 for s in stimuli)


def test_workers_and_shard_sizes_change_no_answer(stimuli: StimulusSet, tmp_path: Path) -> None:
    one, two = job(Counting("one"), stimuli, tmp_path), job(Counting("two"), stimuli, tmp_path)
    run([one], workers=0, shard_size=5)
    run([two], workers=2, shard_size=32)
    np.testing.assert_array_equal(answers(one, 5), answers(two, 32))


def test_a_dead_worker_loses_nothing(stimuli: StimulusSet, tmp_path: Path) -> None:
    one = job(Counting(), stimuli, tmp_path)
    with DecodePool(2) as pool:
        pool._workers[0]._process.kill()
        pool._workers[0]._process.wait()
        collect([one], pool, shard_size=8, on_event=lambda e: None)
    assert len(answers(one)) == 32


def test_many_pictures_of_one_file_are_one_decode(stimuli: StimulusSet, tmp_path: Path) -> None:
    made = tuple(
        replace(s, id=f"{s.id}/{level}", recipe=f"contrast?level={level}&keep_colour=true", seed=level)
        for s in stimuli.stimuli[:4]
        for level in (1, 0.5, 0.1)
    )
    one = job(Counting(), replace(stimuli, stimuli=made), tmp_path)
    _, decoded, _ = run([one], shard_size=2)
    assert decoded == 4
    spread = np.ptp(answers(one, 2).reshape(4, 3, 3), axis=2).astype(float)
    assert (spread[:, 0] >= spread[:, 1]).all()
    assert (spread[:, 1] >= spread[:, 2]).all()
