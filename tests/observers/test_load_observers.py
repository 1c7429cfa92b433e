"""From a spec to an adapter: names, extras, and nothing heavy imported for a list."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from cuebench.errors import MissingExtra, UserError
from cuebench.observers.base import Adapter, LoadOptions, Spec
from cuebench.observers.load import load, missing_packages, require
from cuebench.registry import adapters

OURS = ("checkpoint", "lite", "onnx", "open_clip", "python", "timm", "torchscript", "torchvision", "transformers")


def test_all_sources_are_found():
    assert set(OURS) <= set(adapters.names())


@pytest.mark.parametrize("name", OURS)
def test_adapter_says_what_it_is(name):
    adapter = adapters.get(name)
    assert isinstance(adapter, Adapter)
    assert adapter.form.startswith(f"{name}:")
    assert adapter.examples
    assert all(Spec.parse(e).scheme == name for e in adapter.examples)
    assert 20 < len(adapters.summary(name)) < 120


def test_listing_imports_neither_torch_nor_onnxruntime():
    code = (
        "import sys; from cuebench.registry import adapters\n"
        "forms = [adapters.get(n).form + adapters.summary(n) for n in adapters]\n"
        "heavy = {'torch', 'timm', 'transformers', 'onnxruntime', 'open_clip'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_unknown_source_and_missing_source():
    with pytest.raises(UserError, match="Did you mean 'timm'"):
        load("tim:resnet50")
    with pytest.raises(UserError, match="has no source"):
        load("resnet50")


def test_missing_package_is_found_without_importing(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "timm" else real(name, *a))
    with pytest.raises(MissingExtra, match="needs the extra 'torch': the Python package 'timm'") as error:
        load("timm:resnet50", LoadOptions())
    assert error.value.hint == "pip install 'cuebench[torch]'"
    assert missing_packages(adapters.get("timm")) == ["timm"]


def test_require_names_the_extra():
    with pytest.raises(MissingExtra, match="extra 'lite'"):
        require("this", "lite", ("no_such_package_at_all",))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("onnx:missing.onnx", "ONNX file missing.onnx does not exist"),
        ("onnx:x.onnx?sise=3", "'sise'. Did you mean 'size'"),
        ("lite:efficientnet_lite7", "Did you mean 'efficientnet_lite"),
        ("python:no_such_module_here:f", "no Python module 'no_such_module_here'"),
        ("python:nothing", "does not name a factory"),
        ("python:nowhere.py:f", "there is no Python file nowhere.py"),
    ],
)
def test_mistakes_are_named(spec, message):
    with pytest.raises(UserError, match=message):
        load(spec)
