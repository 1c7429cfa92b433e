"""Run folders of format 1 keep reading: their conditions, their options, their scores."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cuebench as cb
from cuebench.runs.record import RunRecord
from cuebench.runs.results import read_scores, write_scores
from cuebench.types import Score

CLASSES = ("cat", "dog", "car", "clock")


def always_cat(name: str, labels: tuple[str, ...]) -> cb.Observer:
    def respond(pixels: np.ndarray) -> np.ndarray:
        return np.eye(len(labels), dtype=np.float32)[[0] * len(pixels)]

    return cb.wrap(respond, preprocess=cb.Preprocess(size=32), labels=labels, name=name, fingerprint=name)


def write_as_format_1(out: Path) -> None:
    """Turn a run folder into what cuebench wrote before conditions were named by the number of classes."""
    earlier = {"4-way": "partial", "6-way": "full", "1000-way": "full"}

    def rename(row: Score, full: bool) -> Score:
        space, slash, rest = row.condition.partition("/")
        return replace(row, condition=("full" if full else earlier.get(space, space)) + slash + rest)

    rows = [rename(row, full=False) for row in read_scores(out)]
    # An observer with the classes of the stimuli had the same number under both names.
    rows += [rename(row, full=True) for row in read_scores(out) if row.observer == "four" and row.condition == "4-way"]
    write_scores(out, rows, {})
    body = json.loads((out / "run.json").read_text())
    body |= {"format": 1, "seed": body["arguments"]["seed"], "batch_size": body["arguments"].pop("shard_size")}
    body["arguments"] |= {"features": "", "baselines": 0, "batch_size": body["batch_size"]}
    for name in ("protocols", "files", "checksum"):
        del body[name]
    (out / "run.json").write_text(json.dumps(body))


@pytest.fixture
def folder(data_root: Path, tmp_path: Path) -> Path:
    people = tmp_path / "people.csv"
    people.write_text("subject,stimulus,decision,rt\nanna,cat1-dog2,cat,0.9\nanna,dog1-cat2,cat,0.8\n")
    observers = [always_cat("six", (*CLASSES, "oak", "elm")), always_cat("four", CLASSES), f"recorded:{people}"]
    out = tmp_path / "run"
    cb.evaluate(observers, "cue_conflict", data_root=data_root, out=out, resamples=100, workers=0, shard_size=8)
    return out


def comparable(rows: list[Score] | cb.Scores) -> list[str]:
    return sorted(repr(row) for row in rows)


def test_conditions_are_named_by_the_number_of_classes(folder: Path) -> None:
    before = read_scores(folder)
    assert {(r.observer, r.condition.partition("/")[0]) for r in before} == {
        ("six", "4-way"), ("six", "6-way"), ("four", "4-way"), ("anna", "4-way"), ("anna", "1000-way"),
    }  # fmt: skip
    write_as_format_1(folder)
    on_disk = json.loads((folder / "scores.json").read_text())
    assert {r["condition"].partition("/")[0] for r in on_disk} == {"partial", "full"}
    assert comparable(read_scores(folder)) == comparable(before)
    assert comparable(cb.load(folder)) == comparable(before)
    assert cb.load(folder).value("six", "shape_accuracy") == cb.load(folder).value("six", "shape_accuracy", "4-way")


def test_an_earlier_folder_is_scored_and_continued(folder: Path, data_root: Path) -> None:
    before = read_scores(folder)
    write_as_format_1(folder)
    assert comparable(cb.score(folder)) == comparable(before)
    assert comparable(read_scores(folder)) == comparable(before)
    asked: list[object] = []
    again = cb.evaluate(
        [always_cat("six", (*CLASSES, "oak", "elm")), always_cat("four", CLASSES)], "cue_conflict",
        data_root=data_root, out=folder, resamples=100, workers=0, on_event=asked.append,
    )  # fmt: skip
    assert again.record.images_decoded == 0
    assert json.loads((folder / "run.json").read_text())["format"] == 4


@pytest.fixture
def record(folder: Path) -> Callable[..., RunRecord]:
    def read(**arguments: object) -> RunRecord:
        write_as_format_1(folder)
        body = json.loads((folder / "run.json").read_text())
        body["arguments"] |= arguments
        (folder / "run.json").write_text(json.dumps(body))
        return RunRecord.read(folder)

    return read


def test_layers_and_baselines_become_options_of_triplets(record: Callable[..., RunRecord]) -> None:
    earlier = record(protocols=["triplets"], features="layer3,avgpool", baselines=2, settings={"triplets.draw": "all"})
    settings = {"triplets.layers": "layer3,avgpool", "triplets.baselines": 2, "triplets.draw": "all"}
    assert earlier.options.settings == settings
    assert earlier.options.shard_size == 8
    assert earlier.protocols["triplets"] == {"origin": "cuebench"}


def test_layers_of_other_protocols_are_dropped(record: Callable[..., RunRecord]) -> None:
    assert record(features="layer3").options.settings == {}
