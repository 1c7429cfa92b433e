"""The tables that README and pages show of cheap runs are what these commands print now."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cuebench.cli import invoke
from printed_tables import differences

ROOT = Path(__file__).parents[1]
NETWORKS = ("lite:", "onnx:", "checkpoint:", "timm:", "torchvision:", "transformers:")
"""Observers that take minutes: their rows are not run again here."""


def shown(page: str, start: str) -> tuple[list[str], str]:
    """Return the words of the command of a block that begins so, and what the page shows below it."""
    text = (ROOT / page).read_text("utf-8")
    (block,) = [b for b in re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.M) if b.startswith(f"$ {start}")]
    command, _, table = block.replace("\\\n", " ").partition("\n")
    return shlex.split(command.removeprefix("$ cuebench")), table


def without_networks(words: list[str]) -> list[str]:
    """Return the command with recorded and ideal observers only."""
    networks = {i for i, word in enumerate(words) if word.startswith(NETWORKS)}
    return [word for i, word in enumerate(words) if not {i, i + 1} & networks]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "start", "protocol"),
    [
        ("README.md", "cuebench run -p cue_conflict", "cue_conflict"),
        ("docs/human_alignment.md", "cuebench run -p human_alignment -o recorded", "human_alignment"),
    ],
)
def test_tables_of_recorded_observers(
    page: str, start: str, protocol: str, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")  # wide enough for every column of the pages
    words, table = shown(page, start)
    words = [word.replace("$D", str(shared)) for word in without_networks(words)]
    while words.count("-p") > 1:  # photographs are for networks only
        other = next(i for i, word in enumerate(words) if word == "-p" and words[i + 1] != protocol)
        del words[other : other + 2]
    capsys.readouterr()
    assert invoke(words) == 0
    found = differences(table.partition("\n\n")[0], capsys.readouterr().out, leave_out=NETWORKS)
    assert not found, "\n".join(found)


def test_a_difference_is_found() -> None:
    page = "observer  bias  n\na  0.281 [0.19, 0.40]    160  0.1\nlite:b    0.265 [0.18, 0.38]  155  0.2\n…\n"
    now = "a      0.281 [0.19, 0.40]  160    0.1\nlite:b  0.9 [0.18, 0.38]  155  0.2\n"
    assert not differences(page, now, leave_out=["lite:"])
    (found,) = differences(page, now)
    assert "now: lite:b  0.9" in found
    (found,) = differences(page.replace("0.40", "0.41"), now, leave_out=["lite:"])
    assert "0.41" in found
    with pytest.raises(AssertionError, match="no table"):
        differences("nothing", now)
