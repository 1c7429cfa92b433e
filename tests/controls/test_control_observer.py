"""``control:NAME``: found by name, seed and code; a network of its own size; trained where it is missing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cuebench.controls.train import train_control
from cuebench.errors import UserError
from cuebench.observers import control_files
from cuebench.observers.base import Batch
from cuebench.observers.control_files import CONTROLS, weights_file, weights_folder
from cuebench.observers.load import load as load_spec
from cuebench.types import Stimulus

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def write_control(name: str, folder: Path, seed: int = 0, *, weights: int = 0) -> Path:
    """Write a control with random weights, as training would."""
    from safetensors.torch import save_file

    from cuebench.controls.train import label_space
    from cuebench.observers.torch.models.small import ARCHITECTURES

    architecture = CONTROLS[name].architecture
    labels = label_space(architecture)
    torch.manual_seed(weights)
    path = weights_file(name, seed, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(ARCHITECTURES[architecture](len(labels)).state_dict(), path)
    record = {"accuracy": 0.5, "labels": {"names": labels.names, "ids": labels.ids}}
    path.with_suffix(".json").write_text(json.dumps(record))
    return path


def load(spec: str):
    (observer,) = load_spec(spec)
    return observer


@pytest.mark.parametrize("name", ["shape", "vit_patch"])
def test_a_classifier_answers_in_the_classes_of_the_toy_world(name, tmp_path):
    write_control(name, tmp_path)
    observer = load(f"control:{name}?folder={tmp_path}")
    assert observer.labels.find("airplane") == observer.labels.find("n03530642") == 0
    assert observer.preprocess.hw == (64, 64)
    answers = observer.respond(Batch([Stimulus("x")], np.zeros((1, 64, 64, 3), np.uint8)), ["logits", "features"])
    assert answers["logits"].shape == (1, 8)
    assert answers["features"].shape[0] == 1
    assert "trained control" in observer.notes[0]


def test_it_refuses_another_size(tmp_path):
    from cuebench.observers.input_size import accepts

    write_control("shape", tmp_path)
    observer = load(f"control:shape?folder={tmp_path}")
    assert not accepts(observer, (224, 224), ["logits"])


def test_a_segmenter_answers_with_masks(tmp_path):
    write_control("segment_shape", tmp_path)
    observer = load(f"control:segment_shape?folder={tmp_path}")
    assert observer.labels.names[0] == "background"
    assert len(observer.labels) == 9
    answers = observer.respond(Batch([Stimulus("x")], np.zeros((1, 96, 96, 3), np.uint8)), ["masks"])
    assert np.asarray(answers["masks"][0]).shape == (96, 96)


def test_weights_decide_the_fingerprint(tmp_path):
    prints = []
    for weights in (0, 0, 1):
        write_control("shape", tmp_path, weights=weights)
        prints.append(load(f"control:shape?folder={tmp_path}").fingerprint)
    assert prints[0] == prints[1] != prints[2]


def test_other_code_or_another_seed_is_another_file(tmp_path, monkeypatch):
    path = weights_file("shape", 0, tmp_path)
    assert weights_file("shape", 1, tmp_path) != path
    monkeypatch.setattr(control_files, "code_hash", lambda: "0" * 64)
    assert weights_file("shape", 0, tmp_path) != path


def test_the_folder_is_named_or_that_of_the_weights(monkeypatch, tmp_path):
    monkeypatch.setenv("CUEBENCH_WEIGHTS", str(tmp_path))
    assert weights_folder() == tmp_path / "controls"
    assert weights_folder("other") == Path("other")


def test_an_unknown_control_is_named():
    with pytest.raises(UserError, match="shape"):
        load("control:shap")


def test_a_record_that_is_none_is_refused(tmp_path):
    path = write_control("shape", tmp_path)
    path.with_suffix(".json").write_text("[]")
    with pytest.raises(UserError, match="no record of a control"):
        load(f"control:shape?folder={tmp_path}")
    with pytest.raises(UserError, match="no record of a control") as error:
        train_control("shape", tmp_path)
    assert path.with_suffix(".json").name in error.value.message
    assert path.name in error.value.hint


def test_what_cannot_be_trained_is_an_error_with_the_command(tmp_path, monkeypatch):
    from cuebench.observers.adapters import control

    monkeypatch.setattr(control.sys, "executable", "/bin/false")
    with pytest.raises(UserError, match="could not be trained"):
        load(f"control:shape?folder={tmp_path}")


@pytest.mark.parametrize(
    ("said", "reason"),
    [("warning\nerror: cannot write w: no such folder\n  → choose another folder\n", "cannot write w: no such folder"),
     ("", "status 2"), ("  → choose another folder\n", "status 2")],
)  # fmt: skip
def test_the_reason_why_a_control_cannot_be_trained_is_named(tmp_path, monkeypatch, said, reason):
    from cuebench.observers.adapters import control

    done = control.subprocess.CompletedProcess([], 2, "", said)
    monkeypatch.setattr(control.subprocess, "run", lambda *words, **options: done)
    with pytest.raises(UserError) as error:
        load(f"control:shape?folder={tmp_path}")
    assert error.value.message.endswith(f"could not be trained: {reason}")
    assert "CUEBENCH_WEIGHTS=FOLDER" in error.value.hint
    assert "folder=FOLDER" in error.value.hint
