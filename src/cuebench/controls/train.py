"""Train the controls: some seconds to half a minute each on one core of a CPU, the same weights for the same seed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cuebench._version import __version__
from cuebench.arrays import Array
from cuebench.controls import images as drawn
from cuebench.controls.images import INSTANCES, Labelled, Parts
from cuebench.errors import did_you_mean
from cuebench.files import make_folder, write_atomic, write_json
from cuebench.labels import LabelSpace
from cuebench.observers.control_files import CONTROLS, Control, code_hash, read_record, weights_file
from cuebench.observers.load import require
from cuebench.stimuli import toy_world

BATCH = 64
MEAN, STD = 0.5, 0.25
"""Normalisation of the pixels, in [0, 1]."""


class Plan(NamedTuple):
    """How long a network is trained: images, passes over them, and the largest learning rate."""

    images: int
    epochs: int
    rate: float


PLANS = {
    "convnet": Plan(2400, 8, 6e-3),
    "transformer": Plan(3600, 10, 2e-3),
    "segmenter": Plan(480, 10, 8e-3),
}
"""Architecture → how it is trained."""
HELD_OUT = {"convnet": 400, "transformer": 400, "segmenter": 48}
"""Architecture → images that the accuracy is measured on, of the same kind as those of the training."""
HELD_OUT_SEED, HELD_OUT_INSTANCES = 1_000_000, 4
"""Their instances are those of another seed, fewer of each class."""
Progress = Callable[[int, int], None]


class Trained(NamedTuple):
    """A control on disk."""

    name: str
    path: Path
    record: dict[str, Any]


def label_space(architecture: str) -> LabelSpace:
    """Return the classes of a control: those of the toy world, of a segmentation with the background before them."""
    if architecture == "segmenter":
        return LabelSpace("toy_world", (toy_world.BACKGROUND, *toy_world.CLASSES))
    ids = tuple(thing.texture_ids[0] for thing in toy_world.THINGS.values())
    return LabelSpace("toy_world", toy_world.CLASSES, ids)


def train_control(name: str, folder: Path, *, seed: int = 0, progress: Progress | None = None) -> Trained:
    """Train a control and write its weights and its record; one that lies there already is left as it is.

    Parameters
    ----------
    name : str
        One of ``CONTROLS``.
    folder : Path
        Where the files go.
    seed : int
        Of the images, the first weights and the order of training.
    progress : callable, optional
        ``progress(done, total)`` in passes over the images.
    """
    if name not in CONTROLS:
        raise did_you_mean("control", name, CONTROLS)
    require(f"control {name!r}", "torch", ("torch", "safetensors"))
    path = weights_file(name, seed, folder)
    record_file = path.with_suffix(".json")
    if path.is_file() and record_file.is_file():
        return Trained(name, path, read_record(path))
    make_folder(folder)  # before the training, which takes a minute
    from safetensors.torch import save

    control = CONTROLS[name]
    start = time.process_time()
    with one_thread(seed):
        network, accuracy = _trained(control, seed, progress)
    labels = label_space(control.architecture)
    record = {
        "control": name,
        "about": control.about,
        "architecture": control.architecture,
        "seed": seed,
        "code": code_hash(),
        "cuebench": __version__,
        **PLANS[control.architecture]._asdict(),
        "held_out": HELD_OUT[control.architecture],
        "accuracy": round(accuracy, 4),
        "cpu_seconds": round(time.process_time() - start, 1),
        "labels": {"names": list(labels.names), "ids": list(labels.ids)},
    }
    write_atomic(path, save({k: v.contiguous() for k, v in network.state_dict().items()}))
    write_json(record_file, record)  # last: a control without its record is trained again
    return Trained(name, path, record)


@contextmanager
def one_thread(seed: int) -> Iterator[None]:
    """Train with one thread and seeded: the same sums in the same order. The caller's threads and seed come back."""
    import torch

    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def training_images(control: Control, number: int, seed: int, stream: int = 0) -> Labelled:
    """Return images of the kind that a control is trained on.

    Parameters
    ----------
    control : Control
        Whose images.
    number : int
        Of images.
    seed : int
        Of the control.
    stream : int
        Another number has other images, of other and fewer instances: 1 is held out.
    """
    from cuebench.observers.torch.models.small import SCENE_SIDE, SIDE

    rng, instances = np.random.default_rng([seed, stream]), HELD_OUT_INSTANCES if stream else INSTANCES
    if control.architecture == "segmenter":
        parts = Parts.draw(seed + HELD_OUT_SEED * stream, SCENE_SIDE // 2, SCENE_SIDE, instances)
        return drawn.scenes(control.images, number, parts, SCENE_SIDE, rng)
    return drawn.labelled(control.images, number, Parts.draw(seed + HELD_OUT_SEED * stream, SIDE, SIDE, instances), rng)


def _trained(control: Control, seed: int, progress: Progress | None) -> tuple[Any, float]:
    import torch
    from torch import nn

    from cuebench.observers.torch.models.small import ARCHITECTURES

    plan = PLANS[control.architecture]
    data = training_images(control, plan.images, seed, 0)
    network = ARCHITECTURES[control.architecture](len(label_space(control.architecture)))
    # Most pixels of a scene are background: things count more.
    weight = torch.ones(len(label_space("segmenter"))) if control.architecture == "segmenter" else None
    if weight is not None:
        weight[0] = 0.25
    loss_of = nn.CrossEntropyLoss(weight=weight)
    steps = plan.epochs * -(-plan.images // BATCH)
    optimiser = torch.optim.AdamW(network.parameters(), lr=plan.rate, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, plan.rate, total_steps=steps)
    rng = np.random.default_rng([seed, 1])
    network.train()
    for epoch in range(plan.epochs):
        for rows in _batches(rng.permutation(plan.images)):
            pixels = drawn.varied(data.images[rows].astype(np.float32) / 255, rng)
            loss = loss_of(network(_input(pixels)), torch.from_numpy(data.labels[rows]))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
        if progress:
            progress(epoch + 1, plan.epochs)
    network.eval()
    held_out = training_images(control, HELD_OUT[control.architecture], seed, 1)
    return network, _accuracy(network, held_out.images, held_out.labels)


def _batches(order: Array) -> Iterator[Array]:
    for start in range(0, len(order), BATCH):
        yield order[start : start + BATCH]


def _input(pixels: Array) -> Any:
    import torch

    return torch.from_numpy(np.ascontiguousarray(((pixels - MEAN) / STD).transpose(0, 3, 1, 2), dtype=np.float32))


def _accuracy(network: Any, images: Array, labels: Array) -> float:
    """Return the share of images, or of the pixels of things, with the right class."""
    import torch

    right = counted = 0
    with torch.inference_mode():
        for rows in _batches(np.arange(len(images))):
            answers = network(_input(images[rows].astype(np.float32) / 255)).argmax(dim=1).numpy()
            things = labels[rows] > 0 if labels.ndim > 1 else np.ones(len(rows), bool)
            right += int((answers == labels[rows])[things].sum())
            counted += int(things.sum())
    return right / counted


def train_controls(
    names: Sequence[str], folder: Path, *, seed: int = 0, progress: Callable[[str, int, int], None] | None = None
) -> list[Trained]:
    """Train several controls; those that lie in the folder already are left as they are."""
    unknown = [name for name in names if name not in CONTROLS]
    if unknown:
        raise did_you_mean("control", unknown[0], CONTROLS)
    trained = []
    for name in names:
        report = None if progress is None else (lambda done, total, n=name: progress(n, done, total))
        trained.append(train_control(name, folder, seed=seed, progress=report))
    return trained
