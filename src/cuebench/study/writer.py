"""One thread that writes: whatever arrives while a transaction is on its way goes into the next one, together.

A disk syncs a few hundred times a second at best; with group commits, hundreds of people can answer at once and each
answer is still acknowledged only when it is durable.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from cuebench.study.database import Database, Given, NotStarted, store_answers

if TYPE_CHECKING:
    import sqlalchemy as sa

MOST_AT_ONCE = 256
"""Most answers in one transaction."""
MOST_CALLS = 16
"""Most other requests in one transaction, which take longer each."""


class Stopping(Exception):
    """The server is stopping and takes nothing more."""


class _Work:
    """One request: an answer of a participant, or a function of the connection."""

    __slots__ = ("do", "future", "given")

    def __init__(self, given: Given | None, do: Callable[[sa.Connection], Any] | None) -> None:
        self.given, self.do = given, do
        self.future: Future[Any] = Future()


class Writer:
    """Writes to a database: answers in their order, everything else in its own.

    Parameters
    ----------
    database : Database
        Where to.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._answers: deque[_Work] = deque()
        self._calls: deque[_Work] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="cuebench-study-writer", daemon=True)
        self._thread.start()

    def answer(self, given: Given) -> Future[Any]:
        """Store an answer; the result, a ``Stored``, is there when it is durable."""
        return self._put(_Work(given, None))

    def call(self, do: Callable[[sa.Connection], Any]) -> Future[Any]:
        """Call a function in a writing transaction; its result is there when that is durable."""
        return self._put(_Work(None, do))

    def close(self) -> None:
        """Write what was asked for and end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _put(self, work: _Work) -> Future[Any]:
        with self._changed:
            if self._closed:
                work.future.set_exception(Stopping("the server is stopping"))
            else:
                (self._calls if work.given is None else self._answers).append(work)
                self._changed.notify()
        return work.future

    def _run(self) -> None:
        while batch := self._next_batch():
            self._write(batch)

    def _next_batch(self) -> list[_Work]:
        """Return the answers that wait, and some of the rest: many who start at once do not hold up the others."""
        with self._changed:
            while not (self._answers or self._calls or self._closed):
                self._changed.wait()
            answers = [self._answers.popleft() for _ in range(min(len(self._answers), MOST_AT_ONCE))]
            return answers + [self._calls.popleft() for _ in range(min(len(self._calls), MOST_CALLS))]

    def _write(self, batch: Sequence[_Work]) -> None:
        try:
            with self._database.writing() as connection:
                results = _done(connection, batch)
        except Exception as error:  # noqa: BLE001 - every request must get an end
            if len(batch) > 1:  # one of them, or the database: each alone will tell
                for work in batch:
                    self._write([work])
            else:
                batch[0].future.set_exception(error)
            return
        for work, result in zip(batch, results):
            work.future.set_result(result)


def _done(connection: sa.Connection, batch: Sequence[_Work]) -> list[Any]:
    """Do everything of a batch: answers together, then each of the rest."""
    results: dict[int, Any] = {}
    answers = {i: work.given for i, work in enumerate(batch) if work.given is not None}
    if answers:
        results |= zip(answers, store_answers(connection, list(answers.values())))
    for i, work in enumerate(batch):
        if work.do is not None:
            try:
                results[i] = work.do(connection)
            except NotStarted as refusal:  # nothing was written: no reason to undo the others
                results[i] = refusal
    return [results[i] for i in range(len(batch))]
