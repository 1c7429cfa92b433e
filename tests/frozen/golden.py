"""The golden runs: one small run of every protocol, with everything that an observer can be."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cuebench as cb
from conformance.conftest import ROOTS
from cuebench.labels import label_map
from cuebench.registry import protocols
from frozen.golden_observers import (
    Network,
    blocks,
    choices,
    network_1000,
    painter,
    people,
    recorded_model,
    study_export,
    words,
)
from small_data import write_cue_conflict

IDEAL = ("ideal:shape", "ideal:texture", "ideal:mixture?shape=0.6&lapse=0.1")


def measure(observers: Sequence[Any], names: Sequence[str] | str, root: Path | None, out: Path, **options: Any) -> Path:
    """Make one run folder, in this process alone."""
    options = {"allow_unreadable": 0.2, "workers": 0, "resamples": 200, "device": "cpu", "offline": True, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # who could not be measured is a row
        cb.evaluate(list(observers), names, data_root=root, out=out, **options)
    return out


def damage(folder: Path, pattern: str = "*.png") -> None:
    """Cut a picture in half: its size can be read, its pixels cannot."""
    files = sorted(folder.rglob(pattern))
    file = files[len(files) // 2]
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def networks(root: Path, protocol: str) -> list[Any]:
    """Return a network of 1,000 classes, one with exactly the classes of the stimuli, and a function of pixels."""
    targets = label_map(protocols.get(protocol).read(root).targets).names
    return [network_1000(), Network("exact", targets, 300, 500), blocks()]


def conflict(home: Path) -> Path:
    """Cue conflict and textured silhouettes: networks, people, words, recorded logits; two unreadable pictures."""
    root = ROOTS["silhouettes"](home / "data")
    shown = list(protocols.get("cue_conflict").read(root))
    recorded = [
        people(home / "people.csv", shown),
        recorded_model(home / "recorded.parquet", shown, "recorded-net"),
        words(home / "chat.csv", shown),
    ]
    observers = [*IDEAL, *networks(root, "cue_conflict"), network_1000("shapely", 800, 100), *recorded]
    damage(root / "cue_conflict" / "stimuli" / "cat")
    damage(root / "cue_conflict" / "stimuli" / "clock")
    names = ["cue_conflict", "textured_silhouettes"]
    return measure(observers, names, root, home / "run", shard_size=16)


def conflict_few(home: Path) -> Path:
    """Four target classes of the set's own, a network of six, one of other classes, and people; all see the same."""
    root = write_cue_conflict(home / "data")
    shown = list(protocols.get("cue_conflict").read(root))
    four, six = ("cat", "dog", "car", "clock"), ("cat", "oak", "dog", "car", "elm", "clock")
    observers = [*IDEAL, Network("four", four), Network("six", six, 400, 400), Network("others", ("oak", "elm"))]
    observers += [people(home / "people.csv", shown[:25], (900, 500, 300)), "recorded:nowhere.csv"]
    settings = {"cue_conflict.view": "resized"}
    return measure(observers, "cue_conflict", root, home / "run", common=True, settings=settings, shard_size=8)


def conflict_merged(home: Path) -> Path:
    """Drawn stimuli, a part of them; a run of two processes (shards 1/2 and 2/2) merged with one of other observers."""
    root = ROOTS["conflicts"](home / "data")
    options: dict[str, Any] = {"shard_size": 5, "limit": 40, "seed": 3}
    for part in ((1, 2), (2, 2)):
        shared = measure([IDEAL[0], network_1000()], "cue_conflict", root, home / "shared", shard=part, **options)
    other = measure([IDEAL[2], network_1000("net2", 200, 600)], "cue_conflict", root, home / "other", **options)
    cb.merge([shared, other], home / "run")
    return home / "run"


def conflict_classes(home: Path) -> Path:
    """Only some classes of the set, for a network that knows no others."""
    root = ROOTS["silhouettes"](home / "data")
    observers = [*IDEAL[:2], Network("few", ("cat", "dog", "oak"), 400, 300)]
    names = ["cue_conflict", "textured_silhouettes"]
    settings = {f"{name}.classes": "cat,dog" for name in names}
    return measure(observers, names, root, home / "run", settings=settings)


def pure_shape(home: Path) -> Path:
    """Silhouettes and edges: networks, and people who did not see all of them."""
    root = ROOTS["pure_shapes"](home / "data")
    shown = list(protocols.get("pure_shape").read(root))
    damage(root / "cue_conflict" / "silhouettes")
    recorded = [people(home / "people.csv", shown), recorded_model(home / "r.parquet", shown, "recorded-net", 700)]
    return measure([*IDEAL, *networks(root, "pure_shape"), *recorded], "pure_shape", root, home / "run", shard_size=32)


def refined_bias(home: Path) -> Path:
    """REFINED-BIAS: networks with logits of many classes and of exactly its own, decisions alone."""
    root = ROOTS["pure_cues"](home / "data")
    stimuli = protocols.get("refined_bias").read(root)
    damage(root / "refined_bias" / "refined_bias_texture")
    observers = [network_1000(), network_1000("shapely", 700, 100), people(home / "people.csv", stimuli)]
    observers += [Network("exact", label_map(stimuli.targets).names, 600, 300)]
    return measure(observers, "refined_bias", root, home / "run", shard_size=50, limit=90)


def photographs(home: Path) -> Path:
    """Accuracy, feature suppression and corruption robustness: the last two decide before they store."""
    root = ROOTS["photographs"](home / "data")
    damage(root)
    names = ["imagenet_accuracy", "feature_suppression", "corruption_robustness"]
    few = Network("exact", ("n02123045", "n02391049", "n02690373", "n04254680"), 700, 0)
    settings = {"feature_suppression.size": 64, "corruption_robustness.also": "all"}
    known = protocols.get("corruption_robustness").options["also"].choices
    settings["corruption_robustness.also"] = ",".join(known)
    observers = [*IDEAL, network_1000("net1000", 700, 0), network_1000("other", 500, 0), few]
    return measure(observers, names, root, home / "run", limit=400, settings=settings)


def other_options(home: Path) -> Path:
    """What options change: suppressions with corrections, all levels of corruption, colours in place of textures."""
    root = ROOTS["photographs"](home / "data")
    names = ["feature_suppression", "corruption_robustness", "texture_association"]
    settings: dict[str, Any] = {"feature_suppression.mode": "corrected", "feature_suppression.size": 64}
    levels = protocols.get("corruption_robustness").options["levels"]
    settings["corruption_robustness.levels"] = next(c for c in levels.choices if c != levels.default)
    settings["texture_association.of"] = "colours"
    return measure([IDEAL[2], network_1000("net1000", 700, 0)], names, root, home / "run", limit=200, settings=settings)


def texture_association(home: Path) -> Path:
    """Textures, photographs and natural adversarial images, with classes read from layers."""
    root = ROOTS["textures_and_photographs"](home / "data")
    damage(root / "imagenet_val")
    damage(root / "textures")
    observers = [*IDEAL[:2], network_1000("net1000", 600, 300), network_1000("texturely", 200, 700)]
    settings = {"texture_association.layers": "all"}
    return measure(observers, "texture_association", root, home / "run", settings=settings, resamples=100)


def cue_decomposition(home: Path) -> Path:
    """Cue decomposition with three networks and people, one network outside of the population."""
    root = ROOTS["decomposition"](home / "data")
    shown = list(protocols.get("cue_decomposition").read(root))
    observers = [*IDEAL, network_1000("net1000", 700, 100), network_1000("second", 400, 300), blocks()]
    observers += [Network("exact", ("cat", "dog", "car", "clock"), 300, 500), people(home / "people.csv", shown)]
    settings = {"cue_decomposition.leave_out": "second"}
    return measure(observers, "cue_decomposition", root, home / "run", settings=settings)


def segmentation(home: Path) -> Path:
    """Decomposed cues and corruptions of pictures with masks."""
    root = ROOTS["segmentation"](home / "data")
    names = ["cue_decomposition_segmentation", "corruption_robustness"]
    observers = [*IDEAL, painter(), painter("strange", 90)]
    settings = {f"{name}.keep_masks": 1 for name in names}
    return measure(observers, names, root, home / "run", settings=settings, limit=200)


def human_alignment(home: Path) -> Path:
    """Human alignment: networks and recorded people of three data sets."""
    root = ROOTS["human_alignment"](home / "data")
    damage(root / "model_vs_human" / "stimuli" / "edge")
    observers = [*IDEAL, *networks(root, "human_alignment"), f"recorded:{root / 'model_vs_human' / 'raw-data'}"]
    return measure(observers, "human_alignment", root, home / "run")


def study(home: Path) -> Path:
    """The export of a study, on cue conflict and human alignment: practice, excluded people, trials without answer."""
    root = write_cue_conflict(home / "data", instances=3)
    export = study_export(home / "answers.csv", protocols.get("cue_conflict").read(root))
    names = ["cue_conflict", "human_alignment"]
    return measure([export, IDEAL[2], Network("four", ("cat", "dog", "car", "clock"))], names, root, home / "run")


def triplets(home: Path) -> Path:
    """Triplets of conflict images and of drawn objects: features, layers, and beside them choices of people."""
    root = ROOTS["silhouettes"](home / "data")
    observers = [network_1000(), network_1000("second", 200, 700), choices(home / "choices.csv")]
    settings = {"triplets.experiments": "1,3", "triplets.layers": "all"}
    return measure(observers, "triplets", root, home / "run", settings=settings)


def triplet_choices(home: Path) -> Path:
    """Choices of people alone: three single ones, and the same pooled."""
    return measure([choices(home / "choices.csv", 60)], "triplets", None, home / "run")


def baselines(home: Path) -> Path:
    """A real network, a layer of it, and two random initialisations."""
    spec = "torchvision:squeezenet1_1?weights=random&seed=9&name=net&features=features.3&preprocess.size=64"
    settings = {"triplets.experiments": "3", "triplets.layers": "features.4", "triplets.baselines": 2}
    return measure([spec, "ideal:shape"], "triplets", None, home / "run", settings=settings, limit=150)


GOLDEN: dict[str, Callable[[Path], Path]] = {
    make.__name__: make
    for make in (
        conflict, conflict_few, conflict_merged, conflict_classes, pure_shape, refined_bias, photographs,
        other_options, texture_association, cue_decomposition, segmentation, human_alignment, study, triplets,
        triplet_choices, baselines,
    )
}  # fmt: skip
