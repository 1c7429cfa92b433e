"""The tables of the trained controls: written from scores, the order judged, what does not fit named."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from cuebench.observers.control_files import CONTROLS
from cuebench.protocols.headline import Column
from cuebench.reports.correlate import Measured
from cuebench.types import Score

sys.path.insert(0, str(Path(__file__).parents[2]))  # benchmarks are not installed
from benchmarks import _controls_tables as tables
from benchmarks._controls_tables import Row, digits, kind_of, named, order_of, orders
from benchmarks._marks import filled
from benchmarks.controls_table import DOCS, IMPORTANT, networks

BY_SHAPE = ("shape", "style", "vit_style", "eed")
BY_TEXTURE = ("texture", "pattern", "patch", "vit_patch")


def row(values: dict[str, float], *, protocol: str = "cue_conflict", sign: int = 1, half: float = 0.05) -> Row:
    """A headline from numbers: there are no answers, so nothing is paired."""
    scores = {
        o: Score(protocol, 1, o, "8-way", "shape_bias", v, v - half, v + half, "images", 50) for o, v in values.items()
    }
    return Row(f"`{protocol}`", Path("no such run"), Column(protocol, "shape_bias", "8-way", scores), sign)


def all_kinds(by_shape: float, by_texture: float, **others: float) -> dict[str, float]:
    values = dict.fromkeys(BY_SHAPE, by_shape) | {"both": 0.6} | dict.fromkeys(BY_TEXTURE, by_texture) | others
    return {named(k, 0): v for k, v in values.items()}


def test_names_and_numbers():
    assert [named("shape", seed) for seed in (0, 2)] == ["control:shape", "control:shape?seed=2"]
    assert kind_of("control:vit_patch?seed=2") == "vit_patch"
    assert [digits(v) for v in (0.734, -0.05, 1.0, -0.001, float("nan"))] == [".73", "−.05", "1.00", ".00", "–"]
    classify, segment = (tables.of_architecture(segments=s) for s in (False, True))
    assert set(classify) | set(segment) == set(CONTROLS)
    assert set(classify) == {k for kinds in tables.GROUPS.values() for k in kinds}
    assert set(segment) == set(tables.OF_SEGMENTATION.values())


def test_every_pair_of_planted_cues_is_judged():
    found = order_of(row(all_kinds(0.9, 0.1)))
    assert (found.right, found.pairs, found.wrong) == (16, 16, ())
    found = order_of(row(all_kinds(0.9, 0.1, eed=0.05, pattern=0.95)))
    assert found.right == 16 - 4 - 3
    assert "`eed` not above `patch`" in found.wrong
    assert order_of(row(all_kinds(0.5, 0.5))).right == 0  # a tie is no order


def test_larger_may_mean_texture():
    assert order_of(row(all_kinds(0.1, 0.9), protocol="texture_association", sign=-1)).right == 16
    text = orders([row(all_kinds(0.1, 0.9), protocol="texture_association", sign=-1)])
    assert text.splitlines()[-1] == "| `texture_association` | .80 | – | 1 of 1 | 16 of 16 | 0 | yes |"


def test_what_is_not_as_planted_is_named():
    *_, line = orders([row(all_kinds(0.9, 0.1, shape=0.05))]).splitlines()
    assert "| −.05 |" in line
    assert "12 of 16" in line
    assert "**no**: `shape` not above `texture`" in line
    assert "1 more" in line


def test_a_protocol_without_a_planted_order_is_left_out():
    assert len(orders([row(all_kinds(0.9, 0.1), sign=0)]).splitlines()) == 2


def test_seeds_are_summed_up_as_their_standard_deviation():
    values = {named(k, seed): 0.5 + 0.1 * seed for k in ("shape", "both", "texture") for seed in range(3)}
    line = tables.noise([row(values, half=0.196)]).splitlines()[-1]
    assert line == "| `cue_conflict` | .50, .60, .70 | .50, .60, .70 | .50, .60, .70 | .100 | .100 |"


def test_the_table_has_intervals_and_leaves_out_who_was_not_measured():
    values = all_kinds(0.9, 0.1)
    del values["control:eed"]
    first, _ = tables.headlines([row(values)]).split("\n\n")
    assert first.splitlines()[-1] == (
        "| `cue_conflict` | shape bias | .90 [.85, .95] | .90 [.85, .95] | .90 [.85, .95] |  | .60 [.55, .65] |"
    )


def test_means_of_kinds_have_the_error_of_means():
    errors = {("a", "a"): np.diag([0.4, 0.4, 0.9]), ("a", "b"): np.ones((3, 3))}
    found = Measured(("x1", "x2", "y"), {"a": np.array([1.0, 3.0, 5.0])}, errors)
    means = found.averaged({"x1": "x", "x2": "x", "y": "y"})
    assert means.observers == ("x", "y")
    assert means.values["a"].tolist() == [2.0, 5.0]
    assert means.errors["a", "a"] == pytest.approx(np.diag([0.2, 0.9]))
    assert means.errors["a", "b"] == pytest.approx(np.ones((2, 2)))


def planted_headlines(seeds: int = 2) -> Measured:
    """Two headlines that agree about the planted cue, and are opposed among kinds in which the same is planted."""
    kinds = (*BY_SHAPE, "both", *BY_TEXTURE)
    base = np.array([0.9] * 4 + [0.5] + [0.1] * 4)
    within = np.array([0, 1, 2, 3, 0, 0, 1, 2, 3]) * 0.02
    observers = tuple(named(k, seed) for seed in range(seeds) for k in kinds)
    values = {"cue_conflict": np.tile(base + within, seeds), "triplets": np.tile(base - within, seeds)}
    errors = {(name, name): np.eye(len(observers)) * 1e-4 for name in values}
    return Measured(observers, values, errors)


def test_headlines_are_compared_over_networks_over_kinds_and_among_those_planted_alike():
    found = planted_headlines()
    kinds = tables.by_kind(found)
    assert kinds.observers == (*BY_SHAPE, "both", *BY_TEXTURE)
    assert tables.planted_alike(kinds)["cue_conflict", "triplets"].value == pytest.approx(-1)
    heads, _, line = tables.link_table(found).splitlines()
    assert "18 networks" in heads
    assert "9 kinds" in heads
    cells = [c.strip() for c in line.strip("|").split("|")]
    assert cells[0] == "cue conflict, triplets"
    assert cells[1].startswith(".9")
    assert cells[-1].startswith("−1.00")
    assert tables.share_table(found).splitlines()[-1].startswith("| triplets | 1.00 [1.00, 1.00] |")


def test_the_remedies_are_held_against_the_printed_numbers():
    values = {"style": 0.9, "patch": 0.2, "vit_style": 0.3, "vit_patch": 0.4}
    rows = []
    for protocol, metric in (
        ("cue_conflict", "shape_bias"),
        ("cue_decomposition", "shape_bias_cd"),
        ("corruption_robustness", "relative_robustness"),
    ):
        scores = [
            Score(protocol, 1, named(k, seed), "c", m, v, v, v, "images", 50)
            for m in (metric, "quality_original", "quality_shape", "quality_texture")
            for seed in range(2)
            for k, v in values.items()
        ]
        headline = {s.observer: s for s in scores if s.metric == metric}
        rows.append(Row(protocol, Path("none"), Column(protocol, metric, "c", headline), 1, scores))
    lines = {line.split(" | ")[0].strip("| "): line for line in tables.remedies(rows).splitlines()[2:]}
    assert lines["S_cd"] == "| S_cd | .90 (.67) | .20 (.10) | .30 (.77) | .40 (.33) | style | convolution only |"
    assert lines["accuracy, unchanged"].endswith("| patch | transformer only |")


def test_only_what_stands_between_the_marks_is_written():
    page = "before\n<!-- a -->\nold\n<!-- /a -->\nafter\n"
    assert filled(page, {"a": "new"}) == "before\n<!-- a -->\nnew\n<!-- /a -->\nafter\n"
    with pytest.raises(AssertionError, match="no mark b"):
        filled(page, {"b": "new"})


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("calibration_controls.md", ("headlines", "orders", "remedies", "seeds", "suppressions")),
        ("one_thing.md", ("controls_pairs", "controls_shares")),
    ],
)
def test_the_pages_hold_tables_between_their_marks(page, names):
    text = (DOCS / page).read_text("utf-8")
    assert filled(text, dict.fromkeys(names, "|")) != text
    for name in names:
        between = text.partition(f"<!-- {name} -->")[2].partition(f"<!-- /{name} -->")[0]
        assert between.count("\n|") > 4, name


def test_most_networks_are_of_the_important_kinds():
    found = networks(3)
    assert len(found) == len(set(found)) == 22
    assert {name for name, seed in found if seed == 2} == set(IMPORTANT)
    assert {name for name, seed in found if seed == 0} == set(CONTROLS)
    assert networks(1, ["shape", "eed"]) == [("shape", 0), ("eed", 0)]
