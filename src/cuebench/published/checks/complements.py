"""REFINED-BIAS tables B and C: texture bias is 1 − shape bias."""

from __future__ import annotations

from cuebench.published.findings import Finding, corners, judge
from cuebench.published.tables import column

_WHY = {
    ("C", "PGD-AT (linf, eps=1)", "cue_conflict/full"): (
        "a misprint: 1 - 0.5571 = 0.4429; the row's neighbours follow the rule"
    )
}


def complements() -> list[Finding]:
    """Recompute every texture bias from the shape bias beside it."""
    findings = []
    for table in ("B", "C"):
        for space in ("cue_conflict/full", "cue_conflict/partial"):
            shape = column("refined_bias", table, space, "shape_bias")
            for model, entry in column("refined_bias", table, space, "texture_bias").items():
                reach = corners(lambda s: 1 - s, [shape[model]])
                note = _WHY.get((table, model, space), "")
                findings.append(judge(entry, 1 - shape[model].value, reach, note=note))
    return findings
