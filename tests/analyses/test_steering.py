"""Steering: the planted effect of prompts and of the order of options comes back, paired over images."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import cuebench
from cuebench.analyses.steering import steering
from cuebench.cli import invoke
from cuebench.errors import UserError

sys.path.append(str(Path(__file__).resolve().parents[1] / "endpoints"))
from chat_server import ChatServer, write_pictures

CLASSES = ("cat", "dog", "car", "clock")


def record(folder: Path, name: str, by_shape: np.ndarray) -> None:
    """Write answers to 240 conflict images: by shape where ``by_shape`` says so, else by texture."""
    images = [
        (f"{shape}{i}-{texture}{1 + i % 5}", shape, texture)
        for shape in CLASSES
        for texture in CLASSES
        if shape != texture
        for i in range(1, 21)
    ]
    with open(folder / f"{name}.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["image", "response"])
        for (image, shape, texture), chosen in zip(images, by_shape):
            writer.writerow([image, shape if chosen else texture])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("steering")
    (folder / "answers").mkdir()
    order = np.random.default_rng(0).permutation(240)
    for name, share in (("plain", 0.6), ("shape", 0.8), ("texture", 0.35)):
        record(folder / "answers", name, order < share * 240)  # nested: whoever answers by shape here does so there
    write_pictures(folder / "data", 1)
    cuebench.evaluate(
        f"recorded:{folder / 'answers'}", "cue_conflict", data_root=folder / "data", out=folder / "run", resamples=100
    )
    return folder / "run"


ROLES = {"vqa": "plain", "vqa_shape": "shape", "vqa_texture": "texture"}


def test_planted_biases_and_their_span(run: Path) -> None:
    (result,) = steering(run, prompts=ROLES)
    assert result.images == 240
    assert {p: round(e.value, 3) for p, e in result.bias.items()} == {"vqa": 0.6, "vqa_shape": 0.8, "vqa_texture": 0.35}
    assert result.span is not None
    assert result.span.value == pytest.approx(0.45)
    interval = next(i for i in result.span.intervals if i.kind == "images")
    # Nested answers: the difference is a share of 45 % of the images, with the binomial standard error of one.
    half = 1.96 * np.sqrt(0.45 * 0.55 / 240)
    assert (interval.high - interval.low) / 2 == pytest.approx(half, rel=0.1)
    unpaired = np.sqrt(sum(next(i for i in result.bias[p].intervals if i.kind == "images").width ** 2
                           for p in ("vqa_shape", "vqa_texture")))  # fmt: skip
    assert interval.width < 0.85 * unpaired


def test_unknown_names_and_runs_without_prompts(run: Path) -> None:
    with pytest.raises(UserError, match="no observer 'nobody'"):
        steering(run, prompts={"vqa": "nobody"})
    with pytest.raises(UserError, match="no model has answered under several prompts"):
        steering(run)


@pytest.mark.slow
def test_prompts_and_orders_of_a_chat_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CUEBENCH_CHAT_KEY", raising=False)
    write_pictures(tmp_path / "data", 2)
    with ChatServer() as server:
        spec = f"chat:eye?url={server.url}&pixels=16"
        specs = [spec, *(f"{spec}&{more}" for more in ("prompt=vqa_shape", "prompt=vqa_texture", "shuffle=1"))]
        cuebench.evaluate(
            specs, "cue_conflict", data_root=tmp_path / "data", out=tmp_path / "run", resamples=100, workers=0
        )
    assert invoke(["steer", str(tmp_path / "run"), "--json"]) == 0
    rows = {row["quantity"]: row for row in json.loads(capsys.readouterr().out)}
    assert {row["model"] for row in rows.values()} == {"chat:eye?pixels=16"}
    assert rows["span, vqa_shape − vqa_texture"]["value"] == 1
    assert rows["vqa − vqa_texture"]["value"] == 1
    assert rows["vqa_shape − vqa"]["value"] == 0
    assert rows["order of options: chat:eye?pixels=16&shuffle=1"]["value"] == 0
    assert rows["same answer: chat:eye?pixels=16&shuffle=1"]["value"] == 1
    assert invoke(["steer", str(tmp_path / "run"), "-p", "cue_conflict"]) == 0
    assert "paired over images" in capsys.readouterr().out
