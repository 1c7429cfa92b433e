"""A process that has imported cuebench and forks a child for each command: a kill then costs no start of Python.

Reads one JSON object a line from standard input, writes one a line to standard output. The child counts its steps: each
call that changes the file system is one step before and one after. At step ``kill_at`` it kills itself as ``kill -9``
does; a file that is being synced is cut in half first. ``kill_after`` kills it from outside after so many seconds.
``without_privileges`` takes from root what an ordinary user does not have: root is then refused as its owner would be.
``fail_at`` raises ``OSError(errno)`` instead, at this and all later steps of writing: a disk that is full.
"""

from __future__ import annotations

import builtins
import ctypes
import importlib
import io
import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

PATIENCE = 100
PRELOAD = (
    "cuebench.cli.run",
    "cuebench.cli._display",
    "cuebench.cli._tables",
    "cuebench.runs.evaluate",
    "cuebench.runs.merge",
    "cuebench.protocols.cue_conflict",
    "cuebench.stimuli.apply_cue",
    "cuebench.stimuli.makers.base",
    "cuebench.stimuli.makers.cue_decomposition",
    "cuebench.stimuli.fetch",
    "cuebench.reports.comparison",
    "typer",
    "rich.console",
    "scipy.stats",
    "typer._adapters",
    "pydantic",
    "pydantic.type_adapter",
    "pandas",
    "pyarrow.compute",
    "pyarrow.pandas_compat",
    "PIL.PngImagePlugin",
    "PIL.JpegImagePlugin",
    "PIL.ImageDraw",
    "PIL.ImageFont",
)


class Steps:
    """Counts the steps of this process and ends it, or its disk, at one of them."""

    def __init__(self, kill_at: int, fail_at: int, error: int) -> None:
        self.count = 0
        self.kill_at, self.fail_at, self.error = kill_at, fail_at, error

    def step(self, descriptor: int | None = None) -> None:
        self.count += 1
        if self.count == self.kill_at:
            if descriptor is not None:
                os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fail_at and self.count >= self.fail_at:
            raise OSError(self.error, os.strerror(self.error))

    def install(self) -> None:
        for name in ("replace", "rename", "link", "mkdir", "rmdir", "unlink", "remove", "fsync"):
            setattr(os, name, self._counted(getattr(os, name), name == "fsync"))
        original = io.open

        def opened(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            if not set(mode) & set("wax+") or isinstance(file, int):
                return original(file, mode, *arguments, **options)
            self.step()
            result = original(file, mode, *arguments, **options)
            self.step()
            return result

        io.open = builtins.open = opened  # type: ignore[assignment]

    def _counted(self, function: Any, is_sync: bool) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            self.step(arguments[0] if is_sync else None)
            result = function(*arguments, **options)
            if not self.fail_at:
                self.step()
            return result

        return call


def fetch_from(url: str, root: str, files: dict[str, str]) -> int:
    """Fetch a data set of the test's own server."""
    from cuebench.errors import UserError
    from cuebench.stimuli.datasets.base import Dataset, RemoteFile
    from cuebench.stimuli.fetch import fetch

    remote = tuple(RemoteFile(f"d/{name}", name, *facts) for name, facts in files.items())
    try:
        fetch(Dataset("d", "", "", "", "d", (url,), lambda: remote), Path(root))
    except UserError as error:
        print(f"{error.message}\n→ {error.hint}", flush=True)
        return 2
    return 0


def work(request: dict[str, Any]) -> int:
    if "fetch" in request:
        return fetch_from(**request["fetch"])
    from cuebench.cli import invoke

    return invoke(request["arguments"])


def drop_privileges() -> None:
    """Give up the capabilities of Linux, in this process: permissions of files then hold for root too."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3, this process
    nothing = (ctypes.c_uint32 * 6)()
    if ctypes.CDLL(None, use_errno=True).capset(header, nothing):
        raise OSError(ctypes.get_errno(), "capset")


def child(request: dict[str, Any], report: int) -> None:
    signal.alarm(PATIENCE)
    errors = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(errors, 1)
    os.dup2(errors, 2)
    if request.get("clock"):  # the clock of the machine jumps back by a year each time it is asked
        start, asked = time.time(), iter(range(10**9))
        time.time = lambda: start - 31e6 * next(asked)  # type: ignore[assignment]
    if request.get("without_privileges") and os.geteuid() == 0:
        drop_privileges()
    steps = Steps(request.get("kill_at", 0), request.get("fail_at", 0), request.get("errno", 0))
    steps.install()
    try:
        status = work(request)
    except BaseException:
        import traceback

        traceback.print_exc()
        status = 70
    os.write(report, json.dumps({"status": status, "steps": steps.count}).encode())
    os._exit(0)


def serve(request: dict[str, Any]) -> dict[str, Any]:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        child(request, write)
    os.close(write)
    if "kill_after" in request:
        time.sleep(request["kill_after"])
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with os.fdopen(read, "rb") as pipe:
        report = json.loads(pipe.read() or b'{"status": null, "steps": null}')
    ended = {"signal": os.WTERMSIG(status)} if os.WIFSIGNALED(status) else {"signal": 0, "exit": os.WEXITSTATUS(status)}
    return {**report, **ended}


def main() -> None:
    for name in PRELOAD:
        with suppress(ImportError):
            importlib.import_module(name)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(serve(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
