"""Every registered adapter, reader and maker keeps its contract, and the checks find what one does wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cuebench.errors import UserError
from cuebench.observers.base import Adapter
from cuebench.registry import Part, adapters, makers, readers
from cuebench.stimuli.makers.base import Maker
from cuebench.stimuli.readers.base import Reader
from cuebench.testing import CheckFailed, check_adapter, check_maker, check_reader, check_stimuli
from cuebench.types import Stimulus, StimulusSet

QUICK = {
    "cue_conflict": {"size": 32},
    "novel_objects": {"shapes": "dax,fep", "textures": "fur,woven"},
    "textures": {"size": 32},
    "toy_world": {"size": 32, "scene_size": 32},
}
"""Makers that draw everything themselves → options that make them quick. The others are run by their own tests."""


@pytest.mark.parametrize("name", list(adapters))
def test_adapter(name):
    check_adapter(name)


@pytest.mark.parametrize("name", list(readers))
def test_reader(name):
    check_reader(name)


@pytest.mark.parametrize("name", [name for name, maker in makers.usable() if "source" not in maker.options])
def test_maker(name):
    check_maker(name, **QUICK.get(name, {}))


# ------------------------------------------------------------------------------------- what the checks must find


ADAPTER = Adapter(load=lambda spec, options: [], form="mine:NAME", examples=("mine:x",))


@pytest.mark.parametrize(
    ("adapter", "message"),
    [
        (replace(ADAPTER, form="NAME"), "does not begin with a name"),
        (replace(ADAPTER, version=0), "has version 0"),
        (replace(ADAPTER, extra="torch"), "and its packages go together"),
        (replace(ADAPTER, examples=("timm:resnet50",)), "'timm:resnet50' is not an example of 'mine'"),
        (len, "expected an Adapter"),
    ],
)
def test_a_broken_adapter_is_found_out(adapter, message):
    check_adapter(ADAPTER)
    with pytest.raises(CheckFailed, match=message):
        check_adapter(adapter)


def test_the_form_of_an_adapter_begins_with_its_public_name(monkeypatch):
    monkeypatch.setitem(adapters.added, "other", Part("other", "a test", lambda: ADAPTER))
    with pytest.raises(CheckFailed, match="of 'other' does not begin with its name"):
        check_adapter("other")


def listed(folder: Path, **options) -> StimulusSet:
    """Read every picture of a folder."""
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}", "expected: *.png")
    return StimulusSet(
        "mine", tuple(Stimulus(p.stem, p.name, label="x") for p in sorted(folder.glob("*.png"))), str(folder)
    )


def write(folder: Path, count: int, seed: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    for i in range(count):
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(folder / f"{i}.png")


READER = Reader("mine", "*.png", listed)
CALLS: list[int] = []


def silent(folder, **options):
    return listed(folder) if folder.is_dir() else StimulusSet("mine", ())


def vague(folder, **options):
    if not folder.is_dir():
        raise UserError("no")
    return listed(folder)


def forgetful(folder, **options):
    stimuli = listed(folder)
    CALLS.append(1)
    return replace(stimuli, stimuli=tuple(replace(s, label=str(len(CALLS))) for s in stimuli))


def test_a_good_reader_and_maker_pass(tmp_path):
    write(tmp_path, 3)
    check_reader(READER, tmp_path)
    check_maker(MAKER, count=3)


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        (replace(READER, layout=""), "does not show the layout"),
        (replace(READER, read=silent), "expected an error for a folder that is not there, got 0 stimuli"),
        (replace(READER, read=vague), "expected an error with the folder or the layout, got: no"),
        (replace(READER, read=forgetful), "expected the same set twice"),
        (listed, "expected a Reader, got a function"),
    ],
)
def test_a_broken_reader_is_found_out(reader, message, tmp_path):
    write(tmp_path, 3)
    with pytest.raises(CheckFailed, match=message):
        check_reader(reader, tmp_path)


def made(out, *, seed=0, count=0, progress=None):
    write(out / "mine", count, seed)
    return listed(out / "mine")


def never_the_same(out, *, seed=0, count=0, progress=None):
    CALLS.append(1)
    return made(out, seed=len(CALLS), count=count)


def more_each_time(out, *, seed=0, count=0, progress=None):
    CALLS.append(1)
    return made(out, count=count + len(CALLS))


def damaged(out, *, seed=0, count=0, progress=None):
    stimuli = made(out, count=count)
    (out / "mine" / "0.png").write_bytes(b"not a picture")
    return stimuli


MAKER = Maker("my_maker", "pictures of noise", made)


@pytest.mark.parametrize(
    ("maker", "message"),
    [
        (replace(MAKER, about=""), "does not say what it makes"),
        (replace(MAKER, make=never_the_same), "expected the same bytes twice"),
        (replace(MAKER, make=more_each_time), "expected the same files twice"),
        (replace(MAKER, make=damaged), "'0' cannot be shown"),
        (made, "expected a Maker, got a function"),
    ],
)
def test_a_broken_maker_is_found_out(maker, message):
    with pytest.raises(CheckFailed, match=message):
        check_maker(maker, count=3)


def test_a_set_of_stimuli_can_be_checked_alone(tmp_path):
    write(tmp_path, 2)
    check_stimuli(listed(tmp_path))
    with pytest.raises(CheckFailed, match="stimulus set 'mine' has no stimuli"):
        check_stimuli(StimulusSet("mine", ()))
