"""What holds for every verb: errors as JSON, exit status, words that people try, completion."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cuebench import cli


def json_error(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return json.loads(captured.err)


@pytest.mark.parametrize("verb", cli.verbs())
def test_a_mistake_in_any_verb_is_json_for_machines(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke([verb, "--no-such-flag", "--json"]) == 2
    error = json_error(capsys)
    assert "--no-such-flag" in error["error"] or "command" in error["error"].lower()
    assert f"cuebench {verb} --help" in error["hint"]


@pytest.mark.parametrize(
    "words",
    [["rnu"], ["explain"], ["report", "nowhere"], ["figure", "nothing"], ["list", "cuse"],
     ["make", "nothing", "--out", "x"], ["run"], ["data", "chek"], ["score", "nowhere"], ["compare", "nowhere"],
     ["trials", "nowhere"], ["merge", "nowhere", "--out", "y"], ["--allow-code", "absent.py", "list", "cues"]],
    ids=" ".join,
)  # fmt: skip
def test_mistakes_are_json_with_what_is_wrong(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.invoke([*words, "--json"]) == 2
    assert set(json_error(capsys)) == {"error", "hint"}


@pytest.mark.parametrize("verb", [*cli.verbs(), "help", "version"])
def test_help_is_0(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke([verb] if verb in ("help", "version") else [verb, "--help"]) == 0
    assert "cuebench" in capsys.readouterr().out


def test_the_help_names_the_version_completion_and_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["--help"]) == 0
    shown = capsys.readouterr().out
    for part in ("--version", "--install-completion", "Exit status: 0 done", "130 Ctrl-C"):
        assert part in shown


@pytest.mark.parametrize(
    ("words", "part"),
    [(["plot", "--help"], "Draw a figure"), (["evaluate", "--help"], "Show stimuli"), (["ls", "cues"], "eed"),
     (["describe", "shape_bias"], "formula"), (["help", "run"], "Show stimuli"), (["bench", "--help"], "-o")],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_words_that_people_try_work(words: list[str], part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(words) == 0
    assert part in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "part"),
    [("cuebench ru", "run"), ("cuebench run --pre", "--precision"), ("cuebench run -p cue_conf", "cue_conflict"),
     ("cuebench explain shape_bia", "shape_bias"), ("cuebench figure shape_b", "shape_bias")],
)  # fmt: skip
def test_a_shell_can_complete_verbs_flags_and_names(line: str, part: str) -> None:
    words = line.split()
    environment = {**os.environ, cli.COMPLETION: "complete_bash", "COMP_WORDS": line,
                   "COMP_CWORD": str(len(words) - 1)}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "cuebench"], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert part in done.stdout.split(), done.stderr


@pytest.mark.slow
def test_completion_is_written_for_a_shell() -> None:
    program = shutil.which("cuebench", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("the command cuebench is not installed beside this Python")
    environment = {**os.environ, cli.COMPLETION: "source_bash"}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert "_CUEBENCH_COMPLETE=complete_bash" in done.stdout


def test_names_are_proposed_from_the_registry() -> None:
    from cuebench.cli._complete import names_of, sources

    assert names_of("protocols")("cue_conf") == ["cue_conflict"]
    assert {"shape_bias", "shape_accuracy"} <= set(names_of()("shape_"))
    assert sources("tim") == ["timm:"]
