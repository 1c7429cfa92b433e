"""Every family of timm and every classifier of torchvision, with random weights: preprocessing, logits, features.

``make test`` tries a few small ones. All of them, on a machine with a GPU, some two minutes with twelve processes::

    python tests/observers/test_every_model.py --processes 12
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

import numpy as np
import pytest

from cuebench.observers.base import Batch, LoadOptions
from cuebench.observers.load import load
from cuebench.observers.torch.torchvision_import import import_torchvision
from cuebench.types import Stimulus

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]

SMALL = ("test_", "atto", "femto", "pico", "nano", "xxs", "xx_small", "mini", "tiny", "_t0", "_b0", "_s0", "050", "18",
         "xs", "small", "_s", "base", "_b", "enc")  # fmt: skip
"""Parts of the names of small models, the smallest first."""
SAMPLE = {
    "timm:test_vit": "classes",
    "timm:vit_small_patch16_224.dino": "features",  # self-supervised
    "timm:fastvit_mci0": "embedding",  # the image tower of a CLIP
    "torchvision:shufflenet_v2_x0_5": "classes",
}
"""What ``make test`` tries, and what each must give."""


def every_model() -> list[str]:
    """Return a small classifier and a small model without classes of each module of timm, and all of torchvision."""
    import_torchvision()
    import timm

    from cuebench.observers.adapters.torchvision import classifiers

    specs = []
    for module in timm.list_modules():
        with_classes, without = [], []
        for name in timm.list_models(module=module):
            config = timm.get_pretrained_cfg(name)
            (with_classes if config is None or config.num_classes >= 1000 else without).append(name)
        specs += [f"timm:{min(names, key=_size)}" for names in (with_classes, without) if names]
    return [*specs, *(f"torchvision:{name}" for name in classifiers())]


def _size(name: str) -> tuple[int, int, str]:
    position = next((i for i, part in enumerate(SMALL) if part in name), len(SMALL))
    return position, len(name), name


def examine(spec: str, device: str = "auto") -> str:
    """Load a model with random weights and ask for one answer; return what it gives, or raise."""
    (observer,) = load(f"{spec}?weights=random", LoadOptions(device=device, offline=True))
    pixels = np.random.default_rng(0).integers(0, 256, (1, *observer.preprocess.hw, 3), dtype=np.uint8)
    needs = sorted(observer.capabilities)
    answers = observer.respond(Batch([Stimulus("a")], pixels), needs)
    assert "features" in needs, f"no features, only {needs}: {observer.notes}"
    assert all(answers[need].ndim == 2 and np.isfinite(answers[need]).all() for need in needs)
    assert answers["features"].shape[1] > 1
    if observer.labels is None:
        unit = np.isclose(np.linalg.norm(answers["features"], axis=1), 1, atol=1e-3).all()
        return "embedding" if observer.settings["features"].startswith("image embedding") and unit else "features"
    assert answers["logits"].shape == (1, len(observer.labels))
    return "classes"


@pytest.mark.parametrize(("spec", "gives"), SAMPLE.items(), ids=str)
def test_a_sample(spec: str, gives: str) -> None:
    assert examine(spec, "cpu") == gives


def test_random_weights_have_the_input_size_of_the_network() -> None:
    """``vit_h_14`` is built for 224 pixels; its first published weights are for 518."""
    import_torchvision()
    from torchvision import models

    from cuebench.observers.adapters.torchvision import fitting_weights, preprocess_of

    class Built:
        image_size = 224

    assert preprocess_of(fitting_weights("vit_h_14", Built)).hw == (224, 224)
    assert preprocess_of(next(iter(models.get_model_weights("vit_h_14")))).hw == (518, 518)
    assert fitting_weights("inception_v3", object()) is models.Inception_V3_Weights.IMAGENET1K_V1


@pytest.mark.parametrize("kind", ["dinov2", "mae"])
def test_encoders_of_transformers_answer_with_the_class_token(tmp_path, tiny, kind) -> None:
    """Compare with transformers itself; nothing is masked, and the answer is the same twice."""
    import torch
    from transformers import AutoModel

    folder = tiny.classifier(tmp_path / kind, kind)
    (observer,) = load(f"transformers:{folder}", LoadOptions(device="cpu", offline=True))
    assert observer.capabilities == {"features"}
    assert "no classes: answers with features only" in observer.notes
    pixels = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3), dtype=np.uint8)
    batch = Batch([Stimulus("a"), Stimulus("b")], pixels)
    features = observer.respond(batch, ["features"])["features"]
    np.testing.assert_allclose(features, observer.respond(batch, ["features"])["features"], atol=1e-5)
    theirs = AutoModel.from_pretrained(folder, **({"mask_ratio": 0.0} if kind == "mae" else {})).eval()
    with torch.no_grad():
        hidden = theirs(pixel_values=torch.from_numpy(observer.preprocess.normalise(pixels))).last_hidden_state
    np.testing.assert_allclose(features, hidden[:, 0], atol=1e-5)


def test_models_without_classes_are_measured_where_features_are_enough(tmp_path, tiny) -> None:
    """Triplets of novel objects need no data and no classes; cue conflict says what is missing."""
    from cuebench.protocols.cue_conflict import PROTOCOL as CUE_CONFLICT
    from cuebench.protocols.cue_conflict import stimuli_from_recordings
    from cuebench.protocols.triplets import PROTOCOL as TRIPLETS
    from cuebench.runs.plan import NotApplicable, questions

    (observer,) = load(f"transformers:{tiny.classifier(tmp_path / 'd', 'dinov2')}", LoadOptions(device="cpu"))
    (question,) = questions(TRIPLETS, observer, TRIPLETS.standalone())
    assert question.needs == ("features",)
    with pytest.raises(NotApplicable, match="gives features; protocol 'cue_conflict' needs logits or decisions"):
        questions(CUE_CONFLICT, observer, stimuli_from_recordings(["cat1-dog1.png"]))


def _attempt(spec: str) -> tuple[str, str, str, float]:
    start = time.monotonic()
    try:
        gives, problem = examine(spec), ""
    except Exception as error:  # every failure is listed
        gives, problem = "", f"{type(error).__name__}: {error}"
    return spec, gives, problem, time.monotonic() - start


def main() -> int:
    """Examine every model; return the number of those that fail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--only", default="", help="models whose spec contains this text")
    arguments = parser.parse_args()
    specs = [spec for spec in every_model() if arguments.only in spec]
    failed = 0
    with ProcessPoolExecutor(arguments.processes, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(_attempt, spec) for spec in specs]):
            spec, gives, problem, seconds = future.result()
            failed += bool(problem)
            print(f"{'FAILED' if problem else gives:9} {seconds:6.1f} s  {spec}  {problem}", flush=True)
    print(f"{len(specs) - failed} of {len(specs)} models pass")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
