"""What stands under a headline."""

from __future__ import annotations

from cuebench.protocols.cautions import cautions
from cuebench.types import Score


def row(metric: str, value: float, note: str = "", observer: str = "net") -> Score:
    return Score(
        protocol="p", protocol_version=1, observer=observer, condition="native", metric=metric, value=value,
        ci_low=value, ci_high=value, ci_kind="images", n=100, n_excluded=0, note=note,
    )  # fmt: skip


def test_a_preference_of_noise_is_named() -> None:
    rows = [row("shape_preference", 0.2), row("shape_sensitivity", 0.01), row("texture_sensitivity", 0.04)]
    rows += [row(r.metric, 0.5, observer="other") for r in rows]
    (found,) = cautions(rows, "shape_preference")
    assert "hardly anything is recognised" in found
    assert "net at most 0.040" in found
    assert "other" not in found


def test_one_model_is_its_own_average() -> None:
    note = "H = run: 1 model (one model is its own average: .5 by definition), s = 0.1, t = 0.7"
    assert cautions([row("shape_bias_cd", 0.5, note)], "shape_bias_cd") == [f"net: {note}"]
    assert not cautions([row("shape_bias_cd", 0.5, "H = run: 2 models, s = 0.1")], "shape_bias_cd")
