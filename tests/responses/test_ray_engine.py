"""The engine on a Ray cluster: two real nodes on this machine, the same bytes as the local engine, a node that dies."""

from __future__ import annotations

import json
import os
import pickle
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cuebench as cb
from cuebench._version import __version__
from cuebench.errors import UserError
from cuebench.observers.base import LoadOptions
from cuebench.observers.origin import Origin, Preparation
from cuebench.observers.preprocess import Preprocess
from cuebench.responses.engines import address_of
from cuebench.responses.events import Event
from cuebench.responses.job import JobRecord
from cuebench.responses.ray_worker import Answering, Order, Report, Setup, Work, decoded, report_of, row
from cuebench.responses.store import Key, ShardFolder
from cuebench.types import Stimulus

pytestmark = pytest.mark.xdist_group("ray")
MODEL = """
import os
import time
from pathlib import Path
import numpy as np
import cuebench as cb

HERE = Path(__file__).parent
PLAIN = cb.Preprocess(size=32, mean=(0, 0, 0), std=(1, 1, 1), scale=1)
CLASSES = ("cat", "dog", "car", "clock")

def _wait_for_both_nodes():
    (HERE / f"at-work-{os.getppid()}").touch()  # the parent of a worker is the raylet of its node
    deadline = time.monotonic() + 120
    while len(list(HERE.glob("at-work-*"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)

def _level(pixels):
    time.sleep(0.05)
    driver = HERE / "both-nodes"
    if driver.exists() and driver.read_text() != str(os.getpid()):
        _wait_for_both_nodes()
    level = pixels[:, 0].mean(axis=(1, 2))
    return -np.abs(level[:, None] - 40 * np.arange(4)[None]).astype(np.float32)

def steady():
    return cb.wrap(_level, preprocess=PLAIN, labels=CLASSES, name="steady", fingerprint="steady-1")

def _fails(pixels):
    if pixels[0, 0].mean() >= 80:  # not at the first shards
        raise ValueError("no such layer")
    return _level(pixels)

def failing():
    return cb.wrap(_fails, preprocess=PLAIN, labels=CLASSES, name="failing", fingerprint="failing-1")
"""
SHARD = 4


def files(out: Path) -> dict[str, bytes]:
    """All answers and scores, by name; those of the observer that fails differ in how far it came."""
    paths = [p for p in out.rglob("*") if p.suffix == ".parquet" or p.name == "scores.json"]
    return {str(p.relative_to(out)): p.read_bytes() for p in paths if "failing--" not in str(p)}


def said(out: Path) -> dict[str, Any]:
    record = json.loads((out / "run.json").read_text())
    jobs = [{k: v for k, v in job.items() if k != "asked_again"} for job in record["jobs"]]
    failures = [(f["observer"], f["protocol"], f["reason"]) for f in record["failures"]]
    return {"jobs": jobs, "failures": failures, **{k: record[k] for k in ("unreadable", "images_decoded", "status")}}


# ------------------------------------------------------------------------------------------ a cluster of two nodes


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": os.environ.get("RAY_AUTH_MODE", "disabled")}
    pytest.importorskip("ray.data", reason="needs the extra 'ray': pip install 'cuebench[ray]'")
    from ray.cluster_utils import Cluster

    # A dead node is found after seconds, not after half a minute.
    health = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000, "health_check_failure_threshold": 3}
    memory = 100 << 20
    head = {"num_cpus": 1, "object_store_memory": memory, "include_dashboard": False, "_system_config": health}
    started = Cluster(initialize_head=True, head_node_args=head)
    second = started.add_node(num_cpus=1, object_store_memory=memory)
    yield SimpleNamespace(address=started.address, second=second, kill=lambda: _kill(started, second))
    started.shutdown()


def _kill(cluster: Any, node: Any) -> None:
    cluster.remove_node(node, allow_graceful=False)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "models.py"
    path.write_text(MODEL)
    return path


@pytest.mark.slow
def test_the_same_bytes_as_the_local_engine(cluster: Any, data_root: Path, tmp_path: Path, model: Path) -> None:
    """From specs, from an object, without pixels; with a picture that cannot be read and an observer that fails."""
    broken = sorted((data_root / "cue_conflict" / "stimuli").rglob("*.png"))[5]
    broken.write_bytes(broken.read_bytes()[:40])
    threshold = 60.0
    sent = cb.wrap(
        lambda pixels: np.where(pixels.mean(axis=(1, 2, 3))[:, None] > threshold, np.eye(4)[0], np.eye(4)[1]),
        preprocess=cb.Preprocess(size=16, mean=(0, 0, 0), std=(1, 1, 1), scale=1),
        labels=("cat", "dog", "car", "clock"),
        name="sent",
        fingerprint="sent-1",
    )
    observers = [f"python:{model}:steady", f"python:{model}:failing", "ideal:mixture?shape=0.4", sent]
    settings = {"data_root": data_root, "shard_size": SHARD, "allow_unreadable": 0.1, "resamples": 100}
    events: list[Event] = []
    local, there = tmp_path / "local", tmp_path / "there"
    cb.evaluate(observers, "cue_conflict", out=local, on_event=lambda event: None, **settings)
    engine = f"ray://{cluster.address}"
    cb.evaluate(observers, "cue_conflict", out=there, engine=engine, on_event=events.append, **settings)
    assert files(there) == files(local)
    assert len(files(local)) > 3 * 32 // SHARD
    assert said(there) == said(local)
    assert said(there)["failures"] == [("failing", "cue_conflict", "ValueError: no such layer")]
    last = [event for event in events if event.kind == "batch"][-1]
    assert last.done == last.total

    # Some answers are lost: only these are asked for again, and what is stored is compared first.
    shards = sorted(there.glob("responses/steady--*/*.parquet"))
    for path in shards[:3]:
        path.unlink()
    kept = {path: path.stat().st_mtime_ns for path in shards[3:]}
    cb.evaluate(observers[:1], "cue_conflict", out=there, engine=engine, on_event=events.append, **settings)
    assert files(there) == files(local)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert json.loads((there / "run.json").read_text())["jobs"][0]["asked_again"]["differing"] == 0


@pytest.mark.slow
def test_a_node_that_dies_costs_nothing_but_time(cluster: Any, data_root: Path, tmp_path: Path, model: Path) -> None:
    """Last in this file: the cluster has one node after it."""
    settings = {"data_root": data_root, "shard_size": 2, "resamples": 100}
    local, there = tmp_path / "local", tmp_path / "there"
    cb.evaluate(f"python:{model}:steady", "cue_conflict", out=local, on_event=lambda event: None, **settings)
    (tmp_path / "both-nodes").write_text(str(os.getpid()))
    notices: list[str] = []
    killer: list[threading.Thread] = []

    def kill_in_the_middle(event: Event) -> None:
        notices.extend([event.message] if event.kind == "notice" else [])
        if event.kind == "batch" and event.done and not killer:
            killer.append(threading.Thread(target=cluster.kill))
            killer[0].start()

    engine = f"ray:{cluster.address}"
    cb.evaluate(
        f"python:{model}:steady", "cue_conflict", out=there, engine=engine, on_event=kill_in_the_middle, **settings
    )
    killer[0].join()
    assert files(there) == files(local)
    assert any("was lost" in text for text in notices)
    assert said(there)["status"] == "complete"


# ------------------------------------------------------------------------------------------ one actor, without Ray


def order(model: Path, out: Path, name: str = "steady", **changes: Any) -> Order:
    preprocess = Preprocess(size=32, mean=(0, 0, 0), std=(1, 1, 1), scale=1)
    key = Key(f"{name}-1", preprocess.describe(), "", "python/1", "float32", ("logits",))
    shards = ShardFolder(out, name, key)
    shards.open()
    record = JobRecord("p", "", name, "model", "", ("logits",), "", shards.folder.name, None, key.parts())
    origin = Origin(f"python:{model}:{name}", name, LoadOptions(), Preparation())
    made = Order("p", "", name, ("logits",), preprocess, None, shards, record, 0, key.weights, origin)
    return replace(made, **changes)


def asked(setup: Setup, data_root: Path, start: int = 4) -> Report:
    root = data_root / "cue_conflict" / "stimuli"
    paths = sorted(str(p.relative_to(root)) for p in root.rglob("*.png"))[:4]
    stimuli = tuple(Stimulus(id=path, path=path) for path in paths)
    work = Work(start, str(root), stimuli, tuple(setup.orders), (Preprocess(size=32).geometry,))
    table = decoded(pa.table({name: [value] for name, value in row(work).items()}))
    (report,) = Answering(setup)(table).to_pylist()
    return report_of(report)


def test_an_actor_stores_what_it_answers(model: Path, data_root: Path, tmp_path: Path) -> None:
    report = asked(Setup({0: order(model, tmp_path / "out")}, str(tmp_path)), data_root)
    assert (report.stored, report.failed, report.fatal, report.files) == ([0], {}, None, 4)
    assert len(list(tmp_path.glob("out/steady--*/*.parquet"))) == 1


def test_a_node_that_does_not_see_the_run_folder_ends_the_run(model: Path, data_root: Path, tmp_path: Path) -> None:
    elsewhere = order(model, tmp_path / "out")
    (elsewhere.shards.folder / "key.json").unlink()
    report = asked(Setup({0: elsewhere}, str(tmp_path)), data_root)
    assert report.fatal is not None
    assert str(elsewhere.shards.folder) in report.fatal.message
    assert "shared folder" in report.fatal.hint


def test_a_node_that_does_not_see_the_pictures_says_where(model: Path, data_root: Path, tmp_path: Path) -> None:
    root = data_root / "cue_conflict" / "stimuli"
    setup = Setup({0: order(model, tmp_path / "out")}, str(tmp_path))
    gone = sorted(root.rglob("*.png"))[0]
    missing = str(gone.relative_to(root))
    work = Work(4, str(root), (Stimulus(id=missing, path=missing),), (0,), (Preprocess(size=32).geometry,))
    gone.unlink()
    table = decoded(pa.table({name: [value] for name, value in row(work).items()}))
    report = report_of(Answering(setup)(table).to_pylist()[0])
    assert report.fatal is not None
    assert missing in report.fatal.message
    assert f"(on node {os.uname().nodename})" in report.fatal.message


def test_another_model_on_a_node_is_a_failure_of_the_observer(model: Path, data_root: Path, tmp_path: Path) -> None:
    report = asked(Setup({0: order(model, tmp_path / "out", fingerprint="other")}, str(tmp_path)), data_root)
    assert "another observer on node" in report.failed[0].reason
    assert not report.stored


def test_a_model_that_a_node_does_not_have_is_a_failure_of_the_observer(
    model: Path, data_root: Path, tmp_path: Path
) -> None:
    setup = Setup({0: order(model, tmp_path / "out")}, str(tmp_path))
    model.unlink()
    report = asked(setup, data_root)
    assert str(model) in report.failed[0].reason
    assert f"on node {os.uname().nodename}" in report.failed[0].reason
    assert "shared folder" in report.failed[0].details["hint"]


def test_another_version_on_a_node_ends_the_run(model: Path, data_root: Path, tmp_path: Path) -> None:
    report = asked(Setup({0: order(model, tmp_path / "out")}, str(tmp_path), version="0.0.1"), data_root)
    assert report.fatal is not None
    assert __version__ in report.fatal.message
    assert pickle.loads(pickle.dumps(report.fatal)).hint == report.fatal.hint


# ------------------------------------------------------------------------------------------ mistakes


@pytest.mark.parametrize("engine", ["dask", "ray:", "ray://", "rays", ""])
def test_an_engine_that_there_is_not(engine: str) -> None:
    with pytest.raises(UserError, match="unknown engine"):
        address_of(engine)


def test_an_object_that_cannot_be_sent_is_a_failure_with_what_to_do(data_root: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray.data", reason="needs the extra 'ray': pip install 'cuebench[ray]'")
    lock = threading.Lock()

    def locked(pixels: Any) -> Any:
        with lock:
            return np.zeros((len(pixels), 4), np.float32)

    plain = cb.Preprocess(size=16, mean=(0, 0, 0), std=(1, 1, 1), scale=1)
    held = cb.wrap(locked, preprocess=plain, labels=("cat", "dog", "car", "clock"), name="held", fingerprint="held-1")
    scores = cb.evaluate(
        held, "cue_conflict", data_root=data_root, out=tmp_path / "run", engine="ray", on_event=lambda event: None
    )
    (failure,) = scores.record.failures
    assert "cannot be sent to the nodes of a cluster" in failure.reason
    assert "python:FILE.py:FACTORY" in failure.details["hint"]


def test_no_cluster_at_an_address(data_root: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray.data", reason="needs the extra 'ray': pip install 'cuebench[ray]'")
    from cuebench.responses.ray_engine import connected

    with pytest.raises(UserError, match=r"no Ray cluster at 127\.0\.0\.1:1 "), connected("127.0.0.1:1"):
        pass
