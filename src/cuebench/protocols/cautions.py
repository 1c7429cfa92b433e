"""What changes the reading of a headline: few trials, nothing recognised, answers that are no class, partial sets."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from cuebench.protocols.captions import partial_sets
from cuebench.statistics.estimates import MEAN_OVER
from cuebench.types import Score

FEW = 50
"""Fewer trials than this behind a headline are named."""
SHARE = 0.5
"""A smaller decided fraction than this is named."""
HARDLY = 0.1
"""Where both sensitivities are smaller, hardly anything is recognised."""
_NAMED = re.compile(
    r"answers are no class|members of the label map|undecided \(|does the model see the pictures|by definition"
)


def cautions(rows: Sequence[Score], metric: str) -> list[str]:
    """Return what must be read with the headline of one protocol, most general first.

    Parameters
    ----------
    rows : sequence of Score
        Of one protocol in the condition of its headline.
    metric : str
        Of the headline.
    """
    headline_rows = [row for row in rows if row.metric == metric]
    notes = [(row, part.strip()) for row in rows for part in row.note.split(";")]
    warnings = partial_sets(rows)
    decided = {row.observer: row.value for row in rows if row.metric == "decided_fraction"}
    seldom = {o: share for o, share in decided.items() if share < SHARE}
    if seldom:
        shares = [f"{o} {share:.0%}" for o, share in seldom.items()]
        warnings.append(f"most trials were decided for neither cue and do not count: {_some(shares)}")
    best: dict[str, float] = {}
    for row in rows:
        if row.metric in {"shape_sensitivity", "texture_sensitivity"}:
            best[row.observer] = max(row.value, best.get(row.observer, 0.0))
    if blind := [f"{o} at most {value:.3f}" for o, value in best.items() if value < HARDLY]:
        warnings.append(f"hardly anything is recognised, so {metric} is that of noise: sensitivity of {_some(blind)}")
    # A mean over people counts these; the number of trials is that of the pooled people.
    of_trials = [row for row in headline_rows if MEAN_OVER not in row.note]
    few = {row.observer: row.n for row in of_trials if 0 < row.n < FEW and math.isfinite(row.value)}
    if few:
        warnings.append(f"few trials: {metric} rests on {_some([f'{n} of {o}' for o, n in few.items()])}")
    valued = [(row, part) for row, part in notes if math.isfinite(row.value)]
    strange = dict.fromkeys(f"{row.observer}: {part}" for row, part in valued if _NAMED.search(part))
    return [*warnings, *strange]


def _some(names: Sequence[str], most: int = 4) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
