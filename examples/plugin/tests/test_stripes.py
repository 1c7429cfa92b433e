"""The four parts keep the contracts of cuebench, and the planted bias comes back."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cuebench_stripes.striped_objects import PROTOCOL, stimuli

import cuebench
from cuebench import registry
from cuebench.errors import UserError
from cuebench.protocols.base import ScoreOptions, score_rows
from cuebench.testing import CheckFailed, check_cue, check_figure, check_metric, check_protocol, planted_responses

stripes = cuebench.cues.stripes
ORIGIN = "cuebench-stripes 1.0.0"
PARTS = {"cues": "stripes", "metrics": "shape_match", "protocols": "striped_objects", "figures": "shape_match_curve"}


def test_every_part_is_found_with_its_origin():
    parts = {
        "cues": "stripes",
        "metrics": "shape_match",
        "protocols": "striped_objects",
        "figures": "shape_match_curve",
    }
    for kind, name in parts.items():
        assert registry.KINDS[kind].origin(name) == ORIGIN
        assert registry.KINDS[kind].summary(name)
        assert name not in registry.KINDS[kind].broken()
    command = [sys.executable, "-m", "cuebench", "list", "protocols", "--json"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert ORIGIN in listed


def test_the_parts_keep_their_contracts():
    check_cue("stripes")
    check_metric("shape_match", planted=[(([0.9, 0.2, 0.5, 0.7], [0.1, 0.8, 0.5, 0.6]), 2 / 3)])
    check_protocol("striped_objects")
    check_figure("shape_match_curve")


def test_stripes_have_the_contrast_the_period_and_the_direction_asked_for():
    grey = np.full((64, 64), 0.5)
    out = stripes(grey, contrast=0.6, period=16, angle=0)
    assert out.max() - out.min() == pytest.approx(0.6, abs=0.01)
    np.testing.assert_allclose(out[:, :48], out[:, 16:], atol=1e-9)
    np.testing.assert_allclose(out, np.broadcast_to(out[:1], out.shape), atol=1e-9)
    np.testing.assert_allclose(stripes(grey, contrast=0.6, period=16, angle=90), out.T, atol=1e-9)
    assert not np.array_equal(stripes(grey, rng=1), stripes(grey, rng=2))


@pytest.mark.parametrize("options", [{"contrast": 1.2}, {"period": 1}, {"angle": float("nan")}, {"version": 2}])
def test_wrong_options_are_refused(options):
    with pytest.raises(UserError) as raised:
        stripes(np.zeros((8, 8)), **options)
    assert raised.value.hint


@pytest.mark.parametrize("planted", [0.2, 0.7])
def test_a_mixture_comes_back_within_its_interval(planted):
    answers = planted_responses(PROTOCOL, stimuli(), f"ideal:mixture?shape={planted}")
    rows = score_rows(PROTOCOL, PROTOCOL.score([answers], ScoreOptions(0, 500, {"period": 12})))
    for row in rows:
        if row.ci_kind == "two_way":
            assert row.ci_low <= planted <= row.ci_high, row


def test_pictures_without_features_are_excluded_and_counted():
    answers = planted_responses(PROTOCOL, stimuli(), "ideal:shape")
    features = answers.columns["features"].copy()
    features[answers.truth("id") == "dax-bricks|contrast=0.5"] = 0
    rows = score_rows(
        PROTOCOL, PROTOCOL.score([replace(answers, columns={"features": features})], ScoreOptions(0, 100))
    )
    counts = {r.condition: (r.n, r.n_excluded) for r in rows}
    assert counts["contrast=0.25"] == (3136, 0)
    assert counts["contrast=0.5"] == (3136 - 49, 49)


def test_the_period_is_an_option():
    wide = PROTOCOL.configured({"period": 24}).standalone()
    assert "period=24" in wide.stimuli[1].recipe
    assert wide.fingerprint != stimuli().fingerprint


def test_the_check_would_notice_a_wrong_direction():
    reversed_headline = replace(PROTOCOL.headline, direction="texture")
    with pytest.raises(CheckFailed, match="ideal:texture was expected above ideal:shape"):
        check_protocol(replace(PROTOCOL, name="reversed", headline=reversed_headline), only=["bias"])


@pytest.mark.slow
def test_a_run_in_worker_processes_and_its_figure(tmp_path: Path):
    pytest.importorskip("efficientnet_lite_pytorch")
    command = [sys.executable, "-m", "cuebench"]
    observers = ["-o", "ideal:shape", "-o", "lite:efficientnet_lite0"]
    run = ["run", "-p", "striped_objects", *observers, "--limit", "64", "--workers", "2", "--resamples", "200"]
    subprocess.run([*command, *run, "--quiet", "--out", str(tmp_path / "run")], check=True)
    scores = cuebench.load(tmp_path / "run")
    assert scores.value("ideal:shape", "shape_match", "contrast=0.5") == 1
    assert 0 < scores.value("lite:efficientnet_lite0", "shape_match", "contrast=0.5") < 1
    figure = ["figure", "shape_match_curve", str(tmp_path / "run"), "--out", str(tmp_path / "curve.svg")]
    subprocess.run([*command, *figure], check=True)
    assert "efficientnet_lite0" in (tmp_path / "curve.svg").read_text()
