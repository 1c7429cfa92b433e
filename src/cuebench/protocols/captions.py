"""The caption of numbers wherever they are taken out of a run: version of the protocol, n, intervals, partial sets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from cuebench.protocols.base import PARTIAL
from cuebench.types import Score

MOST = 110
"""Letters of a partial set's reasons in a short caption."""


def caption(rows: Iterable[Score], *, short: bool = False, intervals: bool = True) -> str:
    """Return what must stand below numbers, one sentence for each protocol.

    Parameters
    ----------
    rows : iterable of Score
        The numbers, each with the interval that is shown of it.
    short : bool
        For a figure: without how intervals are made, and with long reasons of a partial set cut.
    intervals : bool
        False: what is shown rests on these numbers, but is another one, without their intervals.

    Examples
    --------
    >>> caption([Score("p", 2, "a", "c", "m", 0.5, 0.4, 0.6, "images", 60, 0, "partial set: 60 of 80", "jackknife")])
    'p, version 2; n = 60; 95 % intervals over images (jackknife); partial set: 60 of 80.'
    """
    by_protocol: dict[str, list[Score]] = {}
    for row in rows:
        if not math.isnan(row.value):
            by_protocol.setdefault(row.protocol, []).append(row)
    sentences = []
    for name, of_one in by_protocol.items():
        versions = " and ".join(sorted({str(row.protocol_version) for row in of_one}))
        n = _counts(of_one) + ("" if intervals else f" ({', '.join(dict.fromkeys(row.metric for row in of_one))})")
        over = _intervals(of_one, methods=not short) if intervals else ""
        parts = f"{name}, version {versions}", n, over, _partial(of_one, MOST if short else 0)
        sentences.append("; ".join(filter(None, parts)) + ".")
    return " ".join(sentences)


def partial_sets(rows: Iterable[Score]) -> list[str]:
    """Return why the stimuli behind some numbers are incomplete: ``partial set: 60 of 1,280 …``; empty: complete."""
    parts = (part.strip() for row in rows for part in row.note.split(";"))
    return list(dict.fromkeys(part for part in parts if part.startswith(PARTIAL)))


def _counts(rows: Sequence[Score]) -> str:
    least, most = min(row.n for row in rows), max(row.n for row in rows)
    return f"n = {least:,}" if least == most else f"n = {least:,} to {most:,}"


def _intervals(rows: Sequence[Score], *, methods: bool) -> str:
    """Return what the intervals are over and how they are made."""
    made: dict[str, dict[str, None]] = {}
    for row in rows:
        if math.isfinite(row.ci_low) and math.isfinite(row.ci_high):
            made.setdefault(row.ci_kind.replace("_", " "), {})[row.ci_method] = None
    named = {kind: ", ".join(filter(None, of_kind)) if methods else "" for kind, of_kind in made.items()}
    kinds = [kind + (f" ({names})" if names else "") for kind, names in named.items()]
    return f"95 % intervals over {', '.join(kinds)}" if kinds else "no intervals"


def _partial(rows: Sequence[Score], most: int) -> str:
    """Return why stimuli are incomplete, and of how many observers, where others saw all."""
    observers = {row.observer for row in rows}
    texts = []
    for why in partial_sets(rows):
        number = len({row.observer for row in rows if why in partial_sets([row])})
        some = f" ({number} of {len(observers)} observers)" if number < len(observers) else ""
        texts.append(why.removeprefix(PARTIAL) + some)
    text = PARTIAL + ", ".join(texts) if texts else ""
    return f"{text[:most].rpartition(', ')[0] or text[:most]} and more" if most and len(text) > most else text
