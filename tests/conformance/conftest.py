"""Small data roots for the protocols that show nothing without data."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cuebench.stimuli.makers.base import make

WNIDS = ("n02123045", "n02391049", "n02690373", "n04254680")
NOISE = np.random.default_rng(0)


def noise(path: Path, height: int = 40, width: int = 48) -> None:
    """Write a small picture of coloured noise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(NOISE.integers(0, 256, (height, width, 3), dtype=np.uint8)).save(path)


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
        labels = np.kron(NOISE.integers(0, 3, (3, 4)), np.ones((8, 8), int))
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


def conflicts(root: Path) -> Path:
    """Make images with the shape of one class and the texture of another."""
    make("cue_conflict", root, count=16)
    return root


ROOTS: dict[str, Callable[[Path], Path]] = {
    "photographs": photographs,
    "textures_and_photographs": textures_and_photographs,
    "decomposition": decomposition,
    "segmentation": segmentation,
    "pure_cues": pure_cues,
    "conflicts": conflicts,
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
