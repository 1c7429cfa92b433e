"""The command line as a user meets it: exit status, standard output, standard error."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PIL import Image

from cuebench import cli, registry
from cuebench.catalogue import kinds


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
        (["compar"], "Did you mean 'compare'"),
        (["data", "blance"], "Did you mean 'balance'"),
        (["report", "/nowhere"], "not a run folder"),
        (["explain", "shape_bais"], "Did you mean 'shape_bias'"),
        (["score", "/nowhere"], "not a run folder"),
        (["list", "cuse"], "Did you mean 'cues'"),
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


@pytest.mark.parametrize(
    "arguments",
    [["show"], ["score"], ["compare"], ["curate"], ["correlate"], ["board", "--out", "x"], ["run"],
     ["run", "-o", "ideal:shape", "-p", "cue_conflict", "--out", "x", "--data-root"], ["--allow-code"]],
    ids=" ".join,
)  # fmt: skip
def test_a_name_that_no_file_can_have_is_a_mistake(
    capsys: pytest.CaptureFixture[str], arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, _, err = call(capsys, *arguments, "x" * 300)
    assert status == 2
    assert "the name is too long" in err
    assert len(err) < 250


@pytest.mark.parametrize(
    ("error", "why"), [(errno.ENOSPC, "the disk is full"), (errno.EROFS, "the file system is read-only")]
)
def test_a_full_disk_is_no_traceback_wherever_it_is_met(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: int, why: str
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(error, "from a library", "kept.bin")

    monkeypatch.setattr("cuebench.testing.new.new_part", fails)
    status, _, err = call(capsys, "new", "cue", "mine")
    assert status == 2
    assert f"cannot write kept.bin: {why}" in err
    assert "→" in err


def test_errors_are_json_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = call(capsys, "score", "/nowhere", "--json")
    assert status == 2
    assert set(json.loads(err)) == {"error", "hint"}


@pytest.mark.parametrize("kind", kinds())
def test_list_names_every_part_and_its_origin(capsys: pytest.CaptureFixture[str], kind: str) -> None:
    status, out, _ = call(capsys, "list", kind, "--json")
    rows = json.loads(out)
    assert status == 0
    assert all(row["name"] for row in rows)
    if kind in registry.KINDS:
        parts = registry.KINDS[kind]
        assert {row["name"]: row["origin"] for row in rows} == {name: parts.origin(name) for name in parts}
    elif kind != "suites":
        assert {"cuebench"} <= {row["origin"] for row in rows}
    assert call(capsys, "list", kind)[0] == 0


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
    assert findings["data of cue_conflict"]["detail"].startswith("32 stimuli")
    assert findings["data of imagenet_accuracy"]["status"] == "missing"


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "--version")[1].startswith("cuebench 0.")
    status, out, _ = call(capsys, "--help")
    assert status == 0
    listed = [line.split()[1] for line in out.splitlines() if line.startswith("│ ") and line[2] != " "]
    assert [word for word in listed if not word.startswith("-")] == cli.verbs()
    assert all(f" {heading} ─" in out for heading in cli.GROUPS)


def test_every_verb_is_in_a_group_and_has_a_line_of_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert {verb for members in cli.GROUPS.values() for verb in members} == set(cli.verbs())
    out = call(capsys, "--help")[1]
    for verb in cli.verbs():
        (line,) = [line for line in out.splitlines() if line.startswith(f"│ {verb} ")]
        assert line.strip("│ ").removeprefix(verb).strip().endswith("."), f"{verb}: more than one line at 80 columns"


@pytest.mark.parametrize("call_of", [[verb] for verb in cli.verbs()] + [["data", "check"], ["data", "balance"]])
def test_every_verb_has_help(capsys: pytest.CaptureFixture[str], call_of: list[str]) -> None:
    status, out, _ = call(capsys, *call_of, "--help")
    assert status == 0
    assert "Usage" in out


@pytest.mark.parametrize(("tried", "meant"), cli.ALIASES.items())
def test_words_that_people_try_for_a_verb_work(
    capsys: pytest.CaptureFixture[str], tried: str, meant: tuple[str, ...]
) -> None:
    assert call(capsys, tried, "--help") == call(capsys, *meant, "--help")
    assert tried not in cli.verbs()


def test_a_data_check_says_what_is_there(capsys: pytest.CaptureFixture[str], data_root: Path) -> None:
    status, out, _ = call(capsys, "data", "check", "cue_conflict", "--data-root", data_root)
    assert status == 0
    assert "conflict  pixels" in out
    assert "cue_conflict: " in out


def test_a_data_check_finds_damaged_and_repeated_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "cue_conflict" / "stimuli" / "cat"
    folder.mkdir(parents=True)
    Image.new("RGB", (8, 8)).save(folder / "cat1-dog1.png")
    (folder / "cat1-dog2.png").write_bytes((folder / "cat1-dog1.png").read_bytes())
    (folder / "cat2-dog1.png").write_bytes(b"no picture")
    status, out, _ = call(capsys, "data", "check", "cue_conflict", "--data-root", tmp_path)
    assert status == 1
    assert "1 file cannot be read: cat/cat2-dog1.png" in out
    assert "cat/cat1-dog1.png = cat/cat1-dog2.png" in out
    assert "partial set: 3 of 1,280" in out


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["resume", "runs/first"], "it goes on where it stopped"),
        (["run", "-o", "ideal:shape", "-p", "cue_conflict", "--resume"], "it goes on where it stopped"),
        (["run", "-o", "ideal:shape", "-p", "shape_bias", "--out", "RUN"], "-p cue_conflict"),
        (["run", "-o", "answers.csv", "-p", "cue_conflict", "--out", "RUN"], "recorded:answers.csv"),
        (["run", "-o", "resnet50", "-p", "cue_conflict", "--out", "RUN"], "timm:resnet50"),
        (["run", "-o", "ideal:shape", "-p", "cue_conflict", "--data-root", "nowhere", "--out", "RUN"],
         "or make them: cuebench make cue_conflict --out "),
    ],
    ids=lambda value: " ".join(value[:6]) if isinstance(value, list) else "",
)  # fmt: skip
def test_what_people_try_is_answered_with_what_works(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], part: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CUEBENCH_DATA", raising=False)
    status, _, err = call(capsys, *words)
    assert status == 2
    assert part in err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], data_root: Path) -> Path:
    arguments = run_arguments(data_root, data_root / "run", "-q", "-o", "ideal:texture", "--resamples", "100")
    assert call(capsys, *arguments)[0] == 0
    return data_root / "run"


def test_report_prints_the_headline_of_each_protocol(capsys: pytest.CaptureFixture[str], run: Path) -> None:
    status, out, _ = call(capsys, "report", run)
    assert status == 0
    assert out.startswith("cue_conflict v3 · 4-way")
    assert "larger means more shape" in out


@pytest.mark.parametrize(
    ("name", "start"), [("markdown", "**cue"), ("latex", "\\begin"), ("csv", "protocol,"), ("json", "[")]
)
def test_report_exports(capsys: pytest.CaptureFixture[str], run: Path, name: str, start: str) -> None:
    status, out, _ = call(capsys, "report", run, "--format", name)
    assert status == 0
    assert out.startswith(start)
    assert out.replace("\\_", "_").count("shape_bias") >= 2
    ending = {"markdown": "md", "latex": "tex", "csv": "csv", "json": "json"}[name]
    file = run.parent / f"scores.{ending}"
    assert call(capsys, "report", run, "--out", file)[0] == 0
    assert file.read_text() == out


def test_report_gives_one_row_for_each_number_with_its_widest_interval(
    capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    rows = json.loads(call(capsys, "report", run, "--json")[1])
    numbers = [(r["protocol"], r["observer"], r["condition"], r["metric"]) for r in rows]
    assert len(set(numbers)) == len(numbers)
    every = json.loads((run / "scores.json").read_text())
    assert len(rows) < len(every)
    for row in rows:
        same = [r for r in every if all(r[k] == row[k] for k in ("observer", "condition", "metric"))]
        widths = [r["ci_high"] - r["ci_low"] for r in same if r["ci_low"] is not None]
        assert not widths or row["ci_high"] - row["ci_low"] == max(widths)


def test_report_writes_the_tables_to_a_file(capsys: pytest.CaptureFixture[str], run: Path) -> None:
    file = run.parent / "report.txt"
    status, out, _ = call(capsys, "report", run, "--out", file)
    assert status == 0
    assert "numbers in" in out
    assert file.read_text().startswith("cue_conflict v3 · 4-way")


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
    command += ["--data-root", str(data_root), "--out", str(out), "--shard-size", "2", "-q"]
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
