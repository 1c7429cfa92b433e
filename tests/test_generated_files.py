"""Files of the repository, and files that cuebench writes, are what their endings say; no CSV holds a formula."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import subprocess
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

import cuebench
from cuebench.cli import invoke
from cuebench.csv_text import csv_text, read_cell, written_cell
from cuebench.reading import parse_csv, read_csv
from cuebench.runs.trials import Trials

REPOSITORY = Path(__file__).parents[1]
FORMULAS = ("=1+1", "+A1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("a")', "'=1", "''-x")


WHO = {"=1+1", "@SUM(A1)", "plain"}


def _json(text: str) -> Any:
    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


def _csv(text: str) -> None:
    header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert len({*header}) == len(header)
    assert {len(row) for row in rows} <= {len(header)}


def _yaml(text: str) -> Any:
    return pytest.importorskip("yaml").safe_load(re.sub("@[A-Z_]+@", "x", text))  # a template of a study


PARSE: dict[str, Callable[[str], Any]] = {
    ".cff": _yaml,
    ".csv": _csv,
    ".ipynb": _json,
    ".json": _json,
    ".svg": ET.fromstring,
    ".toml": tomllib.loads,
    ".xml": ET.fromstring,
    ".yaml": _yaml,
    ".yml": _yaml,
}


def parse_all(files: list[Path]) -> set[str]:
    """Parse every file by its ending; return the endings that were met."""
    met = {file.suffix for file in files if file.suffix in PARSE}
    wrong = {}
    for file in files:
        if file.suffix in PARSE:
            try:
                PARSE[file.suffix](file.read_text("utf-8"))
            except (ValueError, AssertionError, csv.Error, ET.ParseError) as error:
                wrong[str(file)] = f"{error}"
    assert not wrong
    return met


def test_every_file_of_the_repository_can_be_parsed() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("no repository here")
    names = [name for name in listed.stdout.split("\0") if name and not name.startswith("tests/fuzz/")]
    assert parse_all([REPOSITORY / name for name in names]) >= {".cff", ".csv", ".json", ".toml"}


def test_the_citation_names_this_version() -> None:
    citation = _yaml((REPOSITORY / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == cuebench.__version__
    assert {"cff-version", "message", "title", "authors", "license"} <= set(citation)


def test_a_broken_file_is_found(tmp_path: Path) -> None:
    broken = {
        "a.cff": 'version: ""x.""',
        "b.json": '{"a": NaN}',
        "c.csv": "a,b\n1\n",
        "d.toml": "a =",
        "e.svg": "<svg>",
    }
    for name, text in broken.items():
        (tmp_path / name).write_text(text)
    for name in broken:
        if name.endswith("cff"):
            with pytest.raises(pytest.importorskip("yaml").YAMLError):
                parse_all([tmp_path / name])
        else:
            with pytest.raises(AssertionError, match=name):
                parse_all([tmp_path / name])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recorded observers whose names would be formulas."""
    folder = tmp_path_factory.mktemp("run")
    names = [f"{shape}{n}-{texture}{n}" for shape, texture in permutations(("cat", "dog", "car"), 2) for n in range(4)]
    rows = [
        (name, who, re.split(r"\d-?", name)[(n + k) % 3 // 2])
        for k, who in enumerate(sorted(WHO))
        for n, name in enumerate(names)
    ]
    (folder / "answers.csv").write_text(csv_text(("image", "observer", "decision"), rows))
    cuebench.evaluate(f"recorded:{folder / 'answers.csv'}", "cue_conflict", out=folder / "run", resamples=100)
    return folder / "run"


def test_files_that_are_written_can_be_parsed(run: Path, tmp_path: Path) -> None:
    commands = [
        ["compare", str(run), "--out", str(tmp_path / "pairs.csv")],
        ["trials", str(run), "--out", str(tmp_path / "trials.csv")],
        ["report", str(run), "--format", "csv", "--out", str(tmp_path / "report.csv")],
        ["figure", "shape_bias", str(run), "--out", str(tmp_path / "figure.svg")],
        ["board", str(run), "--out", str(tmp_path / "board"), "-q"],
        ["published", "export", "--out", str(tmp_path / "published.csv")],
    ]
    for words in commands:
        assert invoke(words) in (0, 1), words
    made = [file for folder in (run, tmp_path) for file in folder.rglob("*") if file.is_file()]
    assert parse_all(made) >= {".csv", ".json", ".svg"}
    for file in tmp_path.rglob("*.csv"):
        cells = {cell for row in csv.reader(io.StringIO(file.read_text("utf-8"), newline="")) for cell in row}
        assert not [cell for cell in cells if written_cell(cell) != cell and not cell.startswith("'")], file
        if file.name != "published.csv":
            assert "'=1+1" in cells, file


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_a_text_to_a_spreadsheet_and_is_read_as_it_was(text: str, tmp_path: Path) -> None:
    written = csv_text(["a", "b"], [[text, -1.5], ["plain", None], ["-2", math.nan]])
    assert parse_csv(written, "t").rows == [{"a": text, "b": "-1.5"}, {"a": "plain", "b": ""}, {"a": "-2", "b": ""}]
    assert list(csv.reader(io.StringIO(written, newline="")))[1][0] == f"'{text}"
    (tmp_path / "t.csv").write_bytes(written.encode())
    if "\r" not in text:
        assert read_csv(tmp_path / "t.csv").rows[0]["a"] == text
    assert read_cell(str(written_cell(text))) == text


def test_trials_are_read_back_with_their_names(run: Path, tmp_path: Path) -> None:
    Trials(run, (), ()).write(tmp_path / "trials.csv")
    assert {row["observer"] for row in read_csv(tmp_path / "trials.csv").rows} == WHO
    assert {row["observer"] for row in Trials(run, (), ()).table().to_pylist()} == WHO
