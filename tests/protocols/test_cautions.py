"""What stands under a headline."""

from __future__ import annotations

import numpy as np

from cuebench.protocols.cautions import cautions
from cuebench.statistics.estimates import mean_of_shares, mean_of_subjects
from cuebench.statistics.ratios import Terms
from cuebench.types import Score


def row(metric: str, value: float, note: str = "", observer: str = "net", n: int = 100) -> Score:
    return Score(
        protocol="p", protocol_version=1, observer=observer, condition="native", metric=metric, value=value,
        ci_low=value, ci_high=value, ci_kind="images", n=n, n_excluded=0, note=note,
    )  # fmt: skip


def test_a_preference_of_noise_is_named() -> None:
    rows = [row("shape_preference", 0.2), row("shape_sensitivity", 0.01), row("texture_sensitivity", 0.04)]
    rows += [row(r.metric, 0.5, observer="other") for r in rows]
    (found,) = cautions(rows, "shape_preference")
    assert "hardly anything is recognised" in found
    assert "net at most 0.040" in found
    assert "other" not in found


def test_people_and_initialisations_are_not_called_trials() -> None:
    people, trials = np.repeat(np.arange(10), 100), np.ones(1000)
    by_people = mean_of_subjects(Terms((np.arange(1000) % 3 == 0).astype(float), trials), people)
    by_seeds = mean_of_shares(np.array([0.4, 0.5, 0.6]), "seeds")
    assert by_people.notes == ("mean over 10 subjects",)
    assert by_seeds.notes == ("mean over 3 random initialisations",)
    for estimate in (by_people, by_seeds):
        assert not cautions([row("shape_bias", estimate.value, estimate.notes[0], n=estimate.n)], "shape_bias")
    assert cautions([row("shape_bias", 0.5, n=10)], "shape_bias") == ["few trials: shape_bias rests on 10 of net"]


def test_one_model_is_its_own_average() -> None:
    note = "H = run: 1 model (one model is its own average: .5 by definition), s = 0.1, t = 0.7"
    assert cautions([row("shape_bias_cd", 0.5, note)], "shape_bias_cd") == [f"net: {note}"]
    assert not cautions([row("shape_bias_cd", 0.5, "H = run: 2 models, s = 0.1")], "shape_bias_cd")
