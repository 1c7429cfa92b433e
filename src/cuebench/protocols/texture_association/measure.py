"""From stored answers to the numbers that are scored: counts on textures, and a texture for each photograph.

Answers are read in pieces. Counts and a histogram are kept of the textures, a few numbers of each photograph, so memory
does not grow with the number of texture pictures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cuebench.arrays import Array, Bools, Counts
from cuebench.errors import UserError
from cuebench.labels import LabelSpace, softmax
from cuebench.metrics.accuracy import in_top_k
from cuebench.metrics.texture_association import TAV, count, texture_association, texture_identity
from cuebench.metrics.texture_confidence import ConfidenceHistogram, top1
from cuebench.metrics.texturedness import similarity_with_other_pictures
from cuebench.protocols.trials import Asked, TrialRows, class_names
from cuebench.responses.table import Responses
from cuebench.statistics.clustered import Sums
from cuebench.statistics.intervals import child_generator
from cuebench.statistics.ratios import Terms

if TYPE_CHECKING:
    from cuebench.protocols.base import ScoreOptions

TEXTURE, CLEAN, ADVERSARIAL = "texture", "clean", "adversarial"
SHUFFLES = 10
"""How often the classes of the TAV are permuted, to see the values that arise without any association."""
RESAMPLES, SAMPLE = 100, 1000
"""How often texture pictures are drawn anew for the texturedness, and of how many photographs: a variance needs few."""
_ROWS = 2048


@dataclass
class TextureAnswers:
    """The answers of a model to pictures of textures, counted.

    Parameters
    ----------
    counts : int array k × m
        Pictures of each texture by top-1 class.
    confidence : list of ConfidenceHistogram
        One for each texture.
    """

    counts: Counts
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

    @property
    def overall(self) -> ConfidenceHistogram:
        """Confidence on all textures together."""
        total = ConfidenceHistogram.empty()
        for histogram in self.confidence:
            total = total.merge(histogram)
        return total


class Photographs(NamedTuple):
    """The answers of a model to labelled images: one value for each; ``shuffled…`` are images × SHUFFLES."""

    stimulus: Array
    label: Array
    prediction: Array
    correct: Bools
    confidence: Array
    texture: Array
    similarity: Array
    shuffled: Array
    shuffled_similarity: Array


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
    with_other_pictures: Mapping[str, Array] = field(default_factory=dict)
    """Part → mean texturedness of some of its photographs, for the TAV of each resample of the texture pictures."""

    @cached_property
    def _shown(self) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
        """(part, texture) → number of stimuli, and how many of them could not be read."""
        stimuli, unreadable = self.responses.stimuli, self.responses.excluded
        names = [(s.condition, s.texture) for s in stimuli]
        return Counter(names), Counter(name for name, s in zip(names, stimuli) if s.id in unreadable)

    def excluded(self, part: str, n: int, texture: str = "") -> dict[str, int]:
        """Return why stimuli of a part (or of one of its textures) are not among the n answers → how many."""
        shown, unreadable = (
            sum(count for (p, t), count in counts.items() if p == part and texture in ("", t)) for counts in self._shown
        )
        return {"unreadable": unreadable, "unanswered": shown - unreadable - n}


def measure(responses: Responses, seed: int = 0) -> Measured:
    """Count the answers to textures, compute the TAV, and find the texture of each photograph."""
    if responses.labels is None or "logits" not in responses.columns:
        raise UserError(f"{responses.observer} gave no logits", "texture association needs the scores of all classes")
    part = responses.truth("condition")
    textures = tuple(sorted({s.texture for s in responses.stimuli if s.condition == TEXTURE}))
    answers = _texture_answers(responses, part == TEXTURE, textures)
    tav = texture_association(answers.counts)
    rng = child_generator(seed, "texture_association/shuffled")
    permutations = tuple(rng.permutation(len(responses.labels)) for _ in range(SHUFFLES))
    photographs = {
        name: _photographs(responses, part == name, tav, permutations)
        for name in (CLEAN, ADVERSARIAL)
        if any(s.condition == name for s in responses.stimuli)
    }
    others = {name: _with_other_pictures(responses, part == name, answers.counts, seed) for name in photographs}
    return Measured(responses, responses.labels, textures, answers, tav, photographs, permutations, others)


def _with_other_pictures(responses: Responses, rows: Array, counts: Counts, seed: int) -> Array:
    chosen = np.flatnonzero(rows)
    if len(chosen) < 2 or not counts.any():
        return np.zeros(0)
    some = chosen[np.linspace(0, len(chosen) - 1, min(SAMPLE, len(chosen))).astype(np.intp)]
    probabilities = softmax(responses.columns["logits"][some])
    return similarity_with_other_pictures(probabilities, counts, seed=seed, resamples=RESAMPLES)


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
    position = {name: space.find(name) for name in {s.label for s in responses.stimuli if s.label}}
    labels = [position.get(s.label) if s.label else -1 for s in responses.stimuli]
    label = np.array(labels, np.intp)[responses.stimulus]
    parts: list[Photographs] = []
    for here, logits in _pieces(responses, rows):
        probabilities = softmax(logits)
        classes, confidence = top1(logits)
        texture, similarity = texture_identity(probabilities, tav)
        shuffled = [texture_identity(probabilities, tav[:, p]) for p in permutations]
        parts.append(
            Photographs(
                stimulus=responses.stimulus[here],
                label=label[here],
                prediction=classes,
                correct=in_top_k(logits, label[here]),
                confidence=confidence,
                texture=texture,
                similarity=similarity,
                shuffled=np.stack([s.texture for s in shuffled], 1).astype(np.int32),
                shuffled_similarity=np.stack([s.similarity for s in shuffled], 1),
            )
        )
    if not parts:
        ints, floats, wide = np.zeros(0, np.intp), np.zeros(0), np.zeros((0, len(permutations)))
        none = np.zeros(0, bool)
        return Photographs(ints, ints, ints, none, floats, ints, floats, wide.astype(np.int32), wide)
    return Photographs(*(np.concatenate(column) for column in zip(*parts)))


def _pieces(responses: Responses, rows: Array) -> Iterator[tuple[Array, Array]]:
    """Yield (row numbers, logits) of the selected rows, a bounded number at once."""
    logits = responses.columns["logits"]
    for start in range(0, len(rows), _ROWS):
        here = start + np.flatnonzero(rows[start : start + _ROWS])
        if len(here):
            # A piece of which every row is selected is a view, not a copy.
            whole = len(here) == min(_ROWS, len(rows) - start)
            yield here, logits[start : start + len(here)] if whole else logits[here]


# ------------------------------------------------------------------------------------------------- single answers


def trial_rows(responses: Responses, options: ScoreOptions) -> list[TrialRows]:
    """Return the first answer to each picture with its confidence; of photographs, whether it is right."""
    assert responses.labels is not None
    classes, confidence = top1(responses.columns["logits"])
    names, label = np.unique(responses.truth("label"), return_inverse=True)
    class_positions = [responses.labels.find(str(name)) if name else None for name in names]
    position = np.array([-1 if p is None else p for p in class_positions], np.intp)[label.ravel()]
    columns = {"decision": class_names(classes, responses.labels.names), "value": confidence}
    part = responses.truth("condition")
    texture, others = (np.flatnonzero(mask) for mask in (part == TEXTURE, part != TEXTURE))
    correct = {"correct": (classes == position)[others]}
    return [
        TrialRows("textures", texture, {name: values[texture] for name, values in columns.items()}),
        TrialRows(part[others], others, {**{name: values[others] for name, values in columns.items()}, **correct}),
    ]


def contributions(responses: Responses, asked: Asked) -> Sums | None:
    """Return the mean confidence as a ratio of sums over pictures of textures."""
    rows = responses.truth("condition") == TEXTURE
    if asked.condition != "textures" or not rows.any():
        return None
    confidence = np.concatenate([top1(logits)[1] for _, logits in _pieces(responses, rows)])
    terms = Terms(confidence, np.ones(len(confidence)))
    return Sums.of_ratio(terms, responses.truth("id")[rows], {"classes": responses.truth("texture")[rows]})
