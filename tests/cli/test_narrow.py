"""Narrow terminals cut nothing that is needed, and what cannot be written is refused before the work."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image
from rich.console import Console

from cuebench.cli import invoke
from cuebench.cli._fit import Column, print_columns

COLUMNS = [
    Column("pair", ["control:shape − control:both", "a − b"], needed=True, number=False),
    Column("difference", ["+0.269 [+0.14, +0.40]", "+0.87"], needed=True),
    Column("p\n(Holm)", ["0.0003", "1.00"], needed=True),
    Column("n", ["1,280", "12"]),
]


@pytest.mark.parametrize("width", [10, 30, 44, 49, 52, 59, 80, 120])
def test_no_number_is_cut_and_no_needed_column_disappears(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    left_out = print_columns(Console(width=width, highlight=False), COLUMNS)
    lines = capsys.readouterr().out.splitlines()
    text = "\n".join(lines)
    for column in COLUMNS:
        if column.number and column.heading not in left_out:
            assert all(cell in text for cell in column.cells)
    assert "".join(line[:18].strip() for line in lines).count("pair") == 1
    assert left_out == ([] if "1,280" in text else ["n"])
    room = 18 + 2 + 21 + 2 + 6  # the names folded, and the numbers
    assert max(map(len, lines)) <= (width if width >= room else 59), "wrapped by the terminal only where it must be"
    if width < room:
        assert COLUMNS[0].cells[0] in text, "then names are not folded as well"


def test_tables_of_validity_are_not_cut(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert invoke(["validity", "difficulty"]) == 0
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("cue_conflict", "refined_bias", "0.780", "0.990", "0.36 [0.32, 0.40]"))
    assert "…" not in printed


def test_a_table_of_pairs_with_another_ending_is_refused_before_it_is_computed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert invoke(["compare", "runs/none", "--out", "pairs.xyz"]) == 2
    assert "the format of pairs.xyz is not known" in capsys.readouterr().err


def test_a_card_and_a_data_root_are_checked_before_a_model_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (8, 8)).save("image.png")
    words = ["texture-of", "image.png", "-o", "python:nix.py:model"]
    assert invoke([*words, "--draw", "x.xyz"]) == 2
    assert "cannot write a figure as 'x.xyz'" in capsys.readouterr().err
    assert invoke([*words, "--data-root", "nix"]) == 2
    assert "there is no folder nix" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["image.png"]


@pytest.mark.torch
def test_the_folder_of_controls_is_checked_before_they_are_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("safetensors")
    from cuebench.controls import train

    def trained(*arguments: object) -> None:
        raise AssertionError("the folder was not checked")

    monkeypatch.setattr(train, "_trained", trained)
    (tmp_path / "run.toml").touch()
    assert invoke(["controls", "shape", "--out", str(tmp_path / "run.toml")]) == 2
    assert "run.toml" in capsys.readouterr().err
