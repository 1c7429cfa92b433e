"""A data root that is missing, empty, or one level off: what to do next, whoever reads it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import cuebench as cb
from cuebench.errors import NoStimuli, UserError
from cuebench.registry import protocols, readers
from cuebench.runs.experiments import read_stimuli

NEED_FILES = [name for name, protocol in protocols.usable() if protocol.standalone is None]


def refused(name: str, root: Path) -> UserError:
    with pytest.raises(UserError) as caught:
        read_stimuli(protocols.get(name), root)
    return caught.value


@pytest.mark.parametrize("name", NEED_FILES)
def test_an_empty_data_root_says_what_a_missing_one_says(name: str, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    missing, empty = refused(name, tmp_path / "nowhere"), refused(name, tmp_path / "there")
    assert missing.hint.startswith("check the path")
    ways = missing.hint.replace(str(tmp_path / "nowhere"), str(tmp_path / "there"))
    assert empty.hint.startswith(ways) or ("check the path" in empty.hint and "cuebench " in empty.hint)


def test_a_folder_of_stimuli_without_any_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "cue_conflict" / "stimuli" / "cat").mkdir(parents=True)
    error = refused("cue_conflict", tmp_path)
    assert error.message.startswith("no stimuli found in")
    assert f"cuebench fetch cue_conflict --data-root {tmp_path}" in error.hint


@pytest.mark.parametrize("wrong", ["cue_conflict", "cue_conflict/stimuli", ".."])
@pytest.mark.parametrize("name", ["cue_conflict", "textured_silhouettes", "imagenet_accuracy"])
def test_the_hint_for_a_root_one_level_off_works_when_it_is_followed(data_root: Path, wrong: str, name: str) -> None:
    (data_root / "imagenet_val" / "cat").mkdir(parents=True)
    error = refused(name, data_root / wrong)
    found = re.search(r"--data-root (\S+)$", error.hint)
    assert found, error.hint
    root = Path(shlex.split(found[1])[0])
    assert root.resolve() == data_root.resolve()
    if name == "cue_conflict":
        assert len(read_stimuli(protocols.get(name), root)) == 32


def test_a_run_and_a_study_say_it_too(data_root: Path, tmp_path: Path) -> None:
    from cuebench.study.design import read_design
    from cuebench.study.stimuli import select

    wrong = data_root / "cue_conflict"
    with pytest.raises(UserError, match="does not exist") as caught:
        cb.evaluate("ideal:shape", "cue_conflict", data_root=wrong, out=tmp_path / "r")
    assert f"--data-root {data_root}" in caught.value.hint
    with pytest.raises(UserError, match="does not exist") as caught:
        select(read_design("cue_conflict"), wrong)
    assert f"--data-root {data_root}" in caught.value.hint


@pytest.mark.parametrize("name", [name for name in readers.names() if name != "csv_manifest"])
def test_every_reader_says_that_there_are_no_stimuli(name: str, tmp_path: Path) -> None:
    with pytest.raises(NoStimuli) as caught:
        readers.get(name).read(tmp_path)
    assert Path(caught.value.place).is_relative_to(tmp_path)
