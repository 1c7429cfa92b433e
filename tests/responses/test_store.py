from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cuebench.errors import UserError
from cuebench.files import OTHER_ROWS, DamagedFile, open_parquet, read_parquet
from cuebench.reading import parse_parquet
from cuebench.responses.store import Key, ShardFolder, Shards, batches
from cuebench.types import Stimulus

KEY = Key("w" * 64, {"size": 224}, "labels", "timm/1", "float32", ("logits",))
BATCH = [Stimulus(f"s{i}", sha256=f"{i:064d}") for i in range(3)]


def folder(tmp_path: Path, key: Key = KEY) -> ShardFolder:
    shards = ShardFolder(tmp_path, "timm:resnet50", key)
    shards.open()
    return shards


def test_columns_and_errors_come_back_as_written(tmp_path: Path) -> None:
    shards = folder(tmp_path)
    columns = {
        "stimulus": np.array([0, 2], np.int32),
        "logits": np.arange(6, dtype=np.float32).reshape(2, 3),
        "decisions": np.array(["cat", "dog"]),
        "rt": np.array([0.5, np.nan]),
    }
    shards.write(BATCH, columns, {1: "s1: cannot be decoded"})
    back, errors = shards.read(BATCH)
    assert errors == {1: "s1: cannot be decoded"}
    assert back["logits"].dtype == np.float32
    for name, values in columns.items():
        np.testing.assert_array_equal(back[name], values)


def test_a_shard_that_was_moved_is_no_answer_there(tmp_path: Path) -> None:
    other_key = replace(KEY, weights="v" * 64)
    mine, theirs, others = folder(tmp_path), folder(tmp_path, other_key), BATCH[:2]
    mine.write(BATCH, {"stimulus": np.arange(3)}, {})
    mine.write(others, {"stimulus": np.arange(2)}, {})
    theirs.path(BATCH).write_bytes(mine.path(BATCH).read_bytes())  # to another observer
    mine.path(BATCH).write_bytes(mine.path(others).read_bytes())  # to other stimuli
    for shards, key in ((mine, KEY), (theirs, other_key)):
        recorded = Shards.of_key(shards.folder, json.loads(json.dumps(key.parts())))
        for reading in (recorded, shards):
            with pytest.raises(UserError, match="another observer or to other stimuli"):
                reading.read(BATCH)
            with pytest.raises(UserError, match="another observer or to other stimuli"):
                reading.count_rows(BATCH)
            assert reading.stored(BATCH) is None
            assert list(reading.damaged) == [reading.path(BATCH)]
    assert mine.stored(others) == {}


def test_an_empty_batch_keeps_its_width(tmp_path: Path) -> None:
    shards = folder(tmp_path)
    shards.write(BATCH, {"stimulus": np.zeros(0, np.int32), "logits": np.zeros((0, 5), np.float32)}, {})
    back, _ = shards.read(BATCH)
    assert back["logits"].shape == (0, 5)


@pytest.mark.parametrize(
    "other",
    [
        Key("v" * 64, {"size": 224}, "labels", "timm/1", "float32", ("logits",)),
        Key("w" * 64, {"size": 256}, "labels", "timm/1", "float32", ("logits",)),
        Key("w" * 64, {"size": 224}, "others", "timm/1", "float32", ("logits",)),
        Key("w" * 64, {"size": 224}, "labels", "timm/2", "float32", ("logits",)),
        Key("w" * 64, {"size": 224}, "labels", "timm/1", "bfloat16", ("logits",)),
        Key("w" * 64, {"size": 224}, "labels", "timm/1", "float32", ("features",)),
    ],
)
def test_whatever_changes_an_answer_changes_the_key(tmp_path: Path, other: Key) -> None:
    ours, theirs = folder(tmp_path), folder(tmp_path, other)
    ours.write(BATCH, {"stimulus": np.arange(3)}, {})
    assert theirs.stored(BATCH) is None


@pytest.mark.parametrize(
    "other",
    [
        BATCH[:2],
        BATCH[::-1],
        [*BATCH[:2], Stimulus("s2", sha256="f" * 64)],
        [*BATCH[:2], Stimulus("s2", sha256=BATCH[2].sha256, recipe="contrast?level=0.1")],
    ],
)
def test_a_shard_belongs_to_exactly_its_stimuli(tmp_path: Path, other: list[Stimulus]) -> None:
    shards = folder(tmp_path)
    shards.write(BATCH, {"stimulus": np.arange(3)}, {})
    assert shards.stored(BATCH) == {}
    assert shards.stored(other) is None


def test_the_key_is_written_for_people(tmp_path: Path) -> None:
    parts = json.loads((folder(tmp_path).folder / "key.json").read_text())
    assert parts["weights"] == "w" * 64
    assert parts["preprocess"] == {"size": 224}


def test_no_temporary_file_is_left(tmp_path: Path) -> None:
    shards = folder(tmp_path)
    shards.write(BATCH, {"stimulus": np.arange(3)}, {})
    assert {p.suffix for p in shards.folder.iterdir()} == {".json", ".parquet"}


def test_a_damaged_shard_says_what_to_do(tmp_path: Path) -> None:
    shards = folder(tmp_path)
    shards.write(BATCH, {"stimulus": np.arange(3)}, {})
    shards.path(BATCH).write_bytes(b"PAR1 but cut")
    with pytest.raises(UserError, match="run the same command again"):
        shards.read(BATCH)


def test_a_shard_that_is_cut_short_counts_as_missing(tmp_path: Path) -> None:
    shards = folder(tmp_path)
    assert shards.stored(BATCH) is None
    shards.write(BATCH, {"stimulus": np.arange(2)}, {2: "broken"})
    assert shards.stored(BATCH) == {2: "broken"}
    path = shards.path(BATCH)
    path.write_bytes(path.read_bytes()[:100])
    assert shards.stored(BATCH) is None


NO_PIXELS = Key("w" * 64, None, "labels", "ideal/1", "", ("logits",))


@pytest.mark.parametrize(
    "change", ["label", "shape", "texture", "shape_source", "texture_source", "path", "condition", "id"]
)
def test_without_pixels_a_shard_belongs_to_all_that_is_known(tmp_path: Path, change: str) -> None:
    other = [*BATCH[:2], replace(BATCH[2], **{change: "another"})]
    sees, reads = folder(tmp_path), folder(tmp_path, NO_PIXELS)
    for shards in (sees, reads):
        shards.write(BATCH, {"stimulus": np.arange(3)}, {})
    assert sees.stored(other) == {}
    assert reads.stored(other) is None


def test_a_recorded_key_finds_its_shards_again(tmp_path: Path) -> None:
    for key in (KEY, NO_PIXELS):
        made = folder(tmp_path, key)
        assert Shards.of_key(made.folder, key.parts()).path(BATCH) == made.path(BATCH)
    before = {**NO_PIXELS.parts(), "layout": 1}  # as written when all shards were named by the files alone
    assert Shards.of_key(tmp_path, before).path(BATCH).name == folder(tmp_path).path(BATCH).name


def test_the_same_answers_give_the_same_bytes(tmp_path: Path) -> None:
    columns = {"stimulus": np.arange(3), "logits": np.ones((3, 4), np.float32)}
    one, two = folder(tmp_path / "a"), folder(tmp_path / "b")
    one.write(BATCH, columns, {})
    two.write(BATCH, columns, {})
    assert one.path(BATCH).read_bytes() == two.path(BATCH).read_bytes()


def test_batches_cover_everything_once() -> None:
    parts = list(batches(BATCH, 2))
    assert [(start, len(part)) for start, part in parts] == [(0, 2), (2, 1)]


def test_pictures_of_one_file_stay_in_one_batch() -> None:
    made = [Stimulus(f"{f}-{i}", path=f, recipe=f"contrast?level={i}") for f in "abc" for i in range(5)]
    parts = [[s.path for s in part] for _, part in batches(made, 2)]
    assert parts == [["a"] * 5, ["b"] * 5, ["c"] * 5]
    assert sum(len(part) for _, part in batches(made, 7)) == 15


def _counts(data: bytes) -> tuple[int, int, int]:
    """Return how many rows a footer says that a file, its row group and its column have."""
    facts = pq.ParquetFile(pa.BufferReader(data)).metadata
    return facts.num_rows, facts.row_group(0).num_rows, facts.row_group(0).column(0).num_values


def _with_rows(data: bytes, wanted: tuple[int, int, int]) -> bytes:
    """Return a file of four rows whose footer says that there are others; four is written as a byte of 8 there."""
    changed = data
    for place in range(len(data) - int.from_bytes(data[-8:-4], "little") - 8, len(data) - 8):
        for number in set(wanted) if data[place] == 8 else ():
            one = data[:place] + bytes([2 * number]) + data[place + 1 :]
            try:
                now = _counts(one)
            except (OSError, pa.ArrowException):
                continue
            if sum(a != b for a, b in zip(now, (4, 4, 4))) == 1 and all(a in (4, w) for a, w in zip(now, wanted)):
                changed = changed[:place] + one[place : place + 1] + changed[place + 1 :]
    assert _counts(changed) == wanted
    return changed


@pytest.mark.parametrize(
    "wanted", [(6, 4, 4), (2, 4, 4), (4, 6, 4), (6, 6, 4), (6, 6, 6)], ids=lambda counts: "-".join(map(str, counts))
)
def test_a_footer_that_counts_other_rows_is_found(wanted: tuple[int, int, int]) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"stimulus": pa.array([0, 1, 2, 3], pa.int32())}), sink, use_dictionary=False)
    data = bytes(sink.getvalue().to_pybytes())
    assert read_parquet(data).num_rows == parse_parquet(data, "x.parquet").num_rows == 4
    damaged = _with_rows(data, wanted)
    with pytest.raises(DamagedFile, match=OTHER_ROWS):
        read_parquet(damaged)
    with pytest.raises(UserError, match=OTHER_ROWS):
        parse_parquet(damaged, "x.parquet")
    if wanted[0] != wanted[1]:  # else it is found when the rows are read
        with pytest.raises(DamagedFile, match=OTHER_ROWS):
            open_parquet(damaged)
