"""``Scores``: one number at a time, one row for each number, exports for notebooks and papers."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image

import cuebench as cb
from cuebench.errors import UserError
from cuebench.protocols.headline import headline_column
from cuebench.types import Score

PROTOCOLS = ["cue_conflict", "imagenet_accuracy"]


@pytest.fixture
def run(data_root: Path) -> Path:
    (data_root / "imagenet_val" / "cat").mkdir(parents=True)
    Image.new("RGB", (32, 32)).save(data_root / "imagenet_val" / "cat" / "1.png")
    observers, out = ["ideal:shape", "ideal:mixture?shape=0.6", "recorded:nowhere_{x}&_%"], data_root / "run"
    cb.evaluate(observers, PROTOCOLS, data_root=data_root, out=out, resamples=100, on_event=lambda event: None)
    return out


@pytest.fixture
def scores(run: Path) -> cb.Scores:
    return cb.load(run)


def test_load_and_score_return_the_same_scores(run: Path, scores: cb.Scores) -> None:
    again = cb.score(run)
    assert isinstance(again, cb.Scores)
    assert isinstance(scores[0], Score)
    assert [repr(r) for r in again] == [repr(r) for r in scores]
    assert scores.record.scored == again.record.scored == {"seed": 0, "resamples": 100, "settings": {}, "common": False}


def test_the_headline_is_the_number_that_is_meant(scores: cb.Scores) -> None:
    assert scores.value("ideal:shape", protocol="cue_conflict") == 1
    assert scores.value("ideal:shape", protocol="imagenet_accuracy") == 1
    assert scores.value("ideal:shape", "accuracy") == scores.value("ideal:shape", "accuracy", "top1")
    mixture = scores.value("ideal:mixture?shape=0.6", protocol="cue_conflict")
    assert 0 < mixture == scores.value("ideal:mixture?shape=0.6", "shape_bias") < 1
    assert scores.value("ideal:shape", condition="top5", protocol="imagenet_accuracy") == 1
    rows = scores.headline("cue_conflict")
    column = headline_column(scores, "cue_conflict")
    assert column is not None
    assert {r.observer: r for r in rows} == column.rows
    assert [r.protocol for r in scores.headline()] == ["cue_conflict"] * 2 + ["imagenet_accuracy"] * 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"observer": "ideal:shape"}, "(?s)several protocols: cue_conflict, imagenet_accuracy.*protocol="),
        ({"observer": "ideal:shap"}, "Did you mean 'ideal:shape'"),
        ({"observer": "ideal:shape", "protocol": "triplets"}, "unknown protocol 'triplets'"),
        ({"observer": "recorded:nowhere_{x}&_%"}, "was not measured: .*nowhere"),
    ],
)
def test_what_is_not_there_is_named(scores: cb.Scores, call: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        scores.value(**call)


def test_one_row_for_each_number_with_its_widest_interval(scores: cb.Scores) -> None:
    short, long = scores.table(), scores.table(all_intervals=True)
    assert long.num_rows == len(scores) > short.num_rows
    assert short.column_names == long.column_names == Score.columns()
    keys = ["protocol", "observer", "condition", "metric"]
    short_rows, long_rows = ([tuple(r[k] for k in keys) for r in t.to_pylist()] for t in (short, long))
    assert short_rows == list(dict.fromkeys(long_rows))
    widths: dict[tuple, list[float]] = {}
    for row, key in zip(long.to_pylist(), long_rows):
        widths.setdefault(key, []).append(row["ci_high"] - row["ci_low"])
    for row, key in zip(short.to_pylist(), short_rows):
        defined = [w for w in widths[key] if w == w]
        assert not defined or row["ci_high"] - row["ci_low"] == max(defined)


def test_csv_has_every_number_and_every_failure(scores: cb.Scores, tmp_path: Path) -> None:
    text = scores.to_csv()
    assert text is not None
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == scores.table().num_rows
    assert {r["metric"] for r in rows if r["observer"].startswith("recorded")} == {"failed"}
    assert all(r["value"] == "" for r in rows if r["metric"] == "failed")
    assert scores.to_csv(tmp_path / "scores.csv") is None
    assert (tmp_path / "scores.csv").read_text() == text
    longer = scores.to_csv(all_intervals=True)
    assert longer is not None
    assert len(longer.splitlines()) == 1 + len(scores)


def test_latex_is_escaped_and_shows_value_and_interval(scores: cb.Scores, tmp_path: Path) -> None:
    text = scores.headline("cue_conflict").to_latex()
    assert text is not None
    assert r"\toprule" in text
    assert r"\caption{cue\_conflict $\cdot$ shape\_bias $\cdot$ 4-way. cue\_conflict, version " in text
    row = scores.headline("cue_conflict")[0]
    assert f"ideal:shape & {row.value:.3f} [{row.ci_low:.3f}, {row.ci_high:.3f}] & {row.n} \\\\" in text
    assert "% not measured: recorded:nowhere" in text
    whole = scores.to_latex()
    assert whole is not None
    body = whole[whole.index(r"\midrule") : whole.index(r"\bottomrule")]
    assert body.count(r"\\") == len(
        [r for r in scores.table().to_pylist() if r["metric"] not in ("failed", "not_applicable")]
    )
    assert "_" not in body.replace(r"\_", "")
    scores.to_latex(tmp_path / "table.tex")
    assert (tmp_path / "table.tex").read_text() == whole


def test_markdown(scores: cb.Scores) -> None:
    text = scores.headline("imagenet_accuracy").to_markdown()
    assert text is not None
    lines = text.splitlines()
    assert lines[0] == "**imagenet_accuracy · accuracy · top1**"
    assert lines[2] == "| observer | value [95 % interval] | n |"
    assert lines[3] == "|---|---:|---:|"
    assert lines[4] == "| ideal:shape | 1.000 | 1 |"  # one photograph: no interval
    kinds = scores.select(metric="shape_bias", condition="4-way", observer="ideal:shape").to_markdown(
        all_intervals=True
    )
    assert kinds is not None
    assert "| interval over |" in kinds
    assert "two_way" in kinds


def test_what_is_displayed_is_short(scores: cb.Scores) -> None:
    assert len(repr(scores)) < 300
    assert "1 not measured" in repr(scores)
    text = str(scores)
    assert "cue_conflict · shape_bias · 4-way" in text
    assert "imagenet_accuracy · accuracy · top1" in text
    assert "not measured: recorded:nowhere" in text
    assert len(text.splitlines()) < 15
    html = scores._repr_html_()
    assert html.count("<table>") == 2
    assert "nowhere_{x}&amp;_%" in html
    assert ">ideal:shape</td>" in html
    assert "few trials" in html, "what changes the reading of a table stands below it"


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_is_named(scores: cb.Scores, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=f"(?s)needs the Python package '{package}'.*pip install {package}"):
        getattr(scores, f"to_{package}")()


def test_data_frames_are_made_of_the_short_table(scores: cb.Scores, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = ModuleType("polars")
    fake.from_arrow = lambda table: table  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "polars", fake)
    assert repr(scores.to_polars().to_pylist()) == repr(scores.table().to_pylist())
    assert scores.to_polars(all_intervals=True).num_rows == len(scores)


def test_pandas(scores: cb.Scores) -> None:
    pytest.importorskip("pandas")
    assert list(scores.to_pandas().columns) == Score.columns()


def test_a_selection_is_scores_again(scores: cb.Scores) -> None:
    some = scores.select(protocol="cue_conflict", metric="shape_bias", condition="4-way")
    assert isinstance(some, cb.Scores)
    assert {(r.metric, r.condition) for r in some} == {("shape_bias", "4-way")}
    with pytest.raises(UserError, match="Did you mean 'shape_bias'"):
        scores.select(metric="shape_bia")
