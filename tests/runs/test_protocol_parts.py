"""Protocols of one's own in a run: objects, files, installed plug-ins; and plug-ins that are broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import cuebench as cb
from cuebench import registry
from cuebench.errors import UserError
from cuebench.protocols.cue_conflict import PROTOCOL
from cuebench.registry import Part
from cuebench.runs.record import RunRecord

MINE = replace(PROTOCOL, name="my_conflict", version=3)
FILE = """
from dataclasses import replace
from functools import partial
from cuebench.protocols.cue_conflict import PROTOCOL
MINE = replace(PROTOCOL, name="conflict_in_a_file")
"""


@pytest.fixture(autouse=True)
def _forget_added_parts() -> Iterator[None]:
    yield
    registry.protocols.added.clear()


def measure(data_root: Path, protocols: Any, **options: Any) -> cb.Scores:
    return cb.evaluate("ideal:shape", protocols, data_root=data_root, out=data_root / "run", resamples=100, **options)


def test_an_object_is_measured_and_scored_again(data_root: Path) -> None:
    scores = measure(data_root, MINE)
    assert scores.value("ideal:shape") == 1
    assert {(r.protocol, r.protocol_version) for r in scores} == {("my_conflict", 3)}
    described = scores.record.protocols["my_conflict"]
    assert described["version"] == 3
    assert "object" in described["origin"]
    before = (scores.out / "scores.json").read_bytes()
    registry.protocols.added.clear()  # as in another Python session
    with pytest.raises(UserError, match=r"(?s)my_conflict.*protocols=\[MY_PROTOCOL\]"):
        cb.score(scores.out)
    assert cb.score(scores.out, protocols=[MINE]).value("ideal:shape") == 1
    assert (scores.out / "scores.json").read_bytes() == before


def test_the_headline_is_known_without_the_protocol(data_root: Path) -> None:
    out = measure(data_root, MINE).out
    registry.protocols.added.clear()
    scores = cb.load(out)
    assert scores.value("ideal:shape") == 1
    assert "my_conflict · shape_bias · 4-way" in str(scores)


def test_objects_and_names_together(data_root: Path) -> None:
    scores = measure(data_root, ["cue_conflict", MINE])
    assert scores.protocols == ["cue_conflict", "my_conflict"]
    assert scores.record.protocols["cue_conflict"]["origin"] == "cuebench"


def test_a_file_is_found_again_from_any_folder(
    data_root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    scores = measure(data_root, "python:mine.py:MINE")
    assert scores.value("ideal:shape") == 1
    assert RunRecord.read(scores.out).protocols["conflict_in_a_file"]["origin"] == f"python:{tmp_path}/mine.py:MINE"
    command = [sys.executable, "-m", "cuebench", "score", str(scores.out), "--json"]
    environment = {**os.environ, "PYTHONPATH": str(Path(cb.__file__).parents[1])}
    environment.pop(registry.ALLOW_CODE)
    run = partial(subprocess.run, cwd="/", env=environment, capture_output=True, text=True, timeout=120)
    refused = run(command)
    assert refused.returncode == 2
    assert f"--allow-code {tmp_path}/mine.py" in json.loads(refused.stderr)["hint"]
    done = run([*command, "--allow-code", f"{tmp_path}/mine.py"])
    assert done.returncode == 0, done.stderr
    assert {row["protocol"] for row in json.loads(done.stdout)["scores"]} == {"conflict_in_a_file"}


def test_a_package_that_is_gone_is_named(data_root: Path) -> None:
    out = measure(data_root, MINE).out
    body = json.loads((out / "run.json").read_text())
    body["protocols"]["my_conflict"]["origin"] = "cuebench-conflict 1.2"
    body |= {"format": 2}
    del body["checksum"]
    (out / "run.json").write_text(json.dumps(body))
    registry.protocols.added.clear()
    with pytest.raises(UserError, match=r"(?s)came from cuebench-conflict 1\.2.*pip install cuebench-conflict$"):
        cb.score(out)


def test_an_object_cannot_take_the_name_of_another_protocol(data_root: Path) -> None:
    with pytest.raises(UserError, match="has one of that name"):
        measure(data_root, replace(PROTOCOL, version=2))


def test_fresh_deletes_what_a_protocol_of_a_session_wrote(data_root: Path) -> None:
    out = measure(data_root, MINE).out
    registry.protocols.added.clear()
    measure(data_root, "cue_conflict", fresh=True)
    assert not [path for path in out.rglob("*") if "my_conflict" in path.name]


def test_a_broken_plug_in_ends_nobodys_run(data_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ImportError("no module named numpy2")

    for parts in (registry.protocols, registry.makers):
        monkeypatch.setitem(vars(parts), "_plugins", {"broken": Part("broken", "cuebench-broken 0.1", broken)})
    assert measure(data_root, "cue_conflict").value("ideal:shape") == 1
    assert cb.score(data_root / "run").value("ideal:shape") == 1
    measure(data_root, "cue_conflict", fresh=True)
    with pytest.raises(UserError, match="needs its stimuli"):  # the makers are looked through for the hint
        cb.evaluate("ideal:shape", "imagenet_accuracy", out=data_root / "other")
    with pytest.raises(UserError, match=r"cuebench-broken 0\.1 cannot be loaded: ImportError"):
        measure(data_root, "broken")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"triplets.draw": "many"}, "draw='many': expected a whole number"),
        ({"triplets.drw": "3"}, "Did you mean 'draw'"),
        ({"triplets.baselines": -1}, "baselines=-1"),
    ],
)
def test_options_are_parsed_before_anything_is_spent(tmp_path: Path, settings: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        cb.evaluate("timm:not_loaded", "triplets", out=tmp_path, settings=settings)
    assert not (tmp_path / "run.json").exists()
