"""An observer that answers with colours and counts how it was asked, and the job of showing it a set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cuebench.labels import LabelSpace
from cuebench.observers.base import Answers, Batch, complete
from cuebench.observers.preprocess import Preprocess
from cuebench.responses.job import Job, JobRecord
from cuebench.responses.store import Key, ShardFolder, batches
from cuebench.types import StimulusSet

RGB = LabelSpace("rgb", ("r", "g", "b"))


@dataclass(eq=False)
class Counting:
    """Answers with the mean colour of what it was shown, and counts."""

    name: str = "counting"
    size: int = 32
    most: int = 10_000
    explode: Exception | None = None
    after: int = 0
    value: float = 1.0
    kind: str = "model"
    fingerprint: str = "f"
    labels: Any = RGB
    capabilities: frozenset[str] = frozenset({"logits"})
    seen: list[int] = field(default_factory=list)

    @property
    def preprocess(self) -> Preprocess:
        return Preprocess(size=self.size)

    def respond(self, batch: Batch, needs: Sequence[str]) -> Answers:
        assert batch.images is not None
        if len(batch) > self.most:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
        self.seen.append(len(batch))
        if self.explode is not None and len(self.seen) > self.after:
            raise self.explode
        return {"logits": batch.images.mean(axis=(1, 2)).astype(np.float32) * self.value}


def job(observer: Counting, stimuli: StimulusSet, out: Path) -> Job:
    preprocess = observer.preprocess.whole_image()
    key = Key(observer.fingerprint, preprocess.describe(), "", "test/1", "float32", ("logits",))
    shards = ShardFolder(out, observer.name, key)
    record = JobRecord("p", "", observer.name, "model", "", ("logits",), "", shards.folder.name, None, key.parts())
    return Job(
        protocol="p",
        observer=complete(observer),  # type: ignore[arg-type]
        stimuli=stimuli,
        needs=("logits",),
        preprocess=preprocess,
        shards=shards,
        record=record,
    )


def answers(collected: Job, shard_size: int = 8) -> np.ndarray[Any, Any]:
    return np.concatenate(
        [collected.shards.read(b)[0]["logits"] for _, b in batches(collected.stimuli.stimuli, shard_size)]
    )
