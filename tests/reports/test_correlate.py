"""Correlations between columns of scores tables, against scipy."""

from __future__ import annotations

import json

import pytest
from scipy.stats import spearmanr

from cuebench import cli
from cuebench.errors import UserError
from cuebench.reports.correlate import correlate_columns, score_columns
from cuebench.runs.evaluate import evaluate

MIXTURES = [f"ideal:mixture?shape={p}" for p in (0.1, 0.3, 0.5, 0.7, 0.9)]


@pytest.fixture
def run(data_root):
    evaluate(MIXTURES, "cue_conflict", data_root=data_root, out=data_root / "run", workers=0, resamples=100)
    return data_root / "run"


def test_any_two_columns(run):
    columns = score_columns([run], kinds=("ideal",))
    x, y = "shape_bias@4-way", "texture_accuracy@4-way"
    (pair,) = correlate_columns([run], x, y, kinds=("ideal",), resamples=500)
    values = [columns[f"cue_conflict:{c}"] for c in (x, y)]
    expected = spearmanr([values[0][o] for o in MIXTURES], [values[1][o] for o in MIXTURES])
    assert pair.correlation.value == pytest.approx(expected.statistic)
    assert expected.statistic == pytest.approx(-1)
    assert pair.correlation.p == pytest.approx(2 / 120)  # two of all orders of five observers are perfect
    assert pair.correlation.n == len(MIXTURES)
    assert pair.correlation.low <= pair.correlation.value <= pair.correlation.high


def test_all_pairs_and_the_command_line(run, capsys):
    every = correlate_columns([run], kinds=("ideal",), resamples=100)
    assert len({(p.x, p.y) for p in every}) == len(every) > 3
    assert cli.invoke(["correlate", str(run), "--x", "shape_bias@4-way", "--kind", "ideal", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {r["x"] for r in rows} == {"cue_conflict:shape_bias@4-way"}


def test_a_protocol_stands_for_its_headline(run):
    (by_name,) = correlate_columns([run], "cue_conflict", "texture_accuracy@4-way", kinds=("ideal",), resamples=100)
    assert by_name.x == "cue_conflict:shape_bias@4-way"
    with pytest.raises(UserError, match="no observer has the headline of triplets"):
        correlate_columns([run], "triplets", kinds=("ideal",))


def test_too_few_observers_and_unknown_columns(run):
    with pytest.raises(UserError, match="4 observers in common"):
        correlate_columns([run])  # ideal observers are no models
    with pytest.raises(UserError, match="Did you mean"):
        correlate_columns([run], "shape_bia@4-way", kinds=("ideal",))
