"""Hints of error messages, followed: what they say to do works."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import cuebench
from cuebench.errors import UserError
from cuebench.observers.base import LoadOptions
from cuebench.observers.conformance import check_observer
from cuebench.observers.load import load
from cuebench.observers.torch.torchvision_import import import_torchvision
from cuebench.stimuli.makers.base import make

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]
torch = pytest.importorskip("torch")
CPU = LoadOptions(device="cpu", offline=True)
TEN = [f"class {i}" for i in range(10)]
TORCHVISION = ["checkpoint:{file}?arch=torchvision:{name}", "torchvision:{name}?checkpoint={file}"]


@pytest.fixture(autouse=True, scope="module")
def _torchvision():
    """timm and transformers import torchvision, which needs repair first where it was built for another torch."""
    import_torchvision()


def hint_of(spec):
    with pytest.raises(UserError) as error:
        load(spec, CPU)
    return error.value.hint


@pytest.fixture(scope="module")
def mine(tmp_path_factory, tiny):
    """A factory ``net`` of three classes, and their names."""
    return tiny.checkpointed(tmp_path_factory.mktemp("mine"))


def state_dict(mine):
    from cuebench.observers.adapters.python import factory_of

    return factory_of(f"{mine}/my_models.py:net")().state_dict()


class TestCheckpointsWithMoreThanTensors:
    """The hint is a command that keeps the tensors; it runs the code in the file, and says so."""

    def convert(self, mine, file, content):
        torch.save(content, file)
        options = f"arch=python:{mine}/my_models.py:net&labels={mine}/labels.json&preprocess.size=24"
        hint = hint_of(f"checkpoint:{file}?{options}")
        assert "trust" in hint
        assert "runs the code" in hint
        code, converted = re.search(r'python -c "(.*)"; then load (\S+)$', hint).groups()
        subprocess.run([sys.executable, "-c", code], check=True, cwd=mine)
        (observer,) = load(f"checkpoint:{converted}?{options}", CPU)
        check_observer(observer)
        return observer

    def test_what_timm_and_lightning_keep_beside_the_weights_needs_no_conversion(self, mine, tmp_path):
        """The command line and paths only hold values; the weights of a loss are no part of the network."""
        weights = {f"model.{key}": value for key, value in state_dict(mine).items()} | {"loss.weight": torch.ones(3)}
        kept = {"args": argparse.Namespace(lr=0.1), "hyper_parameters": {"root": Path("data")}}
        torch.save({"state_dict": weights, **kept}, tmp_path / "last.pth.tar")
        options = f"arch=python:{mine}/my_models.py:net&labels={mine}/labels.json&preprocess.size=24"
        (observer,) = load(f"checkpoint:{tmp_path / 'last.pth.tar'}?{options}", CPU)
        assert observer.name == "checkpoint:last"
        assert any("1 key of the checkpoint beside the network left out: loss.weight" in n for n in observer.notes)
        torch.testing.assert_close(observer.module.state_dict()["head.weight"], weights["model.head.weight"])

    def test_keys_that_the_architecture_does_not_have(self, mine, tmp_path):
        torch.save({**state_dict(mine), "teacher.weight": torch.ones(3)}, tmp_path / "net.pt")
        options = f"arch=python:{mine}/my_models.py:net&labels={mine}/labels.json&preprocess.size=24"
        spec = f"checkpoint:{tmp_path / 'net.pt'}?{options}"
        assert hint_of(spec).endswith("extra=ignore")
        (observer,) = load(f"{spec}&extra=ignore", CPU)
        assert any("teacher.weight" in note for note in observer.notes)

    def test_a_namespace_of_settings_beside_the_weights(self, mine, tmp_path):
        content = {"state_dict": state_dict(mine), "args": types.SimpleNamespace(lr=0.1), "epoch": 3}
        observer = self.convert(mine, tmp_path / "best.pth", content)
        expected = content["state_dict"]["head.weight"]
        torch.testing.assert_close(observer.module.state_dict()["head.weight"], expected)

    def test_a_state_dict_with_a_moving_average_beside_it(self, mine, tmp_path):
        zeros = {key: torch.zeros_like(value) for key, value in state_dict(mine).items()}
        content = {"model": state_dict(mine), "model_ema": zeros, "args": types.SimpleNamespace(lr=0.1)}
        observer = self.convert(mine, tmp_path / "both.pt", content)
        assert not observer.module.state_dict()["head.weight"].any()
        assert any("'model_ema' (and not 'model')" in note for note in observer.notes)


@pytest.mark.parametrize("form", TORCHVISION)
def test_weights_of_another_architecture(tmp_path, form):
    from torchvision import models

    file = tmp_path / "weights.pt"
    torch.save(models.get_model("squeezenet1_1", weights=None).state_dict(), file)
    hint = hint_of(form.format(file=file, name="mobilenet_v2"))
    spec = hint.rpartition(": ")[2].replace("SOURCE:NAME", "torchvision:squeezenet1_1")
    (observer,) = load(spec, CPU)
    assert observer.name == "checkpoint:weights"


class TestHeadsOfOtherClasses:
    """A head of ten classes needs their names, and nothing else."""

    def follow(self, folder, spec):
        hint = hint_of(spec)
        assert "its head has 10 classes" in hint
        assert "labels=FILE" in hint
        (folder / "ten.json").write_text(json.dumps(TEN))
        (observer,) = load(f"{spec}&labels={folder / 'ten.json'}", CPU)
        assert observer.labels.names == tuple(TEN)
        check_observer(observer)

    @pytest.mark.parametrize("form", ["checkpoint:{file}?arch=timm:{name}", "timm:{name}?checkpoint={file}"])
    @pytest.mark.parametrize("name", ["test_vit", "test_resnet"])
    def test_timm(self, tmp_path, form, name):
        timm = pytest.importorskip("timm")
        torch.save(timm.create_model(name, num_classes=10).state_dict(), tmp_path / "ten.pt")
        self.follow(tmp_path, form.format(file=tmp_path / "ten.pt", name=name))

    def test_two_heads(self, tmp_path):
        """A distilled network has two heads, which both have ten classes."""
        timm = pytest.importorskip("timm")
        name = "deit_tiny_distilled_patch16_224"
        torch.save(timm.create_model(name, num_classes=10).state_dict(), tmp_path / "ten.pt")
        self.follow(tmp_path, f"checkpoint:{tmp_path / 'ten.pt'}?arch=timm:{name}")

    @pytest.mark.parametrize("form", TORCHVISION)
    def test_torchvision(self, tmp_path, form):
        from torchvision import models

        name = "shufflenet_v2_x0_5"
        torch.save(models.get_model(name, num_classes=10).state_dict(), tmp_path / "ten.pt")
        self.follow(tmp_path, form.format(file=tmp_path / "ten.pt", name=name))

    def test_lite(self, tmp_path):
        lite = pytest.importorskip("efficientnet_lite_pytorch")
        torch.save(lite.EfficientNet.from_name("efficientnet-lite0", num_classes=10).state_dict(), tmp_path / "ten.pt")
        self.follow(tmp_path, f"lite:efficientnet_lite0?checkpoint={tmp_path / 'ten.pt'}")

    def test_transformers(self, tmp_path, tiny):
        transformers = pytest.importorskip("transformers")
        thousand, ten = tiny.classifier(tmp_path / "thousand"), tiny.classifier(tmp_path / "ten", classes=10)
        model = transformers.AutoModelForImageClassification.from_pretrained(ten)
        torch.save(model.state_dict(), tmp_path / "ten.pt")
        self.follow(tmp_path, f"transformers:{thousand}?checkpoint={tmp_path / 'ten.pt'}")

    def test_names_of_another_number(self, tmp_path):
        timm = pytest.importorskip("timm")
        torch.save(timm.create_model("test_vit", num_classes=10).state_dict(), tmp_path / "ten.pt")
        (tmp_path / "three.json").write_text(json.dumps(TEN[:3]))
        spec = f"checkpoint:{tmp_path / 'ten.pt'}?arch=timm:test_vit&labels={tmp_path / 'three.json'}"
        assert "its head has 10 classes" in hint_of(spec)

    def test_another_architecture_is_no_other_head(self, tmp_path):
        timm = pytest.importorskip("timm")
        torch.save(timm.create_model("test_resnet").state_dict(), tmp_path / "net.pt")
        assert "its head" not in hint_of(f"checkpoint:{tmp_path / 'net.pt'}?arch=timm:test_vit")


def test_two_files_of_one_name(mine, tmp_path, data_root):
    """Two runs of a training, each with its best.pth: they are named by their folders."""
    specs = []
    for run in ("a", "b"):
        (tmp_path / run).mkdir()
        torch.save(state_dict(mine), tmp_path / run / "best.pth")
        options = f"arch=python:{mine}/my_models.py:Net&preprocess.size=24"
        specs.append(f"checkpoint:{tmp_path / run / 'best.pth'}?{options}&labels={mine}/labels.json")
    with pytest.raises(UserError, match="is none of its classes") as error:
        cuebench.evaluate(specs, "cue_conflict", data_root=data_root, out=tmp_path / "run", device="cpu")
    assert "--set cue_conflict.classes=" in error.value.hint
    classes = error.value.hint.rpartition("=")[2]
    settings = {"cue_conflict.classes": classes}
    scores = cuebench.evaluate(
        specs, "cue_conflict", data_root=data_root, out=tmp_path / "run", device="cpu", settings=settings, resamples=100
    )
    assert {row.condition for row in scores if "way" in row.condition and "/" not in row.condition} == {
        f"{len(classes.split(','))}-way"
    }
    assert all(f"only the classes {classes.replace(',', ', ')}" in row.note for row in scores)
    assert scores.observers == ["checkpoint:a/best", "checkpoint:b/best"]
    twice = [specs[0], f"{specs[0]}&ema=false"]
    with pytest.raises(UserError, match="two observers are called 'checkpoint:best'") as error:
        cuebench.evaluate(twice, "cue_conflict", data_root=data_root, out=tmp_path / "other", device="cpu")
    assert error.value.hint.endswith("&name=NAME")


def test_a_label_map_of_a_decomposition(mine, tmp_path):
    """Images of cats and dogs, a network that knows a tabby and a retriever: the hint says where the map goes."""
    rng = np.random.default_rng(0)
    for name in ("cat", "dog"):
        for i in range(2):
            place = tmp_path / "images" / name / f"{name}{i}.png"
            place.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rng.integers(0, 256, (40, 40, 3), dtype=np.uint8)).save(place)
    data = tmp_path / "data"
    make("cue_decomposition", data, source=str(tmp_path / "images"), size=32, resize=32, steps=4, workers=1)
    (tmp_path / "classes.json").write_text(json.dumps(["tabby", "golden retriever", "sports car"]))
    spec = f"python:{mine}/my_models.py:ready?labels={tmp_path / 'classes.json'}&name=net"

    def run(out):
        return cuebench.evaluate(
            spec, "cue_decomposition", data_root=data, out=tmp_path / out, device="cpu", resamples=100
        )

    with pytest.raises(UserError) as error:
        run("first")
    place, example = re.search(r"in (\S+labels\.json), e\.g\. (\{.*\})", str(error.value)).groups()
    assert set(json.loads(example)) == {"targets"}
    targets = {"cat": ["tabby"], "dog": ["golden retriever"]}
    with open(place, "w", encoding="utf-8") as file:
        json.dump({"targets": targets}, file)
    scores = run("second")
    assert {s.observer for s in scores.rows} == {"net"}
    assert not scores.failures
