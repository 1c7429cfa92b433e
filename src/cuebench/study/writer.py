"""One thread that writes: whatever arrives while a transaction is on its way goes into the next one, together.

A disk syncs a few hundred times a second at best; with group commits, hundreds of people can answer at once and each
answer is still acknowledged only when it is durable.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from cuebench.study.database import Database, Given, StudyIsFull, store_answers

if TYPE_CHECKING:
    import sqlalchemy as sa

MOST_AT_ONCE = 256
"""Most requests in one transaction."""


class Stopping(Exception):
    """The server is stopping and takes nothing more."""


class _Work:
    """One request: an answer of a participant, or a function of the connection."""

    __slots__ = ("do", "future", "given")

    def __init__(self, given: Given | None, do: Callable[[sa.Connection], Any] | None) -> None:
        self.given, self.do = given, do
        self.future: Future[Any] = Future()


class Writer:
    """Writes to a database in the order of the requests.

    Parameters
    ----------
    database : Database
        Where to.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queue: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="cuebench-study-writer", daemon=True)
        self._closed = False
        self._lock = threading.Lock()
        self._thread.start()

    def answer(self, given: Given) -> Future[Any]:
        """Store an answer; the result, a ``Stored``, is there when it is durable."""
        return self._put(_Work(given, None))

    def call(self, do: Callable[[sa.Connection], Any]) -> Future[Any]:
        """Call a function in a writing transaction; its result is there when that is durable."""
        return self._put(_Work(None, do))

    def close(self) -> None:
        """Write what was asked for and end."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _put(self, work: _Work) -> Future[Any]:
        with self._lock:
            if self._closed:
                work.future.set_exception(Stopping("the server is stopping"))
            else:
                self._queue.put(work)
        return work.future

    def _run(self) -> None:
        going = True
        while going:
            batch: list[_Work] = []
            work = self._queue.get()
            while True:
                if work is None:
                    going = False
                    break
                batch.append(work)
                if len(batch) == MOST_AT_ONCE:
                    break
                try:
                    work = self._queue.get_nowait()
                except queue.Empty:
                    break
            if batch:
                self._write(batch)

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
            except StudyIsFull as full:  # nothing was written: no reason to undo the others
                results[i] = full
    return [results[i] for i in range(len(batch))]
