"""The 6,000 cues of REFINED-BIAS: 300 shape cues of each of ten classes, 300 texture cues of each of ten others.

File names follow a rule: shape cues are numbered 0 to 299, texture cues 0 to 89 (4 × 4 patches), 90 to 179 (8 × 8),
180 to 239 (16 × 16) and 240 to 299 (32 × 32). The hashes of 327 files are known (``refined_bias.csv``); all others are
checked by their structure. Texture cues have 224 × 224 pixels; 36 of the published shape cues have another size.
"""

from __future__ import annotations

import csv
from pathlib import Path

from cuebench.labels import label_map
from cuebench.stimuli.datasets.base import Dataset, RemoteFile
from cuebench.stimuli.structure import png

GRIDS = ((4, 0, 90), (8, 90, 180), (16, 180, 240), (32, 240, 300))
"""Patches along a side, first number, number after the last."""
SHAPES = (
    "balloon", "book", "camera", "cassette", "clock", "hourglass", "ipod", "mouse", "revolver", "soccer_ball",
)  # fmt: skip
FOLDER, SOURCE = "refined_bias", "refined_bias/datasets"


def names() -> list[str]:
    """Return the path of every file below the folder of the set."""
    textures = [name for name in label_map("refined_bias").names if name not in SHAPES]
    shape = [f"refined_bias_shape/{c}/{c}_{i}.png" for c in SHAPES for i in range(300)]
    texture = [
        f"refined_bias_texture/{c}/{g}x{g}_{c}_{i}.png" for c in textures for g, a, b in GRIDS for i in range(a, b)
    ]
    return [*shape, *texture]


def load() -> tuple[RemoteFile, ...]:
    """Return all files; those of a known hash with it."""
    with Path(__file__).with_name("refined_bias.csv").open(newline="", encoding="utf-8") as file:
        known = {row["path"]: row for row in csv.DictReader(file)}
    checks = {"refined_bias_shape": png(), "refined_bias_texture": png(224, 224)}
    return tuple(
        RemoteFile(
            path=f"{FOLDER}/{name}",
            source=f"{SOURCE}/{name}",
            sha256=known[name]["sha256"] if name in known else "",
            size=int(known[name]["size"]) if name in known else 0,
            check=checks[name.partition("/")[0]],
        )
        for name in names()
    )


DATASET = Dataset(
    name="refined_bias",
    about="3,000 shape cues and 3,000 texture cues of 20 classes; the hashes of 327 files are known",
    citation="Kim, Lee, Park, Han, Yoo: On the Reliability of Cue Conflict and Beyond. arXiv:2603.10834, 2026.",
    licence="see the repository PumjunKim/REFINED-BIAS; project page MIT",
    folder=FOLDER,
    mirrors=(
        "https://raw.githubusercontent.com/PumjunKim/REFINED-BIAS/main",
        "https://github.com/PumjunKim/REFINED-BIAS/raw/main",
        "https://raw.githubusercontent.com/nepersica/REFINED-BIAS/b12ebd14bd78f46ded7ee90840508dfbee260dfc",
    ),
    load=load,
)
