"""Observers from segmentation_models_pytorch, MMSegmentation and RobustBench.

The last two are stand-ins of the same interface (``fake_mmseg``, ``fake_robustbench``): the packages do not install
beside ours.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).parent))  # pytest's importlib mode adds no folder to the path

import fake_mmseg  # noqa: E402
import fake_robustbench  # noqa: E402

from cuebench.errors import UserError  # noqa: E402
from cuebench.observers.base import Batch, LoadOptions  # noqa: E402
from cuebench.observers.load import load  # noqa: E402
from cuebench.observers.torch.torchvision_import import import_torchvision  # noqa: E402
from cuebench.types import Stimulus  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]
CPU = LoadOptions(device="cpu", offline=True)


def shown(count, height, width):
    images = np.random.default_rng(0).integers(0, 256, (count, height, width, 3), np.uint8)
    return Batch([Stimulus(str(i)) for i in range(count)], images)


# --- segmentation_models_pytorch ------------------------------------------------------------------------------------


@pytest.mark.slow  # the library imports for some seconds
def test_smp_architecture_with_a_checkpoint_answers_as_the_library(tmp_path):
    import_torchvision()
    smp = pytest.importorskip("segmentation_models_pytorch")
    torch.manual_seed(0)
    model = smp.create_model("fpn", "resnet18", encoder_weights=None, classes=3).eval()
    torch.save({"state_dict": model.state_dict()}, tmp_path / "w.pt")
    labels = tmp_path / "rgb.json"
    labels.write_text('["red", "green", "blue"]')
    spec = f"smp:fpn?encoder=resnet18&checkpoint={tmp_path / 'w.pt'}&labels={labels}&preprocess.size=64"
    (observer,) = load(f"{spec}&preprocess.resize=64x64", CPU)
    assert observer.labels.names == ("red", "green", "blue")
    batch = shown(2, 64, 64)
    pixels = torch.from_numpy(observer.preprocess.normalise(batch.images))
    with torch.inference_mode():
        expected = model(pixels).argmax(1).numpy()
    np.testing.assert_array_equal(observer.respond(batch, ["masks"])["masks"], expected)
    folder = tmp_path / "saved"
    model.save_pretrained(folder)
    (saved,) = load(f"smp:{folder}?labels={labels}&preprocess.size=64&preprocess.resize=64x64", CPU)
    np.testing.assert_array_equal(saved.respond(batch, ["masks"])["masks"], expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("smp:unet", "nothing says what its classes are"),
        ("smp:unet?labels=voc21", "has no weights"),
        ("smp:unett?labels=voc21&weights=random", "Did you mean 'unet'"),
        ("smp:unet?labels=voc21&weights=random&encoder=resnet19", "Did you mean 'resnet18'"),
    ],
)
def test_smp_mistakes_name_the_next_step(spec, message):
    import_torchvision()
    pytest.importorskip("segmentation_models_pytorch")
    with pytest.raises(UserError, match=message):
        load(spec, CPU)


# --- MMSegmentation -------------------------------------------------------------------------------------------------


CONFIG = """
dataset_type = 'CityscapesDataset'
model = dict(
    data_preprocessor=dict(mean=[10.0, 20.0, 30.0], std=[1.0, 2.0, 4.0], bgr_to_rgb={rgb}),
    decode_head=dict(num_classes=19), test_cfg=dict(mode='whole'))
test_pipeline = [dict(type='LoadImageFromFile'), dict(type='Resize', scale=(64, 32), keep_ratio=True)]
"""


@pytest.fixture
def mmseg_folder(tmp_path, monkeypatch):
    fake_mmseg.install(monkeypatch)
    config = tmp_path / "tiny_cityscapes-32x64.py"
    config.write_text(CONFIG.format(rgb=True))
    torch.manual_seed(0)
    weight = torch.nn.Conv2d(3, 19, 1, bias=False).weight.detach()
    torch.save({"state_dict": {"decode_head.weight": weight}}, tmp_path / "tiny_cityscapes-32x64_20260101-abc.pth")
    return config, weight


@pytest.mark.parametrize("rgb", [True, False])
def test_mmseg_reads_size_normalisation_channels_and_classes_from_the_configuration(mmseg_folder, rgb):
    config, weight = mmseg_folder
    config.write_text(CONFIG.format(rgb=rgb))
    (observer,) = load(f"mmseg:{config.with_suffix('')}", CPU)
    assert observer.labels.name == "cityscapes"
    assert observer.preprocess.hw == (32, 64)
    batch = shown(2, 32, 64)
    pixels = batch.images.astype(np.float32)
    pixels = pixels if rgb else pixels[..., ::-1]
    normal = torch.from_numpy(np.ascontiguousarray((pixels - (10, 20, 30)) / (1, 2, 4)).astype(np.float32))
    expected = torch.nn.functional.conv2d(normal.permute(0, 3, 1, 2), weight).argmax(1).numpy()
    assert (observer.respond(batch, ["masks"])["masks"] == expected).mean() > 0.999


def test_mmseg_names_what_is_missing(mmseg_folder, tmp_path):
    config, _ = mmseg_folder
    with pytest.raises(UserError, match="mim download mmsegmentation --config fcn"):
        load(f"mmseg:{tmp_path / 'fcn'}", CPU)
    config.write_text(CONFIG.format(rgb=True).replace("CityscapesDataset", "OtherDataset"))
    with pytest.raises(UserError, match="the classes of OtherDataset"):
        load(f"mmseg:{config}", CPU)
    next(tmp_path.glob("*.pth")).unlink()
    with pytest.raises(UserError, match="no weights beside"):
        load(f"mmseg:{config}", CPU)
    (random,) = load(f"mmseg:{config}?weights=random&labels=cityscapes", CPU)
    assert "random weights, seed 0" in random.notes


@pytest.mark.parametrize("scheme", ["mmseg", "robustbench"])
def test_a_zoo_that_is_not_installed_says_how_to_install_it(scheme, monkeypatch):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == scheme else find(name, *a))
    with pytest.raises(UserError, match=r"(mim|pip) install"):
        load(f"{scheme}:anything", CPU)


# --- RobustBench ----------------------------------------------------------------------------------------------------


@pytest.fixture
def robust_weights(tmp_path, monkeypatch):
    fake_robustbench.install(monkeypatch)
    models = {"imagenet/Linf/Salman2020Do_R50": 1000, "imagenet/Linf/Wong2020Fast": 1000,
              "cifar10/Linf/Carmon2019Unlabeled": 10}  # fmt: skip
    for name, classes in models.items():
        file = tmp_path / "robustbench" / f"{name}.pt"
        file.parent.mkdir(parents=True, exist_ok=True)
        torch.save(fake_robustbench.network(classes).state_dict(), file)
    return tmp_path


def test_robustbench_model_by_name_with_its_own_crop(robust_weights):
    import_torchvision()
    (observer,) = load(f"robustbench:Salman2020Do_R50?weights_dir={robust_weights}", CPU)
    assert observer.labels.name == "imagenet1k"
    assert (observer.preprocess.hw, observer.preprocess.resize) == ((224, 224), 256)
    assert observer.preprocess.mean == (0, 0, 0)  # the network normalises by itself
    batch = shown(2, 224, 224)
    logits = observer.respond(batch, ["logits"])["logits"]
    network = fake_robustbench.network(1000)
    file = robust_weights / "robustbench" / "imagenet" / "Linf" / "Salman2020Do_R50.pt"
    network.load_state_dict(torch.load(file, weights_only=True))
    with torch.inference_mode():
        expected = network(torch.from_numpy(batch.images / np.float32(255)).permute(0, 3, 1, 2)).numpy()
    np.testing.assert_allclose(logits, expected, atol=1e-5)


def test_robustbench_refuses_what_it_cannot_do_faithfully(robust_weights):
    import_torchvision()
    folder = f"weights_dir={robust_weights}"
    with pytest.raises(UserError, match="Did you mean 'Salman2020Do_R50'"):
        load(f"robustbench:Salman2020Do_R5?{folder}", CPU)
    with pytest.raises(UserError, match="cannot be expressed exactly"):  # a crop of 288 without a resize
        load(f"robustbench:Wong2020Fast?{folder}", CPU)
    with pytest.raises(UserError, match="offline was asked for"):
        load(f"robustbench:Salman2020Do_R50?weights_dir={robust_weights / 'elsewhere'}", CPU)
    (small,) = load(f"robustbench:Carmon2019Unlabeled?dataset=cifar10&{folder}", CPU)
    assert small.preprocess.hw == (32, 32)
    assert small.labels.names[3] == "cat"
    assert json.dumps(small.preprocess.describe())
