from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cuebench.errors import UserError
from cuebench.responses import store
from cuebench.responses.store import Key, Memory, ShardFolder, batches, gather
from cuebench.types import Stimulus

STIMULI = [Stimulus(f"s{i}", sha256=f"{i:064d}") for i in range(10)]


@pytest.fixture
def shards(tmp_path: Path) -> ShardFolder:
    """Ten stimuli in batches of four; the third cannot be shown, the words grow longer."""
    made = ShardFolder(tmp_path, "o", Key("w", None, "", "a/1", "", ("logits",)))
    for start, batch in batches(STIMULI, 4):
        shown = np.array([i for i in range(len(batch)) if start + i != 2], np.int32)
        columns = {
            "stimulus": shown,
            "logits": (start + shown)[:, None] + np.zeros((1, 3), np.float32),
            "decisions": np.array(["x" * (start + i + 1) for i in shown]),
        }
        made.write(batch, columns, {2: "broken"} if start == 0 else {})
    return made


@pytest.mark.parametrize("in_memory", [0, 10**9])
def test_columns_of_all_shards_in_order(shards: ShardFolder, monkeypatch: pytest.MonkeyPatch, in_memory: int) -> None:
    monkeypatch.setattr(store, "IN_MEMORY", in_memory)
    columns, excluded = gather(shards, STIMULI, 4)
    rows = [0, 1, 3, 4, 5, 6, 7, 8, 9]
    assert columns["stimulus"].tolist() == rows
    assert columns["logits"][:, 1].tolist() == rows
    assert columns["decisions"].tolist() == ["x" * (i + 1) for i in rows]
    assert excluded == {"s2": "broken"}
    assert isinstance(columns["logits"], np.memmap) == (in_memory == 0)


def test_all_observers_of_a_score_share_one_memory(shards: ShardFolder) -> None:
    memory = Memory(9 * (8 + 3 * 8 + 4 * 4) + 10)  # what the columns of one observer take, and a little
    first, second = (gather(shards, STIMULI, 4, memory)[0] for _ in range(2))
    assert not any(isinstance(c, np.memmap) for c in first.values())
    assert all(isinstance(c, np.memmap) for name, c in second.items() if name != "decisions")
    assert second["logits"].tolist() == first["logits"].tolist()


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ({}, "'logits' is missing"),
        ({"logits": np.zeros((2, 5), np.float32)}, "float32 5 in one batch, float32 3"),
        ({"logits": np.zeros((2, 3))}, "float64 3 in one batch"),
        ({"logits": np.zeros((2, 3), np.float32), "rt": np.zeros(2)}, "'rt' is float64 in one batch, missing"),
    ],
)
def test_shards_of_another_form_are_refused(tmp_path: Path, column: dict, said: str) -> None:
    made = ShardFolder(tmp_path, "o", Key("w", None, "", "a/1", "", ("logits",)))
    for start, batch in batches(STIMULI[:4], 2):
        answers = {"logits": np.zeros((2, 3), np.float32)} if start == 0 else column
        made.write(batch, {"stimulus": np.arange(2), **answers}, {})
    with pytest.raises(UserError, match=said):
        gather(made, STIMULI[:4], 2)


def test_a_batch_of_which_nothing_was_shown_has_no_form(tmp_path: Path) -> None:
    made = ShardFolder(tmp_path, "o", Key("w", None, "", "a/1", "", ("logits",)))
    nothing = {"stimulus": np.zeros(0, np.int32)}
    made.write(STIMULI[:2], nothing, {0: "broken", 1: "broken"})
    made.write(STIMULI[2:4], {"stimulus": np.arange(2), "logits": np.ones((2, 3))}, {})
    columns, excluded = gather(made, STIMULI[:4], 2)
    assert columns["logits"].shape == (2, 3)
    assert list(excluded) == ["s0", "s1"]
    with pytest.raises(UserError, match="none of the 2 stimuli could be shown; the first: broken"):
        gather(made, STIMULI[:2], 2)
