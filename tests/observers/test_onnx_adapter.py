"""onnx: any batch size, any layout, every mistake named."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cuebench.errors import UserError
from cuebench.observers.base import Batch, LoadOptions
from cuebench.observers.conformance import check_observer
from cuebench.observers.load import load
from cuebench.types import Stimulus

pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")
CPU = LoadOptions(device="cpu")


def save(path, shape=("N", 3, 16, 16), outputs=("logits", "features"), external=False):
    """Write a classifier: the mean of each channel, times a matrix 3×4."""
    from onnx import TensorProto, helper, numpy_helper

    axes = [2, 3] if shape[1] == 3 else [1, 2]
    weights = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("ReduceMean", ["pixels"], ["features"], axes=axes, keepdims=0),
            helper.make_node("MatMul", ["features", "weights"], ["logits"]),
        ],
        "tiny",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(o, TensorProto.FLOAT, [shape[0], 4 if o == "logits" else 3]) for o in outputs],
        [numpy_helper.from_array(weights, "weights")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=10)
    options = {"save_as_external_data": True, "location": "tensors.bin", "size_threshold": 0} if external else {}
    onnx.save(model, path, **options)
    (path.parent / "labels.json").write_text(json.dumps(["a", "b", "c", "d"]))
    return f"onnx:{path}?labels={path.parent}/labels.json"


def answer(observer, n=5, needs=("logits",)):
    pixels = np.random.default_rng(1).integers(0, 256, (n, *observer.preprocess.hw, 3), dtype=np.uint8)
    return observer.respond(Batch([Stimulus(str(i)) for i in range(n)], pixels), needs)


@pytest.mark.parametrize("shape", [("N", 3, 16, 16), (1, 3, 16, 16), (4, 3, 16, 16), ("N", 16, 16, 3), (1, 16, 16, 3)])
def test_every_batch_size_and_layout_answers_alike(tmp_path, shape):
    (observer,) = load(save(tmp_path / "net.onnx", shape) + "&features=features", CPU)
    assert observer.preprocess.hw == (16, 16)
    check_observer(observer)
    (plain,) = load(save(tmp_path / "plain.onnx"), CPU)
    np.testing.assert_allclose(answer(observer)["logits"], answer(plain)["logits"], atol=1e-6)
    assert answer(observer, needs=("features", "logits"))["features"].shape == (5, 3)


def test_what_is_assumed_is_noted(tmp_path):
    spec = save(tmp_path / "net.onnx")
    (observer,) = load(spec, CPU)
    assert observer.notes == ("assumed, because an ONNX file does not say: ImageNet's mean, std, resize",)
    (told,) = load(spec + "&mean=0.5&std=0.5&resize=20&name=told", CPU)
    assert (told.name, told.notes, told.preprocess.resize) == ("told", (), 20)
    assert told.fingerprint == observer.fingerprint  # the weights are the same; the preprocessing has its own hash
    assert told.preprocess.fingerprint != observer.preprocess.fingerprint


def test_a_free_input_size_is_chosen_by_the_user(tmp_path):
    spec = save(tmp_path / "net.onnx", ("N", 3, "H", "W"))
    assert load(spec, CPU)[0].preprocess.hw == (224, 224)
    chosen = load(spec + "&size=32", CPU)[0].preprocess
    assert (chosen.hw, chosen.resize) == ((32, 32), 37)


def test_tensors_in_a_folder_below_are_part_of_the_fingerprint(tmp_path):
    spec = save(tmp_path / "net.onnx", external=True)
    (tmp_path / "weights").mkdir()
    moved = (tmp_path / "tensors.bin").rename(tmp_path / "weights" / "tensors.bin")
    model = onnx.load(tmp_path / "net.onnx", load_external_data=False)
    for tensor in model.graph.initializer:
        next(e for e in tensor.external_data if e.key == "location").value = "weights/tensors.bin"
    onnx.save(model, tmp_path / "net.onnx")
    before = load(spec, CPU)[0].fingerprint
    content = bytearray(moved.read_bytes())
    content[0] ^= 1
    moved.write_bytes(content)
    assert load(spec, CPU)[0].fingerprint != before


def test_tensors_beside_the_file_are_part_of_the_fingerprint(tmp_path):
    spec = save(tmp_path / "net.onnx", external=True)
    before = load(spec, CPU)[0].fingerprint
    data = bytearray((tmp_path / "tensors.bin").read_bytes())
    data[0] ^= 1
    (tmp_path / "tensors.bin").write_bytes(data)
    assert load(spec, CPU)[0].fingerprint != before


def test_mistakes(tmp_path):
    spec = save(tmp_path / "net.onnx")
    with pytest.raises(UserError, match=r"takes 16×16 pixels, not size=32"):
        load(spec + "&size=32", CPU)
    with pytest.raises(UserError, match="Did you mean 'features'"):
        load(spec + "&features=feature", CPU)
    with pytest.raises(UserError, match="gives 4 logits, but its label space 'imagenet1k' has 1000"):
        answer(load(f"onnx:{tmp_path}/net.onnx", CPU)[0])
    with pytest.raises(UserError, match="cannot give"):
        answer(load(spec, CPU)[0], needs=("features",))
    (tmp_path / "page.onnx").write_text("<html>")
    with pytest.raises(UserError, match=r"page.onnx cannot be loaded by onnxruntime"):
        load(f"onnx:{tmp_path}/page.onnx", CPU)
    save(tmp_path / "flat.onnx", ("N", 3, 16, 16, 2))
    with pytest.raises(UserError, match="expected N×3×H×W"):
        load(f"onnx:{tmp_path}/flat.onnx", CPU)


def test_precision_is_the_files_own(tmp_path):
    (observer,) = load(save(tmp_path / "net.onnx"), LoadOptions(device="cpu", precision="bfloat16"))
    assert "ignored" in observer.notes[-1]


def test_where_it_runs():
    from cuebench.observers.adapters.onnx import CUDA, _providers

    cpu, both = ["CPUExecutionProvider"], [CUDA, "CPUExecutionProvider"]
    assert _providers("cuda:1", both) == [(CUDA, {"device_id": "1"}), "CPUExecutionProvider"]
    assert _providers("cuda", both) == _providers("auto", both) == both
    assert _providers("mps", both) == _providers("cpu", both) == _providers("auto", cpu) == cpu
    with pytest.raises(UserError, match="no CUDA provider"):
        _providers("cuda:0", cpu)
    with pytest.raises(UserError, match="unknown device 'cuda:x'"):
        _providers("cuda:x", both)
