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
from cuebench.observers.chat.answers import VERSION, Reading, names_of, read_answer, read_caption
from cuebench.observers.chat.endpoint import Endpoint, Request
from cuebench.observers.chat.journal import Answer, Journal, open_journal
from cuebench.observers.chat.prompts import Prompt, ordered
from cuebench.observers.preprocess import Preprocess
from cuebench.types import Capability, ObserverKind

Match = Callable[[Sequence[str], Sequence[str]], list[Reading]]
"""``match(texts, classes)``: reads free texts as answers with these classes."""


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
    prompt : Prompt
        What it is asked.
    preprocess : Preprocess
        Size of the pictures.
    classes, wanted, shuffle
        The protocol's classes, the user's own order of them, the seed of a shuffled one.
    folder : str
        Where journals lie; empty: in memory.
    match : callable, optional
        Reads captions; None: by names and synonyms.
    judge : ChatObserver, optional
        Reads captions.
    settings : mapping
        Further things that decide an answer, JSON-ready.
    """

    name: str
    endpoint: Endpoint
    prompt: Prompt
    preprocess: Preprocess
    classes: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    shuffle: int = 0
    folder: str = ""
    match: Match | None = None
    judge: ChatObserver | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    kind: ObserverKind = "model"
    labels: None = None
    precision: str = "as served"
    capabilities: frozenset[Capability] = frozenset({"decisions"})
    charges: bool = True

    @property
    def options(self) -> tuple[str, ...]:
        """The classes in the order in which they are shown."""
        return ordered(self.classes, self.wanted, self.shuffle)

    @property
    def question(self) -> dict[str, Any]:
        """Everything that decides what a model writes, but for the picture."""
        return {
            "url": self.endpoint.url,
            "model": self.endpoint.model,
            "prompt": self.prompt.name,
            "prompt_sha256": self.prompt.sha256,
            "text": self.prompt.ask(self.options),
            "max_tokens": self.endpoint.max_tokens,
            "temperature": self.endpoint.temperature,
            "detail": self.endpoint.detail,
            **self.settings.get("asked", {}),
        }

    @property
    def fingerprint(self) -> str:
        """Hash of the question, and of how answers are read."""
        judge = self.judge.fingerprint if self.judge else ""
        parts = (self.question, list(self.classes), VERSION, self.settings.get("read", {}), judge)
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def journal(self) -> Journal:
        """What was asked and answered so far."""
        model = "".join(c if c.isalnum() or c in "._-" else "_" for c in self.endpoint.model)[:60]
        journal = self._journals.get(key := self.fingerprint)
        if journal is None:
            journal = self._journals[key] = open_journal(self.folder, model, self.question)
            if journal not in self.endpoint.budget.journals:
                self.endpoint.budget.journals.append(journal)
        return journal

    _journals: dict[str, Journal] = field(default_factory=dict, repr=False)

    def among(self, targets: Sequence[str], members: LabelMap | None = None, space: str = "") -> ChatObserver:
        """Return the same model, choosing among the classes of one protocol's stimuli."""
        judge = self.judge.among(targets) if self.judge else None
        observer = replace(self, classes=tuple(targets), judge=judge, _journals={})
        _ = observer.options  # the user's own options may not be these classes
        return observer

    def expense(self, count: int) -> Expense:
        """Return what asking about so many pictures can cost; what the journal holds costs nothing."""
        journal, endpoint = self.journal, self.endpoint
        requests = max(0, count - len(journal.answers))
        tokens_in = requests * endpoint.tokens_in(journal, self.prompt.ask(self.options))
        tokens_out = requests * endpoint.max_tokens
        own = Expense(requests, tokens_in, tokens_out, endpoint.prices.of(tokens_in, tokens_out))
        return own + self.judge.expense(count) if self.judge else own

    @property
    def concurrency(self) -> int:
        """Requests on their way at once."""
        return self.endpoint.concurrency

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
        journal, text = self.journal, self.prompt.ask(self.options)
        keys = [image_key(image) for image in batch.images]
        futures = []
        for key, image in zip(keys, batch.images):
            png = None if key in journal.answers else png_of(image)
            futures.append(self.endpoint.ask(Request(key, text, png), journal))

        def wait() -> Answers:
            return self._columns(_results(self.endpoint, futures), journal)

        return wait

    def _columns(self, answers: Sequence[Answer], journal: Journal) -> Answers:
        readings = self._read([answer.text for answer in answers])
        for position, answer in enumerate(answers):
            if answer.finish == "length" and readings[position].decision == UNDECIDED:
                if len(journal.answers) == 1:
                    raise UserError(
                        f"the first answer of {self.name} is longer than max_tokens={self.endpoint.max_tokens} and was "
                        f"cut before it named a class: {answer.text[:80]!r}",
                        f"allow longer ones: &max_tokens={max(512, 8 * self.endpoint.max_tokens)} (models that think "
                        "aloud need many), or ask for a letter only",
                    )
                readings[position] = Reading(UNDECIDED, "cut")
        return {
            "decisions": np.array([r.decision for r in readings], np.str_),
            "read_by": np.array([r.how for r in readings], np.str_),
            "text": np.array([answer.text for answer in answers], np.str_),
        }

    def _read(self, texts: Sequence[str]) -> list[Reading]:
        if self.prompt.lettered:
            return [read_answer(text, self.options) for text in texts]
        if self.judge is not None:
            return self.judge.judged(texts)
        if self.match is not None:
            return self.match(texts, self.classes)
        names = names_of(self.classes)
        return [read_caption(text, names) for text in texts]

    def judged(self, captions: Sequence[str]) -> list[Reading]:
        """Ask which class each caption describes."""
        journal, text = self.journal, self.prompt.ask(self.options)
        requests = [
            Request(hashlib.sha256(caption.encode()).hexdigest(), text.replace("{caption}", caption))
            for caption in captions
        ]
        answers = _results(self.endpoint, [self.endpoint.ask(request, journal) for request in requests])
        read = [read_answer(answer.text, self.options) for answer in answers]
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
    digest.update(np.ascontiguousarray(image))
    return digest.hexdigest()


def png_of(image: Pixels) -> bytes:
    """Return a picture as PNG: what the model sees is what every other observer sees."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "png", compress_level=3)
    return buffer.getvalue()
