"""The trained controls: which there are, and where their weights lie.

A control is two files, ``shape-0-3f2a9c1e.safetensors`` and a record of the same name in JSON: its name, the seed, and
the hash of the code that drew its images and trained it. Weights of other code are never found.
"""

from __future__ import annotations

import ast
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cuebench.errors import UserError
from cuebench.options import check_types
from cuebench.reading import read_json
from cuebench.registry import ROOT
from cuebench.source_code import syntax_digest

WEIGHTS = "CUEBENCH_WEIGHTS"
"""Environment variable: the folder of weights."""
CODE = (
    "controls/*.py",
    "observers/torch/models/small.py",
    "stimuli/toy_world.py",
    "stimuli/drawing/**/*.py",
    "cues/patch_shuffle.py",
    "cues/_eed/*.py",
)
"""Files of cuebench that decide the weights of a control."""


@dataclass(frozen=True)
class Control:
    """A control: a network and the images that it is trained on.

    Parameters
    ----------
    architecture : {"convnet", "transformer", "segmenter"}
        Of ``observers.torch.models.small``.
    images : str
        Kind of training images: what the class can be told from.
    about : str
        In words.
    planted : str
        What it must answer by: ``shape``, ``texture``, or empty where that is open.
    """

    architecture: str
    images: str
    about: str
    planted: str = ""


CONTROLS: Mapping[str, Control] = {
    "shape": Control("convnet", "shape", "only the shape predicts the class: materials are drawn at random", "shape"),
    "texture": Control("convnet", "texture", "only the material predicts the class: shapes are random", "texture"),
    "pattern": Control(
        "convnet", "pattern", "only the pattern of the material predicts the class: its colours are random", "texture"
    ),
    "both": Control("convnet", "both", "shape and material agree, as in photographs"),
    "style": Control("convnet", "style", "materials replaced by foreign textures (stylised images)", "shape"),
    "patch": Control("convnet", "patch", "patch-shuffled images, 8 × 8 patches", "texture"),
    "eed": Control("convnet", "eed", "images without texture, by edge-enhancing diffusion", "shape"),
    "vit_style": Control("transformer", "style", "a transformer trained on stylised images", "shape"),
    "vit_patch": Control("transformer", "patch", "a transformer trained on patch-shuffled images", "texture"),
    "segment_shape": Control("segmenter", "shape", "segmentation: only the shape predicts the class", "shape"),
    "segment_texture": Control("segmenter", "texture", "segmentation: only the material predicts the class", "texture"),
    "segment_both": Control("segmenter", "both", "segmentation: shape and material agree"),
}
"""Name → control. The four of patch and style are, in small, those of the appendix of Heinert et al. 2025."""


def weights_folder(folder: str = "") -> Path:
    """Return the folder of the controls: the named one, else that below CUEBENCH_WEIGHTS or the user's cache."""
    if folder:
        return Path(folder).expanduser()
    chosen = os.environ.get(WEIGHTS, "")
    root = Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "cuebench" / "weights"
    return root / "controls"


@cache
def code_hash() -> str:
    """Return a hash of the code that draws the images of the controls and trains them, comments and layout aside."""
    files = sorted({path for pattern in CODE for path in ROOT.glob(pattern)})
    digest = hashlib.sha256()
    for path in files:
        code = syntax_digest(ast.parse(path.read_text("utf-8")))
        digest.update(f"{path.relative_to(ROOT).as_posix()}\0{code}\0".encode())
    return digest.hexdigest()


def weights_file(name: str, seed: int, folder: Path) -> Path:
    """Return where the weights of a control lie; the record has the same name with ``.json``."""
    return folder / f"{name}-{seed}-{code_hash()[:8]}.safetensors"


@dataclass(frozen=True)
class _Labels:
    """Types of the classes in the record of a control."""

    names: list[str]
    ids: list[str]


@dataclass(frozen=True)
class _Record:
    """Types of what is used of the record of a control."""

    labels: _Labels
    accuracy: float


def read_record(weights: Path) -> dict[str, Any]:
    """Return the record that lies beside the weights of a control.

    Raises
    ------
    UserError
        There is none, or it is not one of ours; the message says what to remove.
    """
    file = weights.with_suffix(".json")
    again = f"remove it and {weights.name}: it is then trained again"
    record = read_json(file, "record of a control", hint=again)
    try:
        known = check_types(record, _Record) if isinstance(record, dict) else {}
        complete = {"labels", "accuracy"} <= {*known} and {"names", "ids"} <= {*known["labels"]}
        if not complete or not 0 <= known["accuracy"] <= 1:
            raise UserError(f"{file} is no record of a control")
    except UserError as error:
        raise UserError(error.message, again) from None
    return record
