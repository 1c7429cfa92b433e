"""What protocols of one's own leave unsaid is in the key: the hashes of files, the code of summaries."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import cuebench as cb
from cuebench import registry
from cuebench.files import hash_file
from cuebench.protocols.corruption_robustness import PROTOCOL as BUILT_IN
from cuebench.python_files import import_file
from cuebench.registry import protocols
from cuebench.runs.summary_code import summary_code
from cuebench.stimuli.identity import identified
from cuebench.types import Stimulus, StimulusSet

COUNT = 6
OVER = '''
import numpy as np
from cuebench.cues.base import CueInfo
CUE = CueInfo(kind="mixing", reference="mine")
@CUE
def over(image, *, other: object = None):
    """Show another picture.

    Parameters
    ----------
    image : array
        Picture.
    other : array
        Picture that is shown.

    Returns
    -------
    array
    """
    return np.asarray(other)
'''
SUMMARY = """
import kept_helper
def reduce(stimuli, labels):
    return lambda columns, shown: {"logits": kept_helper.change(columns["logits"])}
"""


@pytest.fixture(autouse=True)
def _forget_added_parts() -> Iterator[None]:
    yield
    registry.protocols.added.clear()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "img").mkdir()
    for number in range(COUNT):
        paint(tmp_path / f"img/{number}.png", 40 + number)
        paint(tmp_path / f"img/m {number}.png", 40 + number)
    return tmp_path / "img"


def paint(path: Path, grey: int) -> None:
    Image.fromarray(np.full((32, 32, 3), grey, np.uint8)).save(path)


def mean(pixels: Any) -> Any:
    return np.asarray(pixels).mean((2, 3)) * np.array([255, 128, 64])


def asked(name: str, stimuli: Callable[[], StimulusSet], out: Path, **changes: Any) -> Any:
    """Return the first logit that is stored of each stimulus after a run of a protocol of one's own."""
    preprocess = cb.Preprocess(size=32, resize=32, mean=(0, 0, 0), std=(1, 1, 1))
    observer = cb.wrap(mean, preprocess=preprocess, labels=["cat", "dog", "owl"], name="mean", fingerprint="1")
    protocol = replace(protocols.get("imagenet_accuracy"), name=name, read=lambda root: stimuli(), **changes)
    registry.protocols.added.clear()
    scores = cb.evaluate(observer, protocol, data_root=out, out=out / "run", workers=0, resamples=100)
    (record,) = scores.record.jobs
    assert not record.asked_again.get("set_aside")
    files = (out / "run/responses" / record.folder).glob("*.parquet")
    file = max(files, key=lambda f: f.stat().st_mtime_ns)  # other stimuli are another file of the same folder
    return np.array(pq.read_table(file).column("logits").to_pylist())[:, 0]


def test_a_file_without_a_hash_that_is_replaced(folder: Path, tmp_path: Path) -> None:
    def stimuli() -> StimulusSet:
        some = tuple(Stimulus(f"s{n}", path=f"{n}.png", label="cat") for n in range(COUNT))
        return StimulusSet("bare", some, str(folder))

    np.testing.assert_allclose(asked("bare", stimuli, tmp_path), np.arange(40, 40 + COUNT), atol=1e-3)
    paint(folder / "4.png", 200)
    assert asked("bare", stimuli, tmp_path)[4] == pytest.approx(200)


def test_a_second_image_without_a_hash_that_is_replaced(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "over.py").write_text(OVER)
    monkeypatch.setenv(registry.ALLOW_CODE, str(tmp_path / "over.py"))
    facts = {n: hash_file(folder / f"{n}.png").sha256 for n in range(COUNT)}

    def stimuli() -> StimulusSet:
        recipe = f"python:{tmp_path}/over.py:over?other=file:m+"
        some = (Stimulus(f"s{n}", f"{n}.png", sha, label="cat", recipe=f"{recipe}{n}.png") for n, sha in facts.items())
        return StimulusSet("second", tuple(some), str(folder))

    assert asked("second", stimuli, tmp_path)[4] == pytest.approx(44)
    paint(folder / "m 4.png", 200)
    assert asked("second", stimuli, tmp_path)[4] == pytest.approx(200)


def test_only_what_is_missing_is_added(folder: Path) -> None:
    sha, other = (hash_file(folder / name).sha256 for name in ("0.png", "m 0.png"))
    known = Stimulus("known", "1.png", "ab" * 32, recipe=f"x?a=file:1.png@{sha[:12]};grey", mask="a.png")
    known = replace(known, mask_sha256="cd" * 32)
    bare = Stimulus("bare", "0.png", recipe="x?a=file:0.png&b=1;y?c=black:m%200.png", mask="m 0.png")
    away = Stimulus("away", "away.png", recipe="x?a=file:../0.png", mask="/etc/hostname")
    some = StimulusSet("some", (known, bare, away, Stimulus("drawn", recipe="texture?name=striped")), str(folder))
    added = identified(some)
    assert added.stimuli[0] is known
    assert (added["bare"].sha256, added["bare"].mask_sha256) == (sha, other)
    assert added["bare"].recipe == f"x?a=file:0.png@{sha[:16]}&b=1;y?c=black:m%200.png@{other[:16]}"
    assert added.stimuli[2:] == some.stimuli[2:]
    assert identified(added) is added


def test_a_helper_of_a_summary_that_changes(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "kept_helper.py").write_text("def change(a):\n    return a\n")
    (tmp_path / "summary.py").write_text(SUMMARY)

    def stimuli() -> StimulusSet:
        facts = {n: hash_file(folder / f"{n}.png").sha256 for n in range(COUNT)}
        some = (Stimulus(f"s{n}", f"{n}.png", sha, label="cat") for n, sha in facts.items())
        return StimulusSet("some", tuple(some), str(folder))

    def stored() -> Any:
        monkeypatch.delitem(sys.modules, "kept_helper", raising=False)
        module = import_file(tmp_path / "summary.py")
        return asked("reduced", stimuli, tmp_path, reduce=module.reduce)

    assert stored()[4] == pytest.approx(44)
    (tmp_path / "kept_helper.py").write_text("def change(a):\n    return a * (1 + (abs(a[:, :1] - 44) < 0.1))\n")
    assert stored()[4] == pytest.approx(88)
    monkeypatch.delitem(sys.modules, "kept_helper")


def test_the_code_of_summaries() -> None:
    assert BUILT_IN.reduce is not None
    one = summary_code(BUILT_IN.reduce)
    assert one == summary_code(BUILT_IN.reduce)
    assert len({one, *(summary_code(partial(BUILT_IN.reduce, keep=n)) for n in (1, 2))}) == 3
    assert summary_code(partial(BUILT_IN.reduce, keep=1)) == summary_code(partial(BUILT_IN.reduce, keep=1))

    def of_a_notebook(text: str) -> str:
        space: dict[str, Any] = {"__name__": "__main__"}
        exec(text, space)
        return summary_code(space["reduce"])

    first, same, other = (of_a_notebook(f"def reduce(a, b):\n    return {k}") for k in (1, 1, 2))
    assert first == same != other
    unreadable = [partial(BUILT_IN.reduce, keep=(n for n in range(3))) for _ in range(2)]
    assert len(set(map(summary_code, unreadable))) == 2, "what cannot be read is never found again"
