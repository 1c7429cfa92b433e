"""Models whose last layer is softmax: the same scores as their logits give, and a note that says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuebench as cb
from cuebench.labels import softmax
from cuebench.runs.measuring import PROBABILITIES

CLASSES = tuple(f"{name} {k}" for name in ("cat", "dog", "car", "clock") for k in range(3))
MEMBERS = {name: [f"{name} {k}" for k in range(3)] for name in ("cat", "dog", "car", "clock")}


def model(*, probabilities: bool, name: str, probabilities_of: Any = None, changed: Any = np.asarray) -> cb.Observer:
    """A model with several classes for each target, so that the mean of probabilities matters."""
    weights = np.random.default_rng(3).normal(size=(3, len(CLASSES)))

    def respond(pixels: np.ndarray) -> np.ndarray:
        means = pixels.mean(axis=(2, 3))
        logits = (means - means.mean()) @ weights / 5
        answers = softmax(logits) if probabilities else logits
        if probabilities_of is not None:
            answers = np.where(probabilities_of(means), softmax(logits), logits)
        return changed(answers).astype(np.float32)

    plain = cb.Preprocess(size=32, mean=(0, 0, 0), std=(1, 1, 1), scale=1)
    return cb.wrap(respond, preprocess=plain, labels=CLASSES, name=name, fingerprint=name)


@pytest.fixture
def mapped(data_root: Path) -> Path:
    (data_root / "cue_conflict" / "labels.json").write_text(json.dumps({"targets": MEMBERS}))
    return data_root


def test_probabilities_are_scored_as_the_logits_they_come_from(mapped: Path, tmp_path: Path) -> None:
    observers = [model(probabilities=False, name="logits"), model(probabilities=True, name="softmax")]
    scores = cb.evaluate(observers, "cue_conflict", data_root=mapped, out=tmp_path / "run", workers=1)
    rows: dict[str, dict[object, object]] = {"logits": {}, "softmax": {}}
    for row in scores.rows:
        rows[row.observer][row.condition, row.metric, row.ci_kind] = row
    assert rows["logits"].keys() == rows["softmax"].keys()
    for key, plain in rows["logits"].items():
        other = rows["softmax"][key]
        assert (other.value, other.n) == pytest.approx((plain.value, plain.n), nan_ok=True), key
        assert PROBABILITIES in other.note
        assert PROBABILITIES not in plain.note
    trials = scores.trials().table().to_pylist()
    answers = {o: [(t["stimulus"], t["decision"]) for t in trials if t["observer"] == o] for o in rows}
    assert len(answers["logits"]) > 20
    assert answers["logits"] == answers["softmax"]


def test_answers_of_both_kinds_are_no_answers(mapped: Path, tmp_path: Path) -> None:
    half = model(probabilities=False, name="half", probabilities_of=lambda means: means[:, :1] > 60)
    with pytest.warns(RuntimeWarning, match="half.* are probabilities in one file and logits in another"):
        scores = cb.evaluate(
            [half, "ideal:shape"], "cue_conflict", data_root=mapped, out=tmp_path / "run", shard_size=2
        )
    assert not [row.value for row in scores.rows if row.observer == "half" and row.value == row.value]
    assert scores.value("ideal:shape", "shape_bias") == 1


@pytest.mark.parametrize("rounded", [lambda p: np.round(p * 100, 1), lambda p: np.floor(p * 100) / 100])
def test_rounded_probabilities_are_refused(mapped: Path, tmp_path: Path, rounded: Any) -> None:
    rough = model(probabilities=True, name="rough", changed=rounded)
    with pytest.warns(RuntimeWarning, match="rough: .* look like probabilities in percent, or rounded ones"):
        scores = cb.evaluate([rough, "ideal:shape"], "cue_conflict", data_root=mapped, out=tmp_path / "run")
    assert not [row.value for row in scores.rows if row.observer == "rough" and row.value == row.value]
