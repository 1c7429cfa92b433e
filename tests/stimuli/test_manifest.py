import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from cuebench.errors import UserError
from cuebench.files import hash_file, parquet_bytes, read_parquet, write_atomic
from cuebench.stimuli.hashing import hash_files
from cuebench.stimuli.manifest import read_manifest, to_bytes, write_manifest
from cuebench.types import Stimulus, StimulusSet

SET = StimulusSet(
    "mine",
    (
        Stimulus("a", "x/a.png", "0" * 64, 224, 224, "", "cat", "dog", "cat1", "dog2", "full", "blur:3", 7),
        Stimulus("b"),
    ),
    root="/data",
    expected=1280,
    partial=("2 of 1,280 stimuli", "--limit 2"),
    targets="in16",
)


def test_round_trip_keeps_every_field(tmp_path):
    write_manifest(SET, tmp_path / "new" / "m.parquet")
    again = read_manifest(tmp_path / "new" / "m.parquet")
    assert again == SET
    assert again.fingerprint == SET.fingerprint


def test_same_set_same_bytes_and_other_set_other_bytes():
    assert to_bytes(SET) == to_bytes(replace(SET))
    assert to_bytes(SET) != to_bytes(replace(SET, partial=()))


def test_empty_set_and_moved_root(tmp_path):
    write_manifest(replace(SET, stimuli=()), tmp_path / "m.parquet")
    assert len(read_manifest(tmp_path / "m.parquet")) == 0
    assert read_manifest(tmp_path / "m.parquet", root=Path("/elsewhere")).root == "/elsewhere"


def test_duplicated_ids_are_refused(tmp_path):
    with pytest.raises(UserError, match="duplicated id 'b'"):
        write_manifest(replace(SET, stimuli=(Stimulus("b"), Stimulus("b"))), tmp_path / "m.parquet")
    assert not list(tmp_path.iterdir())


def test_cut_or_foreign_or_missing_file_is_a_user_error(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = to_bytes(SET)
    (tmp_path / "cut").write_bytes(data[: len(data) // 2])
    pq.write_table(pa.table({"id": ["a"]}), tmp_path / "foreign")
    for name, text in [("cut", "cannot be read"), ("foreign", "missing column 'path'"), ("none", "does not exist")]:
        with pytest.raises(UserError, match=text):
            read_manifest(tmp_path / name)


@pytest.mark.parametrize(("code", "text"), [(errno.ENOSPC, "disk is full"), (errno.EROFS, "read-only")])
def test_failed_write_keeps_the_old_file_and_leaves_no_litter(tmp_path, monkeypatch, code, text):
    target = tmp_path / "m.parquet"
    target.write_bytes(b"old")

    def fail(descriptor):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(UserError, match=text):
        write_atomic(target, b"new")
    assert target.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["m.parquet"]


def test_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UserError, match="cannot write"):
        write_atomic(tmp_path / "file" / "m.parquet", b"new")


def test_hashes_are_sha256_and_keep_the_order(tmp_path):
    (tmp_path / "abc").write_bytes(b"abc")
    (tmp_path / "empty").write_bytes(b"")
    facts = hash_files([tmp_path / "empty", tmp_path / "abc"])
    assert facts[1] == hash_file(tmp_path / "abc")
    assert facts[1].sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert [f.size for f in facts] == [0, 3]


def test_all_unreadable_files_are_named_at_once(tmp_path):
    with pytest.raises(UserError) as caught:
        hash_files([tmp_path / "one", tmp_path / "two"])
    assert "one" in str(caught.value)
    assert "two" in str(caught.value)


def test_every_flipped_bit_of_a_manifest_is_found(tmp_path):
    path, data = tmp_path / "m.parquet", to_bytes(SET)
    for position in range(0, len(data), 7):
        changed = bytearray(data)
        changed[position] ^= 1 << position % 8
        path.write_bytes(changed)
        with pytest.raises(UserError, match="cannot be read"):
            read_manifest(path)


def test_what_a_killed_make_left_behind_is_no_other_set(tmp_path):
    """A process that is killed while it writes ``made.json`` leaves a temporary file."""
    from cuebench.stimuli.made import claim

    temporary = tmp_path / ".made.json.123.456.tmp"
    temporary.write_text('{"maker"')
    assert claim(tmp_path, {"seed": 0}, [temporary]) == {}
    with pytest.raises(UserError, match=r"no made\.json"):
        claim(tmp_path, {"seed": 0}, [temporary, tmp_path / "cat.png"])


@pytest.mark.parametrize(
    "path", ["../a.png", "x/../../a.png", "/etc/a.png", "C:\\a.png", "C:a.png", "\\\\host\\a.png", "..\\a.png"]
)
@pytest.mark.parametrize("field", ["path", "mask"])
def test_a_path_that_leads_out_of_the_set_is_refused(tmp_path, path, field):
    write_manifest(replace(SET, stimuli=(replace(SET.stimuli[0], **{field: path}),)), tmp_path / "m.parquet")
    with pytest.raises(UserError, match=f"{field} .* of 'a': (an absolute path|a path that leads out)"):
        read_manifest(tmp_path / "m.parquet")


def test_a_repeated_id_or_another_type_is_refused(tmp_path):
    twice = replace(SET, stimuli=(Stimulus("b"), Stimulus("b")))
    (tmp_path / "twice").write_bytes(to_bytes(twice))
    with pytest.raises(UserError, match="duplicated id 'b'"):
        read_manifest(tmp_path / "twice")
    table = read_parquet(to_bytes(SET))
    seeds = table.set_column(table.column_names.index("seed"), "seed", [["7", "0"]])
    (tmp_path / "type").write_bytes(parquet_bytes(seeds))
    with pytest.raises(UserError, match="column 'seed' holds string"):
        read_manifest(tmp_path / "type")
