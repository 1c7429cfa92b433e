"""A file, a folder or a bare name instead of SOURCE:NAME: the error says what to write, and that works."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from cuebench.errors import UserError
from cuebench.observers.base import Batch
from cuebench.observers.guess import likely_spec
from cuebench.observers.load import load
from cuebench.types import Stimulus


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("net.onnx?size=64", "onnx:net.onnx?size=64"),
        ("best.pth", "checkpoint:best.pth?arch="),
        ("last.pth.tar", "checkpoint:last.pth.tar?arch="),
        ("model.safetensors", "checkpoint:model.safetensors?arch="),
        ("people.csv", "recorded:people.csv"),
        ("resnet50", "timm:resnet50 or torchvision:resnet50"),
    ],
)
def test_what_is_meant(text: str, meant: str) -> None:
    with pytest.raises(UserError, match="has no source") as error:
        load(text)
    assert meant in error.value.hint


def test_a_source_without_a_name() -> None:
    with pytest.raises(UserError, match="has no name") as error:
        load("timm:")
    assert error.value.hint == "name one: timm:NAME; all sources: cuebench list observers"


def test_functions_of_a_file_are_named() -> None:
    Path("one.py").write_text("def mine():\n    return 1\n")
    Path("two.py").write_text("import os\ndef a():\n    pass\ndef b():\n    pass\ndef _hidden():\n    pass\n")
    assert likely_spec("one.py") == "python:one.py:mine"
    assert likely_spec("two.py").endswith("one of a, b")
    with pytest.raises(UserError, match="does not name a factory") as error:
        load("python:one.py")
    assert "python:one.py:mine" in error.value.hint
    assert "a function in it" in likely_spec("missing.py")


def test_folders() -> None:
    Path("vit").mkdir()
    assert likely_spec("vit") == "recorded:vit"
    Path("vit/config.json").write_text("{}")
    assert likely_spec("vit") == "transformers:vit"


def test_programs_are_told_from_weights() -> None:
    for name, inside in (("script.pt", "constants.pkl"), ("new.pt2", "archive_format"), ("weights.pt", "data.pkl")):
        with zipfile.ZipFile(name, "w") as archive:
            archive.writestr(f"{name.partition('.')[0]}/{inside}", "")
    assert likely_spec("script.pt") == "torchscript:script.pt"
    assert "torch.export.load('new.pt2')" in likely_spec("new.pt2")
    assert likely_spec("weights.pt").startswith("checkpoint:weights.pt?arch=")


@pytest.mark.torch
def test_a_program_of_torch_export_can_be_wrapped() -> None:
    torch = pytest.importorskip("torch")
    import cuebench

    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 3)).eval()
    program = torch.export.export(net, (torch.zeros(1, 3, 4, 4),))
    torch.export.save(program, "net.pt2")
    with pytest.raises(UserError, match=r"torch\.export, not by torch\.jit") as error:
        load("torchscript:net.pt2")
    assert "cuebench.wrap(torch.export.load('net.pt2').module()" in error.value.hint
    module = torch.export.load("net.pt2").module()
    observer = cuebench.wrap(module, preprocess=cuebench.Preprocess(size=4), labels=["a", "b", "c"], name="exported")
    picture = np.zeros((1, 4, 4, 3), np.uint8)
    answers = observer.respond(Batch([Stimulus("a")], picture), ["logits"])
    assert answers["logits"].shape == (1, 3)
