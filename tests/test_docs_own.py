"""The commands of docs/own_data.md and docs/cli.md are run as a reader would run them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cuebench.cli import invoke

DOCS = Path(__file__).parents[1] / "docs"


def commands(page: str) -> list[list[str]]:
    text = (DOCS / page).read_text("utf-8")
    blocks = re.findall(r"^```bash\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [shlex.split(line) for block in blocks for line in block.strip().splitlines()]


def follow(page: str) -> None:
    found = commands(page)
    assert found
    for program, *words in found:
        assert program == "cuebench"
        quick = ["--resamples", "100"] if words[0] == "run" and "--resamples" not in words else []
        assert invoke([*words, *quick]) == 0, shlex.join(words)


def picture(path: Path, seed: int, mask: bool = False, alpha: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:96, :96] - 48
    inside = (y**2 / 1600 + x**2 / 1200) < 1
    pixels = np.where(inside[..., None], rng.integers(60, 255, (96, 96, 3)), 20).astype(np.uint8)
    Image.fromarray(np.dstack([pixels, (inside * 255).astype(np.uint8)]) if alpha else pixels).save(path)
    if mask:
        Image.fromarray((inside * 255).astype(np.uint8)).save(path.with_name(f"{path.stem}_mask.png"))


@pytest.mark.slow
@pytest.mark.torch
def test_own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("efficientnet_lite_pytorch")
    monkeypatch.chdir(tmp_path)
    picture(Path("shapes/cat/photo.jpg"), 0, mask=True)
    picture(Path("shapes/mug/cut_out.png"), 1, alpha=True)
    picture(Path("textures/brick/wall.jpg"), 2)
    picture(Path("textures/zebra/skin.jpg"), 3)
    picture(Path("photos/zebra/one.png"), 4, mask=True)
    picture(Path("photos/teapot/two.png"), 5, alpha=True)
    follow("own_data.md")
    shown = capsys.readouterr().out
    assert "masks: 1 from mask files beside the images" in shown
    assert "from alpha channels" in shown
    assert "from alpha channels" in Path("refined/refined_bias/masks.csv").read_text()


@pytest.mark.slow
def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (toml,) = re.findall(r"^```toml\n(.*?)^```", (DOCS / "cli.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    Path("run.toml").write_text(toml, "utf-8")
    found = commands("cli.md")
    for _, *words in found:
        assert invoke(words) == 0, shlex.join(words)
    assert Path("runs/file/scores.json").read_bytes() == Path("runs/file-again/scores.json").read_bytes()
