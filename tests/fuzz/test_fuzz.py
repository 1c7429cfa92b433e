"""Every reader under attack: by bytes, by structure, and with everything that ever failed (``corpus/``).

A short form of ``make fuzz SECONDS=3600``, which goes on for a stated time.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

HERE = Path(__file__).parent
REPACKED = ("archive", "run_json", "run_folder", "weights_torch")
"""Readers whose seeds are packed anew, or are of a format without a checksum."""
INPUTS = int(os.environ.get("FUZZ_INPUTS", "100"))
"""Inputs for each reader and way of making them."""


def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


for _name in ("checksums", "base", "readers_study", "readers_models", "readers_stored", "readers_tables"):
    _module(_name)
mutate, readers, inventory = _module("mutate"), _module("readers"), _module("inventory")
attack = _module("attack")
READERS: dict[str, Any] = readers.READERS
CORPUS = sorted(path for path in (HERE / "corpus").rglob("*") if path.is_file())


def inputs(name: str) -> int:
    """Return how many inputs a reader gets: scoring a whole run takes longer than reading a file."""
    slow = name in ("run_folder", "answers", "training_json", "board_archive") or name.startswith(("design", "study_"))
    return max(1, INPUTS // (10 if slow else 1 if READERS[name].kind in ("csv", "json", "parquet") else 2))


def check(name: str, data: bytes, folder: Path) -> None:
    """Fail with the traceback of the reader."""
    error = attack.survives(READERS[name], data, folder)
    if error is not None:
        raise AssertionError(f"{name} raised {type(error).__name__} for {data[:200]!r}") from error


def test_after_a_failure_all_readers_of_the_format_begin_anew(tmp_path: Path) -> None:
    path = tmp_path / "tally.csv"
    well, ill = {"cpu": 30.0, "inputs": 7, "failures": {}}, {"cpu": 20.0, "inputs": 5, "failures": {"why": "00"}}
    for name, report in [("study_toml", well), ("run_json", well), ("design_toml", ill), ("study_toml", well)]:
        attack.add_to_tally(path, name, report)
    tally = attack.read_tally(path)
    assert {name: row["clean_seconds"] for name, row in tally.items()} == {
        "design_toml": 0, "run_json": 30, "study_toml": 30,
    }  # fmt: skip
    assert tally["study_toml"]["cpu_seconds"] == 60
    assert [row["failures"] for row in tally.values()] == [1, 0, 0]
    queue = attack.Queue(["study_toml", "design_toml", "run_json"], tally, endless=True)
    queue.expect("run_json", attack.HOUR)
    assert queue.take() == "design_toml"
    queue.expect("study_toml", attack.HOUR)
    queue.put_back("design_toml", failed=True)
    assert [queue.take(), queue.take(), queue.take()] == ["design_toml", "study_toml", "run_json"]


def test_the_small_run_is_scored() -> None:
    """Attacks on a run whose answers are not found would never reach the scoring."""
    files = readers.run_files()
    assert f"{readers._CONFUSION}.parquet" in files
    assert [failure["observer"] for failure in json.loads(files["run.json"])["failures"]] == ["blue"]


@pytest.mark.parametrize("name", READERS)
def test_the_examples_are_read(name: str, tmp_path: Path) -> None:
    """The attack starts from files that a reader accepts: the first of them at least."""
    READERS[name].read(READERS[name].seeds[0], tmp_path)


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The functions of cuebench that are called when the examples of all readers are read."""
    places: set[str] = set()
    for name, reader in READERS.items():
        with inventory.Reached() as called:
            for data in reader.seeds:
                attack.survives(reader, data, tmp_path_factory.mktemp(name))
        places |= called.places
    return places


def test_every_reader_is_attacked(reached: set[str]) -> None:
    """Whoever writes a new reader adds it to the readers under attack, or says why it needs no attack."""
    found = inventory.found()
    missing = sorted(found - reached - set(inventory.NOT_ATTACKED))
    assert not missing, "neither attacked (readers*.py) nor excused (inventory.py)"
    assert not sorted(set(inventory.NOT_ATTACKED) - found), "excused, but no longer there"


def test_new_readers_are_found() -> None:
    """The search sees the usual ways to read, in functions, methods and nested functions."""
    source = """
import json
class A:
    def method(self): return json.loads(self.text)
def outer():
    def inner(path): return path.read_text()
    return Image.open(inner)
def other(): return json.dumps({})
"""
    assert inventory.readers_in(source) == {"A.method", "outer.inner", "outer"}


def test_the_page_says_what_is_not_attacked() -> None:
    page = " ".join((HERE.parents[1] / "docs" / "trust.md").read_text("utf-8").split())
    assert not [why for why in set(inventory.NOT_ATTACKED.values()) if why not in page]


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_nothing_that_failed_fails_again(path: Path, tmp_path: Path) -> None:
    check(path.parent.name, path.read_bytes(), tmp_path)


@pytest.mark.parametrize("name", READERS)
def test_changed_bytes(name: str, tmp_path: Path) -> None:
    generator, reader = random.Random(name), READERS[name]
    for _ in range(inputs(name)):
        data = mutate.mutated(generator.choice(reader.seeds), reader.kind, generator)
        check(name, reader.seal(data) if reader.seal is not None and generator.random() < 0.75 else data, tmp_path)


@pytest.mark.parametrize("name", [name for name, reader in READERS.items() if reader.kind in mutate.STRUCTURED])
def test_changed_structure(name: str, tmp_path: Path) -> None:
    reader = READERS[name]

    @settings(
        max_examples=inputs(name),
        deadline=None,
        database=None,
        derandomize="FUZZ_INPUTS" not in os.environ,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(reader.seeds), st.randoms(use_true_random=False))
    def run(seed: bytes, generator: random.Random) -> None:
        data = mutate.restructured(seed, reader.kind, generator)
        check(name, data if reader.seal is None else reader.seal(data), tmp_path)

    run()


@pytest.mark.parametrize("name", [name for name, reader in READERS.items() if reader.seal is not None])
def test_checksums_are_repaired(name: str, tmp_path: Path) -> None:
    """What a checksum would hide is reached: a file whose checksum was computed anew is read as before."""
    reader = READERS[name]
    for seed in reader.seeds:
        sealed = reader.seal(seed)
        if name not in REPACKED:  # packed anew, or one of a format without a checksum
            assert sealed == seed
    reader.read(reader.seal(reader.seeds[0]), tmp_path)
