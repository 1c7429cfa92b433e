"""Arguments of another type: every public function says what it wants, without a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
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
    "allow_code of no file": lambda: cb.allow_code("nix.py"),
    "allow_code of a folder": lambda: cb.allow_code("."),
    "report images text": lambda: cb.report("run", "report.html", images="5"),  # type: ignore[arg-type]
    "report images part": lambda: cb.report("run", "report.html", images=1.5),  # type: ignore[arg-type]
    "report title": lambda: cb.report("run", "report.html", title=3),  # type: ignore[arg-type]
    "board workers": lambda: cb.board("run", "site", workers="2"),  # type: ignore[arg-type]
    "board workers below 0": lambda: cb.board("run", "site", workers=-1),
    "Preprocess crop": lambda: cb.Preprocess(size=64, crop="foo"),  # type: ignore[arg-type]
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
    with pytest.raises(UserError) as caught:
        CALLS[name]()
    word = {"report images": "images", "board workers": "workers", "Preprocess crop": "crop", "allow_code of": "file"}
    assert next((w for start, w in word.items() if name.startswith(start)), "") in caught.value.message


def test_a_name_that_is_no_text_is_an_unknown_name() -> None:
    assert "unknown observer 3" in did_you_mean("observer", 3, ["net"]).message  # type: ignore[arg-type]


def answers(images: Any) -> Any:
    return images.mean((2, 3))


WRAP: dict[str, tuple[Any, ...]] = {
    "name": (3, "", " ", "a\udcff"),
    "fingerprint": (3,),
    "window": ("2", 1.5),
    "preprocess": (str, {"size": 224}, "imagenet", 224),
}


@pytest.mark.parametrize(("argument", "value"), [(n, v) for n, values in WRAP.items() for v in values])
def test_arguments_of_wrap(argument: str, value: Any) -> None:
    with pytest.raises(UserError, match=argument):
        cb.wrap(answers, **{"preprocess": cb.Preprocess(8), "labels": ["a", "b", "c"], argument: value})


CALLBACK = {"every": ("2", 1.5, 0), "limit": (-1, "3"), "seed": (-1,), "batch_size": (0,), "preprocess": (str, None),
            "log": ("x",)}  # fmt: skip


@pytest.mark.parametrize(("argument", "value"), [(n, v) for n, values in CALLBACK.items() for v in values])
def test_arguments_of_the_callback(argument: str, value: Any) -> None:
    from cuebench.callbacks import BiasOverTraining

    with pytest.raises(UserError, match=argument):
        BiasOverTraining(**{"preprocess": cb.Preprocess(8), argument: value})


@pytest.mark.parametrize("given", [str, 224, "imagenet", SimpleNamespace(transforms=[object()])])
def test_what_is_no_preprocessing_says_what_is_taken(given: Any) -> None:
    with pytest.raises(UserError, match="no Preprocess") as caught:
        cb.wrap(answers, preprocess=given, labels=["a", "b", "c"])
    assert "transform of torchvision, or a function that takes a PIL image" in caught.value.hint
