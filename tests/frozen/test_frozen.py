"""The frozen truth: every number of the run folders that were packed here, scored again, is the number of then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuebench as cb
from cuebench import cli
from frozen import allowed
from frozen.comparing import differences, report
from frozen.golden import GOLDEN
from frozen.packing import HERE, unpack
from frozen.real import REAL, measure_real
from frozen.truth import Row, Truth, read_truth, truth_of

FOLDERS = ("demo", "demo_segmentation", *GOLDEN)
OF_TORCH = ("baselines",)
"""Golden runs of real networks: the last digits of their answers depend on the CPU."""


def check(folder: Path, now: Truth) -> None:
    """Fail with the first differences from the truth in a folder."""
    found = differences(read_truth(folder / "truth"), now)
    if found:
        pytest.fail(report(found), pytrace=False)


def test_every_archive_is_compared() -> None:
    archives = {path.name.removesuffix(".tar.xz") for path in HERE.glob("*.tar.xz")}
    assert archives == {*FOLDERS, *(f"real_{name}" for name in REAL)}
    assert sum(path.stat().st_size for path in HERE.glob("*.tar.xz")) < 5e6


@pytest.mark.parametrize("name", FOLDERS)
def test_stored_answers_give_the_frozen_numbers(name: str, tmp_path: Path) -> None:
    """By the verb ``score`` for one of them, by the function for the others."""
    unpack(name, tmp_path)
    if name == "conflict":
        assert cli.invoke(["score", str(tmp_path / "run"), "--json"]) == 0
    else:
        cb.score(tmp_path / "run", workers=0)
    check(tmp_path, truth_of(tmp_path / "run"))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in GOLDEN if name not in OF_TORCH])
def test_runs_made_anew_give_the_frozen_numbers(name: str, tmp_path: Path) -> None:
    """From pictures and observers: collecting and storing are covered as well."""
    unpack(name, tmp_path)
    home = tmp_path / "home"
    run = GOLDEN[name](home)
    check(tmp_path, truth_of(run, home))


RECORDINGS = [name if REAL[name].quick else pytest.param(name, marks=pytest.mark.slow) for name in REAL]


@pytest.mark.parametrize("name", RECORDINGS)
def test_published_recordings_give_the_frozen_numbers(name: str, shared: Path, tmp_path: Path) -> None:
    """Only rows of scores, pairs and counts are frozen of them: the answers are no part of the repository."""
    unpack(f"real_{name}", tmp_path)
    run = measure_real(name, shared, tmp_path / "run")
    check(tmp_path, truth_of(run, shared, single_answers=False))


# ------------------------------------------------------------------------------------------ the comparison can fail


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Truth:
    return read_truth(unpack("conflict", tmp_path_factory.mktemp("conflict")) / "truth")


def with_row(rows: list[Row], changed: dict[str, Any], which: Callable[[Row], bool] = lambda row: True) -> list[Row]:
    """Return rows, the first of a kind with other values."""
    place = next(i for i, row in enumerate(rows) if which(row))
    return [*rows[:place], {**rows[place], **changed}, *rows[place + 1 :]]


def measured(row: Row) -> bool:
    return row["metric"] == "shape_bias" and row["ci_kind"] == "two_way"


def test_the_same_is_no_difference_in_any_order(truth: Truth) -> None:
    turned = Truth(*(part[::-1] if isinstance(part, list) else part for part in truth))
    assert differences(truth, turned) == []
    scores = [{**row, "value": row["value"] + 1e-13} for row in truth.scores]
    assert differences(truth, truth._replace(scores=scores)) == []


@pytest.mark.parametrize("column", ["value", "ci_low", "ci_high"])
@pytest.mark.parametrize("change", [1e-9, -1e-11, float("nan")])
def test_another_number_is_a_difference(truth: Truth, column: str, change: float) -> None:
    row = next(filter(measured, truth.scores))
    scores = with_row(truth.scores, {column: row[column] + change}, measured)
    (found,) = differences(truth, truth._replace(scores=scores))
    assert found.startswith(
        f"scores: cue_conflict · {row['observer']} · {row['condition']} · shape_bias · two_way: {column}"
    )


@pytest.mark.parametrize(
    "changed", [{"n": 7}, {"n_excluded": 99}, {"protocol_version": 9}, {"note": "other words"}, {"more": 1}]
)
def test_another_count_version_or_note_is_a_difference(truth: Truth, changed: dict[str, Any]) -> None:
    (found,) = differences(truth, truth._replace(scores=with_row(truth.scores, changed, measured)))
    assert f": {next(iter(changed))} was " in found


def test_missing_and_new_rows_are_differences(truth: Truth) -> None:
    row = truth.scores[40]
    (found,) = differences(truth, truth._replace(scores=[*truth.scores[:40], *truth.scores[41:]]))
    assert found.startswith("scores: missing: ")
    assert str(row["observer"]) in found
    (found,) = differences(truth, truth._replace(scores=[*truth.scores, {**row, "condition": "3-way"}]))
    assert found.startswith("scores: new: ")
    (found,) = differences(truth, truth._replace(scores=[*truth.scores, row]))
    assert "1 rows, now 2" in found


def test_other_contributions_are_differences(truth: Truth) -> None:
    key = next(key for key, parts in truth.contributions.items() if len(parts["images"]) > 20)
    parts = truth.contributions[key]
    name = f"contributions: {' · '.join(key)}"

    def found(**changed: Any) -> list[str]:
        return differences(truth, truth._replace(contributions={**truth.contributions, key: {**parts, **changed}}))

    order = np.random.default_rng(0).permutation(len(parts["images"]))
    assert found(**{part: array[order] for part, array in parts.items()}) == []
    assert found(**{"sources/shape_sources": np.char.add("x", parts["sources/shape_sources"])}) == []
    assert found(**{"sources/shape_sources": np.roll(parts["sources/shape_sources"], 1)}) != []
    values = parts["values"].copy()
    values[3, 0] += 1e-9
    assert found(values=values) == [f"{name}: values differ"]
    assert f"{name}: images differ" in found(images=np.char.add(parts["images"], "x"))
    assert "rows and sums, now" in found(**{part: array[1:] for part, array in parts.items()})[0]
    rest = {k: parts for k, parts in truth.contributions.items() if k != key}
    assert differences(truth, truth._replace(contributions=rest)) == [f"{name}: missing"]


def test_other_pairs_and_trials_are_differences(truth: Truth) -> None:
    (found,) = differences(truth, truth._replace(pairs=with_row(truth.pairs, {"p": truth.pairs[0]["p"] + 1e-8})))
    assert ": p was " in found
    same = truth._replace(pairs=with_row(truth.pairs, {"p": truth.pairs[0]["p"] + 1e-10}))
    assert differences(truth, same) == []
    shape = truth._replace(trials=with_row(truth.trials, {"outcome": "other"}, lambda row: row["outcome"] == "shape"))
    assert ": outcome was shape, is undecided" in differences(truth, shape)[0]
    assert "missing" in differences(truth, truth._replace(trials=truth.trials[1:]))[0]
    assert ": rows was " in differences(truth, truth._replace(counts=with_row(truth.counts, {"rows": 0})))[0]
    assert "table " in differences(truth, truth._replace(tables={}))[0]


def test_equal_observers_may_stand_in_either_order() -> None:
    pair = {"protocol": "p", "first": "b", "second": "a", "value_first": 0.5, "value_second": 0.5, "difference": 0.0,
            "low": -0.1, "high": 0.2, "p": 1.0}  # fmt: skip
    turned = {**pair, "first": "a", "second": "b", "low": -0.2, "high": 0.1}
    empty = Truth([], [], {}, [], [], [], [], {})
    assert differences(empty._replace(pairs=[pair]), empty._replace(pairs=[turned])) == []
    assert differences(empty._replace(pairs=[pair]), empty._replace(pairs=[{**turned, "low": -0.1}])) != []


def test_words_that_a_change_names_are_allowed(truth: Truth, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = next(row for row in truth.scores if "undecided" in row["note"])
    words = {"note": noted["note"].replace("undecided", "without an answer")}
    changed = truth._replace(scores=with_row(truth.scores, words, lambda row: row is noted))
    assert len(differences(truth, changed)) == 1
    monkeypatch.setattr(allowed, "NOTES", (("undecided", "without an answer"),))
    assert differences(truth, changed) == []
    assert differences(truth, truth) == []


def test_a_report_shows_the_first_ten() -> None:
    text = report([f"difference {i}" for i in range(25)])
    assert len(text.split("\n")) == 12
    assert text.startswith("25 differences")
    assert text.endswith("… and 15 more")
    assert report([]) == "no differences"
