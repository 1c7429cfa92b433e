"""The table of trials of a run: what is in it, how it is written, and what it costs in memory."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import cuebench as cb
from cuebench import cli
from cuebench.errors import UserError
from cuebench.protocols.base import Protocol
from cuebench.protocols.trials import TrialRows, TrialTable
from cuebench.registry import protocols
from cuebench.runs.trials import SCHEMA, Trials
from small_data import write_cue_conflict

ANSWERS = """subj,session,trial,rt,object_response,category,condition,imagename
anna,1,1,0.50,cat,cat,0,cat1-dog2.png
anna,2,2,0.75,na,dog,0,dog1-cat2.png
bert,1,1,0.60,dog,cat,0,cat1-dog2.png
bert,1,2,0.90,clock,dog,0,dog1-cat2.png
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two ideal observers and two people, in files of eight answers."""
    root = tmp_path_factory.mktemp("trials")
    data = write_cue_conflict(root / "data")
    (root / "people.csv").write_text(ANSWERS)
    observers = ["ideal:shape", "ideal:mixture?shape=0.5", f"recorded:{root / 'people.csv'}"]
    cb.evaluate(observers, "cue_conflict", data_root=data, out=root / "run", shard_size=8, resamples=100)
    return root / "run"


@pytest.fixture(scope="module")
def table(run: Path) -> pa.Table:
    return cb.load(run).trials().table()


def rows(table: pa.Table, **wanted: str) -> list[dict[str, object]]:
    return [row for row in table.to_pylist() if all(row[k] == v for k, v in wanted.items())]


def test_a_row_for_each_observer_stimulus_and_condition(table: pa.Table) -> None:
    assert table.schema.equals(SCHEMA)
    keys = [(r["observer"], r["person"], r["stimulus"], r["condition"]) for r in table.to_pylist()]
    assert len(set(keys)) == len(keys)
    assert len(rows(table, observer="ideal:shape", condition="4-way")) == 32
    (row,) = rows(table, observer="ideal:shape", stimulus="cat1-dog2", condition="4-way")
    expected = {"protocol": "cue_conflict", "kind": "ideal", "image": "cat1-dog2", "shape": "cat", "texture": "dog",
                "shape_source": "cat1", "texture_source": "dog2", "decision": "cat", "outcome": "shape",
                "correct": True, "n": 1.0}  # fmt: skip
    assert {k: row[k] for k in expected} == expected
    assert row["rt"] is row["person"] is row["session"] is row["rank"] is row["label"] is None


def test_people_have_names_times_and_sessions(table: pa.Table) -> None:
    (row,) = rows(table, observer="anna", stimulus="dog1-cat2")
    assert (row["person"], row["session"], row["rt"], row["kind"]) == ("anna", "2", 0.75, "person")
    assert (row["decision"], row["outcome"], row["correct"]) == (None, "no answer", False)
    pooled = rows(table, observer="people", stimulus="cat1-dog2")
    assert {(r["person"], r["outcome"], r["rt"]) for r in pooled} == {("anna", "shape", 0.5), ("bert", "texture", 0.6)}
    (other,) = rows(table, observer="bert", stimulus="dog1-cat2")
    assert (other["decision"], other["outcome"]) == ("clock", "other")


def test_the_shape_bias_follows_from_the_rows(run: Path, table: pa.Table) -> None:
    scores = cb.load(run)
    for observer in ("ideal:mixture?shape=0.5", "people"):
        counts = [r["outcome"] for r in rows(table, observer=observer, condition="4-way")]
        shape, texture = counts.count("shape"), counts.count("texture")
        assert scores.value(observer, "shape_bias", "4-way") == pytest.approx(shape / (shape + texture))


def test_files_hold_the_same_rows(run: Path, table: pa.Table, tmp_path: Path) -> None:
    trials = cb.load(run).trials()
    written = trials.write(tmp_path / "t.parquet")
    assert written.rows == len(table)
    assert pq.read_table(tmp_path / "t.parquet").equals(table)
    trials.write(tmp_path / "t.csv")
    options = pa.csv.ConvertOptions(column_types=SCHEMA, strings_can_be_null=True, quoted_strings_can_be_null=True)
    assert pa.csv.read_csv(tmp_path / "t.csv", convert_options=options).equals(table)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.csv", "t.parquet"], "no temporary file is left"
    with pytest.raises(UserError, match="is not known"):
        trials.write(tmp_path / "t.xlsx")


def test_other_tables(run: Path, table: pa.Table) -> None:
    trials = cb.load(run).trials("cue_conflict", ["anna"])
    frame = trials.to_pandas()
    assert (len(frame), set(frame.observer)) == (2, {"anna"})
    pytest.importorskip("polars")
    assert trials.to_polars().height == 2


def test_one_stored_file_at_a_time(run: Path, table: pa.Table) -> None:
    parts = list(Trials(run, observers=("ideal:shape",)).parts())
    assert len(parts) == 4
    assert {len(p) for p in parts} == {8}


def test_the_command_line(
    run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    table: pa.Table,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)  # pytest-xdist says how wide a line is
    out = tmp_path / "all.csv"
    assert cli.invoke(["trials", str(run), "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"file": str(out), "rows": len(table), "without_a_row": {}}
    assert cli.invoke(["trials", str(run), "-o", "people", "--json"]) == 0
    (count,) = json.loads(capsys.readouterr().out)["counts"]
    assert count["outcomes"] == {"shape": 1, "texture": 1, "other": 1, "no answer": 1}
    assert (count["rows"], count["correct"]) == (4, 0.25)
    assert cli.invoke(["trials", str(run)]) == 0
    shown = capsys.readouterr().out
    assert "no answer" in shown
    assert "--out trials.parquet" in shown
    assert cli.invoke(["trials", str(run), "-o", "peple"]) == 2
    assert "Did you mean 'people'" in capsys.readouterr().err


def test_unknown_columns_are_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    protocol: Protocol = protocols.get("cue_conflict")
    strange = TrialTable(lambda responses, options: [TrialRows("x", np.arange(1), {"colour": ["red"]})])
    monkeypatch.setitem(protocol.__dict__, "trials", strange)
    with pytest.raises(UserError, match="the columns colour"):
        cb.load(run).trials().table()


def test_an_unfinished_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        Trials(tmp_path).table()
