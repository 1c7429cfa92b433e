"""Layers in one pass, random initialisations, and what could serve as features; torch modules of a few numbers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from cuebench.errors import UserError
from cuebench.labels import LabelSpace
from cuebench.observers.base import Batch, complete
from cuebench.observers.baselines import random_initialisations
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.features import suggested_layers
from cuebench.types import Stimulus

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]


class Net(torch.nn.Module):
    """Two blocks in a sequence, a shared activation, a head, and a layer that is never used."""

    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 4, 3)
        self.act = torch.nn.ReLU()
        self.body = torch.nn.Sequential(torch.nn.Conv2d(4, 5, 3), torch.nn.Conv2d(5, 6, 3))
        self.idle = torch.nn.Linear(2, 2)
        self.head = torch.nn.Linear(6, 3)

    def forward(self, x):
        x = self.act(self.body(self.act(self.stem(x))))
        return self.head(x.mean(dim=(2, 3)))


@pytest.fixture
def observer():
    from cuebench.observers.torch.observer import TorchObserver

    torch.manual_seed(0)
    labels = LabelSpace("three", ("a", "b", "c"))
    return TorchObserver(Net(), name="net", preprocess=Preprocess(size=16), labels=labels, device="cpu")


def images(n=4):
    return np.random.default_rng(0).integers(256, size=(n, 16, 16, 3), dtype=np.uint8)


BATCH = [Stimulus(str(i)) for i in range(4)]


def test_all_blocks_are_read_in_the_order_of_the_pass(observer):
    observer = observer.reading(["all"])
    assert observer.read == ("stem", "body.0", "body.1", "act", "head")
    assert any("idle" in note for note in observer.notes)
    found = observer.respond(Batch(BATCH, images()), ["features"])
    assert {k: v.shape for k, v in found.items()} == {
        "features": (4, 6),
        "features:stem": (4, 4),
        "features:body.0": (4, 5),
        "features:body.1": (4, 6),
        "features:act": (4, 6),
        "features:head": (4, 3),
    }
    net = observer.module
    with torch.inference_mode():
        stem = net.stem(observer.pixels(images())).mean(dim=(2, 3)).numpy()
        logits = net(observer.pixels(images())).numpy()
    assert np.allclose(found["features:stem"], stem, atol=1e-6)
    assert np.allclose(found["features:head"], logits, atol=1e-6)
    assert np.allclose(found["features:act"], found["features"], atol=1e-6)


def test_layers_change_the_key_and_leave_no_hooks(observer):
    before = observer.fingerprint
    observer = observer.reading(["body.0"])
    assert observer.fingerprint != before
    observer.respond(Batch(BATCH, images()), ["features"])
    assert all(not part._forward_hooks for part in observer.module.modules())
    assert set(observer.respond(Batch(BATCH, images()), ["logits"])) == {"logits"}


def test_reading_leaves_the_callers_object_alone(observer):
    before, notes = observer.fingerprint, observer.notes
    reader = observer.reading(["all"])
    assert reader.module is observer.module
    assert (observer.read, observer.fingerprint, observer.notes) == ((), before, notes)
    assert set(observer.respond(Batch(BATCH, images()), ["features"])) == {"features"}


def test_wrong_layers_are_named(observer):
    with pytest.raises(UserError, match=r"Did you mean 'body\.0'"):
        observer.reading(["body.00"])
    with pytest.raises(UserError, match="take no part in the forward pass: idle"):
        observer.reading(["stem", "idle"])


def test_an_observer_without_features_hears_which_layer_could_serve(observer):
    assert suggested_layers(observer).endswith("body.0, body.1, idle, head")
    file = complete(SimpleNamespace(outputs=lambda: ["logits", "pool"]))
    assert suggested_layers(file) == "; name an output of the file with ?features=OUTPUT; it has logits, pool"


def test_specs_of_random_initialisations():
    found = random_initialisations("torchvision:resnet50?weights=IMAGENET1K_V1&features=layer3", "net", 2)
    assert found[1] == "torchvision:resnet50?features=layer3&weights=random&seed=1&name=net%23random1"
    spec = "checkpoint:/a/m.safetensors?arch=torchvision:mobilenet_v2&labels=x.json"
    assert random_initialisations(spec, "m", 1) == [
        "torchvision:mobilenet_v2?labels=x.json&weights=random&seed=0&name=m%23random0"
    ]
    with pytest.raises(UserError, match="onnx observers cannot be made without their weights"):
        random_initialisations("onnx:a.onnx", "a", 1)


def test_a_run_with_layers_and_baselines(tmp_path):
    """From the call of a user to the rows: the adapter makes the random networks, one pass reads all layers."""
    import cuebench

    rows = cuebench.evaluate(
        "torchvision:squeezenet1_1?weights=random&seed=9&name=net&preprocess.size=64",
        "triplets",
        out=tmp_path,
        settings={
            "triplets.experiments": "3",
            "triplets.similarity": "cosine",
            "triplets.layers": "features.3,features.6",
            "triplets.baselines": 2,
        },
        limit=24,
        resamples=100,
        workers=0,
        shard_size=12,
        device="cpu",
    )
    conditions = {r.condition for r in rows if r.observer == "net"}
    assert any(c.endswith("/layer=features.3") for c in conditions)
    assert any(c.endswith("/random_initialisation") for c in conditions)
    assert {r.observer for r in rows} == {"net", "net#random0", "net#random1"}
    assert any(r.metric == "triplet_bias_gain" for r in rows)
    assert not rows.failures
