"""Preprocessing as users have it: transforms of torchvision, and functions from a picture to numbers."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import cuebench as cb
from cuebench.errors import UserError
from cuebench.observers.base import LoadOptions
from cuebench.observers.function_preprocess import LARGEST, FunctionPreprocess, OwnSize, picture_in
from cuebench.observers.load import load
from cuebench.observers.wrap import NO_FINGERPRINT
from cuebench.runs.trials import Trials

torch = pytest.importorskip("torch")
if importlib.util.find_spec("torchvision") is None:
    pytest.skip("needs torchvision", allow_module_level=True)
pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]
MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)
CLASSES = ["cat", "dog", "car", "clock"]


@pytest.fixture(scope="module")
def T() -> Any:
    from cuebench.observers.torch.torchvision_import import import_torchvision

    import_torchvision()
    from torchvision import transforms

    return transforms


def noise(height: int, width: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(height).integers(0, 256, (height, width, 3), dtype=np.uint8))


def network(classes: int = 4, side: int = 8) -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * side * side, classes)).eval()


def usual(T: Any, *more: Any, size: int = 8) -> Any:
    return T.Compose([T.Resize(9), T.CenterCrop(size), T.ToTensor(), *more, T.Normalize(MEAN, STD)])


def test_a_compose_becomes_the_preprocess_that_does_the_same(T: Any) -> None:
    bicubic = T.InterpolationMode.BICUBIC
    for compose in (
        usual(T),
        T.Compose([T.Resize(12, interpolation=bicubic), T.CenterCrop(8), T.ToTensor()]),
        T.Compose([T.Resize((8, 8)), T.ToTensor(), T.Normalize(MEAN, STD)]),
    ):
        observer = cb.wrap(network(), preprocess=compose, labels=CLASSES)
        assert type(observer.preprocess) is cb.Preprocess
        assert observer.notes == ()
        for image in (noise(30, 41), noise(17, 9)):
            np.testing.assert_allclose(observer.preprocess.apply(image), compose(image).numpy(), atol=1e-5)
    carried = network()
    carried.preprocess = usual(T)
    assert type(cb.wrap(carried, labels=CLASSES).preprocess) is cb.Preprocess


def test_the_transforms_of_published_weights_become_one(T: Any) -> None:
    from torchvision.models import ResNet18_Weights, ResNet50_Weights

    assert cb.wrap(network(), preprocess=ResNet18_Weights.DEFAULT.transforms()).preprocess.hw == (224, 224)
    of_v2 = cb.wrap(network(), preprocess=ResNet50_Weights.IMAGENET1K_V2.transforms()).preprocess
    assert (type(of_v2), of_v2.resize) == (cb.Preprocess, 232)


def test_what_looks_like_the_usual_steps_but_is_not_stays_a_function(T: Any) -> None:
    whole_numbers = T.Compose([T.Resize(9), T.CenterCrop(8), T.PILToTensor(), T.ConvertImageDtype(torch.float)])
    raw = T.Compose([T.Resize(9), T.CenterCrop(8), T.PILToTensor()])  # 0 to 255, not 0 to 1
    late = T.Compose([T.ToTensor(), T.Resize(9, antialias=False), T.CenterCrop(8)])
    grey = usual(T, T.Grayscale(3))
    assert type(cb.wrap(network(), preprocess=whole_numbers, labels=CLASSES).preprocess) is cb.Preprocess
    for compose in (raw, late, grey):
        observer = cb.wrap(network(), preprocess=compose, labels=CLASSES)
        assert isinstance(observer.preprocess, FunctionPreprocess)
        (note,) = observer.notes
        assert "Compose prepares the pictures: its geometry is unknown" in note
        image = noise(30, 41)
        np.testing.assert_allclose(observer.preprocess.apply(image), np.asarray(compose(image), np.float32))


def test_functions_that_cannot_be_used_say_why(T: Any) -> None:
    refused = {
        "each time": T.Compose([T.RandomCrop(20), T.ToTensor()]),
        "different sizes": T.Compose([T.Resize(30), T.ToTensor()]),
        "failed on a picture": T.Normalize(MEAN, STD),
        r"shape \(1, 256, 320\)": T.Compose([T.Grayscale(), T.ToTensor()]),
    }
    for words, transform in refused.items():
        with pytest.raises(UserError, match=words) as caught:
            cb.wrap(network(), preprocess=transform, labels=CLASSES)
        assert caught.value.hint
    with pytest.raises(UserError, match="prepare pictures for masks"):
        cb.wrap(network(), preprocess=lambda image: np.zeros((3, 8, 8)), labels=CLASSES, task="segmentation")


@pytest.mark.parametrize(("height", "width"), [(1, 1), (300, 17), (LARGEST, LARGEST), (2 * LARGEST, 100)])
def test_a_function_sees_every_picture_with_its_own_pixels(height: int, width: int) -> None:
    image = noise(height, width)
    seen = picture_in(OwnSize((LARGEST + 1, LARGEST)).apply(image))
    assert seen.size == ((width, height) if height <= LARGEST else (50, LARGEST))
    assert height > LARGEST or np.array_equal(seen, image)


def write(root: Path, sizes: tuple[int, ...] = (20, 31)) -> Path:
    for number, (shape, texture) in enumerate([("cat", "dog"), ("dog", "car"), ("car", "cat"), ("clock", "dog")]):
        path = root / "cue_conflict" / "stimuli" / shape / f"{shape}1-{texture}{number + 1}.png"
        path.parent.mkdir(parents=True)
        noise(sizes[number % 2] + number, sizes[1]).save(path)
    targets = {"targets": {name: [name] for name in CLASSES}}
    (root / "cue_conflict" / "labels.json").write_text(json.dumps(targets))
    return root


class Own:
    """Cut a corner, as no Preprocess does."""

    def __init__(self, corner: int) -> None:
        self.corner = corner

    def __call__(self, image: Image.Image) -> Any:
        cut = np.asarray(image)[self.corner : self.corner + 8, :8]
        return torch.from_numpy(cut.astype(np.float32) / 255).permute(2, 0, 1)


def test_a_run_with_a_function_of_one_s_own(tmp_path: Path) -> None:
    root, model = write(tmp_path / "d"), network()

    def run(out: str, corner: int, **more: Any) -> Any:
        observer = cb.wrap(model, preprocess=Own(corner), labels=CLASSES, name="net", **more)
        options = {"workers": 0, "resamples": 100, "responses": tmp_path / "answers", "data_root": root}
        scores = cb.evaluate(observer, "cue_conflict", out=tmp_path / out, **options)
        return scores, json.loads((tmp_path / out / "run.json").read_text())["jobs"][0]

    scores, job = run("a", 0)
    assert all("Own prepares the pictures: its geometry is unknown" in row.note for row in scores)
    assert "geometry unknown" in job["preprocess"]
    files = sorted((root / "cue_conflict" / "stimuli").glob("*/*.png"))
    with torch.no_grad():
        expected = [CLASSES[int(model(Own(0)(Image.open(file))[None]).argmax())] for file in files]
    found = {row["stimulus"]: row["decision"] for row in Trials(tmp_path / "a").table().to_pylist()}
    assert [found[file.stem] for file in files] == expected
    _, again = run("b", 0)
    _, other = run("c", 3)
    assert again["key"] == job["key"]  # what it holds and its code are the same
    assert other["key"] != job["key"]
    _, named = run("d", 0, fingerprint="mine")
    assert named["key"]["preprocess"]["identity"] == "mine"


def test_what_cannot_be_hashed_is_found_again_only_by_a_name() -> None:
    hidden = (number for number in range(3))

    def prepared(image: Image.Image) -> np.ndarray:
        return np.full((3, 8, 8), hidden is None, np.float32)

    first, second = (cb.wrap(network(), preprocess=prepared, labels=CLASSES) for _ in range(2))
    assert first.preprocess.describe() != second.preprocess.describe()
    assert first.preprocess.describe() == first.preprocess.describe()
    assert "name it with fingerprint=" in first.notes[-1]
    named = [cb.wrap(network(), preprocess=prepared, labels=CLASSES, fingerprint="1") for _ in range(2)]
    assert named[0].preprocess.describe() == named[1].preprocess.describe()
    assert "fingerprint=" not in str(named[0].notes)


def test_a_function_for_a_function() -> None:
    blind = cb.wrap(lambda pixels: np.zeros((len(pixels), 4)), preprocess=Own(0), labels=CLASSES, name="f")
    assert blind.notes[0] == NO_FINGERPRINT
    assert "geometry is unknown" in blind.notes[1]
    assert blind.preprocess.normalise(np.zeros((2, LARGEST + 1, LARGEST, 3), np.uint8)).shape == (2, 3, 8, 8)


def test_bias_over_training_takes_it_too(T: Any, tmp_path: Path) -> None:
    from cuebench.callbacks import BiasOverTraining

    options = {"protocols": "cue_conflict", "data_root": write(tmp_path), "labels": CLASSES, "resamples": 100}
    for given in (usual(T), Own(0)):
        watch = BiasOverTraining(preprocess=given, **options)
        assert watch(0, network())


def test_a_network_that_is_a_sequence_is_one_model(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="got Sequential") as caught:
        cb.evaluate(network(), "cue_conflict", out=tmp_path / "r")
    assert "cuebench.wrap(model" in caught.value.hint
    with pytest.raises(UserError, match="preprocessing of Sequential is not known") as caught:
        cb.wrap(network())
    assert "cuebench.wrap(model, preprocess=" in caught.value.hint


def test_a_factory_s_own_transform_counts_for_checkpoints(tmp_path: Path) -> None:
    code = (
        "import torch\n"
        "from cuebench.observers.torch.torchvision_import import import_torchvision\n"
        "import_torchvision()\n"
        "from torchvision import transforms as T\n"
        "def net():\n"
        "    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 4))\n"
        "    model.preprocess = T.Compose([T.Resize(9), T.CenterCrop(8), T.ToTensor()])\n"
        "    return model\n"
    )
    (tmp_path / "my_net.py").write_text(code)
    torch.save(network().state_dict(), tmp_path / "w.pth")
    (tmp_path / "c.json").write_text(json.dumps(CLASSES))
    spec = f"checkpoint:{tmp_path}/w.pth?arch=python:{tmp_path}/my_net.py:net&labels={tmp_path}/c.json"
    (observer,) = load(spec, LoadOptions(device="cpu"))
    assert (observer.preprocess.hw, observer.preprocess.mean) == ((8, 8), (0, 0, 0))
