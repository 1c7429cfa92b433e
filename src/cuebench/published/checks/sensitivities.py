"""REFINED-BIAS: table C against the intervals of table D, the model that B and C share, and the README."""

from __future__ import annotations

from cuebench.published.findings import Finding, same
from cuebench.published.tables import column

PAPER = "refined_bias"
_OUTSIDE = {
    "A3": "tables C and D disagree; with table D's 0.7364 the p-value of table 2 follows",
    "PGD-AT (l2, eps=0.5)": "table C repeats the value of eps=0.1 (0.5070); table D gives 0.5149",
}
_TWICE = {
    "cue_conflict/full": "the same model and metric are printed as 0.1944 (B) and 0.1784 (C); the partial space agrees",
}
_README = "the README's example output and table B differ: other runs or versions of the data"


def sensitivities() -> list[Finding]:
    """Compare all places where a sensitivity is printed twice."""
    return [*_intervals(), *_shared_row(), *_readme()]


def _intervals() -> list[Finding]:
    findings = []
    for metric in ("shape_sens", "texture_sens"):
        low, mean, high = (column(PAPER, "D", "refined_bias", f"{metric}/{end}") for end in ("low", "mean", "high"))
        for model, entry in column(PAPER, "C", "refined_bias", metric).items():
            inside = low[model].value <= entry.value <= high[model].value
            note = f"table D's interval is {low[model].printed} … {high[model].printed}"
            note += f"; {_OUTSIDE[model]}" if not inside else ""
            name = f"{model}: {metric} inside table D's interval"
            findings.append(Finding(PAPER, "C", name, entry.value, mean[model].value, inside, note, "repeated", inside))
    return findings


def _shared_row() -> list[Finding]:
    findings = []
    for condition, metrics in (("imagenet", ("in_domain",)), ("refined_bias", ("shape_sens", "texture_sens")),
                               ("cue_conflict/full", ("shape_bias", "texture_bias")),
                               ("cue_conflict/partial", ("shape_bias", "texture_bias"))):  # fmt: skip
        for metric in metrics:
            first = column(PAPER, "B", condition, metric)["ResNet-50"]
            second = column(PAPER, "C", condition, metric)["Vanila ResNet-50"]
            findings.append(same(first, second, note=_TWICE.get(condition, "")))
    return findings


def _readme() -> list[Finding]:
    printed = column(PAPER, "B", "refined_bias", "shape_sens")
    readme = column(PAPER, "README", "refined_bias", "shape_sens")
    return [same(entry, printed[model], note=_README) for model, entry in readme.items()]
