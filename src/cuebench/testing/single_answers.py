"""The check of single answers: rows of trials are well formed, and sums over images give the headline back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from cuebench.protocols.base import ByObserver, Protocol, ScoreOptions
from cuebench.protocols.trials import MEASURED, Asked
from cuebench.responses.table import Responses
from cuebench.tables.engine import Result
from cuebench.testing.base import require


def check_rows(protocol: Protocol, responses: Responses, options: ScoreOptions) -> None:
    """Check that the rows of trials are about the answers, in columns that the table has."""
    name = f"protocol {protocol.name!r}"
    for part in protocol.trials.rows(responses, options):
        unknown = sorted(set(part.columns) - set(MEASURED))
        require(not unknown, f"{name}: trials have the columns {', '.join(unknown)}; possible: {', '.join(MEASURED)}")
        positions = np.asarray(part.rows)
        inside = not len(positions) or (positions.min() >= 0 and positions.max() < len(responses))
        require(inside, f"{name}: trials are about answers that are not there")
        lengths = {column: len(values) for column, values in part.columns.items()}
        require(set(lengths.values()) <= {len(positions)}, f"{name}: {len(positions)} trials with columns of {lengths}")


def check_contributions(
    protocol: Protocol,
    responses: Sequence[Responses],
    options: ScoreOptions,
    result: Result,
    condition: str,
    headlines: Mapping[str, float],
) -> None:
    """Check that the sums of every observer give its headline; nothing is checked of a protocol without sums.

    Parameters
    ----------
    protocol, responses, options, result
        What was scored, and what came of it.
    condition : str
        Of the headline.
    headlines : mapping of str to float
        Observer → its headline.
    """
    if protocol.contributions is None:
        return
    condense = protocol.score.condense if isinstance(protocol.score, ByObserver) else None
    asked = Asked(condition, options, result.tables.__getitem__)
    for each in responses:
        value = headlines.get(each.observer, math.nan)
        seen = each.condensed(condense(each.stimuli, each.labels)) if condense else each
        sums = protocol.contributions(seen, asked) if math.isfinite(value) and not each.baseline_of else None
        if sums is not None:
            alike = math.isclose(sums.value, value, rel_tol=1e-9, abs_tol=1e-9)
            message = f"the sums of {each.observer} give {sums.value}, the headline is {value}"
            require(alike, f"protocol {protocol.name!r}: {message}")
