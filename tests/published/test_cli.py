"""The verb ``published`` as a user calls it."""

from __future__ import annotations

import csv
import json

import pytest

from cuebench.cli import invoke


def test_check_as_json(capsys):
    assert invoke(["published", "check", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert set(rows[0]) == {"paper", "table", "quantity", "printed", "recomputed", "agrees", "note"}
    assert sum(r["agrees"] for r in rows) / len(rows) >= 0.95
    assert all(r["note"] for r in rows if not r["agrees"])


def test_check_for_people(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert invoke(["published", "check", "--paper", "refined_bias"]) == 0
    out = capsys.readouterr().out
    assert "0.0229" in out
    assert "derived:" in out
    assert "cue_decomposition" not in out


def test_export(capsys, tmp_path):
    target = tmp_path / "published.csv"
    assert invoke(["published", "export", "--out", str(target)]) == 0
    rows = list(csv.DictReader(target.open(encoding="utf-8")))
    assert list(rows[0]) == ["paper", "table", "model", "weights", "metric", "value", "note"]
    assert f"{len(rows):,} numbers" in capsys.readouterr().out


def test_list(capsys):
    assert invoke(["published", "list", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 29
    assert invoke(["published", "list", "--table", "B", "--model", "CMT-B", "--json"]) == 0
    assert {r["model"] for r in json.loads(capsys.readouterr().out)} == {"CMT-B"}


def test_agree(capsys, tmp_path):
    target = tmp_path / "agree.svg"
    assert invoke(["published", "agree", "--json", "--out", str(target)]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {"first", "second", "n", "spearman", "low", "high"} <= set(rows[0])
    assert target.read_text().startswith("<svg")


def test_list_suites(capsys):
    assert invoke(["list", "suites", "--json"]) == 0
    found = {r["name"]: r["models"] for r in json.loads(capsys.readouterr().out)}
    assert found["refined_bias/strategies"] == "32"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["export"], "export needs a file"),
        (["export", "--out", "x.txt"], "ends in .csv"),
        (["place"], "Missing argument"),
        (["place", "no/such/run"], "is not a run folder"),
        (["export", "no/such/run"], "export of a run needs a folder"),
        (["plce"], "Did you mean 'place'"),
        (["check", "--paper", "geirhos"], "unknown paper 'geirhos'"),
        (["list", "--paper", "refined-bias"], "Did you mean 'refined_bias'"),
        (["agree", "no/such/run"], "is not a run folder"),
    ],
)
def test_mistakes_end_with_words(capsys, arguments, words):
    assert invoke(["published", *arguments]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
