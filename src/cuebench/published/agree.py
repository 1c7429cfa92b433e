"""Do the protocols agree? Rank correlations between protocols over the same models, published and the user's own."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from cuebench.errors import UserError
from cuebench.files import disk_errors, write_atomic
from cuebench.published.measures import Measure, measures, shared
from cuebench.registry import protocols
from cuebench.runs.record import RunRecord
from cuebench.runs.results import read_scores
from cuebench.statistics.correlations import correlate

FEWEST = 5
"""Below this many shared models no correlation is given: its interval would be (almost) everything."""


@dataclass(frozen=True)
class Agreement:
    """Spearman's and Kendall's correlation of two measures over the models that have both."""

    first: str
    second: str
    source: str
    n: int
    spearman: float
    low: float
    high: float
    kendall: float
    note: str = ""

    def row(self) -> dict[str, Any]:
        """Return the fields; what could not be computed is None."""
        numbers = {k: getattr(self, k) for k in ("spearman", "low", "high", "kendall")}
        shown = {k: None if v != v else round(v, 4) for k, v in numbers.items()}
        names = {"first": self.first, "second": self.second, "source": self.source, "n": self.n}
        return {**names, **shown, "note": self.note}


def agree(runs: Iterable[str | Path] = (), *, seed: int = 0, resamples: int = 10_000) -> list[Agreement]:
    """Return the agreement of all pairs of protocols.

    Parameters
    ----------
    runs : paths
        Run folders: the user's own models are compared in the same way, matched by the hash of their weights.
    seed, resamples : int
        Of the bootstrap over models.

    Returns
    -------
    list of Agreement
        Published pairs first. Pairs with fewer than five shared models have no number, and the note names the models.
    """
    found = [_pair(a, b, "published", seed, resamples) for a, b in _pairs(list(measures().values()))]
    found += _papers()
    own = _own_measures([Path(run).expanduser() for run in runs])
    found += [_pair(a, b, "own runs", seed, resamples) for a, b in _pairs(own)]
    return found


def _pairs(known: Sequence[Measure]) -> list[tuple[Measure, Measure]]:
    """Return the pairs of measures of different protocols; of published ones, those of one paper."""
    return [(a, b) for a, b in combinations(known, 2) if a.protocol != b.protocol and _paper(a) == _paper(b)]


def _paper(measure: Measure) -> str:
    return measure.name.partition("/")[0] if measure.shown != "own" else "own"


def _pair(first: Measure, second: Measure, source: str, seed: int, resamples: int) -> Agreement:
    both = shared(first, second)
    nan = float("nan")
    if len(both) < FEWEST:
        note = f"{len(both)} shared models; at least {FEWEST} are needed"
        return Agreement(first.name, second.name, source, len(both), nan, nan, nan, nan, note)
    x, y = ([m.values[w] for w in both] for m in (first, second))
    rho = correlate(x, y, seed=seed, resamples=resamples)
    tau = correlate(x, y, "kendall", how="fisher")
    return Agreement(first.name, second.name, source, rho.n, rho.value, rho.low, rho.high, tau.value, rho.note)


def _papers() -> list[Agreement]:
    """Say for each pair of papers which weights they share: too few for any rank correlation."""
    nan, found = float("nan"), []
    one = {_paper(m): m for m in measures().values()}
    for (a, first), (b, second) in combinations(one.items(), 2):
        both = shared(first, second)
        names = ", ".join(first.labels[w] for w in both) or "none"
        note = f"models shared by weights: {names}; at least {FEWEST} are needed"
        found.append(Agreement(a, b, "published", len(both), nan, nan, nan, nan, note))
    return found


def _own_measures(runs: Sequence[Path]) -> list[Measure]:
    """Return the headline of each protocol over all runs: its first metric in its first condition, by weights."""
    values: dict[tuple[str, str, str], dict[str, float]] = {}
    labels: dict[str, str] = {}
    for run in runs:
        record = RunRecord.read(run)
        hashes = {job.observer: str(job.key.get("weights", job.observer)) for job in record.jobs}
        labels |= {h: observer for observer, h in hashes.items()}
        headline: dict[str, tuple[str, str]] = {}
        for s in read_scores(run):
            if s.metric == "failed" or s.value != s.value or s.observer not in hashes:
                continue
            first = headline.setdefault(s.protocol, (_metric(s.protocol, s.metric), s.condition))
            if (s.metric, s.condition) == first:
                values.setdefault((s.protocol, *first), {}).setdefault(hashes[s.observer], s.value)
    return [Measure(f"{p}/{c}/{m}", p, own, _named(own, labels), "own") for (p, m, c), own in values.items()]


def _metric(protocol: str, fallback: str) -> str:
    declared: Sequence[str] = protocols.get(protocol).metrics if protocol in protocols else ()
    return declared[0] if declared else fallback


def _named(own: Mapping[str, float], labels: Mapping[str, str]) -> dict[str, str]:
    return {h: labels[h] for h in own}


# ------------------------------------------------------------------------------------------------- the figure

_SUBTITLE = "Rank correlation (Spearman) over the models that both measured, 95 % interval"
_ROW, _LEFT, _WIDTH, _RIGHT, _TOP = 22, 360, 460, 60, 46


def figure(found: Sequence[Agreement], path: str | Path) -> Path:
    """Draw the correlations with their intervals, strongest first, as an SVG file of its own."""
    target = Path(path).expanduser()
    if target.suffix != ".svg":
        raise UserError(f"cannot draw to {target}", "name a file that ends in .svg")
    shown = sorted((f for f in found if f.spearman == f.spearman), key=lambda f: -f.spearman)
    if not shown:
        raise UserError("no pair of protocols shares enough models to draw")
    with disk_errors(target):
        write_atomic(target, svg(shown).encode())
    return target


def svg(shown: Sequence[Agreement]) -> str:
    """Return the figure's text: one line for each pair, a point with its 95 % interval on a scale from −1 to 1."""
    height = _TOP + _ROW * len(shown) + 34
    width = _LEFT + _WIDTH + _RIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="12" fill="#222"><rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="8" y="20" font-size="15" font-weight="bold">Do the protocols agree?</text>'
        f'<text x="8" y="37" fill="#666">{_SUBTITLE}</text>'
        f'<text x="{width - 8}" y="37" text-anchor="end" fill="#666">models</text>',
        *(_tick(v, height) for v in (-1.0, -0.5, 0.0, 0.5, 1.0)),
        *(_line(f, _TOP + _ROW * i + _ROW / 2, width) for i, f in enumerate(shown)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _x(value: float) -> float:
    return _LEFT + (value + 1) / 2 * _WIDTH


def _tick(value: float, height: int) -> str:
    colour = "#999" if value == 0 else "#e4e4e4"
    bottom = height - 30
    return (
        f'<line x1="{_x(value):.1f}" x2="{_x(value):.1f}" y1="{_TOP}" y2="{bottom}" stroke="{colour}"/>'
        f'<text x="{_x(value):.1f}" y="{bottom + 18}" text-anchor="middle" fill="#666">{value:g}</text>'
    )


def _title(found: Agreement) -> str:
    """Name the pair, and its paper once."""
    (a, _, first), (b, _, second) = found.first.partition("/"), found.second.partition("/")
    return f"{a}: {first} · {second}" if a == b else f"{found.first} · {found.second}"


def _line(found: Agreement, y: float, width: int) -> str:
    colour = "#1f5fa8" if found.source == "published" else "#c2571a"
    name = html.escape(_title(found))
    return (
        f'<text x="{_LEFT - 12}" y="{y + 4:.1f}" text-anchor="end">{name}</text>'
        f'<line x1="{_x(found.low):.1f}" x2="{_x(found.high):.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}" '
        f'stroke-width="2.5" stroke-linecap="round" opacity="0.55"/>'
        f'<circle cx="{_x(found.spearman):.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"/>'
        f'<text x="{width - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#666">{found.n}</text>'
    )
