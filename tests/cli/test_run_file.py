"""``cuebench run FILE.toml``, ``--save-config`` and ``--again``: the same run from a command, a file and a folder."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from cuebench import cli
from cuebench.cli import run as verb
from cuebench.cli._flags import flags_of
from cuebench.cli._run_file import NOT_IN_FILES, keys_of, read_file, save
from cuebench.errors import UserError
from cuebench.runs.record import RunRecord
from small_data import write_cue_conflict

FLAGS = flags_of(verb.command)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, a file of settings and a run that was made from it."""
    folder = tmp_path_factory.mktemp("place")
    data = write_cue_conflict(folder / "data")
    command = ["run", "-o", "ideal:shape", "-o", "ideal:mixture?shape=0.7", "-p", "cue_conflict", "--data-root", data]
    more = ["--seed", "3", "--resamples", "200", "--quiet", "--out", folder / "a", "--save-config", folder / "run.toml"]
    assert cli.invoke([str(word) for word in [*command, *more]]) == 0
    return folder


def scores(run: Path) -> bytes:
    return (run / "scores.json").read_bytes()


def test_a_saved_command_is_the_same_run(place: Path) -> None:
    content = tomllib.loads((place / "run.toml").read_text("utf-8"))
    assert content == {
        "observers": ["ideal:shape", "ideal:mixture?shape=0.7"],
        "protocols": ["cue_conflict"],
        "out": str(place / "a"),
        "data_root": str(place / "data"),
        "seed": 3,
        "resamples": 200,
    }
    assert cli.invoke(["run", str(place / "run.toml"), "--out", str(place / "b"), "-q"]) == 0
    assert scores(place / "a") == scores(place / "b")


def test_flags_go_before_the_file_and_the_file_before_the_environment(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUEBENCH_DATA", str(place / "nowhere"))
    assert cli.invoke(["run", str(place / "run.toml"), "--out", str(place / "c"), "--seed", "4", "-q"]) == 0
    record = json.loads((place / "c" / "run.json").read_text("utf-8"))["arguments"]
    assert (record["seed"], record["resamples"]) == (4, 200)
    assert record["data_root"] == str(place / "data")


def test_a_run_repeats_itself_from_any_folder(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.invoke(["run", "--again", str(place / "a")]) == 0
    assert "rows of scores are the same as in" in capsys.readouterr().out
    assert scores(place / "a") == scores(place / "a-again")
    assert cli.invoke(["run", "--again", str(place / "a"), "--seed", "9", "--out", str(tmp_path / "other")]) == 1
    assert "rows of scores differ from" in capsys.readouterr().out


def test_a_run_that_was_extended_or_scored_again_repeats_itself(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(observer: str, protocol: str) -> None:
        words = ["run", "-o", observer, "-p", protocol, "--data-root", place / "data", "--resamples", "100", "-q"]
        small = ["--set", "triplets.experiments=3", "--set", "triplets.draw=50"] * (protocol == "triplets")
        assert cli.invoke([str(word) for word in [*words, *small, "--out", tmp_path / "r"]]) == 0

    run("ideal:shape", "cue_conflict")
    run("ideal:mixture?shape=0.7", "triplets")
    assert cli.invoke(["score", str(tmp_path / "r"), "--common", "--resamples", "150", "-q"]) == 0
    capsys.readouterr()
    assert cli.invoke(["run", "--again", str(tmp_path / "r")]) == 0
    told = capsys.readouterr().out
    assert "rows of scores are the same as in" in told
    assert (
        "not compared: ideal:mixture?shape=0.7 on cue_conflict, ideal:shape on triplets, which that run does not hold"
        in told
    )
    assert cli.invoke(["score", str(tmp_path / "r"), "--set", "triplets.similarity=cosine", "-q"]) == 0
    assert cli.invoke(["run", "--again", str(tmp_path / "r"), "--out", str(tmp_path / "s")]) == 1
    assert "was scored again with other settings than it was made with: that may be why" in capsys.readouterr().out


def test_observers_of_a_repeated_run_are_found_from_its_own_folder(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "people").mkdir()
    (tmp_path / "people" / "p.csv").write_text(
        "subj,session,trial,rt,object_response,category,condition,imagename\nann,1,1,1,cat,cat,0,cat1-dog1.png\n"
    )
    monkeypatch.chdir(tmp_path)
    words = ["run", "-o", "recorded:people", "-p", "cue_conflict", "--out", "r", "--resamples", "100", "-q"]
    assert cli.invoke(words) == 0
    monkeypatch.chdir(place)
    assert cli.invoke(["run", "--again", str(tmp_path / "r"), "-q"]) == 0
    assert scores(tmp_path / "r") == scores(tmp_path / "r-again")


@pytest.mark.parametrize("spelled", ["a", "./a/", "other/../a", "link"])
def test_a_run_is_not_repeated_into_itself(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], spelled: str
) -> None:
    monkeypatch.chdir(place)
    Path("other").mkdir(exist_ok=True)
    if spelled == "link":
        Path("link").symlink_to("a", target_is_directory=True)
    before = (place / "a" / "run.json").read_bytes()
    for run, out in (("a", spelled), (spelled, "a")):
        assert cli.invoke(["run", "--again", run, "--out", out]) == 2
        error = capsys.readouterr().err
        assert "is the run that --again repeats" in error
        assert "leave --out out" in error
    assert (place / "a" / "run.json").read_bytes() == before


def test_a_repetition_that_differs_says_so_whatever_is_printed(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "--again", str(place / "a"), "--out"]
    assert cli.invoke([*words, str(tmp_path / "same"), "--json"]) == 0
    repeated = json.loads(capsys.readouterr().out)["repeated"]
    assert (repeated["same"], repeated["differing"], repeated["run"]) == (True, 0, str(place / "a"))
    assert cli.invoke([*words, str(tmp_path / "other"), "--seed", "9", "--json"]) == 1
    repeated = json.loads(capsys.readouterr().out)["repeated"]
    assert not repeated["same"]
    assert 0 < repeated["differing"] <= repeated["rows"]
    assert cli.invoke([*words, str(tmp_path / "quiet"), "--seed", "9", "-q"]) == 1
    printed = capsys.readouterr()
    assert (printed.out, "rows of scores differ from" in printed.err) == ("", True)


def test_files_that_a_repetition_writes_are_named_from_the_current_folder(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "made")
    words = ["run", "-o", "ideal:shape", "-p", "cue_conflict", "--data-root", str(place / "data"), "--out", "r"]
    assert cli.invoke([*words, "--resamples", "100", "-q"]) == 0
    monkeypatch.chdir(tmp_path / "here")
    more = ["--report", "page.html", "--responses", "answers", "--save-config", "run.toml", "--cache", "pixels"]
    assert cli.invoke(["run", "--again", "../made/r", "--out", "s", "-q", *more]) == 0
    assert {"page.html", "answers", "run.toml", "s"} <= {path.name for path in Path().iterdir()}
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["r"]
    saved = tomllib.loads(Path("run.toml").read_text("utf-8"))
    assert saved["responses"] == str(tmp_path / "here" / "answers")


def test_every_flag_that_is_a_path_is_one_of_the_places() -> None:
    kinds = inspect.signature(verb.command, eval_str=True).parameters
    paths = {name for name, parameter in kinds.items() if "Path" in str(parameter.annotation)}
    assert paths - {"file", "again"} <= set(verb.PLACES) <= set(kinds)


def test_files_of_the_same_name_elsewhere_are_not_read_where_the_folder_is_gone(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = "subj,session,trial,rt,object_response,category,condition,imagename\nann,1,1,1,cat,cat,0,cat1-dog1.png\n"
    for name in ("made", "fake"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "p.csv").write_text(table)
    monkeypatch.chdir(tmp_path / "made")
    more = ["-p", "cue_conflict", "--resamples", "100", "-q"]
    assert cli.invoke(["run", "-o", "recorded:p.csv", "--out", "../r", *more]) == 0
    assert cli.invoke(["run", "-o", "ideal:shape", "--out", "../i", "--data-root", str(place / "data"), *more]) == 0
    (tmp_path / "made").rename(tmp_path / "moved")
    monkeypatch.chdir(tmp_path / "fake")
    capsys.readouterr()
    assert cli.invoke(["run", "--again", "../r", "-q"]) == 2
    error = capsys.readouterr().err
    assert "not there any more: recorded:p.csv would be looked for in" in error
    assert "with -o" in error
    assert not (tmp_path / "r-again").exists()
    assert cli.invoke(["run", "--again", "../i", "-q"]) == 0  # it needs no file of that folder
    monkeypatch.chdir(tmp_path / "moved")
    assert cli.invoke(["run", "--again", "../r", "-o", "recorded:p.csv", "-q"]) == 0
    assert scores(tmp_path / "r") == scores(tmp_path / "r-again")


def test_observers_of_two_folders_are_found_again(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each is repeated from where it was named, and a saved command means the same from elsewhere."""
    monkeypatch.delenv("CUEBENCH_ALLOW_CODE", raising=False)
    more = ["-p", "cue_conflict", "--resamples", "100", "-q", "--data-root", str(place / "data"), "--out", "../r"]
    for number, name in enumerate(("one", "two")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "m.py").write_text(
            "import numpy as np\nimport cuebench as cb\ndef made():\n"
            f"    return cb.wrap(lambda x: np.eye(4, dtype=np.float32)[[{number}] * len(x)], name='{name}', "
            f"preprocess=cb.Preprocess(size=32), labels=('cat', 'dog', 'car', 'clock'), fingerprint='{name}')\n"
        )
        monkeypatch.chdir(tmp_path / name)
        assert cli.invoke(["run", "-o", "python:m.py:made", *more, "--save-config", f"../{name}.toml"]) == 0
    monkeypatch.chdir(place)
    allowed = [word for name in ("one", "two") for word in ("--allow-code", str(tmp_path / name / "m.py"))]
    assert cli.invoke(["run", "--again", str(tmp_path / "r"), *allowed, "-q"]) == 0, capsys.readouterr().err
    assert scores(tmp_path / "r") == scores(tmp_path / "r-again")
    saved = tomllib.loads((tmp_path / "one.toml").read_text("utf-8"))["observers"]
    assert saved == [f"python:{tmp_path.resolve() / 'one' / 'm.py'}:made?name=python:m.py:made"]
    assert cli.invoke(["run", str(tmp_path / "one.toml"), "--out", str(tmp_path / "s"), "-q"]) == 0
    assert {row["observer"] for row in json.loads(scores(tmp_path / "s"))} == {"one"}


def test_every_problem_of_a_file_is_reported_at_once(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(
        'observer = ["idael:shape"]\nprotocols = ["cue_conflct"]\nseeds = 3\nresamples = "many"\nlimit = -1\n'
        'common = "yes"\nprecision = "float8"\nallow_code = "absent.py"\nset = 3\n'
    )
    with pytest.raises(UserError) as caught:
        read_file(file, FLAGS)
    problems = "\n".join(caught.value.problems)
    assert len(caught.value.problems) == 9
    for part in (
        "'seed'?", "'ideal'?", "'cue_conflict'", "resamples: expected a whole number", "limit must be 0",
        "common: expected True or False", "precision 'float8'", "allow_code: there is no file", "set: expected a table",
    ):  # fmt: skip
        assert part in problems


@pytest.mark.parametrize(
    ("text", "part"),
    [("a = ", "is not valid TOML"), ('protocols = ["triplets"]\n[set.triplets]\ndrw = "all"', "Did you mean 'draw'")],
)
def test_a_bad_file_ends_with_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, part: str
) -> None:
    (tmp_path / "x.toml").write_text(text)
    assert cli.invoke(["run", str(tmp_path / "x.toml"), "--json"]) == 2
    assert part in json.loads(capsys.readouterr().err)["error"]


def test_what_is_missing_is_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["run", "--json"]) == 2
    assert json.loads(capsys.readouterr().err)["error"].count("--") == 3


def test_every_flag_is_a_key_and_comes_back_from_a_file(tmp_path: Path) -> None:
    keys = keys_of(FLAGS)
    assert {f.key for f in keys.values()} == {f.key for f in FLAGS if f.names} - NOT_IN_FILES
    values = {f.parameter: f.default for f in FLAGS} | {
        "observer": ["ideal:shape", 'a"b\\ü'], "protocol": ["triplets"], "limit": 7, "common": True, "price": 1.5,
        "report_to": "", "fresh": True,
    }  # fmt: skip
    save(tmp_path / "all.toml", values, {"triplets.draw": "all"}, FLAGS)
    assert tomllib.loads((tmp_path / "all.toml").read_text("utf-8")) == {
        "observers": ["ideal:shape", 'a"b\\ü'], "protocols": ["triplets"], "limit": 7, "common": True,
        "report": True, "set": {"triplets.draw": "all"},
    }  # fmt: skip
    with pytest.raises(UserError, match="says something else"):
        save(tmp_path / "all.toml", {**values, "limit": 8}, {}, FLAGS)


def test_a_record_runs_no_code_that_was_not_named(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CUEBENCH_ALLOW_CODE", raising=False)
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text("def model():\n    raise SystemExit('was run')\n")
    data = ["--data-root", str(place / "data"), "--resamples", "100", "-q"]
    cli.invoke(["run", "-o", "python:net.py:model", "-o", "ideal:shape", "-p", "cue_conflict", "--out", "r", *data])
    capsys.readouterr()
    assert cli.invoke(["run", "--again", "r"]) == 2
    assert "--allow-code" in capsys.readouterr().err
    assert cli.invoke(["run", "--again", "r", "--allow-code", "net.py", "-q"]) == 1  # it is run, and fails
    monkeypatch.delenv("CUEBENCH_ALLOW_CODE", raising=False)


def test_a_folder_is_no_file_of_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["run", "-o", "ideal:shape", "-p", "cue_conflict", "--out", str(tmp_path / "run")]
    assert cli.invoke([*run, "--save-config", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.fixture
def finished(place: Path, tmp_path: Path) -> Path:
    shutil.copytree(place / "a", tmp_path / "a")
    return tmp_path / "a"


def test_an_unfinished_run_is_refused_before_its_repetition_is_measured(finished: Path, capsys) -> None:
    record = RunRecord.read(finished)
    record.status, record.scored = "running", {}
    record.write(finished)
    assert cli.invoke(["run", "--again", str(finished)]) == 2
    assert "was not finished" in capsys.readouterr().err
    assert not finished.with_name("a-again").exists()


def test_a_report_of_before_this_run_is_named(place: Path, finished: Path, capsys) -> None:
    (finished / "report.html").write_text("of the first run")
    words = ["run", str(place / "run.toml"), "--out", str(finished)]
    assert cli.invoke(words) == 0
    assert "was made before this run" in " ".join(capsys.readouterr().err.split())


def test_a_report_is_not_written_over_what_is_no_page(place: Path, tmp_path: Path, capsys) -> None:
    """``--report run.toml`` would take the file of settings for the page's."""
    settings = (place / "run.toml").read_bytes()
    words = ["run", "-o", "ideal:shape", "-p", "cue_conflict", "--data-root", str(place / "data")]
    assert cli.invoke([*words, "--out", str(tmp_path / "r"), "--report", str(place / "run.toml")]) == 2
    assert "does not end in .html" in capsys.readouterr().err
    assert (place / "run.toml").read_bytes() == settings
    assert not (tmp_path / "r").exists()


def test_the_plan_of_a_file_that_asks_for_a_report(place: Path, tmp_path: Path, capsys) -> None:
    file = tmp_path / "with_report.toml"
    file.write_text((place / "run.toml").read_text("utf-8") + 'report = "page.html"\n', "utf-8")
    assert cli.invoke(["run", str(file), "--plan"]) == 0
    file.write_text((place / "run.toml").read_text("utf-8") + "cache_size = 3\n", "utf-8")
    assert cli.invoke(["run", str(file), "--plan"]) == 2  # in the file, too, it does nothing without a cache
    assert "cache_size in" in capsys.readouterr().err


def test_the_plan_of_two_protocols_with_options(place: Path, tmp_path: Path, capsys) -> None:
    words = ["run", "-o", "ideal:shape", "-p", "cue_conflict", "-p", "triplets", "--data-root", str(place / "data")]
    more = ["--set", "cue_conflict.view=native", "--out", str(tmp_path / "r"), "--plan"]
    assert cli.invoke([*words, *more]) == 0
    assert "failed" not in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--out", ""], ["--out="], ["--out", "r", "--data-root", ""], ["", "--out", "r"]])
def test_an_empty_path_is_not_the_current_folder(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.invoke(["run", "-o", "ideal:shape", "-p", "triplets", *words]) == 2
    assert "is empty" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "darwin", reason="file names are Unicode there")
def test_a_folder_whose_name_is_not_unicode_is_refused(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/n\xff"))
    odd.mkdir()
    monkeypatch.chdir(odd)
    assert cli.invoke(["run", str(place / "run.toml"), "--out", str(tmp_path / "r"), "-q"]) == 2
    assert "is not UTF-8" in capsys.readouterr().err


def test_what_was_shown_is_not_changed_by_scoring(finished: Path, capsys) -> None:
    before = scores(finished)
    assert cli.invoke(["score", str(finished), "--set", "cue_conflict.view=resized"]) == 2
    assert "--set cue_conflict.view=resized --out DIR" in " ".join(capsys.readouterr().err.split())
    assert scores(finished) == before
    assert cli.invoke(["score", str(finished), "--set", "cue_conflict.view=native"]) == 0  # as it was shown
    assert scores(finished) == before
