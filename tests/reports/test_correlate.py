"""Correlations between columns of scores tables, against scipy."""

from __future__ import annotations

import json

import pytest
from scipy.stats import spearmanr

from cuebench import cli
from cuebench.cli.correlate import _print
from cuebench.errors import UserError
from cuebench.reports.correlate import Pair, correlate_columns, headline_structure, score_columns
from cuebench.runs.evaluate import evaluate
from cuebench.statistics.correlations import correlate

MIXTURES = [f"ideal:mixture?shape={p}" for p in (0.1, 0.3, 0.5, 0.7, 0.9)]


@pytest.fixture
def run(data_root):
    evaluate(MIXTURES, "cue_conflict", data_root=data_root, out=data_root / "run", workers=0, resamples=100)
    return data_root / "run"


def test_any_two_columns(run):
    columns = score_columns([run], kinds=("ideal",))
    x, y = "shape_bias@4-way", "texture_accuracy@4-way"
    (pair,) = correlate_columns([run], x, y, kinds=("ideal",))
    values = [columns[f"cue_conflict:{c}"] for c in (x, y)]
    expected = spearmanr([values[0][o] for o in MIXTURES], [values[1][o] for o in MIXTURES])
    assert pair.correlation.value == pytest.approx(expected.statistic)
    assert expected.statistic == pytest.approx(-1)
    assert pair.correlation.p == pytest.approx(2 / 120)  # two of all orders of five observers are perfect
    assert pair.correlation.n == len(MIXTURES)
    assert pair.correlation.low <= pair.correlation.value <= pair.correlation.high


def test_all_pairs_and_the_command_line(run, capsys):
    every = correlate_columns([run], kinds=("ideal",))
    assert len({(p.x, p.y) for p in every}) == len(every) > 3
    assert cli.invoke(["correlate", str(run), "--x", "shape_bias@4-way", "--kind", "ideal", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {r["x"] for r in rows} == {"cue_conflict:shape_bias@4-way"}


def test_a_protocol_stands_for_its_headline(run):
    (by_name,) = correlate_columns([run], "cue_conflict", "texture_accuracy@4-way", kinds=("ideal",))
    assert by_name.x == "cue_conflict:shape_bias@4-way"
    with pytest.raises(UserError, match="no observer has the headline of triplets"):
        correlate_columns([run], "triplets", kinds=("ideal",))


def test_too_few_observers_and_unknown_columns(run):
    with pytest.raises(UserError, match="4 observers in common"):
        correlate_columns([run])  # ideal observers are no models
    with pytest.raises(UserError, match="Did you mean"):
        correlate_columns([run], "shape_bia@4-way", kinds=("ideal",))


# ------------------------------------------------------------------------------------------- corrected for error


def test_headlines_of_two_protocols(data_root, capsys):
    out = data_root / "two"
    settings = {"triplets.experiments": "3", "triplets.similarity": "cosine"}
    evaluate(MIXTURES, ["cue_conflict", "triplets"], data_root=data_root, out=out, workers=0, settings=settings)
    found = headline_structure([out], kinds=("ideal",))
    assert found.names == ("cue_conflict", "triplets")
    assert found.observers == tuple(MIXTURES)
    (link,) = found.links
    assert link.observed.value > 0.9  # planted: one thing
    assert all(0.5 < r.value <= 1 for r in found.reliability.values())
    assert cli.invoke(["correlate", str(out), "--corrected", "--kind", "ideal", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["pairs"][0]["observed"]["value"] == pytest.approx(link.observed.value)
    assert cli.invoke(["correlate", str(out), "--corrected", "--kind", "ideal"]) == 0
    printed = capsys.readouterr().out
    assert "reliability" in printed
    assert "too few for a factor" in printed


def test_what_cannot_be_corrected(run, capsys):
    with pytest.raises(UserError, match="no two headlines"):
        headline_structure([run], kinds=("ideal",))
    assert cli.invoke(["correlate", str(run), "--corrected", "--same", "a"]) == 2
    assert "names one observer" in capsys.readouterr().err


def test_names_that_no_run_holds_are_refused(run, capsys):
    with pytest.raises(UserError, match=r"unknown kind of observer 'modle'.*\n.*known: ideal"):
        correlate_columns([run], kinds=("ideal", "modle"))
    words = ["correlate", str(run), "--corrected", "--kind", "ideal", "--same"]
    assert cli.invoke([*words, "nosuch=a"]) == 2
    assert "unknown observer of --same: 'nosuch'" in capsys.readouterr().err
    with pytest.raises(UserError, match="unknown kind of observer"):
        headline_structure([run], kinds=("peple",))


def test_observers_that_were_named_one_are_counted(data_root):
    runs = [data_root / name for name in ("a", "b")]
    for out, protocol, first in zip(runs, ("cue_conflict", "triplets"), (0, 1)):
        settings = {"triplets.experiments": "3"} if protocol == "triplets" else {}
        observers = MIXTURES[first : first + 2]
        evaluate(observers, protocol, data_root=data_root, out=out, workers=0, resamples=100, settings=settings)
    with pytest.raises(UserError, match=r"left out, not measured by all: .*\n.*with --same which names"):
        headline_structure(runs, kinds=("ideal",))
    with pytest.raises(UserError, match="with --same which other names"):
        headline_structure(runs, kinds=("ideal",), same={MIXTURES[0]: "one"})
    with pytest.raises(UserError, match="2 observers have all") as caught:
        headline_structure(runs, kinds=("ideal",), same={MIXTURES[0]: "one", MIXTURES[2]: "one"})
    assert "--same" not in caught.value.hint


def test_a_figure_that_cannot_be_written_is_refused_at_once(tmp_path, capsys):
    assert cli.invoke(["correlate", "runs/none", "--corrected", "--out", str(tmp_path / "x.xyz")]) == 2
    assert "cannot write a figure as 'x.xyz'" in capsys.readouterr().err


def test_a_perfect_correlation_is_printed_without_certainty(capsys):
    line = range(9)
    pairs = [Pair("a", "b", correlate(line, line, method), tuple("abcdefghi")) for method in ("spearman", "pearson")]
    _print([*pairs, Pair("a", "c", correlate(line, [1] * 9), tuple("abcdefghi"))], everything=True)
    out = capsys.readouterr().out
    assert "+1.00 [+0.96, +1.00]" in out
    assert "no interval: all lie on one line" in out
    assert "undefined: a column is constant" in out
    assert "nan" not in out
    assert out.count("< 0.0001") == 2
