"""The stages of the engine: shared memory, kept pixels, batches apart from shards, several devices, threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from counting import Counting, answers, job

from cuebench.errors import UserError
from cuebench.observers.base import Answers, Batch, ObserverBase, SharedImages
from cuebench.observers.preprocess import Geometry
from cuebench.registry import ALLOW_CODE
from cuebench.responses import pictures, pixel_cache
from cuebench.responses.collect import collect
from cuebench.responses.job import Job, Pieces, Progress
from cuebench.responses.kept_pixels import FILES, PICTURES
from cuebench.responses.pictures import BatchPictures, DecodePool
from cuebench.responses.pixel_cache import PixelCache
from cuebench.responses.shared_memory import SharedMemory, bytes_of
from cuebench.stimuli.readers.cue_conflict import read
from cuebench.stimuli.render import decode
from cuebench.types import StimulusSet

PLENTY = 1 << 30


@pytest.fixture
def stimuli(data_root: Path) -> StimulusSet:
    return read(data_root / "cue_conflict" / "stimuli")


def run(jobs: list[Job], workers: int = 0, **options: Any) -> tuple[Progress, int]:
    with DecodePool(workers, tell=options.pop("tell", lambda text: None)) as pool:
        progress = collect(jobs, pool, shard_size=8, on_event=lambda event: None, **options)
    return progress, pool.decoded


# ------------------------------------------------------------------------------------------ shared memory


def test_blocks_are_used_again_and_given_back() -> None:
    memory = SharedMemory()
    first = memory.take(1000)
    bytes_of(first)[:3] = (1, 2, 3)
    second = memory.take(1000)
    assert not np.shares_memory(bytes_of(first), bytes_of(second))
    memory.give_back(first)
    assert memory.take(900) == first
    memory.give_back(first)
    memory.give_back(second)
    memory.empty()
    fresh = memory.take(1000)
    assert fresh != first, "a worker may still have mapped what lay there"
    assert not bytes_of(fresh).any()
    memory.close()


def test_no_memory_is_a_user_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(28, os.strerror(28))

    memory = SharedMemory()
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(UserError, match="no memory for"):
        memory.take(1 << 20)
    memory.close()


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs anonymous files")
def test_a_temporary_file_does_where_there_are_no_anonymous_ones(
    stimuli: StimulusSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = job(Counting("one"), stimuli, tmp_path), job(Counting("two"), stimuli, tmp_path)
    run([one])
    monkeypatch.delattr(os, "memfd_create")
    run([two], workers=2)
    np.testing.assert_array_equal(answers(one), answers(two))


def test_pixels_travel_through_no_pipe(stimuli: StimulusSet) -> None:
    geometry = Geometry((32, 32), (32, 32), crop=False)
    sizes: list[int] = []
    with DecodePool(1) as pool:
        worker = pool._workers[0]
        receive = worker._process.receive

        def measured() -> bytes:
            reply = receive()
            sizes.append(len(reply))
            return reply

        worker._process.receive = measured  # type: ignore[method-assign]
        pictures = BatchPictures.request(pool, stimuli.root, stimuli.stimuli, [geometry])
        assert pictures.of(geometry).shape == (32, 32, 32, 3)
        assert pictures.of(geometry).any()
        pictures.give_back()
    assert max(sizes) < 200 < pictures._count * 32 * 32 * 3


def test_images_cannot_be_changed_by_an_observer(stimuli: StimulusSet, tmp_path: Path) -> None:
    class Painter(Counting):
        def respond(self, batch: Batch, needs: Sequence[str]) -> Answers:
            assert batch.images is not None
            batch.images[:] = 0
            return super().respond(batch, needs)

    progress, _ = run(
        [job(Painter("painter"), stimuli, tmp_path), job(Counting("other"), stimuli, tmp_path)], workers=1
    )
    assert [f.observer for f in progress.failures] == ["painter"]


# ------------------------------------------------------------------------------------------ kept pixels


def test_the_second_model_decodes_nothing(stimuli: StimulusSet, tmp_path: Path) -> None:
    cache = PixelCache(tmp_path / "cache", PLENTY)
    one, two, three = (job(Counting(name), stimuli, tmp_path) for name in ("one", "two", "three"))
    assert run([one], workers=2, cache=cache)[1] == 32
    assert run([two], workers=2, cache=cache)[1] == 0
    assert run([three], workers=0, cache=PixelCache(tmp_path / "cache", PLENTY))[1] == 0
    np.testing.assert_array_equal(answers(one), answers(two))
    np.testing.assert_array_equal(answers(one), answers(three))


@pytest.mark.parametrize("damage", ["a bit", "the end", "the table", "everything"])
def test_damaged_pixels_are_decoded_again(stimuli: StimulusSet, tmp_path: Path, damage: str) -> None:
    run([job(Counting("one"), stimuli, tmp_path)], cache=PixelCache(tmp_path / "cache", PLENTY))
    files = sorted((tmp_path / "cache").glob("*/*.pixels"))
    assert len(files) == 4
    data = bytearray(files[0].read_bytes())
    if damage == "a bit":
        data[1234] ^= 4
    elif damage == "the table":
        data[8 * 32 * 32 * 3 + 5] ^= 4
    files[0].write_bytes({"the end": data[:-20], "everything": b""}.get(damage, bytes(data)))
    two, told = job(Counting("two"), stimuli, tmp_path), []
    _, decoded = run([two], cache=PixelCache(tmp_path / "cache", PLENTY), tell=told.append)
    assert decoded == 8
    assert len(told) == 1, told
    np.testing.assert_array_equal(answers(two), answers(job(Counting("one"), stimuli, tmp_path)))
    assert run([job(Counting("three"), stimuli, tmp_path)], cache=PixelCache(tmp_path / "cache", PLENTY))[1] == 0


def test_another_geometry_or_recipe_is_another_file(stimuli: StimulusSet, tmp_path: Path) -> None:
    cache = PixelCache(tmp_path, PLENTY)
    some, geometry = stimuli.stimuli[:4], Geometry((32, 32))
    paths = {
        cache.path(some, geometry, {}),
        cache.path(some, replace(geometry, interpolation="bicubic"), {}),
        cache.path(some, geometry, {"contrast": "1"}),
        cache.path(some[::-1], geometry, {}),
        cache.path([replace(s, seed=1, recipe="contrast?level=0.5") for s in some], geometry, {}),
    }
    assert len(paths) == 5


def test_a_full_cache_keeps_what_it_has_and_says_so(stimuli: StimulusSet, tmp_path: Path) -> None:
    room = int(2.5 * 8 * 32 * 32 * 3)  # two of four shards
    told: list[str] = []
    one, two = job(Counting("one"), stimuli, tmp_path), job(Counting("two"), stimuli, tmp_path)
    run([one], cache=PixelCache(tmp_path / "cache", room), tell=told.append)
    assert any("is full" in text for text in told)
    assert len(list((tmp_path / "cache").glob("*/*.pixels"))) == 2
    assert run([two], cache=PixelCache(tmp_path / "cache", room))[1] == 16
    np.testing.assert_array_equal(answers(one), answers(two))


def test_what_no_run_uses_any_more_makes_room(stimuli: StimulusSet, tmp_path: Path) -> None:
    room = int(4.5 * 8 * 48 * 48 * 3)
    run([job(Counting("old", size=32), stimuli, tmp_path)], cache=PixelCache(tmp_path / "cache", room))
    run([job(Counting("new", size=48), stimuli, tmp_path)], cache=PixelCache(tmp_path / "cache", room))
    assert sum(f.stat().st_size for f in (tmp_path / "cache").glob("*/*.pixels")) <= room + 4 * 2000
    assert run([job(Counting("newer", size=48), stimuli, tmp_path)], cache=PixelCache(tmp_path / "cache", room))[1] == 0


def test_unreadable_files_are_remembered_by_the_cache(stimuli: StimulusSet, tmp_path: Path) -> None:
    broken = stimuli.stimuli[3]
    path = Path(stimuli.root) / broken.path
    path.write_bytes(path.read_bytes()[:60])
    again = read(Path(stimuli.root))
    one, two = job(Counting("one"), again, tmp_path), job(Counting("two"), again, tmp_path)
    first, _ = run([one], cache=PixelCache(tmp_path / "cache", PLENTY), allow_unreadable=0.1)
    second, decoded = run([two], cache=PixelCache(tmp_path / "cache", PLENTY), allow_unreadable=0.1)
    assert decoded == 0
    assert first.unreadable == second.unreadable != {}
    np.testing.assert_array_equal(answers(one), answers(two))


# ------------------------------------------------------------------------------------------ batches and devices


def test_batches_are_pieces_of_shards(stimuli: StimulusSet, tmp_path: Path) -> None:
    observer = Counting()
    one = job(observer, stimuli, tmp_path)
    run([one], pieces=Pieces(3))
    # The probe; the first shard of 8 and its first two once more; three more shards.
    assert observer.seen == [1, 3, 3, 2, 2, *[3, 3, 2] * 3]
    assert len(answers(one)) == 32


class Elsewhere(Counting, ObserverBase):
    """The same observer on some device."""

    def __init__(self, device: str) -> None:
        super().__init__("several")
        self.device = device


def test_devices_share_the_shards(stimuli: StimulusSet, tmp_path: Path) -> None:
    observers = [Elsewhere(f"device {i}") for i in range(3)]
    several = replace(job(observers[0], stimuli, tmp_path), others=tuple(observers[1:]))
    progress, decoded = run([several], workers=1)
    assert decoded == 32
    assert progress.done == 32
    # Shards 0 and 3 on the first device, with the probe and the first two once more.
    assert [sum(o.seen) for o in observers] == [1 + 8 + 2 + 8, 8, 8]
    alone = job(Counting("alone"), stimuli, tmp_path)
    run([alone])
    np.testing.assert_array_equal(answers(several), answers(alone))


class Later(Counting, ObserverBase):
    """Answers when it is waited for, in another thread, as a GPU does."""

    wrong_from = 10**6

    def submit(self, batch: Batch, needs: Sequence[str]) -> Callable[[], Answers]:
        number = len(self.seen)
        answers = super().respond(batch, needs)

        def wait() -> Answers:
            if number >= self.wrong_from:
                return {"logits": np.full_like(answers["logits"], np.nan)}
            return answers

        return wait


def test_an_observer_that_fails_in_a_thread_is_a_row(stimuli: StimulusSet, tmp_path: Path) -> None:
    late, fine = Later("late"), Counting("fine")
    late.wrong_from = 3
    jobs = [job(late, stimuli, tmp_path), job(fine, stimuli, tmp_path)]
    progress, _ = run(jobs, workers=1)
    assert [(f.observer, "NaN" in f.reason) for f in progress.failures] == [("late", True)]
    assert len(answers(jobs[1])) == 32
    assert progress.done - 32 <= 32
    assert progress.total == progress.done


def test_a_disk_that_fails_in_a_thread_ends_the_run(
    stimuli: StimulusSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cuebench.responses.store import Shards

    write, count, threads = Shards.write, [0], set()

    def failing(self: Shards, *arguments: Any) -> None:
        threads.add(threading.current_thread().name)
        count[0] += 1
        if count[0] == 3:
            raise UserError("cannot write: the disk is full")
        write(self, *arguments)

    monkeypatch.setattr(Shards, "write", failing)
    with pytest.raises(UserError, match="the disk is full"):
        run([job(Counting(), stimuli, tmp_path)], workers=1)
    assert all(name.startswith("cuebench-writer") for name in threads)


def test_shared_images_are_read_only_and_copied_once() -> None:
    torch = pytest.importorskip("torch")
    from cuebench.observers.torch.transfer import on_device

    pixels = np.arange(4 * 2 * 2 * 3, dtype=np.uint8).reshape(4, 2, 2, 3)
    shared = SharedImages(pixels)
    with pytest.raises(ValueError, match="read-only"):
        shared.images[0] = 1
    batch = Batch([], shared.images[1:3], shared, 1)
    tensor = on_device(batch, torch.device("cpu"))
    np.testing.assert_array_equal(tensor.numpy(), pixels[1:3])
    assert on_device(Batch([], shared.images[:1], shared, 0), torch.device("cpu")).data_ptr() == pixels.ctypes.data
    assert list(shared.copies) == ["cpu"]


TINT = """
from pathlib import Path
import numpy as np
from cuebench.cues.base import CueInfo, on_images
CUE = CueInfo(kind="corruption", reference="mine")
@CUE
def tint(image):
    \"\"\"Show what a file says.

    Parameters
    ----------
    image : array
        Picture.

    Returns
    -------
    array
    \"\"\"
    return on_images(lambda p: p * 0 + float((Path(__file__).parent / "k.txt").read_text()), image)
"""


@pytest.fixture
def tinted(stimuli: StimulusSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StimulusSet:
    """Stimuli of a cue that reads a data file: no hash sees it."""
    (tmp_path / "tint.py").write_text(TINT)
    (tmp_path / "k.txt").write_text("0.2")
    monkeypatch.setenv(ALLOW_CODE, str(tmp_path / "tint.py"))
    recipe = f"python:{tmp_path}/tint.py:tint"
    return replace(stimuli, stimuli=tuple(replace(s, recipe=recipe) for s in stimuli))


def test_kept_pixels_are_made_again_where_stored_answers_are_set_aside(tinted: StimulusSet, tmp_path: Path) -> None:
    def asked(name: str, out: str, *, kept: bool = True) -> tuple[Job, Progress, int]:
        one = job(Counting(name), tinted, tmp_path / out)
        return one, *run([one], cache=PixelCache(tmp_path / "cache", PLENTY) if kept else None)

    asked("one", "a")
    (tmp_path / "k.txt").write_text("0.8")
    now, progress, decoded = asked("one", "a")
    assert any("set aside" in text for text in progress.notices)
    assert any("the cache keeps pixels of" in text and "4 files" in text for text in progress.notices)
    assert decoded == 32
    truth, _, _ = asked("one", "b", kept=False)
    np.testing.assert_array_equal(answers(now), answers(truth))
    assert asked("two", "a")[1:][1] == 0, "what was decoded anew is kept"


@pytest.mark.parametrize("workers", [0, 2])
def test_kept_pixels_are_compared_before_they_are_used(tinted: StimulusSet, tmp_path: Path, workers: int) -> None:
    both = [job(Counting(f"old{size}", size=size), tinted, tmp_path) for size in (32, 48)]
    run(both, workers=workers, cache=PixelCache(tmp_path / "cache", PLENTY))
    (tmp_path / "k.txt").write_text("0.8")
    one, truth = job(Counting("new"), tinted, tmp_path), job(Counting("truth"), tinted, tmp_path)
    progress, _ = run([one], workers=workers, cache=PixelCache(tmp_path / "cache", PLENTY))
    assert len(progress.notices) == 1
    assert "(8 files), 8 of 8 pictures differ when made again" in progress.notices[0], "in every geometry"
    run([truth])
    np.testing.assert_array_equal(answers(one), answers(truth))
    assert 0.75 < answers(one).mean() / 255 < 0.85


def test_comparing_kept_pixels_makes_few_pictures(
    stimuli: StimulusSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = PixelCache(tmp_path / "cache", PLENTY)
    first = [job(Counting(f"one{size}", size=size), stimuli, tmp_path) for size in (32, 48)]
    with DecodePool(0) as pool:
        collect(first, pool, shard_size=1, on_event=lambda event: None, cache=cache)
    opened = []
    monkeypatch.setattr(pictures, "decode", lambda root, one: opened.append(one.id) or decode(root, one))
    later = [job(Counting(f"two{size}", size=size), stimuli, tmp_path) for size in (32, 48)]
    with DecodePool(0) as pool:
        progress = collect(later, pool, shard_size=1, on_event=lambda event: None, cache=cache)
        assert pool.decoded == 0
    probes = 2
    assert len(opened) == FILES + probes, "one picture of each of a few files, once for both geometries"
    assert not progress.notices
    opened.clear()
    last = [job(Counting("three"), stimuli, tmp_path)]
    with DecodePool(0) as pool:
        collect(last, pool, shard_size=32, on_event=lambda event: None, cache=cache)  # other shards: not kept yet
    again = job(Counting("four"), stimuli, tmp_path)
    opened.clear()
    with DecodePool(0) as pool:
        collect([again], pool, shard_size=32, on_event=lambda event: None, cache=cache)
    assert len(opened) == PICTURES + 1
    np.testing.assert_array_equal(answers(first[0], 1), answers(again, 32))


def test_a_file_that_is_away_does_not_spoil_kept_pixels(stimuli: StimulusSet, tmp_path: Path) -> None:
    run([job(Counting("one"), stimuli, tmp_path)], cache=PixelCache(tmp_path / "cache", PLENTY))
    for stimulus in stimuli.stimuli[1:]:
        (Path(stimuli.root) / stimulus.path).unlink()
    progress, decoded = run([job(Counting("two"), stimuli, tmp_path)], cache=PixelCache(tmp_path / "cache", PLENTY))
    assert (decoded, progress.notices) == (0, [])


def test_the_libraries_of_cues_count_where_cues_made_the_pixels(
    stimuli: StimulusSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, some = PixelCache(tmp_path, PLENTY), stimuli.stimuli[:4]

    def paths() -> list[Path]:
        return [cache.path(some, Geometry((32, 32)), recipes) for recipes in ({}, {"contrast": "1"})]

    plain, made = paths()
    # What two kinds of CPU make of a cue differs by grey levels here and there; kept pixels are compared exactly.
    monkeypatch.setattr(pixel_cache, "instruction_sets", lambda: "another CPU")
    pixel_cache._libraries.cache_clear()
    elsewhere = paths()
    pixel_cache._libraries.cache_clear()
    monkeypatch.setattr(pixel_cache, "_libraries", lambda: {"numpy": "3.0"})
    assert elsewhere[0] == paths()[0] == plain
    assert len({made, elsewhere[1], paths()[1]}) == 3
