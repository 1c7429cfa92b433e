"""A worker process: answers errands from a socket until the other end closes. Started by ``processes.py`` only."""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection

from cuebench.processes import attempt


def serve(connection: Connection) -> None:
    """Answer errands until the parent closes its end, or dies."""
    while True:
        try:
            function, argument = connection.recv()
        except EOFError:
            return
        connection.send(attempt(function, argument))


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
