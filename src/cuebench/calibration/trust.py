"""How far to trust each number, in words: what calibration found of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuebench.calibration.planted import BY_SHAPE, GRID, SETTINGS, STRONG, WEAK
from cuebench.calibration.tables import (
    CLASSES,
    MISREAD,
    SHIPPED,
    Coverage,
    Recovered,
    read_coverage,
    read_recovered,
    read_settings,
)
from cuebench.statistics.measured import LEAST, MOST

ALIKE, VARY, *_ = SETTINGS
FREE_OF_COMPETENCE = frozenset(
    {
        "shape_bias",
        "shape_preference",
        "texture_preference",
        "shape_bias_cd",
        "shape_reliance",
        "triplet_shape_bias",
        "triplet_bias_gain",
        "robustness_cd",
        "relative_accuracy",
        "relative_robustness",
        "error_consistency",
    }
)
"""Metrics that are meant to say nothing of how much an observer recognises."""
SURE = 4
"""Standard errors of a mean over studies from which on a bias is called one: hundreds of means are looked at."""
MATTERS = 0.05
"""A difference of a number that a reader would notice."""
BIASED = 0.02
"""Error of the mean over studies from which on a number is called biased."""


@dataclass(frozen=True)
class Trust:
    """What is known of one number.

    Parameters
    ----------
    protocol, metric, condition : str
        The number.
    recovered : mapping of float to float
        Planted weight → mean over studies, at full competence.
    bias : float
        Error of the mean with the largest amount on the grid of weights and competences, among those that are more than
        `SURE` standard errors from 0; 0 where there is none. ``at`` says at which weight and competence.
    resolution : float
        The largest error that so few studies could not have told from 0.
    sd : float
        Standard deviation between studies where all sources are alike.
    strong, weak : float
        Mean for observers that answer 80 % by shape and 20 % by texture, and 8 % and 2 %.
    among : mapping of int to float
        Size of the label space → expected value for the weak observer.
    few : float
        Error of the mean with a quarter of the images.
    excluded : float
        Share of the answers of the weak observer that are outside the denominator.
    coverage : mapping of str to mapping of str to float
        Kind of interval → setting → how often it holds the value for new sources. Kinds that do not claim to end in
        `tables.MISREAD`.
    studies : int
        Behind each coverage.
    weight : str
        What the planted weight is.
    claim : str
        What intervals claim to hold, where it is not the value for new sources.
    """

    protocol: str
    metric: str
    condition: str
    recovered: Mapping[float, float] = field(default_factory=dict)
    bias: float = math.nan
    at: tuple[float, float] = (math.nan, math.nan)
    resolution: float = 0.0
    sd: float = math.nan
    strong: float = math.nan
    weak: float = math.nan
    among: Mapping[int, float] = field(default_factory=dict)
    few: float = math.nan
    excluded: float = math.nan
    coverage: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    studies: int = 1000
    weight: str = BY_SHAPE
    claim: str = ""

    @property
    def mixes_in_competence(self) -> bool:
        """Whether a number that should not depend on competence does."""
        return self.metric in FREE_OF_COMPETENCE and abs(self.strong - self.weak) >= MATTERS

    @property
    def best_kind(self) -> str:
        """Of the kinds that claim to hold for new sources, the one that comes nearest to 95 % where these vary."""
        coverage = {kind: by[VARY] for kind, by in self.coverage.items() if VARY in by and not kind.endswith(MISREAD)}
        return min(coverage, key=lambda kind: abs(coverage[kind] - 0.95), default="")

    @property
    def verdict(self) -> str:
        """What to beware of, in a few words."""
        words = []
        if abs(self.bias) >= BIASED:
            words.append("biased")
        if self.mixes_in_competence:
            words.append("mixes in competence")
        held = self.coverage.get(self.best_kind, {}).get(VARY, math.nan)
        if held < LEAST - _error(held, self.studies):
            words.append("interval too narrow")
        elif held > MOST + _error(held, self.studies):
            words.append("interval too wide")
        return ", ".join(words) or "recovers what was planted"

    @property
    def summary(self) -> str:
        """The verdict, and what an observer that recognises little comes out as."""
        return "; ".join(filter(None, (self.verdict, self._confound())))

    def sentences(self) -> list[str]:
        """Return what was found, one sentence for each question."""
        return [text for text in (self._recovery(), self._bias(), self._confound(), self._space(), self._few(),
                                  self._intervals()) if text]  # fmt: skip

    def _recovery(self) -> str:
        pairs = ", ".join(f"{w:g} → {_digits(v)}" for w, v in self.recovered.items())
        return f"planted → measured, at full competence: {pairs}" if pairs else ""

    def _bias(self) -> str:
        if not math.isfinite(self.bias):
            return ""
        if not self.bias:
            return f"no bias found; one of {_digits(self.resolution)} would have been"
        where = f"at weight {self.at[0]:g} and competence {self.at[1]:g}"
        off = f"{'large' if self.bias > 0 else 'small'} by up to {_digits(abs(self.bias))}"
        return f"its mean over studies is too {off}, {where}"

    def _confound(self) -> str:
        if not (math.isfinite(self.strong) and math.isfinite(self.weak)):
            return ""
        strong, weak = _digits(self.strong), _digits(self.weak)
        values = f"{strong} for an observer with 80 % shape and 20 % texture answers, {weak} for 8 % and 2 %"
        if self.weight != BY_SHAPE:
            values = f"at weight {STRONG[0]}: {strong} at full competence, {weak} at a tenth of it"
        if self.metric not in FREE_OF_COMPETENCE:
            return values
        return (
            f"{values}: {'competence is mixed in' if self.mixes_in_competence else 'it does not depend on competence'}"
        )

    def _space(self) -> str:
        few, many = (self.among.get(k, math.nan) for k in CLASSES)
        if not abs(few - many) >= MATTERS:
            return ""
        values = f"{CLASSES[0]} classes gives {_digits(few)}, among {CLASSES[1]:,} {_digits(many)}"
        return f"of the latter, guessing among {values}"

    def _few(self) -> str:
        if not abs(self.few) >= BIASED:
            return ""
        return f"with a quarter of the images it is off by {_digits(self.few, sign=True)} on average"

    def _intervals(self) -> str:
        if not self.coverage:
            return ""
        claimed: list[str] = []
        others: list[str] = []
        for kind, by in self.coverage.items():
            held = " / ".join(f"{by[s]:.0%}" for s in (ALIKE, VARY) if s in by)
            words = f"{kind.removesuffix(f', {MISREAD}').replace('_', ' ')} {held}"
            (others if kind.endswith(MISREAD) else claimed).append(words)
        misread = f"; {MISREAD}: {', '.join(others)}" if others else ""
        what = self.claim or "the value for new sources"
        return f"95 % intervals hold {what} (alike / varying) in: {', '.join(claimed)}{misread}"


def _digits(value: float, *, sign: bool = False) -> str:
    text = f"{value:+.3f}" if sign else f"{value:.3f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def _error(share: float, studies: int) -> float:
    """Return the standard error of a share of so many studies."""
    return math.sqrt(max(share * (1 - share), 0) / studies) if math.isfinite(share) else 0.0


def read_trust(folder: Path = SHIPPED) -> dict[tuple[str, str, str], Trust]:
    """Return (protocol, condition, metric) → what is known of the number; default: what is shipped with cuebench."""
    numbers: dict[tuple[str, str, str], list[Recovered]] = {}
    for row in read_recovered(folder):
        numbers.setdefault((row.protocol, row.condition, row.metric), []).append(row)
    intervals: dict[tuple[str, str, str], list[Coverage]] = {}
    for entry in read_coverage(folder):
        intervals.setdefault((entry.protocol, entry.condition, entry.metric), []).append(entry)
    settings = read_settings(folder)
    return {key: _trust(*key, rows, intervals.get(key, ()), settings.get(key[0], {})) for key, rows in numbers.items()}


def _trust(
    protocol: str,
    condition: str,
    metric: str,
    rows: Sequence[Recovered],
    intervals: Sequence[Coverage],
    made_with: Mapping[str, Any],
) -> Trust:
    grid = {(r.weight, r.competence): r for r in rows if r.setting == GRID and r.studies}
    by_setting = {r.setting: r for r in rows}
    errors = {key: r.sd / math.sqrt(r.studies) for key, r in grid.items() if r.studies > 1}
    surely = [grid[key] for key, error in errors.items() if abs(grid[key].bias) > SURE * error + 1e-4]
    worst = max(surely, key=lambda r: abs(r.bias), default=None)
    strong, weak = grid.get(STRONG), grid.get(WEAK)
    few = by_setting.get(list(SETTINGS)[-1])
    full = max((c for _, c in grid), default=1.0)
    spaces = {classes: f"{classes} classes" for classes in CLASSES}
    held: dict[str, dict[str, float]] = {}
    for row in intervals:
        held.setdefault(row.kind, {})[row.situation] = row.coverage
    outside = weak.excluded / (weak.n + weak.excluded) if weak and weak.n + weak.excluded else math.nan
    return Trust(
        protocol,
        metric,
        condition,
        {w: r.mean for (w, c), r in sorted(grid.items()) if c == full},
        worst.bias if worst else 0.0 if grid else math.nan,
        (worst.weight, worst.competence) if worst else (math.nan, math.nan),
        SURE * max(errors.values(), default=0.0),
        by_setting[ALIKE].sd if ALIKE in by_setting else math.nan,
        strong.mean if strong else math.nan,
        weak.mean if weak else math.nan,
        {
            k: r.truth
            for k, name in spaces.items()
            for r in rows
            if (r.setting, r.weight, r.competence) == (name, *WEAK)
        },
        few.bias if few and few.studies else math.nan,
        outside,
        held,
        max((row.studies for row in intervals), default=0),
        made_with.get("weight", BY_SHAPE),
        made_with.get("claims", {}).get(metric, ""),
    )


def of_protocol(protocol: str, folder: Path = SHIPPED) -> list[Trust]:
    """Return what is known of the numbers of a protocol, its headline first."""
    from cuebench.protocols.headline import chosen_condition, headline_of

    trusts = [trust for (name, _, _), trust in read_trust(folder).items() if name == protocol]
    axis = headline_of(protocol)
    condition = chosen_condition(axis, [t.condition for t in trusts if t.metric == axis.metric])
    return sorted(trusts, key=lambda t: (t.metric != axis.metric or t.condition != condition, t.metric, t.condition))


def nearest(protocol: str, condition: str, metric: str) -> Trust | None:
    """Return what is known of a number, or of the same metric in the condition that was simulated; None: nothing.

    Stimuli of your own have conditions of their own, such as ``5-way``.
    """
    known = read_trust()
    if (protocol, condition, metric) in known:
        return known[protocol, condition, metric]
    same = [t for (name, _, of), t in known.items() if (name, of) == (protocol, metric)]
    return of_protocol(protocol)[0] if same and of_protocol(protocol)[0].metric == metric else next(iter(same), None)


def made(protocol: str, folder: Path = SHIPPED) -> str:
    """Say how the numbers of a protocol were calibrated: studies, date, version; empty where they were not."""
    from cuebench.registry import protocols

    settings = read_settings(folder).get(protocol)
    if not settings:
        return ""
    here = protocols.get(protocol).version if protocol in protocols else settings["version"]
    older = "" if here == settings["version"] else f"; this is version {here}: cuebench calibrate -p {protocol}"
    return (
        f"{protocol}, version {settings['version']}: {settings['studies']:,} simulated studies, "
        f"{settings['studies_on_grid']:,} at each point of the grid, seed {settings['seed']}, {settings['date']}{older}"
    )
