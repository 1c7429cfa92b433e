"""Arguments of another type: every public function says what it wants, without a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cuebench as cb
from cuebench.errors import UserError, did_you_mean

RUN: dict[str, Any] = {"observers": "ideal:shape", "protocols": "cue_conflict", "data_root": "data", "out": "run"}
WRONG: dict[str, tuple[Any, ...]] = {
    "settings": (["x=1"], "x=1", 3),
    "data_root": (3, ["a"]),
    "out": (3, None),
    "cache": (3, ["x"]),
    "on_event": (3, "x"),
    "shard": (3, "1/2", (1,), ("a", "b"), (1, 2, 3), (1, 10**9)),
    "responses": (3,),
}
CALLS: dict[str, Callable[[], object]] = {
    "load": lambda: cb.load(3),  # type: ignore[arg-type]
    "load a list": lambda: cb.load(["run"]),  # type: ignore[arg-type]
    "score": lambda: cb.score(None),  # type: ignore[arg-type]
    "report": lambda: cb.report(3, "report.html"),  # type: ignore[arg-type]
    "merge": lambda: cb.merge([3, 4], "merged"),  # type: ignore[list-item]
    "board": lambda: cb.board(3, "site"),  # type: ignore[arg-type]
    "allow_code": lambda: cb.allow_code(3),  # type: ignore[arg-type]
    "texture_of": lambda: cb.texture_of("a.png", 3, "run"),  # type: ignore[arg-type]
    "nodes": lambda: cb.estimate_cost(**RUN, nodes="x"),  # type: ignore[arg-type]
    "price": lambda: cb.estimate_cost(**RUN, price="x"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in WRONG.items() for v in values])
def test_arguments_of_evaluate(name: str, value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError):
        cb.evaluate(**{**RUN, name: value})


@pytest.mark.parametrize("name", CALLS)
def test_arguments_of_other_functions(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError):
        CALLS[name]()


def test_a_name_that_is_no_text_is_an_unknown_name() -> None:
    assert "unknown observer 3" in did_you_mean("observer", 3, ["net"]).message  # type: ignore[arg-type]
