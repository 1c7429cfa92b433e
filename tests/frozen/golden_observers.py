"""Observers of the golden runs: their answers are the same on every machine, and need no network."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import cuebench as cb
from cuebench.labels import LabelSpace, label_map, label_space
from cuebench.observers.base import Answers, Batch, ObserverBase
from cuebench.observers.preprocess import Preprocess
from cuebench.types import REMOVED, Stimulus

TARGETS = label_map("in16").names
PLAIN = {"mean": (0, 0, 0), "std": (1, 1, 1), "scale": 1}


def chance(*names: object) -> int:
    """Return a number below 1,000 that depends on these names alone."""
    return zlib.crc32("|".join(map(str, names)).encode()) % 1000


class Network(ObserverBase):
    """A network with logits, features and two layers, that answers by shape, by texture, or with another class.

    Its logits are whole numbers divided by 128 and depend a little on the pixels; its features are whole numbers.
    """

    kind, loaded_by = "model", "golden/1"
    capabilities = frozenset({"logits", "features"})

    def __init__(
        self,
        name: str,
        classes: Sequence[str] | LabelSpace,
        shape: int = 500,
        texture: int = 300,
        *,
        size: int | tuple[int, int] = 32,
        reads: tuple[str, ...] = (),
    ) -> None:
        self.name, self.fingerprint, self.reads = name, f"{name} of the golden runs", reads
        self.labels = classes if isinstance(classes, LabelSpace) else LabelSpace(name, tuple(classes))
        self.preprocess = Preprocess(size, **PLAIN)
        self._shares = shape, texture
        self._members: dict[str, Any] = {}

    def reading(self, names: Sequence[str]) -> Network:
        """Return the network that answers with layers too."""
        layers = ("early", "late") if "all" in names else tuple(names)
        return Network(self.name, self.labels, *self._shares, size=self.preprocess.size, reads=layers)

    def respond(self, batch: Batch, needs: Sequence[str]) -> Answers:
        """Answer a batch."""
        assert batch.images is not None
        logits = np.stack([self._logits(s, image) for s, image in zip(batch.stimuli, batch.images)])
        columns = {"logits": logits, "features": self._features(batch.stimuli, "penultimate", 3)}
        for name, noise in zip(self.reads, (9, 5)):
            columns[f"features:{name}"] = self._features(batch.stimuli, name, noise)
        return columns

    def _logits(self, stimulus: Stimulus, image: Any) -> Any:
        draw, classes = chance(self.name, stimulus.id, stimulus.condition), len(self.labels)
        logits = (np.arange(classes) * 389 + 125 * (draw % 8)) % 997
        logits[draw % classes] += int(image.astype(np.int64).sum() >> 12) % 5
        shape, texture = (self._class_of(n) for n in (stimulus.shape or stimulus.label, stimulus.texture))
        by_shape, by_texture = self._shares
        label = self._class_of(stimulus.label)
        first = shape if draw < by_shape else texture if draw < by_shape + by_texture else draw % classes
        for place, value in ((label, 1200), (texture, 1300), (shape, 1400), (first, 2000)):
            if place is not None and (value == 2000 or draw % 3):
                logits[place] = value
        return (logits / 128).astype(np.float32)

    def _class_of(self, name: str) -> int | None:
        """Return a class of its own for the name of a class, or of one of the 16."""
        if not name or name == REMOVED:
            return None
        if name not in self._members:
            found = self.labels.find(name)
            if found is None and name in TARGETS and len(self.labels) == 1000:
                members = label_map("in16").resolve(self.labels).members[TARGETS.index(name)]
                found = int(members[chance(name) % len(members)])
            self._members[name] = found
        return self._members[name]

    def _features(self, stimuli: Iterable[Stimulus], layer: str, noise: int) -> Any:
        rows = []
        for s in stimuli:
            parts = (s.shape_source or s.shape or s.label, s.texture_source or s.texture, f"{s.id} {s.condition}")
            weights = (6, 4, noise)
            draws = [[chance(self.name, layer, part, k) % 8 for k in range(6)] for part in parts]
            rows.append(np.concatenate([weight * np.array(row) for weight, row in zip(weights, draws)]))
        return np.array(rows, np.float32)


def network_1000(name: str = "net1000", shape: int = 500, texture: int = 300) -> Network:
    """Return a network of the 1,000 ImageNet classes."""
    return Network(name, label_space("imagenet1k"), shape, texture)


def blocks() -> cb.Observer:
    """Return a wrapped function of pixels with exactly the 16 target classes: the brightest of 16 fields wins."""

    def respond(pixels: Any) -> Any:
        fields = pixels[:, 1].astype(np.int64).reshape(len(pixels), 4, 8, 4, 8).sum(axis=(2, 4))
        return fields.reshape(len(pixels), 16).astype(np.float32)

    return cb.wrap(respond, preprocess=Preprocess(32, **PLAIN), labels=TARGETS, name="blocks", fingerprint="blocks")


def painter(name: str = "painter", mistake: int = 0) -> cb.Observer:
    """Return a segmentation by the nearest of three colours; ``mistake`` shifts the colours that it knows."""
    colours = np.array([[220, 20, 20], [20, 220, 20], [20, 20, 220]]) + mistake * np.array([1, -1, 0])

    def respond(pixels: Any) -> Any:
        seen = np.moveaxis(pixels.astype(np.int64), 1, -1)[..., None, :]
        return -np.moveaxis(((seen - colours) ** 2).sum(-1), -1, 1).astype(np.float32)

    plain = Preprocess((24, 32), **PLAIN)
    classes = ["red", "green", "blue"]
    return cb.wrap(respond, name=name, task="segmentation", preprocess=plain, labels=classes, fingerprint=name)


# ------------------------------------------------------------------------------------------------- recordings


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a recording, and return its spec."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return f"recorded:{path}"


def people(path: Path, stimuli: Iterable[Stimulus], shares: Sequence[int] = (850, 700, 600)) -> str:
    """Write the answers of three people: some stimuli not seen, ``na``, a class outside of all, and an unknown word."""
    stimuli, rows = list(stimuli), []
    for k, share in enumerate(shares):
        for s in stimuli:
            draw = chance("person", k, s.id)
            if draw % 11 == k:
                continue  # not seen
            shape = s.shape or s.label
            texture = s.texture if s.texture in TARGETS else "boat"
            answer = shape if draw < share else texture if draw < 900 else "oven" if draw < 950 else "na"
            answer = "penguin" if draw == chance("person", k, stimuli[5].id) else answer
            rows.append([f"person-{k + 1}", s.id, answer, draw % 3 + 1, draw / 1000])
    return write_csv(path, ["subject", "stimulus", "decision", "session", "rt"], rows)


def recorded_model(path: Path, stimuli: Iterable[Stimulus], name: str, share: int = 400) -> str:
    """Write the logits of a network of 1,000 classes to a Parquet file; some stimuli have no answer."""
    members = label_map("in16").resolve(label_space("imagenet1k")).members
    answered = [s for s in stimuli if chance(name, s.id) % 9]
    logits = np.zeros((len(answered), 1000), np.float32)
    for row, s in zip(logits, answered):
        cue = (s.shape or s.label) if chance(name, s.id) < share else s.texture
        row[members[TARGETS.index(cue if cue in TARGETS else "boat")][0]] = 9.0
    columns = {"stimulus": [s.id for s in answered], "observer": [name] * len(answered), "logits": logits.tolist()}
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return f"recorded:{path}"


def words(path: Path, stimuli: Iterable[Stimulus]) -> str:
    """Write replies of a chat model: letters, sentences, refusals, what cannot be read, and no reply at all."""
    rows = []
    for s in stimuli:
        draw = chance("words", s.id)
        cue = s.shape if draw < 550 else s.texture
        letter = "ABCDEFGHIJKLMNOP"[TARGETS.index(cue)]
        replies = [cue, f"The object is a {cue}.", letter, f"{letter}. {cue}", f"I see a {s.shape} or a {s.texture}",
                   "I'm sorry, I cannot help.", "", "A colourful pattern"]  # fmt: skip
        rows.append([s.id, replies[min(draw % 13, 7)] if draw % 13 > 3 else replies[draw % 4]])
    return write_csv(path, ["image", "response"], rows)


def study_export(path: Path, stimuli: Iterable[Stimulus]) -> str:
    """Write the export of a study with five people, one of whom is excluded; some trials have no answer."""
    rows = []
    for k in range(5):
        for i, s in enumerate(stimuli):
            draw = chance("study", k, s.id)
            answer = s.shape if draw < 650 else s.texture if draw < 900 else "" if draw < 950 else "clock"
            kind = "practice" if i % 12 == k else "trial"
            rows.append([f"p{k}", "shape", kind, s.id, s.shape, s.texture, answer, "too fast" if k == 3 else "", draw])
    columns = ["participant", "task", "kind", "stimulus", "shape", "texture", "response", "excluded", "rt_ms"]
    return write_csv(path, columns, rows)


def choices(path: Path, number: int = 40) -> str:
    """Write choices of three people among triplets of a 6 × 6 grid of objects; some without an answer."""
    rows = []
    for k in range(3):
        for i in range(number):
            a, b, x, y = f"s{i % 6}", f"s{(i + 1 + i // 6 % 3) % 6}", f"t{i % 5}", f"t{(i + 2) % 5}"
            draw = chance("choice", k, i)
            choice = "shape" if draw < 500 + 150 * k else f"{b}-{x}" if draw < 950 else ""
            rows.append([f"person-{k + 1}", f"{a}-{x}", f"{a}-{y}", f"{b}-{x}", choice])
    return write_csv(path, ["subject", "anchor", "shape_match", "texture_match", "choice"], rows)
