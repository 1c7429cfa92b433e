"""Small data roots for the protocols that show nothing without data."""

from __future__ import annotations

import csv
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cuebench.stimuli.makers.base import make

WNIDS = ("n02123045", "n02391049", "n02690373", "n04254680")


def noise(path: Path, height: int = 40, width: int = 48) -> None:
    """Write a small picture of coloured noise, the same for a name whatever was written before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    *_, folder, above, name = path.parts
    # Folders of tests are counted through, so that their numbers depend on which tests ran before.
    generator = np.random.default_rng((1, zlib.crc32(f"{folder.rstrip('0123456789')}/{above}/{name}".encode())))
    Image.fromarray(generator.integers(0, 256, (height, width, 3), dtype=np.uint8)).save(path)


def photographs(root: Path, folder: str = "imagenet_val", count: int = 24) -> Path:
    """Write photographs of four ImageNet classes with their labels."""
    names = [f"p{i:02}.png" for i in range(count)]
    for name in names:
        noise(root / folder / name)
    with (root / folder / "labels.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["file", "wnid"])
        writer.writeheader()
        writer.writerows({"file": name, "wnid": WNIDS[i % len(WNIDS)]} for i, name in enumerate(names))
    return root


def textures_and_photographs(root: Path) -> Path:
    """Write textures, photographs and natural adversarial images."""
    make("textures", root, count=160, size=32)
    photographs(root)
    return photographs(root, "imagenet_a")


def decomposition(root: Path) -> Path:
    """Make the cues of eight images of noise in four classes."""
    for name in ("cat", "dog", "car", "clock"):
        for i in range(4):
            noise(root / "source" / name / f"{i}.png")
    cues = {"cues": "eed,voronoi,patch", "conflicts": "published", "steps": 4, "size": 32, "resize": 32}
    make("cue_decomposition", root / "data", source=str(root / "source"), workers=1, device="cpu", **cues)
    return root / "data"


def segmentation(root: Path) -> Path:
    """Make the cues of six images with masks of three classes."""
    colours = np.array([[220, 20, 20], [20, 220, 20], [20, 20, 220]], np.uint8)
    for folder in ("images", "masks"):
        (root / "source" / folder).mkdir(parents=True)
    for i in range(6):
        labels = np.kron(np.random.default_rng(i).integers(0, 3, (3, 4)), np.ones((8, 8), int))
        Image.fromarray(colours[labels]).save(root / "source" / "images" / f"{i}.png")
        Image.fromarray((10 * labels + 1).astype(np.uint8)).save(root / "source" / "masks" / f"{i}.png")
    classes = [{"name": name, "ids": [10 * i + 1]} for i, name in enumerate(("red", "green", "blue"))]
    (root / "source" / "classes.json").write_text(json.dumps({"dataset": "colours", "classes": classes, "ignore": [0]}))
    options = {"cues": "eed,voronoi", "steps": 3, "workers": 1, "device": "cpu"}
    make("cue_decomposition", root / "data", source=str(root / "source"), **options)
    return root / "data"


def pure_cues(root: Path) -> Path:
    """Write pure shape cues and pure texture cues of three classes each."""
    home = root / "refined_bias"
    for name in ("balloon", "camera", "clock"):
        for i in range(20):
            noise(home / "refined_bias_shape" / name / f"{name}_{i}.png", 8, 8)
    for name in ("tiger", "elephant", "zebra"):
        for i in range(20):
            grid = (4, 8)[i % 2]
            noise(home / "refined_bias_texture" / name / f"{grid}x{grid}_{name}_{i}.png", 8, 8)
    return root


def pure_shapes(root: Path) -> Path:
    """Write silhouettes and edge images of three classes."""
    for folder in ("cue_conflict/silhouettes", "model_vs_human/stimuli/edge"):
        for name in ("cat", "car", "clock"):
            for i in range(1, 11):
                noise(root / folder / name / f"{name}{i}.png", 8, 8)
    return root


def human_alignment(root: Path) -> Path:
    """Write line drawings, conflict images and two contrasts of three classes, and the answers of two people."""
    home = root / "model_vs_human" / "stimuli"
    answers = root / "model_vs_human" / "raw-data" / "edge"
    answers.mkdir(parents=True)
    for person in (1, 2):
        rows = [
            [f"subject-{person:02}", 0.5, ("cat", "dog")[(i + k) % 3 == person], name, f"{name}{i}.png"]
            for k, name in enumerate(("cat", "dog", "car"))
            for i in range(1, 7)
        ]
        with (answers / f"edge_subject-{person:02}_session_1.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["subj", "rt", "object_response", "category", "imagename"], *rows])
    classes = ("cat", "dog", "car")
    for k, name in enumerate(classes):
        for i in range(1, 7):
            noise(home / "edge" / name / f"{name}{i}.png", 8, 8)
            noise(home / "cue-conflict" / name / f"{name}{i}-{classes[(k + i % 2 + 1) % 3]}{i % 2 + 1}.png", 8, 8)
            condition = ("c100", "c10")[i % 2]
            noise(home / "contrast" / "dnn" / f"{k}{i}_cop_dnn_{condition}_{name}_10_n0{k}_{i}.png", 8, 8)
    return root


def conflicts(root: Path) -> Path:
    """Make images with the shape of one class and the texture of another."""
    make("cue_conflict", root, count=16)
    return root


def silhouettes(root: Path) -> Path:
    """Write cue-conflict images of four classes with a silhouette for each shape."""
    home, names = root / "cue_conflict", ("cat", "dog", "car", "clock")
    for k, shape in enumerate(names):
        for i in (1, 2, 3):
            for texture in names:
                noise(home / "stimuli" / shape / f"{shape}{i}-{texture}{i}.png", 24, 24)
            mask = np.full((24, 24), 255, np.uint8)
            mask[4 + k : 20, 3 + i : 18] = 0
            (home / "silhouettes" / shape).mkdir(parents=True, exist_ok=True)
            Image.fromarray(mask).save(home / "silhouettes" / shape / f"{shape}{i}.png")
    return root


ROOTS: dict[str, Callable[[Path], Path]] = {
    "photographs": photographs,
    "textures_and_photographs": textures_and_photographs,
    "decomposition": decomposition,
    "segmentation": segmentation,
    "pure_cues": pure_cues,
    "pure_shapes": pure_shapes,
    "human_alignment": human_alignment,
    "conflicts": conflicts,
    "silhouettes": silhouettes,
}


@pytest.fixture(scope="session")
def small_root(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the data root of a name, written when it is first asked for."""
    written: dict[str, Path] = {}

    def root(name: str) -> Path:
        if name not in written:
            written[name] = ROOTS[name](tmp_path_factory.mktemp(name))
        return written[name]

    return root
