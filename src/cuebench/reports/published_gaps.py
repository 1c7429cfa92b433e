"""The gaps of difficulty of the people of Kim et al. 2026 (A.4), to stand beside those of a run."""

from __future__ import annotations

from cuebench.analyses.difficulty import BENCHMARKS, Gap
from cuebench.published.tables import entries
from cuebench.statistics.estimates import difference_from_intervals

PEOPLE = "people of the paper"


def published_gaps() -> list[Gap]:
    """Return the gap of both benchmarks, with intervals from the printed ones of both accuracies."""
    values = {(e.condition, e.metric): float(e.value) for e in entries("refined_bias", "text") if e.model == "people"}
    gaps = []
    for benchmark in BENCHMARKS:
        shape, texture = (
            (*(values[benchmark, f"accuracy/{cue}/{end}"] for end in ("mean", "low", "high")),)
            for cue in ("shape", "texture")
        )
        low, high = difference_from_intervals((shape[0], shape[1], shape[2]), (texture[0], texture[1], texture[2]))
        count = int(values[benchmark, "participants"])
        gaps.append(Gap(benchmark, PEOPLE, shape[0], texture[0], shape[0] - texture[0], low, high, "people", count))
    return gaps
