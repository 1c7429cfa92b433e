"""Figures of triplets: drawn from a run folder, with what they must show."""

from __future__ import annotations

from dataclasses import replace

import pytest

import cuebench
from cuebench.errors import UserError
from cuebench.reports import vega
from cuebench.reports.figures.layer_profile import layer_profile
from cuebench.reports.figures.triplet_curves import PANELS, triplet_curves
from cuebench.runs.results import write_scores
from cuebench.types import Score


def row(observer, condition, value, kind):
    return Score("triplets", 1, observer, condition, "triplet_shape_bias", value, value - 0.1, value + 0.1, kind, 100)


@pytest.fixture
def run(tmp_path):
    rows = []
    for name in ("lite:one", "two"):
        for _, form, values, _ in PANELS:
            for v in values:
                condition = form.format(f"{v:.1f}")
                rows.append(row(name, condition, 0.5 + v / 4, "two_way"))
                rows.append(row(name, f"{condition}/random_initialisation", 0.4, "seeds"))
        rows += [
            row(name, f"experiment1/alpha=1.0/layer={layer}", 0.3, "images") for layer in ("conv1", "layer2", "fc")
        ]
    write_scores(tmp_path, rows, {})
    return tmp_path


def test_curves_have_five_panels_models_and_baselines(run):
    picture = triplet_curves(run)
    drawn = vega.drawn(picture.unfitted(480, 504))
    assert len(drawn) == len(PANELS)
    assert sum(marks["symbol"] for marks in drawn.values()) == 2 * (6 + 4 * 5)  # every point of every model
    assert sum(r["untrained"] for r in picture.data) == 2 * (6 + 4 * 5)
    assert {r["name"] for r in picture.data} == {"one", "two"}
    assert "random initialisations" in picture.subtitle


def test_a_run_with_one_experiment_has_its_panels_only(tmp_path):
    cuebench.evaluate("ideal:shape", "triplets", out=tmp_path, settings={"triplets.experiments": "3"}, resamples=100)
    assert {r["panel"][:6] for r in triplet_curves(tmp_path).data} == {"Exp. 3"}


def test_layers_stand_in_their_order(run):
    picture = layer_profile(run, observer="two")
    places = {r["layer"]: r["position"] for r in picture.data}
    assert places["conv1"] < places["layer2"] < places["fc"]
    assert {r["name"] for r in picture.data} == {"experiment1/alpha=1.0"}
    assert {r["model"] for r in picture.data} == {"two"}


def test_runs_without_the_numbers_say_how_to_get_them(tmp_path):
    write_scores(tmp_path, [row("a", "experiment1/alpha=1.0", 0.5, "images")], {})
    with pytest.raises(UserError, match=r"no layers(.|\n)*--set triplets.layers=all"):
        layer_profile(tmp_path)
    write_scores(tmp_path, [Score("cue_conflict", 1, "a", "16-way", "shape_bias", 0.5)], {})
    with pytest.raises(UserError, match="cuebench run -p triplets"):
        triplet_curves(tmp_path)


def test_whiskers_are_those_of_the_widest_interval_or_of_the_chosen_kind(tmp_path):
    rows = [replace(row("a", c, 0.5, kind), ci_low=0.5 - half, ci_high=0.5 + half)
            for c in ("experiment1/alpha=0.0", "experiment1/alpha=1.0")
            for kind, half in (("images", 0.1), ("two_way", 0.3))]  # fmt: skip
    write_scores(tmp_path, rows, {})

    def spans(picture):
        return {round(r["high"] - r["low"], 6) for r in picture.data}

    assert spans(triplet_curves(tmp_path)) == {0.6}
    assert spans(triplet_curves(tmp_path, kind="images")) == {0.2}
