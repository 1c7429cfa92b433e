"""Counts in the running texts of all papers: products of other counts, or rows of tables."""

from __future__ import annotations

from collections import Counter

from cuebench.published.findings import Finding, judge
from cuebench.published.tables import column, entries

RB, CD, TA, TR = "refined_bias", "cue_decomposition", "texture_association", "triplets"
Key = tuple[str, str, str]
"""Model, condition, metric: where the text's number is."""


def counts() -> list[Finding]:
    """Recompute every count that follows from others."""
    rules = {RB: _refined_bias(), CD: _cue_decomposition(), TA: _texture_association(), TR: _triplets()}
    return [
        judge(column(paper, "text", condition, metric)[model], float(value))
        for paper, expected in rules.items()
        for (model, condition, metric), value in expected.items()
    ]


def _text(paper: str) -> dict[Key, float]:
    return {(e.model, e.condition, e.metric): e.value for e in entries(paper, "text")}


def _refined_bias() -> dict[Key, float]:
    text = _text(RB)
    families = Counter(e.group for e in column(RB, "C", RB, "shape_sens").values())
    conflict = {m: text[m, "cue_conflict", "count"] for m in ("images", "classes", "shape sources", "texture sources")}
    images = text["classes", RB, "count"] * text["images", RB, "count_per_class"]
    return {
        ("people", "", "participants"): sum(text["people", data, "participants"] for data in (RB, "cue_conflict")),
        ("models", "strategies", "count"): families.total(),
        **{(family, "strategies", "count"): n for family, n in families.items() if family != "baseline"},
        ("models", "architectures", "count"): len(column(RB, "B", RB, "shape_sens")),
        ("images", RB, "count"): images,
        ("images", RB, "times_cue_conflict"): images / conflict["images"],
        ("pairs", "cue_conflict", "count"): conflict["shape sources"] * conflict["texture sources"],
        ("shape sources", "cue_conflict", "count_per_class"): conflict["shape sources"] / conflict["classes"],
        ("texture sources", "cue_conflict", "count_per_class"): conflict["texture sources"] / conflict["classes"],
    }


def _cue_decomposition() -> dict[Key, float]:
    listed = Counter(e.group for e in entries(CD, "VII"))
    trained = listed.pop("Trained")
    assert trained == 4, "the four models trained by the authors are not among the 43"
    rows = {m: e.group for d in ("cityscapes", "ade20k") for m, e in column(CD, "XIII", d, "Q_O").items()}
    segmented = Counter(rows.values())
    return {
        ("models", "classification", "count"): listed.total(),
        **{(group, "classification", "count"): n for group, n in listed.items()},
        ("models", "classification/main text", "count"): len(column(CD, "I", "accuracy", "Q_O")),
        ("models", "segmentation", "count"): segmented.total(),
        **{(group, "segmentation", "count"): n for group, n in segmented.items()},
    }


def _texture_association() -> dict[Key, float]:
    text = _text(TA)
    textures, objects = text["textures", "ptd", "count"], text["objects", "imagenet", "count"]
    return {
        ("pairs", "tav", "count"): textures * objects,
        ("objects", "for each texture", "count"): objects / textures,
        ("chance", "tid", "human_agreement_percent"): 100 / text["words", "tid", "count"],
    }


def _triplets() -> dict[Key, float]:
    text = _text(TR)
    shapes, textures = text["shapes", "experiment 3", "count"], text["textures", "experiment 3", "count"]
    anchors, each = text["anchors", "experiment 1", "count"], text["triplets", "experiment 1", "count_per_anchor"]
    return {
        ("triplets", "experiment 1", "count"): anchors * each,
        ("stimuli", "experiment 3", "count"): shapes * textures,
        # A match shares one cue only: each anchor has 15 shape matches and 15 texture matches.
        ("triplets", "experiment 3", "count"): shapes * textures * (textures - 1) * (shapes - 1),
    }
