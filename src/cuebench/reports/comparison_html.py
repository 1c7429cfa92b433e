"""A comparison as a notebook shows it: the observers of each protocol in order, their tie groups, and the pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cuebench.errors import UserError
from cuebench.protocols.captions import caption
from cuebench.protocols.cautions import cautions
from cuebench.protocols.headline import Column, headline_of
from cuebench.reports.comparison import LARGER, Comparison
from cuebench.reports.paired import Pair, Paired, difference_text, p_is, p_text
from cuebench.runs.table_text import html, html_table
from cuebench.types import Score

MOST = 15
"""Pairs that are shown; more of them are for a file."""
_RIGHT = ("value [95 % interval]", "n", "difference", "p (Holm)")


def comparison_html(comparison: Comparison) -> str:
    """Return tables of all headlines and pairs, with everything that changes their reading."""
    parts = [_protocol(c, comparison.paired.get(c.protocol, Paired())) for c in comparison.columns]
    if comparison.tests:
        parts.append(_families(comparison))
    lines = [f"Kendall's τ, {pair}: {tau.text}, {tau.n} observers" for pair, tau in comparison.agreement().items()]
    lines += [f"not shown: {protocol}: {reason}" for protocol, reason in comparison.omitted.items()]
    return f"<div>{''.join(parts)}{_paragraph(lines)}</div>"


def _protocol(column: Column, paired: Paired) -> str:
    rows = sorted(column.rows.values(), key=lambda row: -row.value)
    tied = ["tied"] if paired.groups else []
    cells = [
        [row.observer, _value(row), f"{row.n:,}", *([paired.groups.get(row.observer, "")] if tied else [])]
        for row in rows
    ]
    title = f"{column.protocol} · {column.metric} · {column.condition}"
    table = html_table(title, ["observer", "value [95 % interval]", "n", *tied], cells, _RIGHT, caption(rows))
    lines = [f"larger means {meaning}"] if (meaning := _meaning(column.protocol)) else []
    return (
        table + _paragraph([*lines, *cautions(rows, column.metric)]) + _pairs(paired.pairs) + _paragraph(paired.notes)
    )


def _pairs(pairs: Sequence[Pair]) -> str:
    if not pairs:
        return ""
    shown = pairs if len(pairs) <= MOST else ()
    cells = [[f"{p.first} − {p.second}", difference_text(p), p_text(p.p_holm), p.verdict] for p in shown]
    table = html_table("", ["pair", "difference", "p (Holm)", "verdict"], cells, _RIGHT) if shown else ""
    apart = sum(pair.separable for pair in pairs)
    text = f"{apart} of {len(pairs)} pairs differ (p ≤ .05 after Holm's correction)"
    return table + _paragraph([text + ("" if shown else "; all of them: .pair_rows()")])


def _families(comparison: Comparison) -> str:
    cells = [
        [
            row["family"],
            row["expected"],
            *(f"{row[p]['says']} ({p_is(row[p]['p'])})" if row[p]["says"] else str(row[p]["note"])
              for p in comparison.tests),
        ]
        for row in comparison.family_rows()
    ]  # fmt: skip
    return html_table("each family against the baseline", ["family", "expected", *comparison.tests], cells)


def _meaning(protocol: str) -> str:
    try:
        return LARGER[headline_of(protocol).direction]
    except UserError:  # a protocol of a plug-in that is not installed here
        return ""


def _value(row: Score) -> str:
    if not math.isfinite(row.value):
        return "–"
    known = math.isfinite(row.ci_low) and math.isfinite(row.ci_high)
    return f"{row.value:.3f}" + (f" [{row.ci_low:.3f}, {row.ci_high:.3f}]" if known else "")


def _paragraph(lines: Sequence[str]) -> str:
    return f"<p>{'<br>'.join(map(html, lines))}</p>" if lines else ""
