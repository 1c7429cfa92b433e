"""Shares and agreement where people and images are both samples: intervals that hold for other people and other images.

Answers of one person resemble each other, and so do answers to one image. The variance of a number over other people is
that of the sums of its influence over each person, V_people; over other people *and* other images it is
V_people + V_images − V_answers, never below the larger of the first two (the noise of a single answer is in both).
Student's t has one degree of freedom less than there are people, or those of Satterthwaite where both are drawn. Shares
are read on the logit scale, κ on that of log(1 − κ), so that intervals keep inside their bounds.

References
----------
Cameron, Gelbach & Miller 2011, J. Bus. Econ. Stat. 29(2); Fleiss 1971, Psychol. Bull. 76; Efron & Stein 1981, Ann.
Statist. 9(3) (the jackknife); Satterthwaite 1946, Biometrics Bull. 2(6).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cuebench.arrays import Array, Floats
from cuebench.statistics.agreement import _fleiss, _kappa
from cuebench.statistics.clustered import all_alike, influence_of, share_interval, t_quantile, variance_of
from cuebench.statistics.estimates import jackknife_variance
from cuebench.statistics.ratios import Terms, total

LEVEL = 0.95


class Range(NamedTuple):
    """An interval, or why there is none."""

    low: float
    high: float
    note: str = ""


class Crossed(NamedTuple):
    """A number with its interval over other people, and over other people and other images."""

    value: float
    people: Range
    both: Range
    n: int
    n_people: int
    n_images: int
    note: str = ""


class _Spread(NamedTuple):
    """Variances over people, images and single answers, and the number of clusters of the first two."""

    people: float
    images: float
    answers: float
    n_people: int
    n_images: int

    @property
    def both(self) -> float:
        return max(self.people + self.images - self.answers, self.people, self.images)

    @property
    def df(self) -> float:
        """Satterthwaite's degrees of freedom of the variance over both."""
        parts = self.people**2 / (self.n_people - 1) + self.images**2 / (self.n_images - 1)
        return max(1.0, self.both**2 / parts) if parts > 0 else float(min(self.n_people, self.n_images) - 1)


def share(terms: Terms, people: Array, images: Array) -> Crossed:
    """Return a ratio of sums between 0 and 1 with its intervals.

    Parameters
    ----------
    terms : Terms
        What each answer adds to numerator and denominator; rows without a denominator are left out.
    people, images : array
        Who gave each answer, and to what.

    Returns
    -------
    Crossed
        Where every answer is alike the variance says nothing: the open end is then that of Clopper and Pearson for as
        many trials as there are people (or images, if fewer).
    """
    ratio = total(terms)
    counted = np.asarray(terms.denominator, np.float64) > 0
    people, images = np.asarray(people)[counted], np.asarray(images)[counted]
    who, person = np.unique(people, return_inverse=True)
    what, image = np.unique(images, return_inverse=True)
    n = int(counted.sum())
    if not n:
        nothing = Range(math.nan, math.nan, "nothing to count")
        return Crossed(math.nan, nothing, nothing, 0, 0, 0)
    psi = influence_of(terms, ratio)[counted]
    spread = _Spread(
        variance_of(np.bincount(person.ravel(), psi)),
        variance_of(np.bincount(image.ravel(), psi)),
        variance_of(psi),
        len(who),
        len(what),
    )
    over_people, over_both = (_share_range(ratio.value, spread, n, over) for over in ("people", "both"))
    return Crossed(ratio.value, over_people, over_both, n, len(who), len(what))


def _share_range(value: float, spread: _Spread, n: int, over: str) -> Range:
    reason = _too_few(spread, over)
    if reason:
        return Range(math.nan, math.nan, reason)
    if value in (0.0, 1.0):
        few = spread.n_people if over == "people" else min(spread.n_people, spread.n_images)
        exact = all_alike(value, few, "subjects", "subjects", LEVEL)
        return Range(exact.low, exact.high, "every answer alike: exact for as many trials")
    interval = share_interval(value, *_variance_and_df(spread, over), n, "subjects", LEVEL)
    return Range(interval.low, interval.high, interval.note)


def _too_few(spread: _Spread, over: str) -> str:
    if spread.n_people < 2:
        return f"{spread.n_people} person: nothing to generalise from"
    return f"{spread.n_images} image: nothing to generalise from" if over == "both" and spread.n_images < 2 else ""


def _variance_and_df(spread: _Spread, over: str) -> tuple[float, float]:
    return (spread.people, spread.n_people - 1.0) if over == "people" else (spread.both, spread.df)


def _reach(spread: _Spread, over: str) -> float:
    variance, df = _variance_and_df(spread, over)
    return t_quantile(df, LEVEL) * math.sqrt(variance)


# --------------------------------------------------------------------------------------------------- Fleiss' κ


def kappa(answers: Array, people: Array, images: Array) -> Crossed:
    """Return Fleiss' κ of people who answered images, not everybody each, with jackknife intervals.

    Images with fewer than two answers say nothing about agreement; they are left out, and the note counts them.

    Parameters
    ----------
    answers : array of str
        The class of each answer; missing answers are to be left out before.
    people, images : array
        Who gave each answer, and to what; one answer of a person to an image.
    """
    _, item, ratings = np.unique(np.asarray(images), return_inverse=True, return_counts=True)
    kept = ratings[item.ravel()] >= 2
    left_out = int((ratings < 2).sum())
    note = f"{left_out:,} images with fewer than two answers left out" if left_out else ""
    who, person = np.unique(np.asarray(people)[kept], return_inverse=True)
    what, item = np.unique(np.asarray(images)[kept], return_inverse=True)
    names, code = np.unique(np.asarray(answers)[kept], return_inverse=True)
    n = int(kept.sum())
    table = _counts(item.ravel(), code.ravel(), (len(what), len(names)))
    value = _fleiss_of(table) if len(what) else math.nan
    if math.isnan(value):
        reason = "no image with two answers" if not len(what) else "undefined: only one class was ever answered"
        nothing = Range(math.nan, math.nan, reason)
        return Crossed(math.nan, nothing, nothing, n, len(who), len(what), note)
    without_people = [
        _fleiss_of(table - _counts(item.ravel()[rows], code.ravel()[rows], table.shape))
        for rows in (np.flatnonzero(person.ravel() == i) for i in range(len(who)))
    ]
    spread = _Spread(
        jackknife_variance(np.array(without_people)),
        jackknife_variance(_without_images(table)),
        jackknife_variance(_without_answers(table, item.ravel(), code.ravel())),
        len(who),
        len(what),
    )
    over_people, over_both = (_kappa_range(value, spread, over) for over in ("people", "both"))
    return Crossed(value, over_people, over_both, n, len(who), len(what), note)


def _kappa_range(value: float, spread: _Spread, over: str) -> Range:
    reason = _too_few(spread, over) or ("fewer than three people" if spread.n_people < 3 else "")
    if reason or not math.isfinite(spread.both):
        return Range(math.nan, math.nan, reason or "undefined where somebody is left out")
    if value >= 1:
        return Range(math.nan, 1.0, "every answer alike: agreement is perfect in this sample")
    reach = _reach(spread, over) / (1 - value)
    return Range(max(-1.0, 1 - (1 - value) * math.exp(reach)), 1 - (1 - value) * math.exp(-reach))


def _fleiss_of(table: Floats) -> float:
    kept = table[table.sum(axis=1) >= 2]
    return float(_fleiss(kept, np.ones((1, len(kept))))[0]) if len(kept) else math.nan


def _counts(item: Array, code: Array, shape: tuple[int, ...]) -> Floats:
    counts = np.zeros(shape)
    np.add.at(counts, (item, code), 1)
    return counts


def _agreement(table: Floats, raters: Floats) -> Floats:
    return np.asarray((table * (table - 1)).sum(axis=1) / np.maximum(raters * (raters - 1), 1))


def _without_images(table: Floats) -> Floats:
    """Return κ without each image; every image has two answers or more."""
    if len(table) < 2:
        return np.full(len(table), np.nan)
    agree, shares = _agreement(table, table.sum(axis=1)), table.sum(axis=0) - table
    expected = ((shares / shares.sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return _kappa((agree.sum() - agree) / (len(table) - 1), expected)


def _without_answers(table: Floats, item: Array, code: Array) -> Floats:
    """Return κ without each answer; an image with one answer left counts no more."""
    raters = table.sum(axis=1)
    agree, share = _agreement(table, raters), table.sum(axis=0)
    fewer = raters[item] - 1
    pairs = (table * (table - 1)).sum(axis=1)[item] - 2 * (table[item, code] - 1)
    stays = fewer >= 2
    changed = np.where(stays, pairs / np.maximum(fewer * (fewer - 1), 1), 0)
    observed = (agree.sum() - agree[item] + changed) / np.maximum(len(table) - ~stays, 1)
    shares = share - np.where(stays[:, None], 0, table[item])
    shares[stays, code[stays]] -= 1
    expected = ((shares / np.maximum(shares.sum(axis=1, keepdims=True), 1)) ** 2).sum(axis=1)
    return _kappa(observed, expected)
