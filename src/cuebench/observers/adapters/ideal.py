"""Ideal observers that answer from the manifest's truth: by shape, by texture, at random, or a known mixture.

They calibrate every protocol: a metric that does not give back the planted bias does not measure it. Each stimulus has
its own random numbers, seeded by the run's seed and the stimulus, so that an answer depends neither on batching nor on
the other stimuli.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cuebench.errors import UserError, did_you_mean
from cuebench.labels import LabelSpace
from cuebench.observers.base import Adapter, Answers, Batch, LoadOptions, Observer, Spec
from cuebench.types import Capability, ObserverKind, Stimulus

SURE = 20.0
"""Logit of the chosen class; the others have 0, so softmax gives it more than 0.99999."""

WEIGHTS = {"shape": (1.0, 0.0), "texture": (0.0, 0.0), "random": (0.5, 1.0), "mixture": (0.5, 0.0)}
"""Body of the spec → probability of answering by shape, and of a lapse (a random answer)."""


@dataclass(frozen=True)
class IdealObserver:
    """Answers by shape with probability ``shape``, else by texture; with probability ``lapse`` at random instead.

    Features are the one-hot shape class times √shape, followed by the one-hot texture class times √(1 − shape): the
    cosine of two stimuli that share only the shape is ``shape``, of two that share only the texture 1 − ``shape``. An
    observer that always lapses has random features.
    """

    name: str
    shape: float
    lapse: float
    seed: int
    labels: LabelSpace
    kind: ObserverKind = "ideal"
    preprocess: None = None
    capabilities: frozenset[Capability] = field(default=frozenset({"logits", "features", "decisions"}))

    @property
    def fingerprint(self) -> str:
        """Hash of everything that changes an answer."""
        identity = repr(("ideal", self.shape, self.lapse, self.seed, self.labels.names))
        return hashlib.sha256(identity.encode()).hexdigest()

    def among(self, targets: Sequence[str]) -> IdealObserver:
        """Return the same observer, choosing among the classes of one protocol's stimuli."""
        return replace(self, labels=LabelSpace("targets", tuple(targets)))

    def respond(self, batch: Batch, needs: Sequence[Capability]) -> Answers:
        """Answer from the truth of each stimulus; all columns are made, they are cheap."""
        answers = [self._answer(s) for s in batch.stimuli]
        chosen = np.array([a for a, _ in answers], dtype=np.intp)
        logits = np.zeros((len(answers), len(self.labels)), np.float32)
        logits[np.arange(len(chosen)), chosen] = SURE
        features = np.array([f for _, f in answers], np.float32).reshape(len(answers), 2 * len(self.labels))
        return {"decisions": np.array(self.labels.names)[chosen], "logits": logits, "features": features}

    def _answer(self, stimulus: Stimulus) -> tuple[int, np.ndarray[Any, Any]]:
        rng = generator(self.seed, stimulus)
        by_shape, lapsed = rng.random() < self.shape, rng.random() < self.lapse
        guess = int(rng.integers(len(self.labels)))
        shape, texture = self._class(stimulus, "shape"), self._class(stimulus, "texture")
        features = rng.normal(size=2 * len(self.labels)) if self.lapse == 1 else self._features(shape, texture)
        return (guess if lapsed else shape if by_shape else texture), features

    def _features(self, shape: int, texture: int) -> np.ndarray[Any, Any]:
        features = np.zeros(2 * len(self.labels))
        features[shape] = np.sqrt(self.shape)
        features[len(self.labels) + texture] = np.sqrt(1 - self.shape)
        return features

    def _class(self, stimulus: Stimulus, cue: str) -> int:
        # An ordinary photograph has one class: shape and texture agree.
        name = getattr(stimulus, cue) or stimulus.label
        found = self.labels.find(name)
        if found is None:
            said = f"{cue} {name!r}" if name else f"neither a {cue} nor a label"
            raise UserError(
                f"{self.name}: stimulus {stimulus.id!r} has {said}",
                f"classes of this run: {', '.join(self.labels.names)}",
            )
        return found


def generator(seed: int, stimulus: Stimulus) -> np.random.Generator:
    """Return the stimulus' own generator: the same one in every batch and in every run with this seed."""
    digest = hashlib.sha256(f"{seed}|{stimulus.key}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Return the one observer that the spec names."""
    if spec.body not in WEIGHTS:
        raise did_you_mean("ideal observer", spec.body, WEIGHTS)
    shape, lapse = WEIGHTS[spec.body]
    if spec.body == "mixture":
        given = spec.take(shape=str(shape), lapse=str(lapse))
        shape, lapse = _share(spec, "shape", given["shape"]), _share(spec, "lapse", given["lapse"])
    else:
        spec.take()
    if not options.targets:
        raise UserError(f"observer {spec.text!r} must know the classes it can choose from", "run it on a protocol")
    return [IdealObserver(spec.text, shape, lapse, options.seed, LabelSpace("targets", options.targets))]


def _share(spec: Spec, option: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise UserError(f"observer {spec.text!r}: {option}={text!r}", "accepted: a probability between 0 and 1")
    return value


ADAPTER = Adapter(
    load=load,
    form="ideal:shape|texture|random|mixture[?shape=P][&lapse=P]",
    examples=("ideal:shape", "ideal:texture", "ideal:random", "ideal:mixture?shape=0.7"),
)
