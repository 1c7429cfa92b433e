"""Worker processes that any script, notebook or REPL may start, on any system.

Not ``multiprocessing``: its safe start methods re-import the user's main module, which breaks notebooks, the REPL and
every script without ``if __name__ == "__main__"``; its unsafe one forks a process full of threads. Here a worker is a
plain child process that imports what its work needs and speaks over its standard input and output, one thread of ours
for each. It ends by itself when its parent does, however that ends.

A failure never hangs: whatever goes wrong ends up in the future of the task. A worker that dies is replaced, and its
task is done once more; a task that kills a second worker is an error, and is not tried in the main process, which would
die too.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, Self, TypeVar, cast

Argument = TypeVar("Argument")
Answer = TypeVar("Answer")
Tell = Callable[[str], None]
READY = b"cuebench worker ready\n"
"""First line of a worker; anything before it was printed while Python started."""
PATIENCE = 5.0
"""Seconds that a worker gets to end: by itself, after a request, after a signal."""
SMALL = 1 << 15
"""Bytes of a request that is sent before the last one was answered: a pipe always holds so much (64 KiB on Linux, 16
on macOS at first), so that neither side waits for the other to read."""
TURN = 0.0005
"""Seconds after which a thread of Python gives way to another, instead of ten times as many."""
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class WorkerDied(RuntimeError):
    """A worker process ended before it answered."""


class WorkerFailed(RuntimeError):
    """A task failed in a worker process with an exception that cannot be pickled: its type and its text."""


class _Task(NamedTuple):
    function: Callable[[Any], Any]
    argument: Any
    future: Future[Any]


_Tasks = queue.SimpleQueue[_Task | None]


def warn(text: str) -> None:
    """Report a text as a warning."""
    warnings.warn(text, RuntimeWarning, stacklevel=2)


@contextmanager
def quick_turns() -> Iterator[None]:
    """Let threads of this process take turns more often: one that speaks with workers, or with a GPU, must not wait."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(TURN)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class ProcessPool:
    """A fixed number of worker processes; with ``workers=0`` the work is done in the calling thread.

    Parameters
    ----------
    workers : int
        How many processes.
    tell : callable
        Told, in words and from another thread, of workers that died and were replaced. Default: a warning.
    inherited : sequence of int
        Descriptors of files that every worker shares with this process, under the same numbers.
    politeness : int
        By how much the workers step back (``nice``) where this process wants the same cores.
    ahead : int
        Small tasks that wait in the pipe of a worker while it is at work: it then never waits for a thread of this
        process. For many short tasks; a long one would wait although another worker is idle.
    """

    def __init__(
        self,
        workers: int,
        *,
        tell: Tell = warn,
        inherited: Sequence[int] = (),
        politeness: int = 0,
        ahead: int = 0,
    ) -> None:
        self._tasks: _Tasks = queue.SimpleQueue()
        start = partial(_Child, tuple(inherited), politeness)
        self._workers = [_Worker(self._tasks, tell, start, ahead) for _ in range(workers)]

    def submit(self, function: Callable[[Argument], Answer], argument: Argument) -> Future[Answer]:
        """Queue ``function(argument)``, a function of a module; its future raises whatever the function raised."""
        future: Future[Answer] = Future()
        if self._workers:
            self._tasks.put(_Task(function, argument, future))
        else:
            _settle(future, function, argument)
        return future

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        # After Ctrl-C or an error these are not awaited any more.
        with suppress(queue.Empty):
            while (task := self._tasks.get_nowait()) is not None:
                task.future.cancel()
        for _ in self._workers:
            self._tasks.put(None)
        deadline = time.monotonic() + (PATIENCE if kind is None else 0)
        for worker in self._workers:
            worker.close(deadline)


class _Sent(NamedTuple):
    """A task that a worker was sent, and what the workers died of that were at it."""

    task: _Task
    request: bytes
    causes: list[str]


class _Worker:
    """One child process, its successors, and the thread that feeds them."""

    def __init__(self, tasks: _Tasks, tell: Tell, start: Callable[[], _Child], ahead: int) -> None:
        self._tell, self._start = tell, start
        self._ahead = ahead if os.name == "posix" else 0  # the pipes of Windows hold too little
        self._lock = threading.Lock()
        self._closing = False
        self._process = start()
        self._thread = threading.Thread(target=self._feed, args=(tasks,), daemon=True)
        self._thread.start()

    def _feed(self, tasks: _Tasks) -> None:
        sent: deque[_Sent] = deque()
        more = True
        while more or sent:
            room = more and (not sent or (len(sent) <= self._ahead and len(sent[-1].request) <= SMALL))
            if room and (not sent or not tasks.empty()):
                try:
                    task = tasks.get(block=not sent)
                except queue.Empty:  # another worker was quicker
                    pass
                else:
                    more = task is not None
                    if task is not None and task.future.set_running_or_notify_cancel():
                        self._send(task, sent)
                    continue
            if sent:
                _settle(sent[0].task.future, self._answer, sent)

    def _send(self, task: _Task, sent: deque[_Sent]) -> None:
        try:
            request = pickle.dumps((task.function, task.argument), pickle.HIGHEST_PROTOCOL)
        except Exception as error:  # noqa: BLE001 - handed to the caller that waits
            task.future.set_exception(error)
            return
        if sent and len(request) > SMALL:  # it must wait until nothing else is on its way
            while sent:
                _settle(sent[0].task.future, self._answer, sent)
        sent.append(_Sent(task, request, []))
        with suppress(OSError):  # the worker has died: found out where its answer is read
            self._process.send(request)

    def _answer(self, sent: deque[_Sent]) -> Any:
        """Return the answer to the task that was sent first or, if its worker dies, of a successor; raise its error.

        It leaves ``sent``, whatever comes. A successor is sent all the tasks that the worker has not answered.
        """
        first = sent[0]
        try:
            while len(first.causes) < 2:
                try:
                    reply = self._process.receive()
                except (OSError, EOFError, MemoryError) as error:
                    first.causes.append(self._replace(error))
                    again = sent if len(first.causes) < 2 else list(sent)[1:]
                    with suppress(OSError):
                        for each in again:
                            self._process.send(each.request)
                    continue
                succeeded, answer = pickle.loads(reply)
                if not succeeded:
                    raise answer
                return answer
        finally:
            sent.popleft()
        raise WorkerDied(
            f"the same task killed two worker processes: {'; '.join(first.causes)}. "
            "If the memory ran out, use fewer workers"
        )

    def _replace(self, error: BaseException) -> str:
        """Start a successor, tell of it, and return what the old worker died of."""
        with self._lock:
            if self._closing:
                raise WorkerDied("the worker was stopped before it answered: its pool was left") from error
            old, self._process = self._process, self._start()
        old.stop(old.kill)
        old.close_pipes()
        self._tell(f"a worker process died ({old.cause_of_death}); another one takes its place")
        return old.cause_of_death

    def close(self, deadline: float) -> None:
        """Let a task in flight finish until the deadline; then the process ends, if need be by force."""
        self._thread.join(max(0.0, deadline - time.monotonic()))
        with self._lock:
            self._closing = True
        process = self._process
        # An idle worker ends by itself at the end of its input; one at work does not look at it.
        gently = [] if self._thread.is_alive() else [process.close_pipes]
        process.stop(*gently, process.terminate, process.kill)
        self._thread.join(PATIENCE)
        if not self._thread.is_alive():
            process.close_pipes()


def _settle(future: Future[Answer], function: Callable[[Argument], Answer], argument: Argument) -> None:
    """Put the answer or the failure on the future, so that a caller never waits for ever."""
    try:
        answer = function(argument)
    except Exception as error:  # noqa: BLE001 - handed to the caller that waits
        future.set_exception(error)
    else:
        future.set_result(answer)


# --- the child process ----------------------------------------------------------------------------------------------


class _Child(subprocess.Popen[bytes]):
    """A process that runs ``_process_main.py``."""

    def __init__(self, inherited: tuple[int, ...] = (), politeness: int = 0) -> None:
        shared: dict[str, Any] = {"pass_fds": inherited} if inherited else {}  # Windows knows no such argument
        # -P: a file queue.py in the user's current folder is not the library's. A session (on Windows: a group) of its
        # own: Ctrl-C reaches the parent, which ends the child.
        super().__init__(
            [sys.executable, "-P", "-m", "cuebench._process_main"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_child_environment(),
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            **shared,
        )
        if politeness and hasattr(os, "setpriority"):
            with suppress(OSError):  # a wish, not a need
                os.setpriority(os.PRIO_PROCESS, self.pid, politeness)
        self._greeted = False

    def send(self, request: bytes) -> None:
        """Send a request."""
        write_frame(cast(IO[bytes], self.stdin), request)

    def receive(self) -> bytes:
        """Wait for the next answer; they come in the order of the requests."""
        answers = cast(IO[bytes], self.stdout)
        if not self._greeted:
            self._greeted = any(line.endswith(READY) for line in answers)
        return read_frame(answers)

    def stop(self, *measures: Callable[[], None]) -> None:
        """Take one measure after the other until the process has ended."""
        for measure in measures:
            measure()
            with suppress(subprocess.TimeoutExpired):
                self.wait(PATIENCE)
                return

    def close_pipes(self) -> None:
        """Close our ends; a process that is idle then ends by itself."""
        for pipe in (self.stdin, self.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was not sent is lost with the process
                    pipe.close()

    @property
    def cause_of_death(self) -> str:
        """Say how the process ended."""
        status = self.returncode
        if status is None or status >= 0:
            return f"it ended with status {status}"
        killed = "; systems do that when the memory runs out" if status == -9 else ""
        return f"killed by signal {-status}{killed}"


def _child_environment() -> dict[str, str]:
    """The child finds cuebench where the parent did; it uses one thread, as the parallelism is over processes."""
    package_folder = str(Path(__file__).parents[1])  # also where the parent found it in its current folder
    paths = os.pathsep.join(dict.fromkeys([*(p for p in sys.path if p), package_folder]))
    return {**os.environ, "PYTHONPATH": paths, **dict.fromkeys(_ONE_THREAD, "1")}


def write_frame(file: IO[bytes], data: bytes) -> None:
    """Write a message: its length in eight bytes, then itself."""
    file.write(len(data).to_bytes(8, "big"))
    file.write(data)
    file.flush()


def read_frame(file: IO[bytes]) -> bytes:
    """Read a message; the end of the file before its end is an ``EOFError``."""
    return _exactly(file, int.from_bytes(_exactly(file, 8), "big"))


def _exactly(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise EOFError(f"the other end closed after {len(data)} of {size} bytes")
    return data
