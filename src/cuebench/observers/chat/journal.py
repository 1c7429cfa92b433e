"""The journal: every answer that was paid for, on disk as soon as it has come.

One file for each question (endpoint, model, prompt, settings), ``journal/<model>--<question>.jsonl``. A line is a
checksum and a JSON object; lines are only ever added, each with one write, and synced in small groups. A request is
written down *before* it is sent, so that a process that was killed in between still knows what it may have spent:

    {"question": …}                                        first line: what was asked, for people to read
    {"asked": IMAGE, "cost": 0.002}                        a request is about to be sent; the most that it can cost
    {"answer": IMAGE, "text": "D. bird", "cost": 0.0004}   what came back, and what it cost
    {"failed": IMAGE, "why": "429", "cost": 0}             it brought no answer

IMAGE is the hash of the pixels that were shown (or of a text, for a judge). A line that is damaged, or that was cut
when the process died, is left out: its answer is asked for again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from cuebench.errors import UserError
from cuebench.files import NO_LOCKS, disk_errors, take_lock
from cuebench.options import check_types

MOST_TOKENS = 10**9
"""Tokens of one request or answer that can be: where an endpoint counts more, how many there were is not known."""
HIGHEST_PRICE = 1e8
"""Highest price of a million tokens."""
HIGHEST_COST = 2 * MOST_TOKENS * HIGHEST_PRICE / 1e6
"""What a request can cost at most: a line that names more is damaged."""
SYNC_AFTER = 16
"""Answers after which the file is synced: what a loss of power can cost. A kill of the process costs none of them."""


@dataclass(frozen=True)
class Answer:
    """What a model wrote, why it stopped, how many tokens were counted, and the cost where prices are known."""

    text: str
    finish: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0


_FIELDS = frozenset(Answer.__dataclass_fields__)


@dataclass(frozen=True)
class _Line(Answer):
    """Types of what a line may hold."""

    question: dict[str, Any] = field(default_factory=dict)
    asked: str = ""
    answer: str = ""
    failed: str = ""
    why: str = ""


@dataclass
class Spent:
    """What was sent and paid: requests, their cost, and the cost that requests without an answer may have had."""

    requests: int = 0
    cost: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.requests + other.requests, self.cost + other.cost)


@dataclass(eq=False)
class Journal:
    """The answers to one question.

    Parameters
    ----------
    file : Path or None
        Where it lies; None: in memory only, for a model that is asked outside of a run.
    question : mapping
        What is asked, JSON-ready; written as the first line.
    """

    file: Path | None
    question: Mapping[str, Any]
    answers: dict[str, Answer] = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)
    damaged: int = 0
    most_in: int = 0
    """Most tokens of a request that were counted so far; 0: none."""
    _descriptor: int | None = None
    _unsynced: int = 0
    _known: int = 0

    def read(self) -> None:
        """Read what is there; nothing is written."""
        if self.file is None or not self.file.is_file():
            return
        data = self.file.read_bytes()
        self.answers, self.spent, self.damaged, self._known = {}, Spent(), 0, len(data)
        open_requests: dict[str, list[float]] = {}
        for line in data.split(b"\n"):
            record = _checked(line)
            if record is None:
                self.damaged += bool(line.strip())
                continue
            if "asked" in record:
                open_requests.setdefault(record["asked"], []).append(float(record["cost"]))
                self.spent.requests += 1
                self.spent.cost += float(record["cost"])
            elif "answer" in record or "failed" in record:
                key = record["answer"] if "answer" in record else record["failed"]
                promised = open_requests.get(key) or [0.0]
                self.spent.cost += float(record["cost"]) - promised.pop()
                if "answer" in record:
                    self._keep(key, Answer(**{k: v for k, v in record.items() if k in _FIELDS}))

    def open(self) -> None:
        """Take the file for this process, before anything is asked.

        Raises
        ------
        UserError
            Another process has it.
        """
        if self.file is None or self._descriptor is not None:
            return
        with disk_errors(self.file):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o644)
            _lock(descriptor, self.file)
            size = os.fstat(descriptor).st_size
            if size != self._known:  # another process has asked since it was read
                self.read()
            if not size:
                os.write(descriptor, _line({"question": dict(self.question)}))
            elif _last_byte(descriptor) != b"\n":  # a process was killed in the middle of a line
                os.write(descriptor, b"\n")
        self._descriptor = descriptor

    def asked(self, key: str, cost: float) -> None:
        """Write down that a request is about to be sent."""
        self.spent.requests += 1
        self.spent.cost += cost
        self._write({"asked": key, "cost": cost})

    def answered(self, key: str, answer: Answer, promised: float) -> None:
        """Write down an answer; ``promised`` is what ``asked`` was told."""
        self.spent.cost += answer.cost - promised
        self._keep(key, answer)
        self._write({"answer": key, **vars(answer)})
        self._unsynced += 1
        if self._unsynced >= SYNC_AFTER:
            self.sync()

    def failed(self, key: str, why: str, cost: float, promised: float) -> None:
        """Write down that a request brought no answer, and what it may have cost."""
        self.spent.cost += cost - promised
        self._write({"failed": key, "why": why, "cost": cost})

    def sync(self) -> None:
        """Make sure that what was written survives a loss of power."""
        if self._descriptor is not None and self._unsynced:
            os.fsync(self._descriptor)
        self._unsynced = 0

    def _keep(self, key: str, answer: Answer) -> None:
        self.answers.setdefault(key, answer)  # the first answer counts: what was scored with it stays true
        self.most_in = max(self.most_in, answer.tokens_in)

    def _write(self, record: Mapping[str, Any]) -> None:
        if self.file is None:
            return
        self.open()
        assert self._descriptor is not None
        with disk_errors(self.file):
            os.write(self._descriptor, _line(record))

    def __del__(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)


_open_journals: WeakValueDictionary[Path, Journal] = WeakValueDictionary()
"""Two observers of one process that ask the same question share its answers."""


def open_journal(folder: str, name: str, question: Mapping[str, Any]) -> Journal:
    """Return the journal of a question, read from ``folder``; in memory where that is empty."""
    if not folder:
        return Journal(None, question)
    digest = hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()[:16]
    file = Path(folder).absolute() / f"{name}--{digest}.jsonl"
    journal = _open_journals.get(file)
    if journal is None:
        journal = Journal(file, question)
        journal.read()
        _open_journals[file] = journal
    return journal


def _line(record: Mapping[str, Any]) -> bytes:
    # ASCII: a text that is not Unicode (half of a character) is kept as it came.
    data = json.dumps(record, allow_nan=False, separators=(",", ":")).encode("ascii")
    return hashlib.sha256(data).hexdigest()[:8].encode() + b" " + data + b"\n"


def _checked(line: bytes) -> dict[str, Any] | None:
    digest, _, data = line.partition(b" ")
    if not data or hashlib.sha256(data).hexdigest()[:8].encode() != digest:
        return None
    try:
        record: Any = json.loads(data)
        entry = check_types(record, _Line) if isinstance(record, dict) else {}
        needed = {"answer": ("text", "cost"), "asked": ("cost",), "failed": ("cost",), "question": ()}
        kind = next((kind for kind in needed if kind in entry), None)
        complete = kind is not None and all(name in entry for name in needed[kind])
        believed = 0 <= entry.get("cost", 0) <= HIGHEST_COST
        believed &= all(0 <= entry.get(name, 0) <= MOST_TOKENS for name in ("tokens_in", "tokens_out"))
        return entry if complete and believed else None
    except (ValueError, RecursionError, UserError):  # a checksum is no signature
        return None


def _last_byte(descriptor: int) -> bytes:
    os.lseek(descriptor, -1, os.SEEK_END)  # what is written is appended, wherever it was read
    return os.read(descriptor, 1)


def _lock(descriptor: int, file: Path) -> None:
    """Let one process ask a question: two would not see each other's answers and pay twice."""
    try:
        take_lock(descriptor)
    except OSError as error:
        if error.errno in NO_LOCKS:  # the lock of the run folder says so
            return
        os.close(descriptor)
        raise UserError(
            f"another process is asking the model of {file.name}",
            "wait for it; a chat model is asked by one process (leave --shard out, raise ?concurrency= instead)",
        ) from None
