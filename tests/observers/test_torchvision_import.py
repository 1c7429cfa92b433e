"""torchvision is imported without torch's compiler, which is the real one as soon as anybody asks for it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

if importlib.util.find_spec("torchvision") is None:
    pytest.skip("needs torchvision", allow_module_level=True)
CODE = """
import sys
from cuebench.observers.torch.torchvision_import import import_torchvision
torchvision = import_torchvision()
import torch
import torchvision.models
assert "torch._dynamo" not in sys.modules, "the compiler was imported"
torchvision.models.resnet18().eval()(torch.zeros(1, 3, 32, 32))
assert isinstance(sys.modules["torchvision.ops.roi_align"].is_compile_supported("cpu"), bool)
assert torch.compile(lambda x: x + 1, backend="eager")(torch.zeros(2)).tolist() == [1, 1]
assert import_torchvision() is torchvision
"""


@pytest.mark.xdist_group("torch")
def test_the_compiler_is_imported_when_it_is_needed() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


WRAPPED = """
from cuebench.observers.torch.torchvision_import import repaired, status
def load():
    try:
        import torchvision
    except RuntimeError as error:
        raise ModuleNotFoundError("as transformers says it") from error
    return torchvision
assert repaired(load).__name__ == "torchvision"
def fails():
    raise ModuleNotFoundError("another one") from RuntimeError("no such thing")
try:
    repaired(fails)
except ModuleNotFoundError as error:
    assert "another one" in str(error)
"""


@pytest.mark.xdist_group("torch")
def test_the_known_error_is_found_inside_another_ones() -> None:
    done = subprocess.run([sys.executable, "-c", WRAPPED], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


OWN_CODE = """
import sys
from cuebench.observers.base import LoadOptions
from cuebench.observers.load import load
(observer,) = load("python:mine.py:net?preprocess.size=32", LoadOptions(device="cpu"))
assert "torchvision" in sys.modules
assert len(observer.labels) == 1000
"""


@pytest.mark.xdist_group("torch")
def test_a_file_of_the_users_may_import_torchvision_first(tmp_path: Path) -> None:
    code = "import torchvision\n\ndef net():\n    return torchvision.models.squeezenet1_1()\n"
    (tmp_path / "mine.py").write_text(code)
    command = [sys.executable, "-c", OWN_CODE]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
