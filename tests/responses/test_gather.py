from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cuebench.responses import gather as module
from cuebench.responses.gather import gather
from cuebench.responses.store import Key, ShardFolder, batches
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
    monkeypatch.setattr(module, "IN_MEMORY", in_memory)
    columns, excluded = gather(shards, STIMULI, 4)
    rows = [0, 1, 3, 4, 5, 6, 7, 8, 9]
    assert columns["stimulus"].tolist() == rows
    assert columns["logits"][:, 1].tolist() == rows
    assert columns["decisions"].tolist() == ["x" * (i + 1) for i in rows]
    assert excluded == {"s2": "broken"}
    assert isinstance(columns["logits"], np.memmap) == (in_memory == 0)
