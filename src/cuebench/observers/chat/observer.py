"""A chat model as an observer: pictures are sent as PNG, the words that come back are read and kept."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cuebench.arrays import Pixels
from cuebench.errors import UserError
from cuebench.labels import LabelMap
from cuebench.labels.decisions import UNDECIDED
from cuebench.observers.base import Answers, Batch, Expense, ObserverBase
from cuebench.observers.chat.answers import Reading, read_answer
from cuebench.observers.chat.asking import Asking, columns
from cuebench.observers.chat.endpoint import Endpoint, Request
from cuebench.observers.chat.journal import Answer, Journal, open_journal
from cuebench.observers.preprocess import Preprocess
from cuebench.types import Capability, ObserverKind


@dataclass(frozen=True, eq=False)
class ChatObserver(ObserverBase):
    """Asks a model about every picture and reads what it answers.

    The model is shown the same pixels as every other observer: the stimulus after the geometry of the protocol, encoded
    without loss. Answers are kept in a journal by picture and question; nothing is asked twice.

    Parameters
    ----------
    name : str
        Public name.
    endpoint : Endpoint
        Where the model is.
    asking : Asking
        What it is asked, and how its words are read.
    preprocess : Preprocess
        Size of the pictures.
    folder : str
        Where journals lie; empty: in memory.
    judge : ChatObserver, optional
        Reads captions.
    settings : mapping
        Further things that decide an answer, JSON-ready.
    """

    name: str
    endpoint: Endpoint
    asking: Asking
    preprocess: Preprocess
    folder: str = ""
    judge: ChatObserver | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    kind: ObserverKind = "model"
    labels: None = None
    precision: str = "as served"
    capabilities: frozenset[Capability] = frozenset({"decisions"})
    charges: bool = True
    _journals: list[Journal] = field(default_factory=list, repr=False)

    @property
    def question(self) -> dict[str, Any]:
        """Everything that decides what the model writes, but for the picture."""
        end = self.endpoint
        where = {"url": end.url, "model": end.model}
        how = {"max_tokens": end.max_tokens, "temperature": end.temperature, "detail": end.detail}
        return {**where, **self.asking.describe(), **how, **self.settings}

    @property
    def fingerprint(self) -> str:
        """Hash of the question, and of how answers are read."""
        judge = self.judge.fingerprint if self.judge else ""
        parts = (self.question, self.asking.describe_reading(), judge)
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def journal(self) -> Journal:
        """What was asked and answered so far."""
        if not self._journals:
            model = "".join(c if c.isalnum() or c in "._-" else "_" for c in self.endpoint.model)[:60]
            self._journals.append(open_journal(self.folder, model, self.question))
            if self._journals[0] not in self.endpoint.budget.journals:
                self.endpoint.budget.journals.append(self._journals[0])
        return self._journals[0]

    @property
    def concurrency(self) -> int:
        """Requests on their way at once."""
        return self.endpoint.concurrency

    def among(self, targets: Sequence[str], members: LabelMap | None = None, space: str = "") -> ChatObserver:
        """Return the same model, choosing among the classes of one protocol's stimuli."""
        judge = self.judge.among(targets) if self.judge else None
        return replace(self, asking=self.asking.among(targets), judge=judge, _journals=[])

    def expense(self, count: int) -> Expense:
        """Return what asking about so many pictures can cost; what the journal holds costs nothing."""
        journal, endpoint = self.journal, self.endpoint
        requests = max(0, count - len(journal.answers))
        tokens_in = requests * endpoint.tokens_in(journal, self.asking.text)
        tokens_out = requests * endpoint.max_tokens
        expense = Expense(requests, tokens_in, tokens_out, endpoint.prices.of(tokens_in, tokens_out))
        return expense + self.judge.expense(count) if self.judge else expense

    def stop(self) -> None:
        """Ask nothing more; what is on its way is kept."""
        self.endpoint.stop()
        if self.judge is not None:
            self.judge.stop()

    def respond(self, batch: Batch, needs: Sequence[Capability]) -> Answers:
        """Ask about every picture of a batch, and wait for the answers."""
        return self.submit(batch, needs)()

    def submit(self, batch: Batch, needs: Sequence[Capability]) -> Callable[[], Answers]:
        """Begin to ask about every picture of a batch."""
        assert batch.images is not None
        journal, futures = self.journal, []
        for image in batch.images:
            key = image_key(image)
            png = None if key in journal.answers else png_of(image)
            futures.append(self.endpoint.ask(Request(key, self.asking.text, png), journal))

        def wait() -> Answers:
            return self._columns(_results(self.endpoint, futures))

        return wait

    def _columns(self, answers: Sequence[Answer]) -> Answers:
        texts = [answer.text for answer in answers]
        readings = self.judge.judged(texts) if self.judge else self.asking.read(texts)
        cut = [answer.finish == "length" for answer in answers]
        first = len(self.journal.answers) == 1
        for text, reading, is_cut in zip(texts, readings, cut):
            if first and is_cut and reading.decision == UNDECIDED:
                raise UserError(
                    f"the first answer of {self.name} is longer than max_tokens={self.endpoint.max_tokens} and was cut "
                    f"before it named a class: {text[:80]!r}",
                    f"allow longer ones: &max_tokens={max(512, 8 * self.endpoint.max_tokens)} (models that think aloud "
                    "need many), or ask for a letter only",
                )
        return columns(texts, readings, cut)

    def judged(self, captions: Sequence[str]) -> list[Reading]:
        """Ask which class each caption describes."""
        asked = []
        for caption in captions:
            key = hashlib.sha256(caption.encode()).hexdigest()
            request = Request(key, self.asking.text.replace("{caption}", caption))
            asked.append(self.endpoint.ask(request, self.journal))
        read = [read_answer(answer.text, self.asking.options) for answer in _results(self.endpoint, asked)]
        return [Reading(r.decision, "judge") if r.decision != UNDECIDED else r for r in read]


def _results(endpoint: Endpoint, futures: Sequence[Any]) -> list[Answer]:
    """Return the answers; where one fails, everything on its way is waited for and kept."""
    try:
        return [future.result() for future in futures]
    except Exception:
        endpoint.finish()
        raise


def image_key(image: Pixels) -> str:
    """Return the hash of a picture: its size and its pixels."""
    digest = hashlib.sha256(repr(image.shape).encode())
    digest.update(np.ascontiguousarray(image).tobytes())
    return digest.hexdigest()


def png_of(image: Pixels) -> bytes:
    """Return a picture as PNG: what the model sees is what every other observer sees."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "png", compress_level=3)
    return buffer.getvalue()
