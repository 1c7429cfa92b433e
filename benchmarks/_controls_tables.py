"""The tables of the trained controls, from run folders (``benchmarks.controls_table`` makes them)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cuebench.analyses.demo import PROTOCOLS, SEGMENTATION
from cuebench.analyses.planted_order import planted_sign
from cuebench.observers.control_files import CONTROLS
from cuebench.protocols.headline import Column, headline_column
from cuebench.published.tables import entries
from cuebench.reports.correlate import Measured, headline_errors
from cuebench.reports.paired import Pair, answers_of, compare_pairs
from cuebench.runs.results import read_scores
from cuebench.statistics.correlations import fisher_interval
from cuebench.statistics.reliability import Range
from cuebench.types import Score

LEVELS = ("feature_suppression", "corruption_robustness")
"""Protocols with many versions of each picture: they are shown fewer pictures."""
SMALL = "feature_suppression"
SMALL_SIDE = 64
"""Pictures of feature suppression are also made as small as a control sees them."""
INSTRUMENTS = ("cue_conflict", "refined_bias", "triplets", "feature_suppression", "cue_decomposition")
"""Those of docs/one_thing.md."""


def named(name: str, seed: int) -> str:
    """Return the spec of a control."""
    return f"control:{name}?seed={seed}" if seed else f"control:{name}"


def kind_of(observer: str) -> str:
    """Return the name of a control without its seed."""
    return observer.removeprefix("control:").partition("?")[0]


def of_architecture(*, segments: bool) -> list[str]:
    """Return the controls that segment, or those that classify: by shape, open, by texture."""
    order = ("shape", "", "texture")
    names = [n for n, c in CONTROLS.items() if (c.architecture == "segmenter") == segments]
    return sorted(names, key=lambda n: order.index(CONTROLS[n].planted))


class Runs(NamedTuple):
    """Run folders: sets of single pictures, those with many levels, small suppressions, segmentation."""

    single: Path
    levels: Path
    small: Path
    segmentation: Path


# --------------------------------------------------------------------------------------------------- numbers


def digits(value: float, places: int = 2) -> str:
    """Return a number as the pages write it: ``.73``, ``−.05``, ``1.00``."""
    if not math.isfinite(value):
        return "–"
    text = f"{value:.{places}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("-", "−").replace("0.", ".", 1) if abs(float(text)) < 1 else text.replace("-", "−")


def with_interval(value: float, low: float, high: float) -> str:
    """Return a number with its interval."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return digits(value)
    return f"{digits(value)} [{digits(low)}, {digits(high)}]"


def p_text(p: float) -> str:
    """Return a p-value."""
    if not math.isfinite(p):
        return "–"
    return "< .001" if p < 0.001 else digits(p, 3)


@dataclass(frozen=True)
class Row:
    """The headline of one protocol in one run, of all controls.

    Parameters
    ----------
    title : str
        The protocol, and what it was told.
    run : Path
        Its folder.
    column : Column
        The headline.
    sign : int
        1 where a larger value means shape, −1 texture, 0 neither.
    """

    title: str
    run: Path
    column: Column
    sign: int
    scores: Sequence[Score] = field(repr=False, default=())

    @cached_property
    def pairs(self) -> dict[tuple[str, str], Pair]:
        """Paired comparisons of the networks of the first seed: kinds → the comparison."""
        first = {o: row for o, row in self.column.rows.items() if "?" not in o}
        folder = str(self.run)
        found = compare_pairs(answers_of([folder]), self.column._replace(rows=first), {o: (folder, o) for o in first})
        return {(kind_of(p.first), kind_of(p.second)): p for p in found.pairs}

    def kinds(self) -> list[str]:
        """Return the kinds of controls, in the order of the run."""
        return list(dict.fromkeys(kind_of(o) for o in self.column.rows))

    def values(self, kind: str) -> list[float]:
        """Return the headline of all networks of a kind."""
        return [row.value for o, row in self.column.rows.items() if kind_of(o) == kind]

    def others(self, metric: str, kind: str) -> list[float]:
        """Return a number of the protocol for all networks of a kind: the headline, or one in its first condition."""
        if metric == self.column.metric:
            return self.values(kind)
        found: dict[str, float] = {}
        for s in self.scores:
            if s.protocol == self.column.protocol and s.metric == metric and math.isfinite(s.value):
                found.setdefault(s.observer, s.value)
        return [value for o, value in found.items() if o.startswith("control:") and kind_of(o) == kind]

    def cell(self, kind: str) -> str:
        """Return the headline of the first network of a kind, with its interval."""
        row = self.column.rows.get(named(kind, 0))
        return "" if row is None else with_interval(row.value, row.ci_low, row.ci_high)

    def apart(self, shape: str, texture: str) -> tuple[float, Pair | None]:
        """Return the difference of two kinds towards shape, and its paired comparison where there is one."""
        values = [self.column.rows[named(kind, 0)].value for kind in (shape, texture)]
        pair = self.pairs.get((shape, texture)) or self.pairs.get((texture, shape))
        return self.sign * (values[0] - values[1]), pair


def rows_of(runs: Runs) -> list[Row]:
    """Return the headline of every protocol, in the order of the page."""
    found = []
    for protocol in (*PROTOCOLS[:5], SEGMENTATION, *PROTOCOLS[5:]):
        folders = {
            f"`{protocol}`": runs.segmentation
            if protocol == SEGMENTATION
            else runs.levels
            if protocol in LEVELS
            else runs.single
        }
        if protocol == SMALL:
            folders[f"`{protocol}`, {SMALL_SIDE} pixels"] = runs.small
        for title, folder in folders.items():
            if not (folder / "run.json").is_file():
                continue
            scores = read_scores(folder)
            column = headline_column([s for s in scores if s.observer.startswith("control:")], protocol)
            if column is not None:
                found.append(Row(title, folder, column, planted_sign(protocol), scores))
    return found


# ---------------------------------------------------------------------------------------------------- tables

GROUPS = {
    "by shape": ("shape", "style", "vit_style", "eed"),
    "open": ("both",),
    "by texture": ("texture", "pattern", "patch", "vit_patch"),
}
"""What is planted → controls that classify, in the order of the tables."""
OF_SEGMENTATION = {"shape": "segment_shape", "both": "segment_both", "texture": "segment_texture"}


def table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    return "\n".join([*rows, *(f"| {' | '.join(line)} |" for line in lines)])


def headlines(rows: Sequence[Row]) -> str:
    """Return the headline of the first network of every kind, in two tables: those by shape and open; by texture."""
    kinds = [*GROUPS["by shape"], *GROUPS["open"]], list(GROUPS["by texture"])
    parts = []
    for chosen in kinds:
        lines = []
        for row in rows:
            names = [OF_SEGMENTATION.get(k, "") if f"`{SEGMENTATION}`" == row.title else k for k in chosen]
            cells = [row.cell(name) if name else "" for name in names]
            if any(cells):
                lines.append([row.title, words_of(row), *cells])
        parts.append(table(["protocol", "headline", *(f"`{k}`" for k in chosen)], lines))
    return "\n\n".join(parts)


def words_of(row: Row) -> str:
    """Return the headline in words, and which way it goes."""
    name = {"shape_bias_cd": "S_cd"}.get(row.column.metric, row.column.metric.replace("_", " "))
    return f"{name} (larger: texture)" if row.sign < 0 else name


class Order(NamedTuple):
    """How a protocol orders the controls of shape and of texture.

    Parameters
    ----------
    right, pairs : int
        Pairs of one by shape and one by texture in the planted order, and all of them.
    told : int
        Of the right ones, those that differ by the paired test, corrected for all pairs of the protocol.
    wrong : tuple of str
        The others: ``vit_style < patch``.
    significantly_wrong : int
        Of these, those that differ by the paired test.
    """

    right: int
    pairs: int
    told: int
    wrong: tuple[str, ...]
    significantly_wrong: int


def order_of(row: Row) -> Order:
    """Return how a protocol orders the networks of the first seed."""
    present = [k for k in row.kinds() if named(k, 0) in row.column.rows]
    by = {p: [k for k in present if CONTROLS[k].planted == p] for p in ("shape", "texture")}
    found = [(s, t, *row.apart(s, t)) for s in by["shape"] for t in by["texture"]]
    right = [(s, t, pair) for s, t, difference, pair in found if difference > 0]
    wrong = [(s, t, pair) for s, t, difference, pair in found if not difference > 0]
    told = sum(pair is not None and pair.separable for _, _, pair in right)
    worse = sum(pair is not None and pair.separable for _, _, pair in wrong)
    return Order(len(right), len(found), told, tuple(f"`{s}` not above `{t}`" for s, t, _ in wrong), worse)


def orders(rows: Sequence[Row]) -> str:
    """Return, for every protocol that has a planted order, whether the controls are in it."""
    lines = []
    for row in rows:
        if not row.sign:
            continue
        first = ("segment_shape", "segment_texture") if row.title == f"`{SEGMENTATION}`" else ("shape", "texture")
        difference, pair = row.apart(*first)
        order = order_of(row)
        text, p = digits(difference), "–"
        if pair is not None:
            d = pair.difference
            flip = 1 if difference * d.value >= 0 else -1
            if d.interval is not None:
                text = with_interval(difference, *sorted((flip * d.interval.low, flip * d.interval.high)))
            p = p_text(d.p)
        same = sum(row.sign * (s - t) > 0 for s, t in zip(row.values(first[0]), row.values(first[1])))
        lines.append(
            [
                row.title,
                text,
                p,
                f"{same} of {len(row.values(first[0]))}",
                f"{order.right} of {order.pairs}",
                str(order.told),
                verdict(order),
            ]
        )
    heads = ("protocol", "shape − texture", "p", "seeds in order", "pairs in order", "told apart", "as planted")
    return table(heads, lines)


def verdict(order: Order) -> str:
    """Say whether the controls are as planted; where not, which are not."""
    if not order.wrong:
        return "yes"
    shown = "; ".join(order.wrong[:3]) + (f"; {len(order.wrong) - 3} more" if len(order.wrong) > 3 else "")
    return f"**no**: {shown} ({order.significantly_wrong} of {len(order.wrong)} significant)"


def noise(rows: Sequence[Row], kinds: Sequence[str] = ("shape", "both", "texture")) -> str:
    """Return how far other seeds of the training move the headline, beside the interval for other stimuli."""
    lines = []
    for row in rows:
        names = [OF_SEGMENTATION[k] if row.title == f"`{SEGMENTATION}`" else k for k in kinds]
        if any(len(row.values(n)) < 2 for n in names):
            continue
        ranges = [", ".join(digits(v) for v in row.values(n)) for n in names]
        everybody = [k for k in row.kinds() if len(row.values(k)) > 1]
        spread = math.sqrt(float(np.mean([np.var(row.values(k), ddof=1) for k in everybody])))
        widths = [(r.ci_high - r.ci_low) / 2 / 1.96 for r in row.column.rows.values()]
        error = math.sqrt(float(np.nanmean(np.square(widths)))) if np.isfinite(widths).any() else math.nan
        lines.append([row.title, *ranges, digits(spread, 3), digits(error, 3)])
    heads = ("protocol", *(f"`{k}`" for k in kinds), "sd over seeds", "error for other stimuli")
    return table(heads, lines)


def suppressions(runs: Runs, kinds: Sequence[str] = ("shape", "both", "texture", "pattern")) -> str:
    """Return relative accuracies under each suppression, as published and as small as a control sees pictures."""
    names = {
        "shape": ("patch_shuffle", "patch_rotation"),
        "texture": ("bilateral", "gaussian_blur", "non_local_means"),
        "colour": ("greyscale", "channel_shuffle"),
    }
    lines = []
    for kind, members in names.items():
        for name in members:
            cells = []
            for run in (runs.levels, runs.small):
                values = {
                    s.observer: s.value
                    for s in read_scores(run)
                    if (s.protocol, s.condition, s.metric) == (SMALL, name, "relative_accuracy")
                }
                cells += [digits(values.get(named(k, 0), math.nan)) for k in kinds]
            lines.append([kind, name.replace("_", " "), *cells])
    heads = [f"`{k}`, {side}" for side in ("224", str(SMALL_SIDE)) for k in kinds]
    return table(["taken away", "by", *heads], lines)


def link_table(networks: Measured) -> str:
    """Return the correlations of headlines over all networks, over the means of the kinds, and among those alike."""
    kinds = by_kind(networks)
    found, means = networks.structure(), kinds.structure()
    of_means = {(link.first, link.second): link.corrected for link in means.links}
    alike = planted_alike(kinds)
    lines = [
        [
            f"{title(link.first)}, {title(link.second)}",
            ranged(link.observed),
            ranged(link.corrected),
            ranged(link.given_others),
            ranged(of_means[link.first, link.second]),
            ranged(alike[link.first, link.second]),
        ]
        for link in sorted(found.links, key=lambda link: -link.observed.value)
    ]
    many, few = len(networks.observers), len(kinds.observers)
    heads = ("pair", f"{many} networks", "corrected", "given the others", f"{few} kinds, corrected", "planted alike")
    return table(heads, lines)


def by_kind(networks: Measured) -> Measured:
    """Return the mean headlines of the kinds: networks of a kind are no independent observers."""
    return networks.averaged({o: kind_of(o) for o in networks.observers})


def planted_alike(kinds: Measured) -> dict[tuple[str, str], Range]:
    """Return the correlation of two headlines among kinds in which the same cue is planted: given the planted cue."""
    planted = np.array([CONTROLS[k].planted for k in kinds.observers])
    groups = [planted == cue for cue in ("shape", "texture")]
    rest = {n: np.concatenate([v[g] - v[g].mean() for g in groups]) for n, v in kinds.values.items()}
    found = {}
    for a, b in combinations(rest, 2):
        r = float(np.corrcoef(rest[a], rest[b])[0, 1])
        found[a, b] = Range(r, *fisher_interval(r, len(rest[a]) - 1, "pearson", 0.95))
    return found


def share_table(networks: Measured) -> str:
    """Return reliability, what others predict, what is its own and the loading of each headline."""
    found, kinds = networks.structure(), by_kind(networks).structure()
    shares = {s.name: s for s in found.shares}
    lines = []
    for name in found.names:
        loading = found.factor.loadings.get(name) if found.factor else None
        own = shares.get(name)
        lines.append(
            [
                title(name),
                ranged(found.reliability[name]),
                ranged(kinds.reliability[name]),
                ranged(own.shared if own else None),
                ranged(own.own if own else None),
                ranged(loading),
            ]
        )
    heads = ("headline", "reliability", "of the kinds", "predicted by the others", "of its own", "loading")
    return table(heads, lines)


def title(protocol: str) -> str:
    """Return a protocol as docs/one_thing.md names it."""
    return {"refined_bias": "REFINED-BIAS"}.get(protocol, protocol.replace("_", " "))


def ranged(found: Range | None) -> str:
    """Return a number with its interval; a dash where there is none."""
    return "–" if found is None else with_interval(*found)


# ------------------------------------------------------------------------------------ beside the printed numbers

PRINTED = {
    "style": "ResNet101 style",
    "patch": "ResNet101 patch",
    "vit_style": "ViT B16 style",
    "vit_patch": "ViT B16 patch",
}
"""Control → the network of Heinert et al. 2025 (Table VIII) that it is in small."""
CLAIMS = {
    "shape bias, cue conflict": ("cue_conflict", "shape_bias", "cue_conflict/shape_bias", 1),
    "S_cd": ("cue_decomposition", "shape_bias_cd", "voronoi/S_cd", 1),
    "mean relative robustness": ("corruption_robustness", "relative_robustness", "relative_robustness/mean", 1),
    "accuracy, unchanged": ("cue_decomposition", "quality_original", "accuracy/Q_O", -1),
    "accuracy, diffused": ("cue_decomposition", "quality_shape", "accuracy/Q_S", 1),
    "accuracy, Voronoi cells": ("cue_decomposition", "quality_texture", "accuracy/voronoi/Q_T", -1),
}
"""What the paper prints of them → protocol, metric, its name among the printed numbers, and 1 where style is higher."""


def remedies(rows: Sequence[Row]) -> str:
    """Return the controls of style and patch beside the networks of the paper, and whether they differ likewise."""
    known = {(e.model, e.quantity): e.value for e in entries("cue_decomposition", "VIII")}
    lines = []
    for name, (protocol, metric, quantity, sign) in CLAIMS.items():
        row = next(r for r in rows if r.column.protocol == protocol)
        ours = {kind: mean(row.others(metric, kind)) for kind in PRINTED}
        printed = [known[PRINTED[kind], quantity] for kind in PRINTED]
        alike = [sign * (ours[f"{v}style"] - ours[f"{v}patch"]) > 0 for v in ("", "vit_")]
        verdict = {2: "yes", 1: f"{'convolution' if alike[0] else 'transformer'} only", 0: "**no**"}[sum(alike)]
        cells = [f"{digits(ours[kind])} ({digits(value)})" for kind, value in zip(PRINTED, printed)]
        lines.append([name, *cells, "style" if sign > 0 else "patch", verdict])
    return table(["", *(f"`{kind}`" for kind in PRINTED), "printed higher", "here too"], lines)


def mean(values: Sequence[float]) -> float:
    """Return the mean of the networks of a kind; NaN of none."""
    return float(np.mean(values)) if values else math.nan


def tables(runs: Runs) -> dict[str, dict[str, str]]:
    """Return page → mark → what stands there."""
    rows = rows_of(runs)
    networks = headline_errors([runs.single, runs.small], INSTRUMENTS)
    return {
        "calibration_controls.md": {
            "headlines": headlines(rows),
            "orders": orders(rows),
            "remedies": remedies(rows),
            "seeds": noise(rows),
            "suppressions": suppressions(runs),
        },
        "one_thing.md": {
            "controls_pairs": link_table(networks),
            "controls_shares": share_table(networks),
        },
    }
