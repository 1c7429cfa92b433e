"""What observers may offer: defaults for all of it, and an object of the user's own completed."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuebench as cb
from cuebench.labels import LabelSpace
from cuebench.observers.base import REQUIRED, Batch, ObserverBase, complete, is_observer, missing_attributes
from cuebench.types import Stimulus

SOURCE = Path(cb.__file__).parent


class Plain:
    """The least that an observer is."""

    name, kind, preprocess, fingerprint = "plain", "model", None, "f"
    labels = LabelSpace("two", ("a", "b"))
    capabilities = frozenset({"logits"})

    def respond(self, batch: Batch, needs: Sequence[str]) -> dict[str, Any]:
        return {"logits": np.zeros((len(batch), 2), np.float32)}


class Offering(Plain):
    """Offers everything, and records what it was asked."""

    notes, precision, memory, device, loaded_by = ["a note"], "int8", 7, "cuda:1", "mine/2"

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def release(self) -> None:
        self.calls.append("release")

    def check_shown(self, stimuli: Sequence[Stimulus]) -> None:
        self.calls.append(("check_shown", len(stimuli)))

    def stimulus_names(self) -> list[str]:
        return ["one.png"]

    def among(self, targets: Sequence[str], members: Any = None, space: str = "") -> Plain:
        self.calls.append(("among", tuple(targets)))
        return self

    def layers(self) -> list[str]:
        return ["conv"]

    def outputs(self) -> list[str]:
        return ["pool"]

    def reading(self, names: Sequence[str]) -> Plain:
        return Plain()


def test_a_plain_observer_gets_every_default() -> None:
    observer = complete(Plain())
    assert isinstance(observer, ObserverBase)
    assert (observer.name, observer.kind, observer.fingerprint, observer.preprocess) == ("plain", "model", "f", None)
    assert (observer.notes, observer.precision, observer.memory, observer.loaded_by) == ((), "", 0, "")
    assert (observer.stimulus_names(), observer.layers(), observer.outputs()) == ([], [], [])
    observer.release()
    observer.check_shown([Stimulus("x")])
    assert observer.among(("a", "b")) is observer
    assert observer.respond(Batch([Stimulus("x")]), ["logits"])["logits"].shape == (1, 2)
    with pytest.raises(cb.UserError, match="plain has no layers that can be named"):
        observer.reading(["conv"])


def test_what_an_observer_offers_is_used() -> None:
    own = Offering()
    observer = complete(own)  # type: ignore[arg-type]
    assert (observer.notes, observer.precision, observer.memory) == (("a note",), "int8", 7)
    assert (observer.device, observer.loaded_by) == ("cuda:1", "mine/2")
    observer.release()
    observer.check_shown([Stimulus("x")])
    assert observer.among(("a",)) is observer
    assert own.calls == ["release", ("check_shown", 1), ("among", ("a",))]
    assert (observer.stimulus_names(), observer.layers(), observer.outputs()) == (["one.png"], ["conv"], ["pool"])
    assert isinstance(observer.reading(["conv"]), ObserverBase)


def test_memory_counts_only_where_it_can_be_released() -> None:
    stays = Plain()
    stays.memory = 100  # type: ignore[attr-defined]
    assert complete(stays).memory == 0  # type: ignore[arg-type]


def test_an_observer_that_inherits_is_left_as_it_is() -> None:
    observer = cb.wrap(lambda x: x, preprocess=cb.Preprocess(8), labels=["a"], name="w", fingerprint="1")
    assert isinstance(observer, ObserverBase)
    assert complete(observer) is observer


def test_what_is_missing_is_named_without_hashing_weights() -> None:
    class Hashing(Plain):
        @property
        def fingerprint(self) -> str:  # type: ignore[override]
            raise AssertionError("asking for the fingerprint may hash gigabytes")

    assert is_observer(Hashing())
    assert not is_observer(Hashing)
    assert missing_attributes({}) == [name for name in REQUIRED if name != "fingerprint"]


@pytest.mark.parametrize("folder", ["runs", "responses"])
def test_nothing_is_looked_up_on_observers_by_name(folder: str) -> None:
    """The contract is typed: ``getattr`` on an observer belongs into ``observers/base.py``."""
    for path in (SOURCE / folder).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr"):
                assert "observer" not in ast.unparse(node.args[0]), f"{path.name}: {ast.unparse(node)}"
