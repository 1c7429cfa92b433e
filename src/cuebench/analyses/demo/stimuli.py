"""The stimuli of the demo: the toy world, cues made from it, novel objects, simulated people; and a sheet of them."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from cuebench.arrays import Array
from cuebench.files import make_folder, write_atomic
from cuebench.stimuli import toy_world
from cuebench.stimuli.makers.base import make
from cuebench.stimuli.png import png_bytes
from cuebench.stimuli.readers import cue_conflict
from cuebench.stimuli.sheet_layout import Group, Tile, draw
from cuebench.stimuli.toy_world import CLASSES, THINGS

SIDE = 96
"""Side of the pictures of the decomposition in pixels."""
STEPS = 3009
"""Of edge-enhancing diffusion: 16,384 at 224 pixels, for the same part of a picture that is 96 wide."""
SCENE_STEPS = 1024
OBJECTS: dict[str, Any] = {
    "shapes": "blicket,fep,wug,zav,dax,gorp,zorb",
    "textures": "bricks,fur,honeycombed,knitted,leaves,scaly,wood",
}
PEOPLE = 4
TILE = 128


def make_stimuli(
    data: Path, *, seed: int = 0, count: int = 0, numbers: Mapping[str, Any] | None = None, novel: Any = OBJECTS
) -> None:
    """Write everything that the protocols of the demo show, below a data root and its folder ``segmentation``.

    Parameters
    ----------
    data : Path
        Data root.
    seed : int
        Of everything that is drawn.
    count : int
        Number of cue-conflict pictures; 0: as many as the toy world has.
    numbers : mapping of str to int
        Number of pictures of other kinds, as options of the toy world: ``photographs``, ``patches`` and so on.
    novel : mapping
        Options of the novel objects.
    """
    make("toy_world", data, seed=seed, count=count, **(numbers or {}))
    make("novel_objects", data, seed=seed, **novel)
    make("refined_bias", data, seed=seed, source=str(data / "objects"), grids="8,16", allow_bad=True)
    classes = str(data / "cue_conflict" / "labels.json")
    make("cue_decomposition", data, seed=seed, source=str(data / "imagenet_val"), labels=classes, size=SIDE,
         resize=SIDE, steps=STEPS, accuracy=45)  # fmt: skip
    make("cue_decomposition", data / "segmentation", seed=seed, source=str(data / "scenes"), steps=SCENE_STEPS,
         accuracy=45)  # fmt: skip
    simulate_people(data, seed=seed)


def simulate_people(data: Path, *, seed: int = 0) -> None:
    """Write answers of simulated people to silhouettes, edges and conflicts, as raw data of model-vs-human.

    They go by shape. Some pictures are hard for all of them: there they guess among the classes half of the time.
    """
    home = data / "model_vs_human"
    edges = home / "stimuli" / "edge"
    if not edges.is_dir():
        shutil.copytree(data / "cue_conflict" / "edges", edges)
    sets = {
        "edge": sorted(edges.glob("*/*.png")),
        "silhouette": sorted((data / "cue_conflict" / "silhouettes").glob("*/*.png")),
        "cue-conflict": sorted((data / "cue_conflict" / "stimuli").glob("*/*.png")),
    }
    for name, files in sets.items():
        for person in range(1, PEOPLE + 1):
            subject = f"simulated-{person:02d}"
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            columns = ("subj", "session", "trial", "rt", "object_response", "category", "condition", "imagename")
            writer.writerow(columns)
            for trial, file in enumerate(files, 1):
                answer = _simulated(file, subject, seed)
                writer.writerow((subject, 1, trial, 0.7, answer, file.parent.name, 0, file.name))
            # The name of the file says that these answers stand for a person.
            path = home / "raw-data" / name / f"{name}_subject-{person:02d}_session_1.csv"
            write_atomic(path, text.getvalue().encode())


def _simulated(file: Path, subject: str, seed: int) -> str:
    shape = file.parent.name
    hard = toy_world.generator(seed, f"difficulty {file.stem}", 0).random() < 0.25
    rng = toy_world.generator(seed, f"{subject} {file.stem}", 0)
    return str(rng.choice(CLASSES)) if rng.random() < (0.5 if hard else 0.03) else shape


def contact_sheet(data: Path, path: Path) -> Path:
    """Draw examples of every kind of stimulus and write them as one picture."""
    pairs = {(s.shape, s.texture): s for s in cue_conflict.read(data / "cue_conflict" / "stimuli")}
    chosen = [pairs[name, CLASSES[(3 + i) % len(CLASSES)]] for i, name in enumerate(CLASSES)]
    root, objects = data / "cue_conflict" / "stimuli", sorted(data.glob("novel_objects/size=1.0/aligned/*.png"))
    groups = [
        Group("In conflict: the shape of one thing, the material of another",
              [_tile(root / s.path, s.shape, f"material: {s.texture}") for s in chosen]),
        Group("Things as they are: shape and material agree",
              [_tile(f, n, THINGS[n].texture.replace("_", " ")) for n, f in _first(data, "imagenet_val/*/{}_*.png")]),
        Group("Shape alone: silhouettes, edges, contours, diffusion", [
            _tile(f, kind, n) for kind, place, names in (
                ("silhouette", "cue_conflict/silhouettes/*/{}*.png", CLASSES[:2]),
                ("edges", "cue_conflict/edges/*/{}*.png", CLASSES[2:4]),
                ("contours", "refined_bias/refined_bias_shape/*/{}*.png", CLASSES[4:6]),
                ("diffusion (EED)", "cue_decomposition/eed/*/{}_*.png", CLASSES[:1] + CLASSES[6:7]),
            ) for n, f in _first(data, place, names)]),
        Group("Texture alone: materials, patches, Voronoi cells", [
            _tile(f, kind, n) for kind, place, names in (
                ("material", "textures/*/{}_*.png", [THINGS[n].texture for n in CLASSES[:3]]),
                ("patches", "refined_bias/refined_bias_texture/*/*x*_{}_*.png", CLASSES[3:6]),
                ("Voronoi cells", "cue_decomposition/voronoi/*/{}_*.png", CLASSES[:1] + CLASSES[6:7]),
            ) for n, f in _first(data, place, names)]),
        Group("Novel objects, for triplets", [_tile(f, *f.stem.split("-")) for f in objects[::8][:7]]),
        Group("Labelled scenes, and their masks", [tile for k in range(4) for tile in _scene(data, k)]),
    ]  # fmt: skip
    sheet = draw(groups, title="Stimuli of the demo, all drawn by cuebench", columns=8)
    make_folder(path.parent)
    write_atomic(path, png_bytes(sheet))
    return path


def _first(data: Path, pattern: str, names: Iterable[str] = CLASSES) -> list[tuple[str, Path]]:
    by_class = ((name, sorted(data.glob(pattern.format(name)))) for name in names)
    return [(name, files[0]) for name, files in by_class if files]


def _tile(file: Path, name: str, note: str) -> Tile:
    picture = Image.open(file, formats=("PNG",)).convert("RGB").resize((TILE, TILE), Image.Resampling.LANCZOS)
    return Tile(name.replace("_", " "), note.replace("_", " "), np.asarray(picture))


def _scene(data: Path, number: int) -> list[Tile]:
    image, mask = (data / "scenes" / kind / f"scene_{number:03d}.png" for kind in ("images", "masks"))
    return [_tile(image, "scene", ""), Tile("mask", "", _coloured(np.asarray(Image.open(mask, formats=("PNG",)))))]


def _coloured(mask: Array) -> Array:
    """Return a mask with a colour for each class, as large as a tile."""
    hues = np.linspace(0, 1, len(CLASSES), endpoint=False)
    wheel = [np.abs((hues * 6 + shift) % 6 - 3) - 1 for shift in (0, 4, 2)]
    colours = np.vstack([[245, 245, 245], np.clip(np.stack(wheel, 1), 0, 1) * 170 + 50]).astype(np.uint8)
    picture = Image.fromarray(colours[mask]).resize((TILE, TILE), Image.Resampling.NEAREST)
    return np.asarray(picture)
