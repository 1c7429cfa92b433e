"""A decoding process: reads tasks from a pipe, answers with uint8 arrays. Started by ``workers.py``, never by hand.

It imports Pillow and NumPy only: no torch, nothing of the user's main module.
"""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection
from typing import Any

from cuebench.responses.workers import Task, perform


def serve(connection: Connection) -> None:
    """Answer tasks until the other end closes."""
    while True:
        try:
            task: Task = connection.recv()
        except EOFError:
            return
        answer: Any
        try:
            answer = perform(task)
        except Exception as error:  # noqa: BLE001 - crosses to the parent, which raises it there
            answer = error
        connection.send(answer)


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
