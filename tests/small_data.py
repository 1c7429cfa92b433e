"""A tiny cue-conflict set that several tests measure."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = ("cat", "dog", "car", "clock")


def write_cue_conflict(root: Path, classes: tuple[str, ...] = CLASSES, instances: int = 2, size: int = 32) -> Path:
    """Write a small set in the published layout whose pixels encode the truth: red = shape, green = texture."""
    folder = root / "cue_conflict" / "stimuli"
    for a, shape in enumerate(classes):
        (folder / shape).mkdir(parents=True, exist_ok=True)
        for b, texture in enumerate(classes):
            for i in range(1, instances + 1):
                pixels = np.zeros((size, size, 3), np.uint8)
                pixels[..., 0], pixels[..., 1], pixels[..., 2] = 40 * a, 40 * b, i
                Image.fromarray(pixels).save(folder / shape / f"{shape}{i}-{texture}{1 + i % 2}.png")
    targets = {name: [name] for name in classes}
    (root / "cue_conflict" / "labels.json").write_text(json.dumps({"targets": targets}))
    return root
