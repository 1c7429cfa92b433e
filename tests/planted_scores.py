"""Scores of ideal observers in every protocol, on tiny stimuli: rows of real scoring for tests of what shows them."""

from __future__ import annotations

import csv
import json
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image

from cuebench.options import parse
from cuebench.protocols.base import ScoreOptions, score_rows
from cuebench.registry import protocols
from cuebench.responses.table import Responses
from cuebench.stimuli.makers.base import make
from cuebench.testing import planted_responses
from cuebench.types import Score, StimulusSet

CLASSES = ("cat", "dog", "car", "clock")
WNIDS = ("n02123045", "n02391049", "n02690373", "n04254680")
MIXTURES = tuple(f"ideal:mixture?shape={share}" for share in (0.1, 0.3, 0.5, 0.7, 0.9))
_FOLDER = tempfile.TemporaryDirectory(prefix="cuebench-tests-")


def score(protocol: str, responses: list[Responses], **options: object) -> list[Score]:
    """Score responses as a run does."""
    part = protocols.get(protocol)
    values = parse(part.options, options, protocol)
    return score_rows(part, part.score(responses, ScoreOptions(resamples=100, values=values)))


def answers(protocol: str, stimuli: StimulusSet, observers: tuple[str, ...] = MIXTURES, **more: object) -> list:
    """Return the responses of ideal observers."""
    return [planted_responses(protocols.get(protocol), stimuli, spec, **more) for spec in observers]


@cache
def planted_scores(protocol: str) -> tuple[Score, ...]:
    """Return the rows of a protocol for five ideal observers, two people and, where it has them, baselines."""
    part = protocols.get(protocol)
    stimuli = part.read(data_root(protocol))
    responses = answers(protocol, stimuli)
    if protocol in ("cue_conflict", "refined_bias", "pure_shape", "human_alignment"):  # people took part in these
        people = [answers(protocol, stimuli, MIXTURES[3:4], needs=("decisions",), seed=k, name=f"person-{k}",
                          kind="person") for k in (1, 2)]  # fmt: skip
        responses += [person for (person,) in people]
        responses.append(_pooled([person for (person,) in people]))
    if part.answers_in or protocol == "cue_conflict":
        responses += answers(protocol, stimuli, ("ideal:shape?labels=imagenet1k",), name="large")
    if part.baselines:
        untrained = answers(protocol, stimuli, ("ideal:random",) * 2, name="untrained")
        responses += [replace(r, observer=f"untrained-{k}", baseline_of=MIXTURES[0]) for k, r in enumerate(untrained)]
    views = [replace(r, view=view.name) for view in part.views[1:] for r in responses]
    return tuple(score(protocol, [*responses, *views]))


def _pooled(people: list[Responses]) -> Responses:
    first = people[0]
    columns = {name: np.concatenate([p.columns[name] for p in people]) for name in first.columns}
    columns["subject"] = np.repeat([p.observer for p in people], len(first))
    rows = np.concatenate([p.stimulus for p in people])
    return replace(first, observer="people", kind="people", stimulus=rows, columns=columns)


@cache
def data_root(protocol: str) -> Path:
    """Return a data root with a few stimuli of a protocol."""
    root = Path(_FOLDER.name) / protocol
    rng = np.random.default_rng(0)

    def picture(path: Path, size: tuple[int, int] = (24, 24)) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 200, (*size, 3), dtype=np.uint8)).save(path)

    if protocol == "human_alignment":
        for k, name in enumerate(CLASSES):
            for i in range(1, 9):
                conflict = f"{name}{i}-{CLASSES[(k + i) % 4]}{i % 2 + 1}.png"
                trial = f"{k}{i}_cop_dnn_{('c100', 'c30', 'c10', 'c01')[i % 4]}_{name}_10_n0{k}_{i}.png"
                for path in (f"edge/{name}/{name}{i}.png", f"cue-conflict/{name}/{conflict}", f"contrast/dnn/{trial}"):
                    picture(root / "model_vs_human" / "stimuli" / path)
    elif protocol in ("cue_conflict", "triplets", "textured_silhouettes"):
        for shape in CLASSES:
            for texture in CLASSES:
                for i in (1, 2):
                    picture(root / "cue_conflict" / "stimuli" / shape / f"{shape}{i}-{texture}{1 + i % 2}.png")
            for i in (1, 2):
                plane = np.full((24, 24, 3), 255, np.uint8)
                plane[6:18, 6 : 12 + 2 * i] = 0
                path = root / "cue_conflict" / "silhouettes" / shape / f"{shape}{i}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(plane).save(path)
    elif protocol == "pure_shape":
        for place in ("silhouettes", "edges"):
            for name in CLASSES:
                for i in (1, 2):
                    picture(root / "cue_conflict" / place / name / f"{name}{i}.png")
    elif protocol == "refined_bias":
        for cue, names in (("shape", ("balloon", "camera", "clock")), ("texture", ("tiger", "elephant", "zebra"))):
            for name in names:
                for i in range(4):
                    stem = f"{name}_{i}" if cue == "shape" else f"{(4, 8)[i % 2]}x{(4, 8)[i % 2]}_{name}_{i}"
                    picture(root / "refined_bias" / f"refined_bias_{cue}" / name / f"{stem}.png")
    elif protocol in ("cue_decomposition", "corruption_robustness"):
        for name in CLASSES:
            for i in range(2):
                picture(root / "photographs" / name / f"{i}.png")
        make("cue_decomposition", root, source=str(root / "photographs"), cues="all,voronoi8", conflicts="published",
             steps=2, size=24, resize=24, workers=1, device="cpu")  # fmt: skip
    elif protocol == "cue_decomposition_segmentation":
        _write_masks(root / "pairs")
        make("cue_decomposition", root, source=str(root / "pairs"), cues="eed,voronoi,patch", steps=2, workers=1,
             device="cpu")  # fmt: skip
    else:
        _write_photographs(root / "imagenet_val", picture)
        for i, wnid in enumerate(WNIDS):
            picture(root / "imagenet_a" / wnid / f"{i}.png")
            for k in range(3):
                picture(root / "textures" / f"texture{i}" / f"{k}.png")
    return root


def _write_photographs(folder: Path, picture: object) -> None:
    rows = [{"file": f"{i}.png", "wnid": WNIDS[i % 4]} for i in range(8)]
    for row in rows:
        picture(folder / row["file"], (32, 40))  # type: ignore[operator]
    with (folder / "labels.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["file", "wnid"])
        writer.writeheader()
        writer.writerows(rows)


def _write_masks(root: Path) -> None:
    rng = np.random.default_rng(0)
    classes = [{"name": name, "ids": [i + 1]} for i, name in enumerate(CLASSES)]
    for folder in ("images", "masks"):
        (root / folder).mkdir(parents=True)
    for i in range(4):
        labels = np.kron(rng.integers(0, 4, (3, 4)), np.ones((8, 8), int))
        Image.fromarray((60 * labels).astype(np.uint8)).convert("RGB").save(root / "images" / f"{i}.png")
        Image.fromarray((labels + 1).astype(np.uint8)).save(root / "masks" / f"{i}.png")
    (root / "classes.json").write_text(json.dumps({"dataset": "blocks", "classes": classes, "ignore": [0]}))
