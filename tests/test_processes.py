"""Worker processes: from a script without a main guard, with errors, with dead workers, with a dead parent."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cuebench.processes import ProcessPool

SCRIPT = """
import math, os, sys, time
from cuebench.processes import ProcessPool
with ProcessPool(2) as pool:
    print(*[pool.submit(math.sqrt, x).result() for x in (4.0, 9.0)], flush=True)
    print(*[w._process.pid for w in pool._crew], flush=True)
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


def test_a_dead_worker_loses_nothing() -> None:
    with ProcessPool(1) as pool:
        pool._crew[0]._process.kill()
        pool._crew[0]._process.wait()
        assert pool.submit(math.sqrt, 16.0).result() == 4


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
