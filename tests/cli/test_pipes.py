"""Output without a reader, without a stream, without room: what a command has to do is done, and its status says so."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cuebench import cli
from cuebench.errors import did_you_mean

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a shell of POSIX")
PROGRAM = f"{shlex.quote(sys.executable)} -m cuebench"


def shell(text: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line in which CB is the program and STATUS prints how the first part of a pipe has ended."""
    line = text.replace("CB", PROGRAM).replace("STATUS", 'echo "${PIPESTATUS[0]}"')
    return subprocess.run(
        ["bash", "-c", line], cwd=folder, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip


@pytest.fixture
def run(data_root: Path) -> str:
    return (
        f"CB run -o ideal:shape -p cue_conflict --data-root {shlex.quote(str(data_root))} --resamples 100 --workers 0"
    )


@pytest.mark.parametrize("words", ["--version", "--help", "list cues", "list cues --json"])
def test_a_reader_that_has_left_is_status_141(words: str, tmp_path: Path) -> None:
    done = shell(f"CB {words} | true; STATUS", tmp_path)
    assert (done.stdout, done.stderr) == ("141\n", "")


def test_a_mistake_is_status_2_whoever_reads(tmp_path: Path) -> None:
    assert shell("CB list nothing 2>&1 | true; STATUS", tmp_path).stdout == "2\n"


def test_a_run_outlives_the_readers_of_its_events_and_of_its_output(run: str, tmp_path: Path) -> None:
    assert shell(f"{run} --out a --json 2>&1 >a.json | true; STATUS", tmp_path).stdout == "0\n"
    assert (tmp_path / "a.json").read_text().startswith("{")
    assert (tmp_path / "a" / "scores.json").is_file()
    assert shell(f"{run} --out b | true; STATUS", tmp_path).stdout == "141\n"
    assert (tmp_path / "b" / "scores.json").is_file()


def test_closed_streams_are_no_streams(run: str, tmp_path: Path) -> None:
    assert shell("CB list cues >&-", tmp_path).returncode == 0
    done = shell(f"{run} --out a <&- >&- 2>&-", tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "a" / "scores.json").is_file()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("words", ["--version", "list cues"])
def test_output_to_a_full_disk_is_a_mistake_with_a_reason(words: str, tmp_path: Path) -> None:
    done = shell(f"CB {words} >/dev/full", tmp_path)
    assert done.returncode == 2
    assert "the disk is full" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("columns", ["0", "-1", "wide", ""])
def test_a_width_in_which_nothing_can_be_printed_does_not_count(columns: str, tmp_path: Path) -> None:
    assert "voronoi_shuffle" in shell("CB list cues", tmp_path, COLUMNS=columns).stdout


def test_a_deleted_current_folder_matters_to_relative_paths_only(run: str, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    gone = "cd gone && rmdir ../gone && "
    done = shell(f"{gone}{run} -q --out {shlex.quote(str(tmp_path / 'a'))}", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "gone").mkdir()
    done = shell(f"{gone}{run} -q --out a", tmp_path)
    assert done.returncode == 2
    assert "the current folder does not exist any more" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_name_is_known_once() -> None:
    assert did_you_mean("protocol", "x", ["cue_conflict", "cue_conflict"]).hint == "known: cue_conflict"


def test_no_bar_and_no_empty_line_where_nobody_sees_one(run: str, tmp_path: Path) -> None:
    made = shell("CB make novel_objects --out objects --count 4", tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    measured = shell(f"{run} --out a", tmp_path)
    assert (measured.returncode, measured.stderr) == (0, "")


def test_ctrl_c_before_a_command_has_begun_is_status_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_call", interrupted)
    for words in (["list", "cues"], ["list", "cues", "--json"]):
        with pytest.raises(SystemExit) as end:
            cli.main(words)
        assert end.value.code == 130
    assert capsys.readouterr().err.startswith("\nStopped. What was finished is kept")
