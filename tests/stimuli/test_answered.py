"""A table of answers to stimuli of one's own, without the pictures, is scored."""

from __future__ import annotations

from pathlib import Path

import pytest

import cuebench
from cuebench import cli
from cuebench.errors import UserError
from cuebench.protocols.cue_conflict import read
from cuebench.stimuli.answered import write_stimuli
from cuebench.stimuli.readers.cue_conflict import NO_SOURCES

ROWS = [
    "ann,a.png,ball,brick,ball",
    "ann,b.png,box,brick,brick",
    "bob,a.png,ball,brick,ball",
    "bob,b.png,box,brick,box",
]


def table(folder: Path, rows: list[str], header: str = "Subject,Image,Shape,Texture,Answer") -> Path:
    file = folder / "answers.csv"
    file.write_text("\n".join([header, *rows]) + "\n")
    return file


def test_answers_alone_give_the_shape_bias(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = table(tmp_path, ROWS)
    assert cli.invoke(["import", "answers", str(file), "--out", str(tmp_path / "data")]) == 0
    assert "2 stimuli of 3 classes" in capsys.readouterr().out
    scores = cuebench.evaluate(f"recorded:{file}", "cue_conflict", data_root=tmp_path / "data", out=tmp_path / "run")
    assert scores.value("people", "shape_bias") == 0.75
    assert scores.value("ann", "shape_bias") == 0.5
    assert read(tmp_path / "data").notes == (NO_SOURCES,)


def test_sources_of_the_table_or_of_the_names_are_kept(tmp_path: Path) -> None:
    header = "subject,image,shape,texture,shape_source,texture_source,answer"
    write_stimuli(table(tmp_path, ["ann,a.png,ball,brick,ball7,wall,ball"], header), tmp_path / "one")
    write_stimuli(table(tmp_path, ["ann,ball1-brick2.png,ball,brick,ball"]), tmp_path / "two")
    ((first,), (second,)) = (read(tmp_path / name).stimuli for name in ("one", "two"))
    assert (first.shape_source, first.texture_source) == ("ball7", "wall")
    assert (second.shape_source, second.texture_source) == ("ball1", "brick2")
    assert not read(tmp_path / "two").notes


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no column texture"):
        write_stimuli(table(tmp_path, ["ann,a,ball,ball"], "subject,image,shape,answer"), tmp_path / "data")
    with pytest.raises(UserError, match=r"line 3: 'a' was .*brick.*fur"):
        write_stimuli(table(tmp_path, [ROWS[0], "bob,a.png,ball,fur,ball"]), tmp_path / "data")
    write_stimuli(table(tmp_path, ROWS), tmp_path / "data")
    with pytest.raises(UserError, match="another set"):
        write_stimuli(table(tmp_path, ROWS[:1]), tmp_path / "data")
