"""From stored answers to what texture association is scored from: counts on textures, a texture for each photograph.

Answers are walked through in pieces. Of the textures only counts and a histogram are kept, of the photographs a few
numbers each, so the memory does not grow with the number of texture pictures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError
from cuebench.labels import LabelSpace, softmax
from cuebench.metrics.texture_association import TAV, count, texture_association, texture_identity
from cuebench.metrics.texture_confidence import ConfidenceHistogram, top1
from cuebench.responses.table import Responses
from cuebench.statistics.intervals import child_generator

TEXTURE, CLEAN, ADVERSARIAL = "texture", "clean", "adversarial"
SHUFFLES = 10
"""How often the classes of the TAV are permuted to see what the analyses give without any real association."""
_ROWS = 2048


@dataclass
class TextureAnswers:
    """What a model answered to the textures; the answers to two halves of a set add up.

    Parameters
    ----------
    counts : int array k × m
        Pictures of each texture by top-1 class.
    confidence : list of ConfidenceHistogram
        One for each texture.
    """

    counts: np.ndarray[Any, np.dtype[np.int64]]
    confidence: list[ConfidenceHistogram] = field(default_factory=list)

    @classmethod
    def empty(cls, textures: int, classes: int) -> TextureAnswers:
        """Return the answers to nothing."""
        histograms = [ConfidenceHistogram.empty() for _ in range(textures)]
        return cls(np.zeros((textures, classes), np.int64), histograms)

    def add(self, textures: Array, logits: Array) -> None:
        """Count further answers: position of the texture and logits, one row each."""
        classes, confidence = top1(logits)
        self.counts += count(textures, classes, *self.counts.shape)
        for i in np.unique(textures):
            self.confidence[int(i)].add(confidence[textures == i])

    def merge(self, other: TextureAnswers) -> TextureAnswers:
        """Return the answers to both sets of pictures."""
        pairs = zip(self.confidence, other.confidence, strict=True)
        return TextureAnswers(self.counts + other.counts, [a.merge(b) for a, b in pairs])

    @property
    def overall(self) -> ConfidenceHistogram:
        """Confidence on all textures together."""
        total = ConfidenceHistogram.empty()
        for one in self.confidence:
            total = total.merge(one)
        return total


class Photographs(NamedTuple):
    """What a model answered to labelled images; one value for each, ``shuffled`` is images × SHUFFLES."""

    stimulus: Array
    label: Array
    prediction: Array
    confidence: Array
    texture: Array
    similarity: Array
    shuffled: Array
    shuffled_similarity: Array

    @property
    def correct(self) -> Array:
        """Whether the top-1 class is the label."""
        return np.asarray(self.prediction == self.label)


@dataclass(frozen=True)
class Measured:
    """Everything that one observer is scored from."""

    responses: Responses
    labels: LabelSpace
    textures: tuple[str, ...]
    answers: TextureAnswers
    tav: TAV
    photographs: dict[str, Photographs]
    permutations: tuple[Array, ...] = ()


def measure(responses: Responses, seed: int = 0) -> Measured:
    """Count the answers to textures, derive the TAV, and find the texture of each photograph."""
    if responses.labels is None or "logits" not in responses.columns:
        raise UserError(f"{responses.observer} gave no logits", "texture association needs the scores of all classes")
    part = responses.truth("condition")
    textures = tuple(sorted({s.texture for s in responses.stimuli if s.condition == TEXTURE}))
    answers = _texture_answers(responses, part == TEXTURE, textures)
    tav = texture_association(answers.counts)
    rng = child_generator(seed, "texture_association/shuffled")
    permutations = tuple(rng.permutation(len(responses.labels)) for _ in range(SHUFFLES))
    found = {
        name: _photographs(responses, part == name, tav, permutations)
        for name in (CLEAN, ADVERSARIAL)
        if any(s.condition == name for s in responses.stimuli)
    }
    return Measured(responses, responses.labels, textures, answers, tav, found, permutations)


def _texture_answers(responses: Responses, rows: Array, textures: tuple[str, ...]) -> TextureAnswers:
    position = {name: i for i, name in enumerate(textures)}
    code = np.array([position.get(s.texture, -1) for s in responses.stimuli], np.intp)[responses.stimulus]
    answers = TextureAnswers.empty(len(textures), len(responses.labels or ()))
    for here, logits in _pieces(responses, rows):
        answers.add(code[here], logits)
    return answers


def _photographs(responses: Responses, rows: Array, tav: TAV, permutations: tuple[Array, ...]) -> Photographs:
    space = responses.labels
    assert space is not None
    own = {name: space.find(name) for name in {s.label for s in responses.stimuli if s.label}}
    label = np.array([own.get(s.label) if s.label else -1 for s in responses.stimuli], np.intp)[responses.stimulus]
    parts: list[tuple[Array, ...]] = []
    for here, logits in _pieces(responses, rows):
        probabilities = softmax(logits)
        classes, confidence = top1(logits)
        texture, similarity = texture_identity(probabilities, tav)
        shuffled = [texture_identity(probabilities, tav[:, p]) for p in permutations]
        index, size = (np.stack([getattr(s, name) for s in shuffled], 1) for name in ("texture", "similarity"))
        stimulus = responses.stimulus[here]
        parts.append((stimulus, label[here], classes, confidence, texture, similarity, index.astype(np.int32), size))
    if not parts:
        ints, floats = np.zeros(0, np.intp), np.zeros(0)
        wide = np.zeros((0, len(permutations)))
        return Photographs(ints, ints, ints, floats, ints, floats, wide.astype(np.int32), wide)
    return Photographs(*(np.concatenate(column) for column in zip(*parts)))


def _pieces(responses: Responses, rows: Array) -> Iterator[tuple[Array, Array]]:
    """Yield (row numbers, logits) of the rows that are asked for, a bounded number at once."""
    logits = responses.columns["logits"]
    for start in range(0, len(rows), _ROWS):
        here = start + np.flatnonzero(rows[start : start + _ROWS])
        if len(here):
            # A piece that is asked for whole is a view, not a copy.
            whole = len(here) == min(_ROWS, len(rows) - start)
            yield here, logits[start : start + len(here)] if whole else logits[here]
