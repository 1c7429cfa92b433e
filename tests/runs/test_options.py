"""Options of a run: keyword arguments that an editor completes, and flags that became options of a protocol."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path

import pytest

import cuebench as cb
from cuebench.errors import UserError
from cuebench.runs.record import RunOptions


def test_every_option_is_a_keyword_of_evaluate() -> None:
    parameters = inspect.signature(cb.evaluate).parameters
    assert all(p.kind is not inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    for option in fields(RunOptions):
        assert parameters[option.name].kind is inspect.Parameter.KEYWORD_ONLY
        if option.name != "settings":
            assert parameters[option.name].default == option.default
    with pytest.raises(TypeError, match="limits"):
        cb.evaluate("ideal:shape", "cue_conflict", out="x", limits=3)  # type: ignore[call-arg]


def test_two_observers_of_one_name(data_root: Path, tmp_path: Path) -> None:
    def measure(observers: list) -> None:
        cb.evaluate(observers, "cue_conflict", data_root=data_root, out=tmp_path / "run", resamples=100)

    recordings = []
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "one.csv").write_text("image,decision\ncat1-dog2.png,cat\n")
        recordings.append(f"recorded:{tmp_path / name / 'one.csv'}")
    with pytest.raises(UserError, match="two observers are called 'one'") as caught:
        measure(recordings)
    assert caught.value.hint == f"name one of them: {recordings[1]}?name=NAME"
    measure([recordings[0], f"{recordings[1]}?name=other"])
    models = [cb.wrap(lambda x: x, preprocess=cb.Preprocess(32), labels=["cat"], name="m", fingerprint=f) for f in "12"]
    with pytest.raises(UserError, match=r"(?s)two observers are called 'm'.*name="):
        measure(models)
    with pytest.raises(UserError, match="name it once"):
        measure(["ideal:shape", "ideal:shape"])
