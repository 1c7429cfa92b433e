"""How many people a study needs for an interval of a wanted width, by simulation with people and images that differ.

On the logit scale an answer is a sum of what all share, the person's effect and the image's effect. Studies are
simulated and analysed as real ones are (``statistics.crossed``); a closed form says where to look first, and what no
number of people can change: with few images, an interval over people *and* images stays wide.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Array, Floats
from cuebench.errors import UserError
from cuebench.options import SEED, parse
from cuebench.statistics.clustered import t_quantile
from cuebench.statistics.crossed import Crossed
from cuebench.statistics.crossed import share as crossed_share
from cuebench.statistics.intervals import child_generator
from cuebench.statistics.logistic import central_log_odds, normal_nodes
from cuebench.statistics.ratios import Terms
from cuebench.study.analysis import judged_answers, read_answers

OVER = {"people": "people", "both": "people and images"}
MOST, FEWEST = 20_000, 3
"""Numbers of people that are considered."""
MOST_SPREAD, WIDEST = 5.0, 20.0
"""Largest spread that is estimated from a pilot; largest that can be assumed: all answers of a person are alike."""
MOST_SHOWN, MOST_STUDIES = 10_000, 100_000
"""Images and trials of a person, and simulated studies: what can be simulated."""
MOST_NAMED = 1_000_000
"""Most images that advice names."""
NEAREST = 1e-9
"""A share of the population is at least so far from 0 and 1."""
_NODES = 41
"""Values that stand for the effects of people and of images."""


@dataclass(frozen=True)
class Assumptions:
    """What is assumed of the answers.

    Parameters
    ----------
    share : float
        Accuracy, shape bias or share of shape matches of the population.
    person_sd, image_sd : float
        Spread of people and of images, standard deviations on the logit scale.
    trials : int
        Of each person.
    images : int
        In the whole study, drawn at random for each person; 0 or ``trials``: everybody sees the same.
    """

    share: float
    person_sd: float = 0.6
    image_sd: float = 0.8
    trials: int = 50
    images: int = 0

    def __post_init__(self) -> None:
        problems = [] if NEAREST <= self.share <= 1 - NEAREST else [f"share {self.share}: between 0 and 1"]
        spreads = (("person_sd", self.person_sd), ("image_sd", self.image_sd))
        problems += [f"{n} {v}: 0 to {WIDEST:g}" for n, v in spreads if not 0 <= v <= WIDEST]
        problems += (
            [] if 0 < self.trials <= MOST_SHOWN else [f"trials {self.trials}: at least 1, {MOST_SHOWN:,} at most"]
        )
        problems += [] if 0 <= self.images <= MOST_SHOWN else [f"images {self.images}: 0 to {MOST_SHOWN:,}"]
        problems += [f"images {self.images}: at least as many as trials"] if 0 < self.images < self.trials else []
        if problems:
            raise UserError(f"assumptions: {'; '.join(problems)}", "see: cuebench study power --help")

    @property
    def shown(self) -> int:
        """Images in the whole study."""
        return self.images or self.trials


class Step(NamedTuple):
    """Simulated studies with one number of people: mean width, 80th percentile of widths, and how often it holds."""

    people: int
    width: float
    width_80: float
    coverage: float


@dataclass(frozen=True)
class Plan:
    """How many people are needed; None where no number of people is enough."""

    assumptions: Assumptions
    wanted: float
    over: str
    people: int | None
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """The result in a sentence."""
        a = self.assumptions
        about = f"{a.trials:,} trials each, {a.shown:,} images"
        if self.people is None:
            return f"No number of people makes the interval {self.wanted:g} wide ({about})"
        return f"{self.people:,} people for an interval {self.wanted:g} wide ({about})"

    def record(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        return {**asdict(self), "steps": [step._asdict() for step in self.steps], "answer": self.answer}


# ------------------------------------------------------------------------------------------------------ closed form


class Components(NamedTuple):
    """Variances of single answers: between people, between images, and in all."""

    people: float
    images: float
    whole: float


def level_of(assumed: Assumptions) -> float:
    """Return the logit at which the mean over people and images is the share."""
    return central_log_odds(assumed.share, math.hypot(assumed.person_sd, assumed.image_sd), _NODES)


def marginal_share(typical: float, person_sd: float, image_sd: float) -> float:
    """Return the mean share of a population whose typical person answers a typical image with this probability.

    Examples
    --------
    >>> marginal_share(0.8, 0, 0), marginal_share(0.5, 1, 1)
    (0.8, 0.5)
    """
    from scipy.special import expit, logit

    x, weight = normal_nodes(_NODES)
    return round(float(weight @ expit(logit(typical) + math.hypot(person_sd, image_sd) * x)), 12)


def components(assumed: Assumptions) -> Components:
    """Return what people and images add to the variance of an answer.

    Examples
    --------
    >>> components(Assumptions(0.8, person_sd=0, image_sd=0))._replace(people=0, images=0)
    Components(people=0, images=0, whole=0.15999999999999998)
    """
    from scipy.special import expit

    x, weight = normal_nodes(_NODES)
    mu = level_of(assumed)
    table = expit(mu + assumed.person_sd * x[:, None] + assumed.image_sd * x[None, :])
    by_person, by_image = table @ weight, weight @ table
    people, images = (float(weight @ (by - assumed.share) ** 2) for by in (by_person, by_image))
    return Components(people, images, assumed.share * (1 - assumed.share))


def expected_width(assumed: Assumptions, people: float, over: str = "both", *, images: int = 0) -> float:
    """Return the width in closed form: 2·t·√(V_people/P + V_images/I + rest/(P·trials)), read on the logit scale.

    Parameters
    ----------
    assumed : Assumptions
        Of the answers.
    people : float
        How many; infinity is allowed.
    over : str
        ``people``: without V_images/I, which is the same for the same images; ``both``.
    images : int
        In the whole study, instead of those of the assumptions: any number, also more than can be simulated.
    """
    from scipy.special import expit, logit

    part = components(assumed)
    shown = images or assumed.shown
    # Images that differ between people add to what differs between people.
    same = shown == assumed.trials
    alone = max(part.whole - part.people - (part.images if same or over == "both" else 0), 0)
    by_people = part.people / people + alone / (people * assumed.trials)
    variance, df = by_people, people - 1
    if over == "both":
        variance += part.images / shown
        by_images = variance - part.people / people
        df = variance**2 / (by_people**2 / (people - 1) + by_images**2 / (shown - 1)) if shown > 1 else 1
    reach = t_quantile(min(df, 1e6), 0.95) * math.sqrt(variance) / part.whole
    centre = float(logit(assumed.share))
    return float(expit(centre + reach) - expit(centre - reach))


# ------------------------------------------------------------------------------------------------------- simulation


def simulate_studies(assumed: Assumptions, people: int, over: str, *, studies: int, seed: int) -> Step:
    """Simulate studies with so many people and analyse each.

    Parameters
    ----------
    assumed : Assumptions
        Of the answers.
    people : int
        In each study.
    over : str
        What the interval is over: ``people`` or ``both``.
    studies, seed : int
        How many are simulated, and the seed.
    """
    from scipy.special import expit

    rng = child_generator(seed, f"study/power/{people}")
    mu = level_of(assumed)
    person = np.repeat(np.arange(people), assumed.trials)
    ones = np.ones(len(person))
    widths, held = [], 0
    for _ in range(studies):
        image = _drawn_images(rng, assumed, people)
        of_images = rng.normal(0, assumed.image_sd, assumed.shown)
        effect = rng.normal(0, assumed.person_sd, people)[person] + of_images[image]
        right = rng.random(len(person)) < expit(mu + effect)
        estimate = crossed_share(Terms(right.astype(np.float64), ones), person, image)
        interval = estimate.people if over == "people" else estimate.both
        truth = assumed.share
        if over == "people" and assumed.shown == assumed.trials:
            truth = _share_of_images(mu, assumed.person_sd, of_images)
        widths.append(interval.high - interval.low)
        held += interval.low <= truth <= interval.high
    return Step(people, float(np.mean(widths)), float(np.quantile(widths, 0.8)), held / studies)


def _drawn_images(rng: np.random.Generator, assumed: Assumptions, people: int) -> Array:
    if assumed.shown == assumed.trials:
        return np.tile(np.arange(assumed.trials), people)
    # Smallest of random numbers: as many different images for each person.
    draws = rng.random((people, assumed.shown))
    chosen = np.argpartition(draws, assumed.trials - 1, axis=1)[:, : assumed.trials]
    return np.sort(chosen, axis=1).ravel()  # their order depends on the CPU


def _share_of_images(mu: float, person_sd: float, effects: Floats) -> float:
    from scipy.special import expit

    x, weight = normal_nodes(_NODES)
    return float((expit(mu + effects[:, None] + person_sd * x) @ weight).mean())


def plan(assumed: Assumptions, width: float, *, over: str = "both", studies: int = 200, seed: int = 0) -> Plan:
    """Find the smallest number of people whose interval is on average as narrow as wanted.

    Parameters
    ----------
    assumed : Assumptions
        Of the answers.
    width : float
        Wanted width of the 95 % interval.
    over : str
        ``people``: for other people and the same images; ``both``: also for other images.
    studies, seed : int
        Simulated studies for each number of people, and the seed.
    """
    if over not in OVER:
        raise UserError(f"--over {over!r}", f"write {' or '.join(OVER)}")
    if not 0 < width < 1:
        raise UserError(f"a width of {width:g}", "between 0 and 1; 0.1 is ± 5 percentage points")
    if not 2 <= studies <= MOST_STUDIES:
        raise UserError(f"{studies} simulated studies", f"at least 2, {MOST_STUDIES:,} at most")
    seed = parse({"seed": SEED}, {"seed": seed}, "a simulation")["seed"]
    floor = expected_width(assumed, math.inf, over)
    if floor >= width or expected_width(assumed, MOST, over) > width:
        steps = [simulate_studies(assumed, people, over, studies=studies, seed=seed) for people in (20, 80, 320)]
        return Plan(assumed, width, OVER[over], None, tuple(steps), tuple(_what_helps(assumed, width, floor, over)))
    known: dict[int, Step] = {}

    def narrow(people: int) -> bool:
        if people not in known:
            known[people] = simulate_studies(assumed, people, over, studies=studies, seed=seed)
        return known[people].width <= width

    low, high = FEWEST - 1, _people_for(assumed, width, over)
    while not narrow(high):
        low, high = high, math.ceil(1.15 * high)
    if low < FEWEST:  # the closed form was enough: how many fewer are?
        low = int(0.85 * high)
        while low >= FEWEST and narrow(low):
            low, high = int(0.85 * low), low
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if narrow(middle) else (middle, high)
    return Plan(
        assumed, width, OVER[over], high, tuple(sorted(known.values())), tuple(_advice(assumed, high, width, over))
    )


def _people_for(assumed: Assumptions, width: float, over: str) -> int:
    """Return how many people the closed form asks for."""
    low, high = FEWEST - 1, MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if expected_width(assumed, middle, over) <= width else (middle, high)
    return high


def _advice(assumed: Assumptions, people: int, width: float, over: str) -> list[str]:
    """Say what the width is made of, and what twice as many trials would change."""
    notes = [f"closed form: {expected_width(assumed, people, over):.3f} wide with {people:,} people"]
    if over == "both":
        floor = expected_width(assumed, math.inf, over)
        notes.append(f"with any number of people it stays {floor:.3f} wide: that is due to {assumed.shown:,} images")
    if 2 * max(assumed.trials, assumed.images) > MOST_SHOWN:
        return notes
    more = replace(assumed, trials=2 * assumed.trials, images=2 * assumed.images)
    fewer, usual = (_people_for(assumptions, width, over) for assumptions in (more, assumed))
    return [*notes, f"twice as many trials and images: {fewer / usual:.0%} of the people (closed form)"]


def _what_helps(assumed: Assumptions, width: float, floor: float, over: str) -> list[str]:
    if floor < width:
        return [f"more than {MOST:,} people would be needed: choose a wider interval, or more trials"]
    notes = [f"with any number of people it stays {floor:.3f} wide: that is due to {assumed.shown:,} images"]
    images = assumed.shown
    while images < MOST_NAMED:
        images = math.ceil(images * 1.05) + 1
        if expected_width(assumed, math.inf, over, images=images) <= 0.8 * width:
            wider = f", or choose a wider interval: {MOST_SHOWN:,} is the most here" if images > MOST_SHOWN else ""
            return [*notes, f"show at least {images:,} different images, not the same to everybody{wider}"]
    return [*notes, f"more than {MOST_NAMED:,} different images would be needed: choose a wider interval"]


# ------------------------------------------------------------------------------------------------------------ pilot


def from_pilot(source: str | Path, *, task: str = "", trials: int = 50, images: int = 0) -> Assumptions:
    """Estimate share and spreads from a pilot study.

    Parameters
    ----------
    source : path
        Export or study folder.
    task : str
        Which; default: the first.
    trials, images : int
        Of the planned study.
    """
    judged = judged_answers(read_answers(source))
    if task and task not in judged:
        raise UserError(f"{source} has no task {task!r}", f"its tasks: {', '.join(judged)}")
    chosen = judged[task or next(iter(judged))]
    people, seen = chosen.people, chosen.images
    counted = chosen.counts > 0
    whole = chosen.share()
    if whole.n_people < 3 or not 0 < whole.value < 1:
        raise UserError(
            f"{source}: {whole.n_people} people with a share of {whole.value:.3f} say nothing about how people differ",
            "a pilot needs at least three people who are neither always right nor always wrong; or give --share",
        )
    spread = spreads(whole, chosen.hits[counted], people[counted], seen[counted])
    return Assumptions(whole.value, spread.person_sd, spread.image_sd, trials, images)


class Spreads(NamedTuple):
    """Standard deviations of people and images on the logit scale."""

    person_sd: float
    image_sd: float


def spreads(whole: Crossed, hits: Floats, people: Array, images: Array) -> Spreads:
    """Return the spreads of people and images on the logit scale, from how alike their answers are.

    The covariance of two answers of one person to different images is the variance between people, and that of two
    answers to one image is the variance between images; both are turned into spreads that give them.
    """
    rest = hits - whole.value
    # The mean was estimated from the same answers, which makes residuals less alike than errors.
    mean_error = (whole.both.high - whole.both.low) / (2 * t_quantile(max(whole.n_people - 1, 1), 0.95))
    targets = np.array([_alike(rest, people), _alike(rest, images)]) + mean_error**2
    sds = np.where(targets > 0, 0.5, 0.0)
    for _ in range(200):
        parts = components(Assumptions(whole.value, float(sds[0]), float(sds[1])))
        ratio = np.maximum(targets, 0) / np.maximum([parts.people, parts.images], 1e-12)
        moved = np.minimum(sds * np.sqrt(np.clip(ratio, 0.25, 4)), MOST_SPREAD)
        if np.abs(moved - sds).max() < 1e-6:
            break
        sds = moved
    return Spreads(float(sds[0]), float(sds[1]))


def _alike(rest: Floats, clusters: Array) -> float:
    """Return the mean product of two residuals of the same cluster; 0 where no cluster has two."""
    _, code = np.unique(clusters, return_inverse=True)
    sums, squares, sizes = (np.bincount(code.ravel(), v) for v in (rest, rest**2, np.ones(len(rest))))
    pairs = float((sizes * (sizes - 1)).sum())
    return float((sums**2 - squares).sum()) / pairs if pairs else 0.0
