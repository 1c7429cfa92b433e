"""Which trials a participant gets: balanced, counter-balanced, seeded. Pure functions of the participant's number.

Participants are dealt to the groups of the design in turn, so that the groups stay equally large. A participant's
*window* is how often the groups have been dealt before: the members of all groups with the same window see the same
images, so that orders are compared on the same images. With ``draw = "participant"`` the windows move through the
images: however many people take part, two images of a class were never shown to numbers of people that differ by more
than one (in each group).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np

from cuebench.errors import UserError
from cuebench.study.design import Block, Design
from cuebench.study.types import StudyImage, Trial

EDGE = 2
"""Trials at the beginning and at the end of a block that are never attention checks, where there are enough."""

T = TypeVar("T")


class Place(NamedTuple):
    """Where a participant stands in the balance: group, and how often the groups have been dealt before."""

    group: str
    window: int


def place_of(design: Design, number: int) -> Place:
    """Return the group and the window of a participant, numbered from 0."""
    names = list(design.groups)
    return Place(names[number % len(names)], number // len(names))


def assign(design: Design, images: Sequence[StudyImage], number: int, seed: int) -> list[Trial]:
    """Return all trials of a participant in order.

    Parameters
    ----------
    design : Design
        What is asked.
    images : sequence of StudyImage
        The images of the study, in any order.
    number : int
        Of the participant, from 0. The same number gets the same trials, also in another study with the same design,
        stimuli and seed: nothing depends on the ids of the images, which each study draws anew.
    seed : int
        Of the study.
    """
    images = by_name(images)
    group, window = place_of(design, number)
    trials: list[Trial] = []
    for name in design.groups[group]:
        session = _Session(design, design.block(name), images, number, window, seed)
        trials += session.trials()
    return [replace(trial, position=position) for position, trial in enumerate(trials)]


def by_name(images: Sequence[StudyImage]) -> list[StudyImage]:
    """Return images in an order that is the same in every study that shows them."""
    return sorted(images, key=lambda image: image.name)


def balanced(
    images: Sequence[StudyImage], count: int, column: str, *, window: int = 0, key: str = "", seed: int = 0
) -> list[StudyImage]:
    """Draw images with equal numbers of each value of a column; the next window goes on where this one ends.

    Parameters
    ----------
    images : sequence of StudyImage
        To draw from.
    count : int
        How many; where it is no multiple of the number of values, the surplus moves from value to value.
    column : str
        Field of the images, such as ``shape``; empty: all images are alike.
    window : int
        How many such draws went before.
    key : str
        Draws with different keys are independent.
    seed : int
        Of the study.
    """
    strata: dict[str, list[StudyImage]] = {}
    for image in by_name(images):
        strata.setdefault(getattr(image, column) if column else "", []).append(image)
    if not strata:
        raise UserError(f"there are no images to draw {count} from", "check [stimuli] and the blocks of the design")
    share, surplus = divmod(count, len(strata))
    chosen = []
    for i, (value, members) in enumerate(sorted(strata.items())):
        # Surplus images go round the values: before this window there were window × surplus of them.
        before, after = ((n * surplus + len(strata) - 1 - i) // len(strata) for n in (window, window + 1))
        size = share + after - before
        if size > len(members):
            what = f"{column} {value!r} has" if column else "there are"
            raise UserError(f"{what} {len(members)} images; {size} are needed", "fewer trials, or a larger data root")
        order = generator(seed, "draw", key, value).permutation(len(members))
        start = share * window + before
        chosen += [members[order[(start + j) % len(members)]] for j in range(size)]
    return chosen


def classes_of(images: Sequence[StudyImage], block: Block) -> list[str]:
    """Return the possible answers of a block, in alphabetical order: also of classes that only examples show."""
    trials = [image for image in images if image.role == "trial" and (not block.cue or image.cue == block.cue)]
    shown = [*trials, *examples_of(images, block)]
    columns = ("shape", "texture") if block.task == "category" else (block.truth,)
    return sorted({value for image in shown for column in columns if column and (value := getattr(image, column))})


def examples_of(images: Sequence[StudyImage], block: Block) -> list[StudyImage]:
    """Return the example images of a block."""
    return [i for i in images if i.role == "familiarisation" and i.cue in ("", block.task)]


def pool(design: Design, images: Sequence[StudyImage], block: Block) -> list[StudyImage]:
    """Return the images that the trials of a block can show."""
    return [
        image
        for image in images
        if image.role == "trial"
        and (not block.cue or image.cue == block.cue)
        and (design.relation == "any" or image.shape != image.texture)
    ]


def generator(*parts: object) -> np.random.Generator:
    """Return random numbers that depend on all parts, and on nothing else."""
    digest = hashlib.sha256("|".join(map(str, parts)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


class _Session:
    """One block of one participant."""

    def __init__(
        self, design: Design, block: Block, images: Sequence[StudyImage], number: int, window: int, seed: int
    ) -> None:
        self.design, self.block, self.images = design, block, images
        self.window = window if block.draw == "participant" else 0
        self.seed = seed
        self.rng = generator(seed, "participant", number, block.name)
        self.classes = classes_of(images, block) if block.task != "same_kind" else []
        if block.order == "participant":
            # By the participant, not by the block: what is the same in two blocks stands at the same place.
            order = generator(seed, "options", number).permutation(len(self.classes))
            self.classes = [self.classes[i] for i in order]

    def trials(self) -> list[Trial]:
        """Return familiarisation, practice, then trials with the attention checks among them."""
        block = self.block
        pool_ = pool(self.design, self.images, block)
        chosen = balanced(pool_, block.count, block.balance, window=self.window, key=block.sample, seed=self.seed)
        shown = [chosen[i] for i in self.rng.permutation(len(chosen))]
        trials = self._questions(shown, "trial")
        for position, check in zip(self._places(len(trials)), self._checks(pool_)):
            trials.insert(position, check)
        return [*self._familiarisation(), *self._practice(), *trials]

    def _questions(self, images: Sequence[StudyImage], kind: str) -> list[Trial]:
        if self.block.task == "same_kind":
            return list(self._triplets(images, kind))
        return [self._question(image, kind) for image in images]

    def _question(self, image: StudyImage, kind: str) -> Trial:
        truth = (getattr(image, self.block.truth),) if self.block.truth else ()
        return self._trial(kind, (image.id,), self._options(image), truth)

    def _trial(
        self, kind: str, stimuli: tuple[str, ...], options: tuple[str, ...], correct: tuple[str, ...], asked: str = ""
    ) -> Trial:
        brief = self.design.times.get("image_ms") if not asked else None
        return Trial(
            position=0,
            block=self.block.name,
            task=self.block.task,
            kind=kind,
            stimuli=stimuli,
            options=options,
            correct=correct,
            planned_ms=brief,
            several=self.block.several,
            free=self.block.free,
            asked=asked,
        )

    def _options(self, image: StudyImage | None) -> tuple[str, ...]:
        """Return the options of a trial; of the task ``words``, the image's word and others, in random order."""
        names = list(self.classes)
        if self.block.task == "words":
            word = image.texture if image else str(self.rng.choice(names))
            others = sorted(name for name in names if name != word)
            if len(others) < self.block.choices - 1:
                raise UserError(f"there are {len(names)} words; {self.block.choices} are needed", "show more textures")
            # By the study, not by the participant: people are compared on the same words.
            rng = generator(self.seed, "words", image.name) if image else self.rng
            names = [word, *rng.choice(others, self.block.choices - 1, replace=False)]
        if self.block.task == "words" or self.block.order == "trial":
            names = [names[i] for i in self.rng.permutation(len(names))]
        return tuple(map(str, names))

    # ---- before the trials

    def _familiarisation(self) -> list[Trial]:
        """Return one page for each class, with its examples."""
        examples = examples_of(self.images, self.block)
        trials = []
        for name in self.classes if self.block.familiarisation else ():
            mine = [image.id for image in examples if getattr(image, self.block.truth or "shape") == name]
            trial = self._trial("familiarisation", tuple(mine[: self.block.familiarisation]), (name,), ())
            trials.append(replace(trial, planned_ms=None, several=False, free=False))
        return [trial for trial in trials if trial.stimuli]

    def _practice(self) -> list[Trial]:
        examples = examples_of(self.images, self.block)
        shown = [examples[i] for i in self.rng.permutation(len(examples))[: self.block.practice]]
        return self._questions(shown, "practice")

    # ---- triplets

    def _triplets(self, anchors: Sequence[StudyImage], kind: str) -> Iterator[Trial]:
        """Yield triplets; the shape match stands on the left in half of them, whichever half."""
        candidates = [image for image in self.images if image.role == "trial"]
        left = self.rng.permutation(np.arange(len(anchors)) % 2).astype(bool)
        for anchor, on_left in zip(anchors, left):
            matches = triplet_matches(anchor, candidates)
            if not all(matches):
                raise UserError(f"{anchor.name} has no shape match or no texture match", "show more images")
            # By the study and the window, not by the participant: people are compared on the same triplets.
            rng = generator(self.seed, "matches", self.window, anchor.name)
            shape, texture = (options[int(rng.integers(len(options)))].id for options in matches)
            pair = (shape, texture) if on_left else (texture, shape)
            yield self._trial(kind, (anchor.id, *pair), pair, ())

    # ---- attention checks

    def _places(self, trials: int) -> list[int]:
        """Return where the checks are inserted, the last one first, so that earlier places stay right."""
        low, high = (EDGE, trials - EDGE) if trials > 2 * EDGE + self.block.attention else (0, trials)
        return sorted(map(int, self.rng.integers(low, high + 1, self.block.attention)), reverse=True)

    def _checks(self, shown: Sequence[StudyImage]) -> list[Trial]:
        kind = {"instructed": self._instructed, "aligned": self._aligned, "identical": self._identical}
        return [kind[self.design.check](shown, i) for i in range(self.block.attention)]

    def _one(self, members: Sequence[T], what: str) -> T:
        if not members:
            raise UserError(
                f"block {self.block.name!r}: there are no {what} for attention checks", "check the design's [attention]"
            )
        return members[int(self.rng.integers(len(members)))]

    def _instructed(self, shown: Sequence[StudyImage], number: int) -> Trial:
        masks = [image.id for image in self.images if image.role == "mask"]
        options = self._options(None)
        asked = self._one(options, "options")
        return self._trial("attention", (self._one(masks, "masks"),), options, (asked,), asked)

    def _aligned(self, shown: Sequence[StudyImage], number: int) -> Trial:
        aligned = [i for i in self.images if i.role == "trial" and i.shape == i.texture]
        image = self._one(aligned, "images with shape and texture of one class")
        return self._trial("attention", (image.id,), self._options(image), (image.shape,))

    def _identical(self, shown: Sequence[StudyImage], number: int) -> Trial:
        anchor = self._one(shown, "images")
        others = [i for i in shown if i.shape != anchor.shape and i.texture != anchor.texture]
        other = self._one(others, "images with another shape and texture")
        pair = (anchor.id, other.id) if self.rng.integers(2) else (other.id, anchor.id)
        return self._trial("attention", (anchor.id, *pair), pair, (anchor.id,))


def triplet_matches(anchor: StudyImage, images: Sequence[StudyImage]) -> tuple[list[StudyImage], list[StudyImage]]:
    """Return the images that share only the shape with an anchor, and those that share only the texture."""
    same = [image for image in images if image.condition == anchor.condition and image.id != anchor.id]
    by_shape = [i for i in same if i.shape_source == anchor.shape_source and i.texture != anchor.texture]
    by_texture = [i for i in same if i.texture_source == anchor.texture_source and i.shape != anchor.shape]
    return by_shape, by_texture
