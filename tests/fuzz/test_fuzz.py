"""Every reader under attack: by bytes, by structure, and with everything that ever failed (``corpus/``).

A short form of ``make fuzz SECONDS=3600``, which goes on for a stated time.
"""

from __future__ import annotations

import csv
import importlib.util
import io
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


mutate, readers = _module("mutate"), _module("readers")
attack = _module("attack")
READERS: dict[str, Any] = readers.READERS
CORPUS = sorted(path for path in (HERE / "corpus").rglob("*") if path.is_file())


def check(name: str, data: bytes, folder: Path) -> None:
    """Fail with the traceback of the reader."""
    error = attack.survives(READERS[name], data, folder)
    if error is not None:
        raise AssertionError(f"{name} raised {type(error).__name__} for {data[:200]!r}") from error


@pytest.mark.parametrize("name", READERS)
def test_the_examples_are_read(name: str, tmp_path: Path) -> None:
    """The attack starts from files that a reader accepts: the first of them at least."""
    if name == "run_json":
        pytest.skip("a record carries a checksum of its own")
    READERS[name].read(READERS[name].seeds[0], tmp_path)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_nothing_that_failed_fails_again(path: Path, tmp_path: Path) -> None:
    check(path.parent.name, path.read_bytes(), tmp_path)


@pytest.mark.parametrize("name", READERS)
def test_changed_bytes(name: str, tmp_path: Path) -> None:
    generator, reader = random.Random(name), READERS[name]
    for _ in range(INPUTS):
        check(name, mutate.mutated(generator.choice(reader.seeds), reader.kind, generator), tmp_path)


# ------------------------------------------------------------------------------------------------------- by structure

_WORD = st.one_of(
    st.sampled_from(
        ["", "cat", "Cat", "dog", "a", "nan", "inf", "-1", "0", "1e999", "../x", "/x", "\x1b[2J", "na", "1_0"]
    ),
    st.text(max_size=8),
)
_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _WORD,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORD, inner, max_size=3),
    max_leaves=8,
)


def _columns(seeds: tuple[bytes, ...]) -> list[str]:
    names = [cell for seed in seeds for cell in next(csv.reader(io.StringIO(seed.decode())))]
    return list(dict.fromkeys([*names, "extra", "logit_00", "Cat"]))


@st.composite
def tables(draw: st.DrawFn, seeds: tuple[bytes, ...]) -> bytes:
    """Tables with the columns that a reader knows: some left out, some twice, some of others; any cells."""
    header = draw(st.lists(st.sampled_from(_columns(seeds)), min_size=1, max_size=8))
    rows = draw(st.lists(st.lists(_WORD, min_size=len(header), max_size=len(header) + 1), max_size=4))
    text = io.StringIO()
    writer = csv.writer(
        text, delimiter=draw(st.sampled_from(",,,,;\t")), lineterminator=draw(st.sampled_from(["\n", "\r\n"]))
    )
    writer.writerows([header, *rows])
    return text.getvalue().encode(draw(st.sampled_from(["utf-8", "utf-8-sig", "latin-1", "utf-16"])), "replace")


def _paths(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(deeper for key, value in inner for deeper in _paths(value, (*path, key)))]


def _replaced(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = dict(data) if isinstance(data, dict) else list(data)
    copy[path[0]] = _replaced(data[path[0]], path[1:], value)
    return copy


@st.composite
def documents(draw: st.DrawFn, seeds: tuple[bytes, ...]) -> bytes:
    """Valid JSON of a reader with one to three values replaced by anything, or a key written twice."""
    data = json.loads(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(1, 3))):
        data = _replaced(data, draw(st.sampled_from(_paths(data))), draw(_VALUE))
    text = json.dumps(data)
    if draw(st.booleans()) and text.startswith("{") and len(text) > 2:
        text = text[:-1] + "," + text[1:]  # every key twice
    return text.encode("utf-8", "replace")


@st.composite
def words(draw: st.DrawFn, seeds: tuple[bytes, ...]) -> bytes:
    """Texts of a command line: parts of valid ones, and anything between them."""
    parts = [part for seed in seeds for part in seed.decode().replace("?", "&?&").replace("=", "&=&").split("&")]
    chosen = draw(st.lists(st.sampled_from([*parts, "?", "&", "=", ";", ":"]) | _WORD, max_size=12))
    return "".join(chosen).encode("utf-8", "replace")


_STRATEGIES = {"csv": tables, "json": documents, "text": words}


@pytest.mark.parametrize("name", [name for name, reader in READERS.items() if reader.kind in _STRATEGIES])
def test_changed_structure(name: str, tmp_path: Path) -> None:
    reader = READERS[name]

    @settings(
        max_examples=INPUTS,
        deadline=None,
        database=None,
        derandomize="FUZZ_INPUTS" not in os.environ,
        suppress_health_check=list(HealthCheck),
    )
    @given(_STRATEGIES[reader.kind](reader.seeds))
    def run(data: bytes) -> None:
        check(name, data, tmp_path)

    run()
