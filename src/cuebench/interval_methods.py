"""How intervals are made: the name that each carries (`types.Interval.method`), and what it means.

A number says itself how its interval was made, in the column ``ci_method``: reports, captions and ``cuebench explain``
read it from there. In a name, ``*`` stands for a number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

LINEARISED, EXACT, WILSON, JACKKNIFE, FIELLER = "linearised", "exact", "Wilson", "jackknife", "Fieller"
STUDENT, LOGIT, WELCH = "Student's t", "Student's t on the logit scale", "Welch's t"
MOVER = "MOVER"
DATA_SETS, SEEDS, PERMUTATIONS, JEFFREYS = "t over data sets", "linearised, with seeds", "permutations", "Jeffreys"

METHODS: Mapping[str, str] = {
    LINEARISED: "closed form: a ratio of sums is linearised, its variance is that of the sums over each image or "
    "source; symmetric on the logit scale, Student's t",
    EXACT: "all decisions alike (a ratio of 0 or 1): Clopper and Pearson's exact interval, for as many trials as there "
    "are sources, classes or people of the rarest kind",
    WILSON: "closed form: Wilson's interval of a share of independent trials",
    JACKKNIFE: "jackknife: each image, source, class or person is left out in turn; corrected for the bias that this "
    "shows, Student's t",
    FIELLER: "Fieller's interval of a share, with the variances of the jackknife",
    STUDENT: "closed form: the mean of independent values with Student's t",
    LOGIT: "closed form: the mean of independent shares with Student's t, symmetric on the logit scale",
    WELCH: "closed form: a difference of two means with Welch's t",
    DATA_SETS: "Student's t over data sets, whose values are corrected for the bias that the jackknife over images "
    "shows",
    SEEDS: "closed form: variance over images or sources (linearised) plus that over random initialisations, Student's "
    "t",
    PERMUTATIONS: "no confidence interval: the range over repetitions in which the classes were permuted",
    JEFFREYS: "a share that does not vary over what would be drawn anew: Jeffreys' interval of so many independent "
    "trials, made wider for the few clusters",
    MOVER: "closed form: a difference of two observers, from the intervals of both and their correlation over the same "
    "images",
    "spread of * resamples": "bootstrap: the spread of so many seeded resamples is the standard error, about the "
    "value; symmetric on the logit scale, Student's t",
    "percentiles of * resamples": "bootstrap: percentiles of so many seeded resamples, moved to the value",
    "Student's t with * resamples": "Student's t; the variance over photographs plus that of so many seeded "
    "resamples of the texture pictures",
}
"""Name → how the interval is made."""


def of_resamples(form: str, resamples: int) -> str:
    """Return the name of a method with the number of its resamples.

    >>> of_resamples("spread of * resamples", 1000)
    'spread of 1,000 resamples'
    """
    return form.replace("*", f"{resamples:,}")


def method_meaning(method: str) -> str:
    """Say how an interval is made; a name that is not known, such as that of a plug-in, stands for itself.

    >>> method_meaning("percentiles of 200 resamples")
    'bootstrap: percentiles of 200 seeded resamples, moved to the value'
    """
    meaning = next((meaning for name, meaning in METHODS.items() if fnmatchcase(method, name)), method)
    number = re.search(r"[\d,]+", method)
    return meaning.replace("so many", number[0]) if number else meaning
