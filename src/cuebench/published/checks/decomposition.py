"""Cue decomposition: S_cd, R_cd, the means s and t behind them, and the means of relative robustness."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cuebench.published.findings import Finding, corners, judge
from cuebench.published.tables import Entry, column, entries

PAPER = "cue_decomposition"
CORRUPTIONS = ("contrast", "high_pass", "low_pass", "noise", "phase_noise")
_FIVE = ("Q_O", "Q_S", "Q_T", "S_cd", "R_cd")
TEXTURES = ("patch", "diamond", "tex.EED", "tex.EEDpat")


@dataclass(frozen=True)
class Block:
    """The five columns of one cue decomposition."""

    name: str
    table: str
    original: dict[str, Entry]
    shape: dict[str, Entry]
    texture: dict[str, Entry]
    bias: dict[str, Entry]
    robustness: dict[str, Entry]

    @property
    def population(self) -> list[str]:
        """H: the models that s and t are means of; the four trained by the authors are left out."""
        return [m for m in self.bias if self.bias[m].group != "Trained"]

    def mean(self, cue: dict[str, Entry]) -> float:
        """Return s or t as the table's own column gives it."""
        return float(np.mean([cue[m].value for m in self.population]))


def blocks() -> list[Block]:
    """Return Voronoi and the four other texture cues on ImageNet, and the two sets of segmentation."""
    imagenet = [_imagenet("VIII", "voronoi"), *(_imagenet("IX", texture) for texture in TEXTURES)]
    segmentation = ("cityscapes", "ade20k")
    return [*imagenet, *(Block(d, "XIII", *(column(PAPER, "XIII", d, m) for m in _FIVE)) for d in segmentation)]


def decomposition() -> list[Finding]:
    """Recompute R_cd, S_cd, s/t, t and the means of robustness."""
    findings: list[Finding] = []
    for block in blocks():
        findings += [*_robustness(block), *_bias(block)]
    return [*findings, *_means_of_texture(), *_means_of_robustness()]


def shape_bias(shape: float, texture: float, ratio: float) -> float:
    """Return S_cd = (Q_S/s)/(Q_S/s + Q_T/t), which depends on s and t through their ratio alone."""
    return shape / (shape + ratio * texture)


def implied_ratios(block: Block) -> tuple[float, float]:
    """Return the range of s/t that explains every printed S_cd of a column at once; empty (low > high) if none does.

    From S = Q_S/(Q_S + ρ·Q_T): ρ = (Q_S/Q_T)·(1 − S)/S, for each model up to rounding.
    """
    ranges = [
        corners(lambda q, r, s: q / r * (1 - s) / s, (block.shape[m], block.texture[m], block.bias[m]))
        for m in block.bias
    ]
    return max(low for low, _ in ranges), min(high for _, high in ranges)


def _robustness(block: Block) -> list[Finding]:
    findings = []
    for model, entry in block.robustness.items():
        inputs = (block.shape[model], block.texture[model], block.original[model])
        value = _r_cd(*(e.value for e in inputs))
        findings.append(judge(entry, value, corners(_r_cd, inputs)))
    return findings


def _r_cd(shape: float, texture: float, original: float) -> float:
    return (shape + texture) / (2 * original)


def _bias(block: Block) -> list[Finding]:
    """Recompute S_cd with the one ratio s/t that the column implies, and compare that ratio with the table's means."""
    low, high = implied_ratios(block)
    middle = (low + high) / 2
    s, t = block.mean(block.shape), block.mean(block.texture)
    findings = [_ratio(block, low, high, s, t)]
    for model, entry in block.bias.items():
        shape, texture = block.shape[model], block.texture[model]
        reach = corners(lambda q, r: shape_bias(q, r, middle), (shape, texture))
        plain = judge(entry, shape_bias(shape.value, texture.value, s / t),
                      corners(lambda q, r: shape_bias(q, r, s / t), (shape, texture)))  # fmt: skip
        note = (
            ""
            if plain.agrees
            else f"with s/t = {middle:.4f}; the table's own s/t = {s / t:.4f} gives {plain.recomputed:.4f}"
        )
        finding = judge(entry, shape_bias(shape.value, texture.value, middle), reach, note=note)
        findings.append(replace(finding, strict=plain.agrees))
    return findings


def _ratio(block: Block, low: float, high: float, s: float, t: float) -> Finding:
    table_ratio, middle = s / t, (low + high) / 2
    # A mean of n rounded numbers is off by half/√(3n) in the standard deviation; five of them are beyond doubt.
    n = len(block.population)
    half = next(iter(block.shape.values())).half
    reach = table_ratio * 5 * half / np.sqrt(3 * n) * (1 / s + 1 / t)
    agrees = bool(low - reach <= table_ratio <= high + reach)
    note = f"not printed; the one ratio that explains all {len(block.bias)} printed S_cd is {low:.4f} … {high:.4f}"
    if not agrees:
        note += f", that is s = {low * t:.4f} … {high * t:.4f}; the table's Q_S have the mean {s:.4f} (t = {t:.4f})"
    name = f"s/t behind S_cd ({block.name})"
    return Finding(PAPER, block.table, name, middle, table_ratio, agrees, note, "derived", agrees)


def _means_of_texture() -> list[Finding]:
    """Recompute t of table II: the mean Q_T over the 43 models."""
    by_name = {b.name: b for b in blocks()}
    findings = []
    for entry in (e for e in entries(PAPER, "II") if e.metric == "t"):
        data = entry.condition
        block = by_name[data.removeprefix("EED, ").replace("Voronoi", "voronoi")]
        value = block.mean(block.texture)
        half = next(iter(block.texture.values())).half
        findings.append(judge(entry, value, (value - half, value + half), quantity=f"{entry.group} {data}: t"))
    return findings


def _means_of_robustness() -> list[Finding]:
    findings = []
    for table, condition in (
        ("VIII", "relative_robustness"),
        ("XIV", "cityscapes/relative_robustness"),
        ("XIV", "ade20k/relative_robustness"),
    ):
        parts = [column(PAPER, table, condition, c) for c in CORRUPTIONS]
        for model, entry in column(PAPER, table, condition, "mean").items():
            inputs = [part[model] for part in parts]
            value = float(np.mean([e.value for e in inputs]))
            findings.append(judge(entry, value, corners(lambda *q: sum(q) / len(q), inputs)))
    return findings


def _imagenet(table: str, texture: str) -> Block:
    original, shape = (column(PAPER, table, "accuracy", m) for m in ("Q_O", "Q_S"))
    bias, robustness = (column(PAPER, table, texture, m) for m in ("S_cd", "R_cd"))
    return Block(texture, table, original, shape, column(PAPER, table, f"accuracy/{texture}", "Q_T"), bias, robustness)
