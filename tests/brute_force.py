"""Slow, plain re-implementations that the vectorised ones are tested against. They share no code with cuebench."""

from __future__ import annotations

import math
import random
from collections import Counter


def cue_counts(decisions, shape, texture):
    """Count by the words of the definition, one trial after the other."""
    counts = Counter()
    for said, s, t in zip(decisions, shape, texture):
        if s == t:
            counts["aligned"] += 1
            continue
        counts["conflict"] += 1
        if said == s:
            counts["shape"] += 1
        elif said == t:
            counts["texture"] += 1
        else:
            counts["undecided"] += 1
    return counts


def divide(a, b):
    return a / b if b else math.nan


def cohen_kappa(first, second):
    """Cohen's kappa from the 2 × 2 confusion matrix and its margins, as any statistics textbook has it."""
    n = len(first)
    table = [[0, 0], [0, 0]]
    for a, b in zip(first, second):
        table[int(a)][int(b)] += 1
    diagonal = (table[0][0] + table[1][1]) / n
    rows = [sum(r) / n for r in table]
    columns = [(table[0][k] + table[1][k]) / n for k in (0, 1)]
    chance = sum(r * c for r, c in zip(rows, columns))
    return math.nan if math.isclose(chance, 1) else (diagonal - chance) / (1 - chance)


def draw_names(names, rng):
    """One bootstrap draw of clusters: name → how often."""
    return Counter(rng.choice(names) for _ in names)


def bootstrap_ratio(num, den, rows, columns, resamples, seed, two_way):
    """Bootstrap by literally drawing clusters and adding up trials; returns the sorted ratios."""
    rng = random.Random(seed)
    row_names, column_names = sorted(set(rows)), sorted(set(columns))
    out = []
    for _ in range(resamples):
        u = draw_names(row_names, rng)
        v = draw_names(column_names, rng) if two_way else None
        top = bottom = 0
        for n, d, r, c in zip(num, den, rows, columns):
            weight = u[r] * (v[c] if v is not None else 1)
            top, bottom = top + weight * n, bottom + weight * d
        out.append(divide(top, bottom))
    return sorted(out)


def quantile(values, q):
    """Linear interpolation between order statistics."""
    at = q * (len(values) - 1)
    low = math.floor(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (at - low) * (values[high] - values[low])
