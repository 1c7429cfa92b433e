"""A worker process: does tasks until its input ends. Started by ``processes.py`` only."""

from __future__ import annotations

import os
import pickle
import traceback
from typing import IO

from cuebench.processes import READY, WorkerFailed, read_frame, write_frame


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Do tasks until the parent closes its end, or dies."""
    while True:
        try:
            request = read_frame(requests)
        except EOFError:
            return
        write_frame(answers, answer(request))


def answer(request: bytes) -> bytes:
    """Do one task: (True, what the function returned) or (False, what it raised), as bytes."""
    try:
        function, argument = pickle.loads(request)
        return _packed(True, function(argument))
    except Exception as error:  # noqa: BLE001 - raised again where the answer is awaited
        return _packed_error(error)


def _packed(succeeded: bool, content: object) -> bytes:
    return pickle.dumps((succeeded, content), pickle.HIGHEST_PROTOCOL)


def _packed_error(error: Exception) -> bytes:
    """An exception whose class asks for more than a text is often packed without complaint and cannot be unpacked."""
    try:
        packed = _packed(False, error)
        pickle.loads(packed)
    except Exception:  # noqa: BLE001 - a user's class may raise anything here
        text = "".join(traceback.format_exception_only(error)).strip()
        return _packed(False, WorkerFailed(text))
    return packed


def _private_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Keep the two pipes for ourselves: what the work prints goes to standard error, and it has nothing to read."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return requests, answers


if __name__ == "__main__":
    pipes = _private_pipes()
    try:
        pipes[1].write(READY)
        pipes[1].flush()
        serve(*pipes)
    except OSError:
        os._exit(1)  # the parent is gone, and the rest of the pipe cannot be flushed
