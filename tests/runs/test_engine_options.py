"""What a run can say to the engine: devices, batches, stored files, kept pixels, compiling. GPUs where there is one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuebench as cb
from cuebench.responses import collect
from cuebench.responses.store import Shards, batches
from cuebench.runs.record import RunRecord
from cuebench.stimuli.readers.cue_conflict import read

torch = pytest.importorskip("torch")
MODEL = """
import torch
import cuebench as cb

def factory(device="auto"):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, 2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
                              torch.nn.Flatten(), torch.nn.Linear(8, 4))
    return cb.wrap(net, preprocess=cb.Preprocess(size=32), labels=("cat", "dog", "car", "clock"), name="net",
                   device="cpu")
"""
GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture
def spec(tmp_path: Path) -> str:
    (tmp_path / "model.py").write_text(MODEL)
    return f"python:{tmp_path / 'model.py'}:factory"


@pytest.fixture
def resnet(tmp_path: Path) -> str:
    (tmp_path / "labels.json").write_text(json.dumps(["cat", "dog", "car", "clock"]))
    return f"timm:resnet18?weights=random&labels={tmp_path / 'labels.json'}"


def scores(observer: Any, data_root: Path, out: Path, **options: Any) -> bytes:
    defaults: dict[str, Any] = {"resamples": 100, "workers": 0, "device": "cpu"}
    cb.evaluate(observer, "cue_conflict", data_root=data_root, out=out, **(defaults | options))
    return (out / "scores.json").read_bytes()


def test_several_devices_end_in_the_same_bytes(spec: str, data_root: Path, tmp_path: Path) -> None:
    alone = scores(spec, data_root, tmp_path / "one", shard_size=8)
    assert scores(spec, data_root, tmp_path / "two", shard_size=8, device="cpu,cpu") == alone


def test_a_folder_keeps_the_size_of_its_files(spec: str, data_root: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = scores(spec, data_root, out, shard_size=5, batch_size=3)
    files = sorted(out.glob("responses/*/*.parquet"))
    assert len(files) == 7
    assert scores(spec, data_root, out) == first
    assert sorted(out.glob("responses/*/*.parquet")) == files
    record = RunRecord.read(out)
    assert record.options.shard_size == 5
    with pytest.raises(cb.UserError, match="shard size was 5, now 9"):
        scores(spec, data_root, out, shard_size=9)


def test_a_resumed_run_asks_in_the_same_batches(spec: str, data_root: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    scores(spec, data_root, out, shard_size=8)
    assert [job.batch_size for job in RunRecord.read(out).jobs] == [32]
    body = json.loads((out / "run.json").read_text())
    body["jobs"][0]["batch_size"] = 4
    body.pop("checksum")
    from cuebench.runs.record import _write_body

    _write_body(out, body)
    scores(spec, data_root, out)
    assert [job.batch_size for job in RunRecord.read(out).jobs] == [4]


def test_kept_pixels_are_used_by_the_next_run(spec: str, data_root: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = scores(spec, data_root, tmp_path / "one", cache=cache)
    assert scores(spec, data_root, tmp_path / "two", cache=cache) == first
    assert RunRecord.read(tmp_path / "two").images_decoded == 0


@pytest.mark.slow
def test_compiling_is_done_where_it_pays(
    resnet: str, data_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def run(out: str) -> None:
        told.clear()
        scores(resnet, data_root, tmp_path / out, compile=True, limit=8, on_event=lambda e: told.append(e.message))

    compiled: list[str] = []
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self: compiled.append(type(self).__name__))
    run("short")
    assert not compiled
    assert any("pays from 300" in text for text in told)
    monkeypatch.setattr(collect, "COMPILE_FROM", 0)
    run("long")
    assert compiled == ["ResNet"]


@GPU
def test_the_gpu_answers_as_the_cpu_does(resnet: str, data_root: Path, tmp_path: Path) -> None:
    """Asynchronous copies, several batches in a shard, two lanes on one GPU, compiled."""

    def logits(out: str, **options: Any) -> np.ndarray[Any, Any]:
        scores(resnet, data_root, tmp_path / out, shard_size=8, workers=2, **options)
        job = RunRecord.read(tmp_path / out).jobs[0]
        shards = Shards.of_key(tmp_path / out / "responses" / job.folder, job.key)
        stimuli = read(data_root / "cue_conflict" / "stimuli").stimuli
        return np.concatenate([shards.read(shard)[0]["logits"] for _, shard in batches(stimuli, 8)])

    cpu = logits("cpu")
    close = {"rtol": 0, "atol": 1e-4 * float(np.ptp(cpu))}
    np.testing.assert_allclose(logits("gpu", device="cuda"), cpu, **close)
    assert RunRecord.read(tmp_path / "gpu").jobs[0].batch_size == 256
    np.testing.assert_array_equal(logits("again", device="cuda"), logits("gpu", device="cuda"))
    np.testing.assert_allclose(logits("three", device="cuda", batch_size=3), cpu, **close)
    np.testing.assert_array_equal(logits("lanes", device="cuda:0,cuda:0"), logits("gpu", device="cuda"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collect, "COMPILE_FROM", 0)
        np.testing.assert_allclose(logits("compiled", device="cuda", compile=True), cpu, **close)
