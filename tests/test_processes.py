"""Worker processes: from a script without a main guard, with errors, with dead workers, with a dead parent."""

from __future__ import annotations

import importlib
import math
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from cuebench import processes
from cuebench.processes import ProcessPool, WorkerDied, WorkerFailed

TASKS = """
import os, signal, sys, time

class Two(Exception):
    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")

class Sour(Exception):
    def __reduce__(self):
        raise RuntimeError("do not pack me")

def unpackable(x): raise Two(1, 2)
def unreadable(x): raise Sour("1 and 2")
def closure(x): return lambda: x
def process(x): return os.getpid()
def die(status): os._exit(status)
def length(data): return len(data), data
def die_once(sign):
    if not os.path.exists(sign):
        open(sign, "w").close()
        os._exit(3)
    return sign
def sleep(sign):
    open(sign, "w").close()
    time.sleep(100)
def sleep_stubbornly(sign):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sleep(sign)
def chatter(text):
    print(text, flush=True)
    os.write(1, text.encode())
    return sys.stdin.read()
"""

SCRIPT = """
import math, os, sys, time
from cuebench.processes import ProcessPool
with ProcessPool(2) as pool:
    print(*[pool.submit(math.sqrt, x).result() for x in (4.0, 9.0)], flush=True)
    print(*[w._process.pid for w in pool._workers], flush=True)
    if sys.argv[1] == "wait":
        time.sleep(60)
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("workers", [0, 2])
def test_answers_come_back_in_their_futures(workers: int) -> None:
    with ProcessPool(workers) as pool:
        futures = [pool.submit(math.sqrt, float(x)) for x in range(20)]
        assert [f.result() for f in futures] == [math.sqrt(x) for x in range(20)]


def test_an_error_is_raised_where_the_answer_is_awaited() -> None:
    with ProcessPool(1) as pool:
        future = pool.submit(math.sqrt, -1.0)
        with pytest.raises(ValueError, match=r"domain|nonnegative"):
            future.result()
        assert pool.submit(math.sqrt, 4.0).result() == 2


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of the user's, which the workers can import as well."""
    (tmp_path / "user_tasks.py").write_text(TASKS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return importlib.import_module("user_tasks")


def test_a_dead_worker_is_replaced_and_reported(tasks: ModuleType) -> None:
    messages: list[str] = []
    with ProcessPool(1, tell=messages.append) as pool:
        first = pool.submit(tasks.process, 0).result(20)
        pool._workers[0]._process.kill()
        pool._workers[0]._process.wait()
        found = [pool.submit(tasks.process, i).result(20) for i in range(2)]
    assert found[0] == found[1]
    assert found[0] not in (first, os.getpid())
    (text,) = messages
    assert "signal 9" in text


def test_without_a_listener_a_death_is_a_warning() -> None:
    with ProcessPool(1) as pool:
        pool._workers[0]._process.kill()
        with pytest.warns(RuntimeWarning, match="another one takes its place"):
            assert pool.submit(math.sqrt, 16.0).result(20) == 4


def test_a_task_that_kills_is_tried_twice_and_never_here(tasks: ModuleType) -> None:
    messages: list[str] = []
    with ProcessPool(1, tell=messages.append) as pool:
        twice = r"the same task killed two worker processes: .*status 7; it ended with status 7"
        with pytest.raises(WorkerDied, match=twice):
            pool.submit(tasks.die, 7).result(20)
        assert pool.submit(math.sqrt, 4.0).result(20) == 2
    assert len(messages) == 2


def test_tasks_wait_in_the_pipe_of_a_worker_and_none_is_lost_with_it(tasks: ModuleType, tmp_path: Path) -> None:
    messages: list[str] = []
    with ProcessPool(1, tell=messages.append, ahead=1) as pool:
        futures = [pool.submit(math.sqrt, float(x)) for x in range(10)]
        deadly = pool.submit(tasks.die, 7)
        futures += [pool.submit(math.sqrt, float(x)) for x in range(10, 20)]
        once = pool.submit(tasks.die_once, str(tmp_path / "sign"))
        wrong = pool.submit(math.sqrt, -1.0)
        futures += [pool.submit(math.sqrt, float(x)) for x in range(20, 30)]
        assert [f.result(20) for f in futures] == [math.sqrt(x) for x in range(30)]
        with pytest.raises(WorkerDied, match="the same task killed two worker processes"):
            deadly.result(20)
        assert once.result(20) == str(tmp_path / "sign")
        with pytest.raises(ValueError, match=r"domain|nonnegative"):
            wrong.result(20)
    assert len(messages) == 3  # the deaths of two tasks; the tasks behind them are not blamed


def test_large_tasks_and_answers_do_not_block_each_other(tasks: ModuleType) -> None:
    sizes = [1, 1 << 20, 10, 1 << 22, 1 << 22, 5, 1 << 16, 7]
    with ProcessPool(1, ahead=1) as pool:
        futures = [pool.submit(tasks.length, b"x" * size) for size in sizes]
        assert [f.result(20) for f in futures] == [(size, b"x" * size) for size in sizes]


@pytest.mark.parametrize("function", ["unpackable", "unreadable"])
def test_an_exception_that_cannot_travel_does_not_hang(tasks: ModuleType, function: str) -> None:
    with ProcessPool(1) as pool:
        with pytest.raises(WorkerFailed, match=r"user_tasks\.(Two|Sour).*1 and 2"):
            pool.submit(getattr(tasks, function), 0).result(20)
        assert pool.submit(math.sqrt, 4.0).result(20) == 2


def test_an_argument_and_an_answer_that_cannot_travel_do_not_hang(tasks: ModuleType) -> None:
    with ProcessPool(1) as pool:
        with pytest.raises((pickle.PicklingError, AttributeError)):
            pool.submit(math.sqrt, lambda: 0).result(20)  # type: ignore[arg-type]
        with pytest.raises((pickle.PicklingError, AttributeError)):
            pool.submit(tasks.closure, 0).result(20)
        assert pool.submit(math.sqrt, 4.0).result(20) == 2


def test_in_the_calling_thread_an_error_waits_in_the_future_too() -> None:
    with ProcessPool(0) as pool:
        future = pool.submit(math.sqrt, -1.0)
        with pytest.raises(ValueError, match=r"domain|nonnegative"):
            future.result()


@pytest.mark.parametrize("stubborn", [False, True])
def test_leaving_with_a_task_in_flight_ends_the_worker(
    tasks: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stubborn: bool
) -> None:
    monkeypatch.setattr(processes, "PATIENCE", 0.3)
    with ProcessPool(1) as pool:
        future = pool.submit(tasks.sleep_stubbornly if stubborn else tasks.sleep, str(tmp_path / "sleeps"))
        while not (tmp_path / "sleeps").exists():
            time.sleep(0.01)
    assert pool._workers[0]._process.poll() == (-9 if stubborn else -15)
    with pytest.raises(WorkerDied, match="its pool was left"):
        future.result(5)


def test_what_the_work_prints_does_not_mix_with_its_answer(tasks: ModuleType, capfd: pytest.CaptureFixture) -> None:
    with ProcessPool(1) as pool:
        assert pool.submit(tasks.chatter, "hello").result(20) == ""
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "hello" in captured.err


def test_a_python_that_prints_while_it_starts_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('welcome', end='')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with ProcessPool(1) as pool:
        assert pool.submit(math.sqrt, 4.0).result(20) == 2


def test_nothing_is_imported_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("queue", "colorsys", "pickle"):
        (tmp_path / f"{module}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w'); raise RuntimeError('not ours')")
    monkeypatch.chdir(tmp_path)
    with ProcessPool(1) as pool:
        assert pool.submit(math.sqrt, 4.0).result(20) == 2
    assert not (tmp_path / "ran").exists()


def test_the_pool_needs_nothing_that_windows_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Popen refuses these arguments there; socket pairs cannot be handed on."""
    start = subprocess.Popen.__init__

    def on_windows(self: object, *arguments: object, **options: object) -> None:
        assert not {"pass_fds", "preexec_fn", "process_group", "user", "group", "umask"} & set(options)
        start(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(subprocess.Popen, "__init__", on_windows)
    monkeypatch.delattr("socket.socketpair")
    with ProcessPool(1) as pool:
        assert pool.submit(math.sqrt, 4.0).result(20) == 2


def test_a_script_needs_no_main_guard(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(script), "go"], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[0] == "2.0 3.0"


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks at processes through /proc")
def test_workers_end_with_a_parent_that_was_killed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    parent = subprocess.Popen([sys.executable, str(script), "wait"], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    parent.stdout.readline()
    workers = [int(pid) for pid in parent.stdout.readline().split()]
    assert all(alive(pid) for pid in workers)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 20
    while any(alive(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(alive(pid) for pid in workers)
