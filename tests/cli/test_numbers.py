"""Numbers on the command line that cannot be: refused at once, with their name, before anything is read or written."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuebench.cli import invoke

WORDS = {"cache-size": "size of the cache",
         "studies": "studies", "person-sd": "person_sd", "image-sd": "image_sd"}  # fmt: skip
"""Flag → how the message names it, where it has other words."""


@pytest.mark.parametrize("arguments", [
    ["compare", "runs/none", "--seed=-1"],
    ["correlate", "runs/none", "--corrected", "--seed=-1"],
    ["power", "runs/none", "--difference=nan"],
    ["power", "runs/none", "--difference=-1"],
    ["power", "runs/none", "--difference=inf"],
    ["power", "runs/none", "--comparisons=99999999999999999999999"],
    ["calibrate", "--studies=99999999999999999999999"],
    ["calibrate", "--seed=-1"],
    ["calibrate", "--workers=-1"],
    ["cue", "greyscale", "a.png", "b.png", "--workers=-1"],
    ["cue", "greyscale", "a.png", "b.png", "--seed=-1"],
    ["make", "cue_conflict", "--out", "x", "--count=99999999999"],
    ["run", "-o", "ideal:shape", "-p", "cue_conflict", "--out", "x", "--cache", "c", "--cache-size=nan"],
    ["run", "-o", "ideal:shape", "-p", "cue_conflict", "--out", "x", "--cache", "c", "--cache-size=inf", "--plan"],
    ["run", "-o", "ideal:shape", "-p", "cue_conflict", "--out", "x", "--price=inf", "--plan"],
    ["run", "-o", "ideal:shape", "-p", "cue_conflict", "--out", "x", "--nodes=99999999999999999999", "--plan"],
    ["study", "power", "--width=0.1", "--images=-1"],
    ["study", "power", "--width=0.1", "--trials=99999999999999999999999"],
    ["study", "power", "--width=0.1", "--studies=99999999999"],
    ["study", "power", "--width=0.1", "--person-sd=nan"],
    ["study", "power", "--width=0.1", "--image-sd=1e300"],
    ["study", "power", "--width=0.1", "--seed=-1"],
    ["study", "rehearse", "none", "--participants=-1"],
    ["study", "rehearse", "none", "--seed=-1"],
    ["study", "new", "study", "--design", "cue_conflict", "--participants=-1"],
    ["study", "new", "study", "--design", "cue_conflict", "--seed=-1"],
    ["board", "build", "runs/none", "--out", "site", "--workers=-1"],
], ids=" ".join)  # fmt: skip
def test_numbers_that_cannot_be_are_refused_before_anything_is_done(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke(arguments) == 2
    name = next(word for word in reversed(arguments) if "=" in word).removeprefix("--").partition("=")[0]
    assert WORDS.get(name, name) in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
