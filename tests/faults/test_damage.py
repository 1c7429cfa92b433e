"""Files of a run that were damaged are found: nothing is scored or shown that is not what was written."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cuebench as cb
from cuebench.errors import UserError
from cuebench.responses.store import Key, ShardFolder
from cuebench.runs.results import read_stimuli
from cuebench.types import Stimulus

KEY = Key("w" * 64, {"size": 32}, "labels", "test/1", "float32", ("logits",))
BATCH = [Stimulus(f"s{i}", sha256=f"{i:064d}") for i in range(3)]
COLUMNS = {"stimulus": np.array([0, 1], np.int32), "logits": np.array([[1, 2], [3, 4]], np.float32)}


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def bits(data: bytes, everything: bool) -> list[int]:
    """Return all bits, or one bit of every eighth byte."""
    draw = random.Random(0)
    return list(range(8 * len(data))) if everything else [8 * i + draw.randrange(8) for i in range(0, len(data), 8)]


def test_every_flipped_bit_of_a_shard_is_found(tmp_path: Path, everything: bool) -> None:
    shards = ShardFolder(tmp_path, "observer", KEY)
    shards.write(BATCH, COLUMNS, {2: "cannot be decoded"})
    path = shards.path(BATCH)
    data = path.read_bytes()
    for bit in bits(data, everything):
        path.write_bytes(flipped(data, bit))
        with pytest.raises(UserError, match="is damaged") as caught:
            shards.read(BATCH)
        assert "same command" in caught.value.hint
        assert shards.stored(BATCH) is None, bit
    for size in range(0, len(data), 1 if everything else 16):  # cut short
        path.write_bytes(data[:size])
        assert shards.stored(BATCH) is None
    path.write_bytes(data)
    columns, errors = shards.read(BATCH)
    assert errors == {2: "cannot be decoded"} == shards.stored(BATCH)
    assert all(np.array_equal(columns[name], COLUMNS[name]) for name in COLUMNS)


def test_other_readers_of_parquet_can_read_a_shard(tmp_path: Path) -> None:
    shards = ShardFolder(tmp_path, "observer", KEY)
    shards.write(BATCH, COLUMNS, {})
    table = pq.read_table(shards.path(BATCH), page_checksum_verification=True)
    assert table["logits"].to_pylist() == COLUMNS["logits"].tolist()


@pytest.fixture
def run(data: Path, tmp_path: Path) -> Callable[..., cb.Scores]:
    def measure(**options: Any) -> cb.Scores:
        options = {
            "data_root": data,
            "out": tmp_path / "run",
            "resamples": 100,
            "shard_size": 8,
            "workers": 0,
            **options,
        }
        return cb.evaluate([f"python:{data / 'model.py'}:make", "ideal:shape"], "cue_conflict", **options)

    return measure


def test_a_damaged_shard_is_asked_for_again(run: Callable[..., cb.Scores]) -> None:
    first = run()
    before = (first.out / "scores.json").read_bytes()
    shard = next(first.out.glob("responses/red--*/*.parquet"))
    data = shard.read_bytes()
    shard.write_bytes(flipped(data, 8 * (len(data) // 2)))
    rows = cb.score(first.out)
    assert [r.observer for r in rows if r.metric == "failed"] == ["red"]
    events: list[Any] = []
    run(on_event=events.append)
    assert any("its answers were asked for again" in e.message for e in events if e.kind == "notice")
    assert shard.read_bytes() == data
    assert (first.out / "scores.json").read_bytes() == before


def test_shards_without_a_checksum_are_read_and_noted(run: Callable[..., cb.Scores]) -> None:
    first = run()
    before = (first.out / "scores.json").read_bytes()
    for shard in first.out.glob("responses/*/*.parquet"):
        table = pq.read_table(shard)
        metadata = {k: v for k, v in table.schema.metadata.items() if k == b"cuebench.errors"}
        pq.write_table(table.replace_schema_metadata(metadata), shard, compression="zstd", use_dictionary=False)
    for _ in range(2):
        scores = cb.score(first.out)
        assert (first.out / "scores.json").read_bytes() == before
        assert [n for n in scores.record.notices if "no checksum" in n] == [scores.record.notices[-1]]
    assert run().record.images_decoded <= 8  # none but those that are asked twice


@pytest.mark.parametrize("name", ["scores.parquet", "stimuli", "tables", "run.json"])
def test_every_flipped_bit_of_other_files_is_found(run: Callable[..., cb.Scores], name: str, everything: bool) -> None:
    from cuebench.runs.results import read_table

    out = run().out
    path = next((out / name).iterdir()) if (out / name).is_dir() else out / name
    read: dict[str, Callable[[], object]] = {
        "scores.parquet": lambda: cb.load(out),
        "stimuli": lambda: read_stimuli(out, path.name),
        "tables": lambda: read_table(out, "cue_conflict", path.name.split(".")[1]),
        "run.json": lambda: cb.load(out),
    }
    whole = path.read_bytes()
    draw = random.Random(0)
    chosen = draw.sample(range(8 * len(whole)), min(8 * len(whole), 4000 if everything else 40))
    for bit in chosen:
        path.write_bytes(flipped(whole, bit))
        with pytest.raises(UserError):
            read[name]()
    path.write_bytes(whole)
    read[name]()


def test_scores_of_an_earlier_run_are_never_shown_as_those_of_this_one(
    run: Callable[..., cb.Scores], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cuebench.reports.comparison import compare_runs

    out = run().out

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cuebench.runs.evaluate.collect", killed)
    with pytest.raises(KeyboardInterrupt):
        cb.evaluate("ideal:texture", "cue_conflict", data_root=data, out=out, resamples=100, shard_size=8)
    for show in (cb.load, lambda path: compare_runs([path])):
        with pytest.raises(UserError, match=r"(?s)not finished.*cuebench score"):
            show(out)
    scores = cb.score(out)  # says what is missing
    assert [(r.observer, r.metric) for r in scores if r.metric == "failed"] == [("ideal:texture", "failed")]
    assert cb.load(out).observers == ["red", "ideal:shape"]


def test_scores_that_were_not_written_to_the_end_are_not_shown(run: Callable[..., cb.Scores]) -> None:
    out = run().out
    other = pa.table({"value": [1.0]})
    pq.write_table(other, out / "scores.parquet")
    with pytest.raises(UserError, match="not what this run wrote"):
        cb.load(out)
    cb.score(out)
    assert cb.load(out)


def test_score_reads_the_record_that_it_writes(run: Callable[..., cb.Scores], monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends between the reading and the locking of the record must not be lost."""
    from contextlib import contextmanager

    from cuebench.runs import score as module
    from cuebench.runs.record import RunRecord

    out, original = run().out, module.locked

    @contextmanager
    def late(folder: Path, *arguments: Any) -> Any:
        record = RunRecord.read(folder)
        record.notices.append("another run ended just now")
        record.write(folder)
        with original(folder, *arguments):
            yield

    monkeypatch.setattr(module, "locked", late)
    scores = cb.score(out)
    assert "another run ended just now" in scores.record.notices
    assert "another run ended just now" in json.loads((out / "run.json").read_text())["notices"]
