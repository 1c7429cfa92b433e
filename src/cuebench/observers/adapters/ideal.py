"""Ideal observers that answer from the manifest's truth: by shape, by texture, at random, or a known mixture.

They calibrate every protocol: a metric that does not give back the planted bias does not measure it. Each stimulus has
its own random numbers, seeded by the run's seed and the stimulus, so that an answer depends neither on batching nor on
the other stimuli.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError, did_you_mean
from cuebench.labels import LabelMap, LabelSpace, label_space
from cuebench.observers.adapters._ideal_features import has_instances, instance_features
from cuebench.observers.adapters._options import NAME, option_values
from cuebench.observers.base import Adapter, Answers, Batch, LoadOptions, Observer, ObserverBase, Spec
from cuebench.options import Option
from cuebench.types import REMOVED, Capability, ObserverKind, Stimulus

SURE = 20.0
"""Logit of the chosen class; the others have 0, so softmax gives it more than 0.99999."""

WEIGHTS = {"shape": (1.0, 0.0), "texture": (0.0, 0.0), "random": (0.5, 1.0), "mixture": (0.5, 0.0)}
"""Body of the spec → probability of answering by shape, and of a lapse (a random answer)."""
LABELS = {"labels": Option("", "label space that the answers are ranked in; default: the classes of the stimuli")}
OPTIONS = {
    "shape": Option(WEIGHTS["mixture"][0], "mixture: probability of answering by shape", low=0, high=1),
    "lapse": Option(WEIGHTS["mixture"][1], "mixture: probability of a random answer", low=0, high=1),
    **NAME,
    **LABELS,
}


@dataclass(frozen=True)
class IdealObserver(ObserverBase):
    """Answers by shape with probability ``shape``, else by texture; with probability ``lapse`` at random instead.

    A stimulus that lacks the chosen cue (a pure texture, asked by shape) is answered with random logits. ``labels`` are
    the classes themselves, or a larger space of which ``members`` says what belongs to each class: then the first
    member stands on top and all other logits are random, as a measure of ranks needs it.

    Features are the one-hot shape class times √shape, followed by the one-hot texture class times √(1 − shape): the
    cosine of two stimuli that share only the shape is ``shape``, of two that share only the texture 1 − ``shape``. An
    observer that always lapses has random features. Where features are asked for and the stimuli name the instances
    that they were made from, the features tell instances apart instead; see ``observers.adapters._ideal_features``.

    Masks are the true ones where the chosen cue is there, and a random class for each pixel where it was taken away.
    ``truth`` reads them; the run sets it for stimuli that have masks.
    """

    name: str
    shape: float
    lapse: float
    seed: int
    labels: LabelSpace
    space: str = ""
    members: Mapping[str, int] = field(default_factory=dict)
    kind: ObserverKind = "ideal"
    preprocess: None = None
    capabilities: frozenset[Capability] = field(default=frozenset({"logits", "features", "decisions"}))
    truth: Callable[[Stimulus], Array] | None = field(default=None, compare=False)

    @property
    def fingerprint(self) -> str:
        """Hash of everything that changes an answer."""
        parts = ("ideal", self.shape, self.lapse, self.seed, self.labels.names)
        identity = repr((*parts, sorted(self.members.items())) if self.members else parts)
        return hashlib.sha256(identity.encode()).hexdigest()

    @cached_property
    def classes(self) -> LabelSpace:
        """The classes of the stimuli."""
        return LabelSpace("targets", tuple(self.members)) if self.members else self.labels

    def among(self, targets: Sequence[str], members: LabelMap | None = None, space: str = "") -> IdealObserver:
        """Return the same observer, choosing among the classes of one protocol's stimuli.

        Parameters
        ----------
        targets : sequence of str
            The classes.
        members : LabelMap, optional
            What each of them is made of in a larger label space.
        space : str
            That label space, where the protocol ranks in one; the observer's own ``?labels=`` goes first. Without it,
            or where a class has no member in it, the answers are in the classes themselves.
        """
        plain = replace(self, labels=LabelSpace("targets", tuple(targets)), members={})
        if members is None or not (self.space or space):
            return plain
        large = label_space(self.space or space)
        resolved = members.resolve(large)
        if resolved.uncovered:
            return plain
        return replace(self, labels=large, members={n: int(m[0]) for n, m in zip(resolved.names, resolved.members)})

    def with_masks(self, truth: Callable[[Stimulus], Array]) -> IdealObserver:
        """Return the observer that answers with masks, and with nothing else."""
        return replace(self, truth=truth, capabilities=frozenset({"masks"}))

    def respond(self, batch: Batch, needs: Sequence[Capability]) -> Answers:
        """Answer from the truth of each stimulus, with all columns."""
        if "masks" in needs:
            return {"masks": _column([self._mask(s) for s in batch.stimuli])}
        answers = [self._answer(s) for s in batch.stimuli]
        logits = np.array([a for a, _ in answers], np.float32).reshape(len(answers), len(self.labels))
        features = np.array([f for _, f in answers], np.float32).reshape(len(answers), 2 * len(self.classes))
        if "features" in needs and has_instances(batch.stimuli):
            # Trials that compare instances, not classes: the planted share is that of the triplets decided by shape.
            share = self.shape * (1 - self.lapse) + self.lapse / 2
            features = instance_features(batch.stimuli, share, self.seed)
        decisions = np.array(self.labels.names)[logits.argmax(axis=1)] if len(answers) else np.zeros(0, np.str_)
        return {"decisions": decisions, "logits": logits, "features": features}

    def _mask(self, stimulus: Stimulus) -> Array:
        """Return the true mask, or a random class for each pixel: a lapse, or a cue that was taken away."""
        assert self.truth is not None
        truth = np.asarray(self.truth(stimulus), np.int16)
        rng = generator(self.seed, stimulus)
        by_shape, lapsed = rng.random() < self.shape, rng.random() < self.lapse
        if lapsed or (stimulus.shape if by_shape else stimulus.texture) == REMOVED:
            return rng.integers(len(self.labels), size=truth.shape, dtype=np.int16)
        return truth

    def _answer(self, stimulus: Stimulus) -> tuple[Array, Array]:
        rng = generator(self.seed, stimulus)
        by_shape, lapsed = rng.random() < self.shape, rng.random() < self.lapse
        guess = int(rng.integers(len(self.classes)))
        shape, texture = self._class(stimulus, "shape"), self._class(stimulus, "texture")
        features = rng.normal(size=2 * len(self.classes)) if self.lapse == 1 else self._features(shape, texture)
        chosen = guess if lapsed else shape if by_shape else texture
        if self.members:
            # A guess among a thousand classes is a random order of them.
            return self._ranked(None if lapsed else chosen, rng), features
        if chosen is None:
            return self._ranked(None, rng), features
        logits = np.zeros(len(self.labels))
        logits[chosen] = SURE
        return logits, features

    def _ranked(self, chosen: int | None, rng: np.random.Generator) -> Array:
        """Return logits in random order, with the chosen class on top where there is one."""
        logits = rng.normal(size=len(self.labels))
        if chosen is not None:
            logits[self.members[self.classes.names[chosen]]] = SURE
        return logits

    def _features(self, shape: int | None, texture: int | None) -> Array:
        features = np.zeros(2 * len(self.classes))
        if shape is not None:
            features[shape] = np.sqrt(self.shape)
        if texture is not None:
            features[len(self.classes) + texture] = np.sqrt(1 - self.shape)
        return features

    def _class(self, stimulus: Stimulus, cue: str) -> int | None:
        """Return the position of a stimulus' shape or texture class; None where it lacks that cue."""
        # An ordinary photograph has one class: shape and texture agree.
        name = getattr(stimulus, cue) or stimulus.label
        if name == REMOVED or (not name and (stimulus.shape or stimulus.texture)):
            return None
        position = self.classes.find(name)
        if position is None:
            problem = f"{cue} {name!r}" if name else f"neither a {cue} nor a label"
            raise UserError(
                f"{self.name}: stimulus {stimulus.id!r} has {problem}",
                f"classes of this run: {', '.join(self.classes.names)}",
            )
        return position


def _column(masks: Sequence[Array]) -> Array:
    """Return masks as one array, of objects where their sizes differ."""
    if len({m.shape for m in masks}) == 1:
        return np.stack(masks)
    column = np.empty(len(masks), object)
    column[:] = masks
    return column


def generator(seed: int, stimulus: Stimulus) -> np.random.Generator:
    """Return the generator of a stimulus: the same in every batch and in every run with this seed."""
    digest = hashlib.sha256(f"{seed}|{stimulus.key}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def load(spec: Spec, options: LoadOptions) -> list[Observer]:
    """Return the one observer that the spec names."""
    if spec.body not in WEIGHTS:
        raise did_you_mean("ideal observer", spec.body, WEIGHTS)
    shape, lapse = WEIGHTS[spec.body]
    if spec.body == "mixture":
        values = option_values(spec, OPTIONS)
        shape, lapse = values["shape"], values["lapse"]
    else:
        values = option_values(spec, {**NAME, **LABELS})
    if values["labels"]:
        label_space(values["labels"])  # a wrong name fails here, not in the run
    if not options.targets:
        raise UserError(f"observer {spec.text!r} must know the classes it can choose from", "run it on a protocol")
    targets = LabelSpace("targets", options.targets)
    return [IdealObserver(values["name"] or spec.text, shape, lapse, options.seed, targets, values["labels"])]


ADAPTER = Adapter(
    load=load,
    form="ideal:shape|texture|random|mixture[?shape=P][&lapse=P][&labels=SPACE]",
    examples=(
        "ideal:shape",
        "ideal:texture",
        "ideal:random",
        "ideal:mixture?shape=0.7",
        "ideal:shape?labels=imagenet1k",
    ),
    options=OPTIONS,
)
