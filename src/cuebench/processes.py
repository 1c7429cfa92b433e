"""Worker processes that any script, notebook or REPL may start.

Not ``multiprocessing``: its safe start methods re-import the user's main module, which breaks notebooks, the REPL and
every script without ``if __name__ == "__main__"``; its unsafe one forks a process full of threads. Here a worker is a
plain child process that imports what its work needs and speaks over a socket pair, one thread of ours for each. It ends
by itself when its parent does, however that ends.
"""

from __future__ import annotations

import os
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

Argument = TypeVar("Argument")
Answer = TypeVar("Answer")
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class _Errand(NamedTuple):
    function: Callable[[Any], Any]
    argument: Any
    future: Future[Any]


_Errands = queue.SimpleQueue[_Errand | None]


class ProcessPool:
    """A bounded crew of worker processes; with ``workers=0`` the work is done in the calling thread."""

    def __init__(self, workers: int) -> None:
        self._errands: _Errands = queue.SimpleQueue()
        self._crew = [_Worker(self._errands) for _ in range(workers)]

    def submit(self, function: Callable[[Argument], Answer], argument: Argument) -> Future[Answer]:
        """Queue ``function(argument)``, a function of a module; its future raises whatever the function raised."""
        future: Future[Answer] = Future()
        if self._crew:
            self._errands.put(_Errand(function, argument, future))
        else:
            future.set_result(function(argument))
        return future

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._drop_waiting()
        for _ in self._crew:
            self._errands.put(None)
        for worker in self._crew:
            worker.close(hurry=kind is not None)

    def _drop_waiting(self) -> None:
        # After Ctrl-C or an error nobody waits for these any more.
        while not self._errands.empty():
            errand = self._errands.get()
            if errand is not None:
                errand.future.cancel()


class _Worker:
    """One child process and the thread that feeds it."""

    def __init__(self, errands: _Errands) -> None:
        ours, theirs = socket.socketpair()
        self._connection = Connection(ours.detach())
        command = [sys.executable, "-m", "cuebench._process_main", str(theirs.fileno())]
        # A session of its own: Ctrl-C reaches the parent, which closes the pipe; the child then ends by itself.
        self._process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], env=_child_environment(), start_new_session=True
        )
        theirs.close()
        self._thread = threading.Thread(target=self._feed, args=(errands,), daemon=True)
        self._thread.start()

    def _feed(self, errands: _Errands) -> None:
        while (errand := errands.get()) is not None:
            if errand.future.set_running_or_notify_cancel():
                self._run(errand)

    def _run(self, errand: _Errand) -> None:
        try:
            self._connection.send((errand.function, errand.argument))
            answer = self._connection.recv()
        except (EOFError, OSError):
            # The child died (killed for memory, say): finish its task here, where the error is visible.
            answer = attempt(errand.function, errand.argument)
        if isinstance(answer, BaseException):
            errand.future.set_exception(answer)
        else:
            errand.future.set_result(answer)

    def close(self, *, hurry: bool) -> None:
        if not hurry:
            self._thread.join(timeout=30)
        self._connection.close()
        if hurry:
            self._process.terminate()
        self._process.wait(timeout=30)


def attempt(function: Callable[[Any], Any], argument: Any) -> Any:
    """Return the answer, or the exception that was raised: it is raised again by whoever waits for the future."""
    try:
        return function(argument)
    except Exception as error:  # noqa: BLE001 - handed to whoever waits
        return error


def _child_environment() -> dict[str, str]:
    """The child finds cuebench where the parent did; it uses one thread, as the parallelism is over processes."""
    paths = os.pathsep.join(dict.fromkeys(p for p in sys.path if p))
    return {**os.environ, "PYTHONPATH": paths, **dict.fromkeys(_ONE_THREAD, "1")}
