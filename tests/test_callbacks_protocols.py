"""The callback measures every protocol, and the same numbers as a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image

import cuebench as cb
from cuebench.callbacks import BiasOverTraining
from cuebench.labels import label_map
from cuebench.protocols.cue_conflict import PROTOCOL as CUE_CONFLICT
from cuebench.protocols.headline import headline_column
from cuebench.registry import BUILT_IN, protocols
from cuebench.stimuli.makers.base import make

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]

CLASSES = ("cat", "dog", "car", "clock")
PLAIN = cb.Preprocess(size=32, mean=(0.5,) * 3, std=(0.5,) * 3)
MADE = {"steps": 3, "workers": 1, "device": "cpu"}
"""Options of the maker of cue decomposition that make it quick."""


class Case(NamedTuple):
    """What a protocol is tried with."""

    data_root: Path | None
    labels: tuple[str, ...] | None = CLASSES
    task: str = "classification"
    settings: tuple[tuple[str, str], ...] = ()


def noise(path: Path, seed: int, size: tuple[int, int] = (40, 40)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)).save(path)


def photographs(root: Path, per_class: int = 2) -> Path:
    for i, name in enumerate(CLASSES):
        for k in range(per_class):
            noise(root / name / f"{k}.png", 10 * i + k)
    return root


def with_photographs(root: Path) -> Case:
    photographs(root / "imagenet_val", per_class=1)
    return Case(root)


def cue_conflict(root: Path) -> Case:
    for shape in CLASSES:
        for k, texture in enumerate(CLASSES):
            noise(root / "cue_conflict" / "stimuli" / shape / f"{shape}1-{texture}1.png", k)
    targets = {name: [name] for name in CLASSES}
    (root / "cue_conflict" / "labels.json").write_text(json.dumps({"targets": targets}))
    return Case(root)


def refined_bias(root: Path) -> Case:
    for cue, names in (("shape", ("balloon", "clock")), ("texture", ("tiger", "zebra"))):
        for i, name in enumerate(names):
            for k in range(3):
                stem = f"{name}_{k}" if cue == "shape" else f"4x4_{name}_{k}"
                noise(root / "refined_bias" / f"refined_bias_{cue}" / name / f"{stem}.png", 10 * i + k)
    return Case(root, label_map("refined_bias").names)


def texture_association(root: Path) -> Case:
    for i, name in enumerate(("dim", "glare")):
        for k in range(20):
            noise(root / "textures" / name / f"{k}.png", 100 * i + k)
    return Case(root)


def cue_decomposition(root: Path) -> Case:
    source = photographs(root / "source")
    make("cue_decomposition", root, source=str(source), cues="eed,voronoi", size=32, resize=32, **MADE)
    return Case(root)


def cue_decomposition_segmentation(root: Path) -> Case:
    names = ("red", "green", "blue")
    for k in range(3):
        noise(root / "source" / "images" / f"{k}.png", k, (24, 32))
        mask = np.kron(np.random.default_rng(k).integers(1, 4, (3, 4)), np.ones((8, 8), int)).astype(np.uint8)
        (root / "source" / "masks").mkdir(exist_ok=True)
        Image.fromarray(mask).save(root / "source" / "masks" / f"{k}.png")
    classes = {
        "dataset": "colours",
        "classes": [{"name": n, "ids": [i + 1]} for i, n in enumerate(names)],
        "ignore": [0],
    }
    (root / "source" / "classes.json").write_text(json.dumps(classes))
    make("cue_decomposition", root, source=str(root / "source"), cues="eed,voronoi", **MADE)
    return Case(root, names, "segmentation")


def silhouettes(root: Path) -> Case:
    case = cue_conflict(root)
    for k, name in enumerate(CLASSES):
        mask = np.full((40, 40), 255, np.uint8)
        mask[4 + k : 30, 6:30] = 0
        path = root / "cue_conflict" / "silhouettes" / name / f"{name}1.png"
        path.parent.mkdir(parents=True)
        Image.fromarray(mask).save(path)
    return case


def edges(root: Path) -> Case:
    for k, name in enumerate(label_map("in16").names):
        for i in (1, 2):
            noise(root / "model_vs_human" / "stimuli" / "edge" / name / f"{name}{i}.png", 10 * k + i)
    return Case(root, label_map("in16").names)


CASES: dict[str, Callable[[Path], Case]] = {
    "corruption_robustness": with_photographs,
    "cue_conflict": cue_conflict,
    "cue_decomposition": cue_decomposition,
    "cue_decomposition_segmentation": cue_decomposition_segmentation,
    "feature_suppression": with_photographs,
    "human_alignment": edges,
    "imagenet_accuracy": with_photographs,
    "pure_shape": edges,
    "refined_bias": refined_bias,
    "texture_association": texture_association,
    "textured_silhouettes": silhouettes,
    "triplets": lambda root: Case(None, None, settings=(("triplets.experiments", "3"),)),
}


def network(outputs: int, task: str) -> torch.nn.Module:
    """A small network whose answers depend on where the pixels are: the same for a callback and for a run."""
    torch.manual_seed(0)
    if task == "segmentation":
        return torch.nn.Conv2d(3, outputs, 3, padding=1)
    return torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(48, outputs))


def test_every_protocol_has_a_case() -> None:
    assert set(CASES) == {name for name in protocols if protocols.origin(name) == BUILT_IN}


@pytest.mark.parametrize("name", CASES)
def test_the_callback_measures_what_a_run_measures(name: str, tmp_path: Path) -> None:
    case = CASES[name](tmp_path / "data")
    limit = 24 if case.data_root is None else 0
    net = network(len(case.labels) if case.labels else 6, case.task)
    watch = BiasOverTraining(
        preprocess=PLAIN, labels=case.labels, protocols=name, data_root=case.data_root, settings=dict(case.settings),
        task=case.task, limit=limit, resamples=100, batch_size=7,
    )  # fmt: skip
    values = watch(0, net)
    model = cb.wrap(
        net, name="model", preprocess=PLAIN, labels=case.labels, device="cpu", task=case.task, fingerprint="1"
    )
    run = cb.evaluate(
        model, name, data_root=case.data_root, out=tmp_path / "run", settings=dict(case.settings), limit=limit,
        resamples=100, workers=0, device="cpu",
    )  # fmt: skip
    column = headline_column(run, name)
    if column is not None:  # the reliance on a cue is undefined where nothing is recognised
        assert watch.history[0]["headline"] == {name: f"{column.metric}/{column.condition}"}
        assert next(iter(values)) == f"{column.metric}/{column.condition}"
        row = column.rows["model"]
        measured = [watch.history[0][field][next(iter(values))] for field in ("values", "low", "high")]
        assert measured == pytest.approx([row.value, row.ci_low, row.ci_high], nan_ok=True)
    every = {f"{r.metric}/{r.condition}": r.value for r in run}
    assert values
    assert {key: values[key] for key in values} == pytest.approx({key: every[key] for key in values}, nan_ok=True)


def test_a_protocol_object_and_several_protocols(tmp_path: Path) -> None:
    case = cue_conflict(tmp_path)
    mine = replace(CUE_CONFLICT, name="my_conflict")
    watch = BiasOverTraining(
        preprocess=PLAIN, labels=CLASSES, protocols=["cue_conflict", mine], data_root=case.data_root, resamples=100
    )
    values = watch(0, network(4, "classification"))
    protocols.added.clear()
    assert values["cue_conflict/shape_accuracy/4-way"] == values["my_conflict/shape_accuracy/4-way"]
    assert set(watch.history[0]["headline"]) == {"cue_conflict", "my_conflict"}


def test_classes_that_do_not_fit_are_refused_before_training(tmp_path: Path) -> None:
    case = cue_conflict(tmp_path)
    with pytest.raises(cb.UserError, match="the network cannot answer 'cue_conflict'"):
        BiasOverTraining(preprocess=PLAIN, labels=10, protocols="cue_conflict", data_root=case.data_root)


def test_an_unusable_answer_is_refused_as_in_a_run(tmp_path: Path) -> None:
    case = cue_conflict(tmp_path)
    watch = BiasOverTraining(preprocess=PLAIN, labels=CLASSES, protocols="cue_conflict", data_root=case.data_root)
    net = network(4, "classification")
    with torch.no_grad():
        net[2].bias.fill_(float("nan"))
    with pytest.raises(cb.UserError, match="NaN or infinite"):
        watch.measure(net)


@pytest.mark.parametrize("scale", [100, 0.95])
def test_rounded_probabilities_are_refused_as_in_a_run(tmp_path: Path, scale: float) -> None:
    root = cue_conflict(tmp_path).data_root

    class Shares(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return scale * x.flatten(1)[:, : len(CLASSES)].softmax(dim=-1)

    watch = BiasOverTraining(preprocess=PLAIN, labels=CLASSES, protocols="cue_conflict", data_root=root)
    with pytest.raises(cb.UserError, match="look like probabilities in percent, or rounded ones"):
        watch.measure(Shares())
