"""Run folders with recorded models and people, made in a second: for figures and tables over several observers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

import cuebench
from cuebench.labels import label_map, label_space
from cuebench.runs.results import write_scores
from cuebench.types import Score

CLASSES = ("airplane", "bear", "cat", "clock", "truck")


def _picture(path: Path, seed: int, size: int = 48) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    y, x = np.mgrid[:size, :size]
    disc = (y - size / 2) ** 2 + (x - size / 2) ** 2 < (size / 3) ** 2
    pixels = np.random.default_rng(seed).integers(0, 90, (size, size, 3)) + 150 * disc[..., None]
    Image.fromarray(pixels.astype(np.uint8)).save(path)


def _silhouette(path: Path, size: int = 48) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    y, x = np.mgrid[:size, :size]
    disc = (y - size / 2) ** 2 + (x - size / 2) ** 2 < (size / 3) ** 2
    Image.fromarray(np.where(disc, 0, 255).astype(np.uint8)).save(path)


def _recorded(path: Path, observer: str, answers: dict[str, str]) -> str:
    """Write answers as logits of 1,000 classes, so that they can be scored in both label spaces."""
    targets = label_map("in16")
    members = targets.resolve(label_space("imagenet1k")).members
    logits = np.zeros((len(answers), 1000), np.float32)
    for row, answer in zip(logits, answers.values()):
        row[members[targets.names.index(answer)]] = 9.0
    columns = {"stimulus": list(answers), "observer": [observer] * len(answers), "logits": logits.tolist()}
    pq.write_table(pa.table(columns), path)
    return f"recorded:{path}"


def conflict_and_pure_shape(root: Path, models: int = 3, people: int = 2) -> list[Path]:
    """Return two run folders, of cue conflict and of silhouettes and edges, with the same models; people in the first.

    Model k recognises class c by shape with a probability that grows with c, and by texture otherwise.
    """
    rng = np.random.default_rng(0)
    conflicts, pure = {}, {}
    for a, shape in enumerate(CLASSES):
        for i in (1, 2, 3, 4):
            for place in ("silhouettes", "edges"):
                _silhouette(root / "cue_conflict" / place / shape / f"{shape}{i}.png")
                pure[f"{place}/{shape}{i}"] = (a, shape)
        for b, texture in enumerate(CLASSES):
            name = f"{shape}{1 + b % 4}-{texture}{1 + a % 3}"
            _picture(root / "cue_conflict" / "stimuli" / shape / f"{name}.png", 7 * a + b)
            conflicts[name] = (a, shape, texture)
    files: dict[str, list[str]] = {"conflict": [], "pure": []}
    for k in range(models):
        answers = {}
        for name, (a, shape, texture) in conflicts.items():
            by_shape = rng.random() < (a + k % 3) / 7
            answers[name] = shape if by_shape else texture if rng.random() < 0.7 else "knife"
        files["conflict"].append(_recorded(root / f"conflict-net{k}.parquet", f"net{k}", answers))
        answers = {name: shape if rng.random() < (a + 1) / 6 else "knife" for name, (a, shape) in pure.items()}
        files["pure"].append(_recorded(root / f"pure-net{k}.parquet", f"net{k}", answers))
    for k in range(people):
        rows = ["stimulus,subject,decision"]
        for name, (_, shape, texture) in conflicts.items():
            rows.append(f"{name},subject-{k + 1:02},{shape if rng.random() < 0.8 else texture}")
        path = root / f"conflict-subject-{k + 1:02}.csv"
        path.write_text("\n".join(rows))
        files["conflict"].append(f"recorded:{path}")
    runs = []
    for protocol, key in (("cue_conflict", "conflict"), ("pure_shape", "pure")):
        runs.append(root / f"run-{key}")
        cuebench.evaluate(files[key], [protocol], data_root=root, out=runs[-1], resamples=100, workers=0)
    return runs


def sensitivities(folder: Path, models: int = 8) -> Path:
    """Return a folder of scores: both sensitivities, accuracy and robustness of some models, which rise together."""
    rng = np.random.default_rng(1)
    rows = []
    for k in range(models):
        skill = 0.3 + 0.5 * k / max(models - 1, 1)
        values = {
            ("refined_bias", "faithful", "shape_sensitivity"): skill + rng.normal() / 30,
            ("refined_bias", "faithful", "texture_sensitivity"): 0.6 + rng.normal() / 20,
            ("imagenet_accuracy", "top1", "accuracy"): skill,
            ("corruption_robustness", "mean", "relative_robustness"): skill / 2 + rng.normal() / 50,
        }
        shape, texture = list(values.values())[:2]
        values["refined_bias", "faithful", "shape_preference"] = shape / (shape + texture)
        for (protocol, condition, metric), v in values.items():
            rows.append(Score(protocol, 1, f"net{k}", condition, metric, v, v - 0.03, v + 0.03, "images", 100))
    write_scores(folder, rows, {})
    return folder


def distorted(folder: Path, models: int = 3) -> Path:
    """Return a folder of scores in both label spaces of cue conflict, and distorted predictions of REFINED-BIAS."""
    rows = []
    for k in range(models):
        for metric, few, many in (("shape_accuracy", 0.3 + k / 20, 0.04), ("texture_accuracy", 0.5, 0.2)):
            rows.append(Score("cue_conflict", 1, f"net{k}", "16-way", metric, few, few, few, "images", 1200))
            rows.append(Score("cue_conflict", 1, f"net{k}", "1000-way", metric, many, many, many, "images", 1200))
        for cue in ("shape", "texture"):
            rows.append(Score("refined_bias", 1, f"net{k}", "faithful", f"{cue}_top1", 0.5, 0.4, 0.6, "images", 300))
            condition = f"faithful/cue={cue}"
            rows.append(
                Score("refined_bias", 1, f"net{k}", condition, "distorted_prediction", 0.2, 0.1, 0.3, "images", 300)
            )
    write_scores(folder, rows, {})
    return folder


SOURCES = {
    "class_recognition": conflict_and_pure_shape,
    "class_agreement": conflict_and_pure_shape,
    "sensitivity_vs_accuracy": sensitivities,
    "distorted_predictions": distorted,
    "conflict_examples": lambda root: conflict_and_pure_shape(root)[0],
    "contour_overlay": lambda root: conflict_and_pure_shape(root)[0],
}
"""Figure → what makes the runs that it is checked with, where a planted run of one protocol is not enough."""
