"""The command line as a user meets it: exit status, standard output, standard error."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cuebench import cli, registry


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = cli.invoke([str(a) for a in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def run_arguments(data_root: Path, out: Path, *more: str) -> list[str]:
    return ["run", "-o", "ideal:shape", "-p", "cue_conflict", "--data-root", str(data_root), "--out", str(out), *more]


def test_run_prints_a_table_and_where_the_result_is(capsys: pytest.CaptureFixture[str], data_root: Path) -> None:
    out = data_root / "run"
    status, shown, _ = call(capsys, *run_arguments(data_root, out))
    assert status == 0
    assert "ideal:shape" in shown
    assert "1.000" in shown
    assert str(out / "scores.json") in shown.replace("\n", "")


def test_json_gives_events_on_stderr_and_the_result_on_stdout(
    capsys: pytest.CaptureFixture[str], data_root: Path
) -> None:
    status, out, err = call(capsys, *run_arguments(data_root, data_root / "run", "--json"))
    assert status == 0
    result = json.loads(out)
    assert result["failures"] == []
    assert {"protocol", "observer", "metric", "value", "ci_kind"} <= set(result["scores"][0])
    events = [json.loads(line) for line in err.splitlines()]
    assert [events[0]["event"], events[-1]["event"]] == ["start", "finished"]


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str], data_root: Path) -> None:
    assert call(capsys, *run_arguments(data_root, data_root / "run", "--quiet")) == (0, "", "")


def test_score_repeats_the_run(capsys: pytest.CaptureFixture[str], data_root: Path) -> None:
    call(capsys, *run_arguments(data_root, data_root / "run", "-q"))
    before = (data_root / "run" / "scores.json").read_bytes()
    status, out, _ = call(capsys, "score", data_root / "run", "--json")
    assert status == 0
    assert json.loads(out)["scores"] == json.loads(before)
    assert (data_root / "run" / "scores.json").read_bytes() == before


def test_a_failed_observer_shows_in_the_exit_status(capsys: pytest.CaptureFixture[str], data_root: Path) -> None:
    status, out, _ = call(capsys, *run_arguments(data_root, data_root / "run", "-o", "ideal:nobody", "--json"))
    assert status == 1
    assert "ideal:nobody" in json.loads(out)["failures"][0]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["rnu"], "Did you mean 'run'"),
        (["explain", "shape_bais"], "Did you mean 'shape_bias'"),
        (["score", "/nowhere"], "not a run folder"),
        (["list", "nothing"], "nothing"),
        (["run", "-p", "cue_conflict", "--out", "x"], "--observer"),
    ],
)
def test_mistakes_end_with_status_2_and_no_traceback(
    capsys: pytest.CaptureFixture[str], arguments: list[str], part: str
) -> None:
    status, _, err = call(capsys, *arguments)
    assert status == 2
    assert part in err
    assert "Traceback" not in err


def test_errors_are_json_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = call(capsys, "score", "/nowhere", "--json")
    assert status == 2
    assert set(json.loads(err)) == {"error", "hint"}


@pytest.mark.parametrize("part", ["protocols", "observers", "cues", "metrics", "stimuli", "labels"])
def test_list_names_every_part(capsys: pytest.CaptureFixture[str], part: str) -> None:
    status, out, _ = call(capsys, "list", part, "--json")
    rows = json.loads(out)
    assert status == 0
    assert all(row["name"] for row in rows)
    if part in {"protocols", "cues", "metrics"}:
        assert {row["name"] for row in rows} == set(getattr(registry, part))
    assert call(capsys, "list", part)[0] == 0


@pytest.mark.parametrize("name", [*registry.metrics])
def test_explain_has_formula_denominator_and_reference(capsys: pytest.CaptureFixture[str], name: str) -> None:
    status, out, _ = call(capsys, "explain", name, "--json")
    facts = json.loads(out)
    assert status == 0
    assert facts["name"] == name
    assert all(facts[key] for key in ("formula", "denominator", "reference"))


@pytest.mark.parametrize("name", ["cue_conflict", "shape_bias", "voronoi_shuffle"])
def test_explain_speaks_to_people(capsys: pytest.CaptureFixture[str], name: str) -> None:
    status, out, _ = call(capsys, "explain", name)
    assert status == 0
    assert name in out


@pytest.mark.torch
@pytest.mark.xdist_group("torch")
def test_doctor_measures_a_known_answer(capsys: pytest.CaptureFixture[str], data_root: Path) -> None:
    status, out, _ = call(capsys, "doctor", "--json", "--data-root", data_root)
    findings = {f["what"]: f for f in json.loads(out)}
    assert status == 0
    assert findings["known answer"]["status"] == "ok"
    assert findings["data of cue_conflict"]["found"].startswith("32 stimuli")
    assert findings["data of imagenet_accuracy"]["status"] == "missing"


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "--version")[1].startswith("cuebench 0.")
    status, out, _ = call(capsys, "--help")
    assert status == 0
    assert all(verb in out for verb in cli.verbs())


def test_every_verb_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in cli.verbs():
        status, out, _ = call(capsys, verb, "--help")
        assert status == 0
        assert "Usage" in out


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_finished(data_root: Path, tmp_path: Path) -> None:
    model = tmp_path / "slow_model.py"
    model.write_text(
        "import time, numpy as np, cuebench as cb\n"
        "def slow(x):\n    time.sleep(0.2)\n    return np.eye(4, dtype=np.float32)[[0] * len(x)]\n"
        "def factory():\n    return cb.wrap(slow, preprocess=cb.Preprocess(size=32),"
        " labels=('cat', 'dog', 'car', 'clock'), name='slow', fingerprint='1')\n"
    )
    out = tmp_path / "run"
    command = [sys.executable, "-m", "cuebench", "run", "-o", f"python:{model}:factory", "-p", "cue_conflict"]
    command += ["--data-root", str(data_root), "--out", str(out), "--batch-size", "2", "-q"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "200"})
    deadline = time.monotonic() + 60
    while len(list(out.glob("responses/*/*.parquet"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "same command" in err
    assert "Traceback" not in err
    assert json.loads((out / "run.json").read_text())["status"] == "stopped"
    assert len(list(out.glob("responses/*/*.parquet"))) >= 2
