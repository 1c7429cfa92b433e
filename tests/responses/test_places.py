"""Answers on an object store: the same bytes as on the disk, found again, deleted with the rest, never half there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cuebench as cb
from cuebench.errors import UserError
from cuebench.places import RemotePath, place
from cuebench.responses.events import Event
from cuebench.runs.record import RunRecord

fsspec = pytest.importorskip("fsspec", reason="needs the extra 'store': pip install 'cuebench[store]'")
OBSERVERS = ["ideal:shape", "ideal:mixture?shape=0.4"]


@pytest.fixture
def memory() -> Iterator[str]:
    files = fsspec.filesystem("memory")
    yield "memory://bucket/answers"
    if files.exists("/bucket"):
        files.rm("/bucket", recursive=True)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An S3 bucket of a server on this machine."""
    server_of = pytest.importorskip("moto.server", reason="needs moto[server]: pip install 'cuebench[dev]'")
    pytest.importorskip("s3fs", reason="needs s3fs")
    server = server_of.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    from cuebench.places import _file_system

    _file_system.cache_clear()
    _file_system("s3", os.getpid()).mkdir("cuebench-test")
    yield "s3://cuebench-test/run"
    _file_system.cache_clear()
    server.stop()


def stored(folder: Path | RemotePath) -> dict[str, bytes]:
    return {f"{sub.name}/{path.name}": path.read_bytes() for sub in folder.iterdir() for path in sub.iterdir()}


def run(data_root: Path, out: Path, **options: Any) -> cb.Scores:
    settings = {"data_root": data_root, "shard_size": 8, "resamples": 100, "on_event": lambda event: None}
    return cb.evaluate(OBSERVERS, "cue_conflict", out=out, **{**settings, **options})


@pytest.mark.parametrize("where", ["memory", "bucket"])
def test_the_same_answers_on_an_object_store(
    where: str, request: pytest.FixtureRequest, data_root: Path, tmp_path: Path
) -> None:
    url = request.getfixturevalue(where)
    run(data_root, tmp_path / "disk")
    run(data_root, tmp_path / "run", responses=url)
    there = place(url)
    assert isinstance(there, RemotePath)
    assert stored(there) == stored(tmp_path / "disk" / "responses")
    assert not (tmp_path / "run" / "responses").exists()
    assert (tmp_path / "run" / "scores.json").read_bytes() == (tmp_path / "disk" / "scores.json").read_bytes()
    # A damaged object and a missing one are asked for again; scoring alone finds everything.
    first, second, *_ = sorted(p for sub in there.iterdir() for p in sub.iterdir() if p.name.endswith(".parquet"))
    first.write_bytes(first.read_bytes()[:-1])
    second.unlink()
    notices: list[Event] = []
    run(data_root, tmp_path / "run", responses=url, on_event=notices.append)
    assert any("was damaged" in event.message for event in notices)
    assert stored(there) == stored(tmp_path / "disk" / "responses")
    cb.score(tmp_path / "run")
    assert (tmp_path / "run" / "scores.json").read_bytes() == (tmp_path / "disk" / "scores.json").read_bytes()


def test_fresh_deletes_the_answers_of_the_run_there(memory: str, data_root: Path, tmp_path: Path) -> None:
    run(data_root, tmp_path / "run", responses=memory)
    names = {job.folder for job in RunRecord.read(tmp_path / "run").jobs}
    set_aside = [place(memory) / f"{name}.stale-1" for name in names]
    others = RemotePath("memory", "bucket/answers/ideal_shape--0123456789abcdef")  # of another run, perhaps
    for folder in (*set_aside, others):
        (folder / "key.json").write_bytes(b"{}")
    (place(memory) / "notes.txt").write_bytes(b"not ours")
    run(data_root, tmp_path / "run", responses=memory, fresh=True)
    assert not any(folder.exists() for folder in set_aside)
    assert others.exists()
    assert (place(memory) / "notes.txt").is_file()


def test_the_folder_of_a_run_stays_where_it_is(memory: str, data_root: Path, tmp_path: Path) -> None:
    run(data_root, tmp_path / "run", responses=memory)
    with pytest.raises(UserError, match=f"lie in {memory}, not in the folder itself"):
        run(data_root, tmp_path / "run")


def test_merge_copies_answers_from_an_object_store(memory: str, data_root: Path, tmp_path: Path) -> None:
    settings = {"data_root": data_root, "shard_size": 8, "resamples": 100, "on_event": lambda event: None}
    cb.evaluate(OBSERVERS[0], "cue_conflict", out=tmp_path / "a", responses=memory, **settings)
    cb.evaluate(OBSERVERS[1], "cue_conflict", out=tmp_path / "b", **settings)
    cb.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "both")
    run(data_root, tmp_path / "disk")
    assert (tmp_path / "both" / "scores.json").read_bytes() == (tmp_path / "disk" / "scores.json").read_bytes()
    assert json.loads((tmp_path / "both" / "run.json").read_text())["arguments"]["responses"] == ""


def test_an_address_of_the_disk_is_a_path(tmp_path: Path) -> None:
    assert (
        place(f"file://{tmp_path}/x") == place(f"local://{tmp_path}/x") == place(str(tmp_path / "x")) == tmp_path / "x"
    )


def test_a_folder_that_is_set_aside_is_moved(memory: str) -> None:
    folder = place(memory)
    for name in ("key.json", "a.parquet"):
        (folder / name).write_bytes(name.encode())
    folder.rename(folder.with_name("answers.stale-1"))  # type: ignore[arg-type]
    assert not folder.exists()
    aside = folder.with_name("answers.stale-1")
    assert {path.name: path.read_bytes() for path in aside.iterdir()} == {
        "key.json": b"key.json",
        "a.parquet": b"a.parquet",
    }


def test_other_file_systems_write_aside_and_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system of folders, under a name that is not one of the object stores."""
    fsspec.register_implementation("folders", fsspec.get_filesystem_class("file"), clobber=True)
    path = RemotePath("folders", str(tmp_path / "a" / "b.parquet"))
    path.write_bytes(b"one")
    path.write_bytes(b"two")
    assert (tmp_path / "a" / "b.parquet").read_bytes() == b"two"
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["b.parquet"]

    def full(*_: Any, **__: Any) -> None:
        raise OSError("no room")

    monkeypatch.setattr(type(path._files), "mv", full)
    with pytest.raises(UserError, match="cannot write folders://"):
        path.write_bytes(b"three")
    assert (tmp_path / "a" / "b.parquet").read_bytes() == b"two"


@pytest.mark.parametrize(("url", "message"), [("nosuch://a/b", "nosuch:// is not known"), ("memory://", "no folder")])
def test_places_that_there_are_not(url: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        place(url)


def test_a_store_that_cannot_be_reached_ends_the_run(
    memory: str, data_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not look as if the answers were damaged: they would be asked for again for nothing."""
    run(data_root, tmp_path / "run", responses=memory)

    def unreachable(*_: Any, **__: Any) -> bytes:
        raise ConnectionError("connection refused")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "cat_file", unreachable)
    with pytest.raises(UserError, match=r"cannot read memory://bucket/answers/.*connection refused"):
        run(data_root, tmp_path / "run", responses=memory)
