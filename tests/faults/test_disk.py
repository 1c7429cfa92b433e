"""A full disk, read-only folders, no locks, clocks that jump, several processes: told, and nothing is lost."""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuebench as cb
from cuebench.errors import UserError
from cuebench.responses.store import Memory


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_disk_that_fills_up_at_any_step(
    commands: Any, run_command: Callable[..., list[str]], contents: Any, tmp_path: Path, error: int, everything: bool
) -> None:
    whole = commands(*run_command(tmp_path / "whole"))
    expected = contents(tmp_path / "whole")
    draw = random.Random(error)
    steps = range(1, whole["steps"], 2)
    for step in steps if everything else draw.sample(steps, 3):
        out = tmp_path / f"out-{step}"
        result = commands(*run_command(out), fail_at=step, errno=error)
        assert result["status"] in (0, 2), result  # 0: nothing was left to write
        if result["status"] == 2:
            assert "Traceback" not in result["output"]
            assert "→" in result["output"], result["output"]
        again = commands(*run_command(out))
        assert again["status"] == 0, again
        differing = {name for name in expected if contents(out).get(name) != expected[name]} - {"run.json"}
        assert not differing, step


def test_clocks_that_jump_change_nothing(
    commands: Any, run_command: Callable[..., list[str]], contents: Any, tmp_path: Path
) -> None:
    found = []
    for clock in (False, True):
        out = tmp_path / f"out-{clock}"
        assert commands(*run_command(out), kill_at=60, clock=clock)["signal"] == 9
        assert commands(*run_command(out), clock=clock)["status"] == 0
        found.append({name: data for name, data in contents(out).items() if name != "run.json"})
    assert found[0] == found[1]


NO_CAPABILITIES = sys.platform != "linux" and os.geteuid() == 0


@pytest.mark.skipif(NO_CAPABILITIES, reason="everything is allowed to root, and this system cannot take that away")
def test_a_read_only_folder(run_command: Callable[..., list[str]], commands: Any, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    result = commands(*run_command(tmp_path / "closed" / "run"), without_privileges=True)
    assert result["status"] == 2
    assert "permission denied" in result["output"]
    assert "Traceback" not in result["output"]


@pytest.mark.skipif(NO_CAPABILITIES, reason="everything is allowed to root, and this system cannot take that away")
def test_a_run_folder_that_was_closed(run_command: Callable[..., list[str]], commands: Any, tmp_path: Path) -> None:
    """What would change it is refused; it can still be read, and stays as it is."""
    out = tmp_path / "run"
    assert commands(*run_command(out))["status"] == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    for path in (*out.rglob("*"), out):
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        for arguments in (run_command(out), run_command(out, "ideal:texture"), ["score", str(out)]):
            result = commands(*arguments, without_privileges=True)
            assert result["status"] == 2, result["output"]
            assert "permission denied" in result["output"]
            assert "Traceback" not in result["output"]
        shown = commands("report", out, without_privileges=True)
        assert shown["status"] == 0, shown["output"]
        assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    finally:
        for path in (out, *out.rglob("*")):
            path.chmod(0o700)


def mounted(folder: Path, size: str, script: str, *words: str) -> str:
    """Run a shell script with a small file system in the folder, in a name space of its own; skip where none may be."""
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare")
    folder.mkdir(exist_ok=True)
    probe = ["unshare", "--mount", "mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)]
    allowed = subprocess.run(probe, capture_output=True, text=True, check=False)
    if allowed.returncode:
        pytest.skip(f"no file system may be mounted here: {allowed.stderr.strip()}")
    mount = f'mount -t tmpfs -o size={size} none "$0"\n'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mount + script, str(folder), *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_real_full_disk(run_command: Callable[..., list[str]], contents: Any, tmp_path: Path, commands: Any) -> None:
    """A file system of 24 KiB: the run ends with what to do; with more room the same command ends in the same bytes."""
    whole = tmp_path / "whole"
    assert commands(*run_command(whole))["status"] == 0
    disk, saved = tmp_path / "disk", tmp_path / "saved"
    script = """
    "$@" && echo "first 0" || echo "first $?"
    mount -o remount,size=64m "$0"
    "$@" && echo "second 0" || echo "second $?"
    cp -r "$0/run" "$(dirname "$0")/saved"
    """
    command = [sys.executable, "-m", "cuebench", *run_command(disk / "run")]
    text = mounted(disk, "24k", script, *command)
    assert "first 2" in text, text
    assert "the disk is full" in text
    assert "Traceback" not in text
    assert "second 0" in text, text
    expected, found = contents(whole), contents(saved)
    assert {name for name in expected if found.get(name) != expected[name]} <= {"run.json"}


def test_a_real_read_only_file_system(run_command: Callable[..., list[str]], tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    script = 'mount -o remount,ro "$0"\n"$@" && echo "status 0" || echo "status $?"'
    text = mounted(disk, "1m", script, sys.executable, "-m", "cuebench", *run_command(disk / "run"))
    assert "status 2" in text, text
    assert "the file system is read-only" in text
    assert "Traceback" not in text


def test_a_full_temporary_folder_is_said_before_the_system_kills(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(UserError, match=r"(?s)no room for 4 MiB of answers.*TMPDIR"):
        Memory(0).room(np.zeros((1, 1024), np.float32), 1024)


def test_a_real_full_temporary_folder(tmp_path: Path) -> None:
    """More than the file system of the temporary folder holds; without the check this ends in SIGBUS."""
    stats = os.statvfs(tempfile.gettempdir())
    rows = stats.f_bavail * stats.f_frsize // 2**20 + 2**20  # columns of 1 MiB, a TiB more than is free
    with pytest.raises(UserError, match="has no room"):
        Memory(0).room(np.zeros((1, 2**17), np.float64), rows)


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOTSUP])
def test_a_file_system_without_locks_is_told(data: Path, tmp_path: Path, monkeypatch: Any, code: int) -> None:
    import fcntl

    def none(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", none)
    events: list[Any] = []
    options: dict[str, Any] = {"data_root": data, "out": tmp_path / "run", "resamples": 100}
    scores = cb.evaluate("ideal:shape", "cue_conflict", on_event=events.append, **options)
    assert any("has no locks" in e.message for e in events if e.kind == "notice")
    assert any("has no locks" in notice for notice in scores.record.notices)
    with pytest.warns(RuntimeWarning, match="has no locks"):
        cb.score(tmp_path / "run")


@pytest.mark.parametrize("count", [2, 3])
def test_several_processes_on_one_folder(
    run_command: Callable[..., list[str]], contents: Any, commands: Any, tmp_path: Path, count: int
) -> None:
    """One writes, the others are refused; after all of them the folder is as one run leaves it."""
    assert commands(*run_command(tmp_path / "whole"))["status"] == 0
    arguments = [sys.executable, "-m", "cuebench", *run_command(tmp_path / "out")]
    processes = [subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) for _ in range(count)]
    ended = [(p.communicate(timeout=100)[1], p.returncode) for p in processes]
    assert 0 in [status for _, status in ended], ended
    for text, status in ended:
        assert status == 0 or (status == 2 and "another run is writing" in text), text
    files = [{n: d for n, d in contents(tmp_path / name).items() if n != "run.json"} for name in ("whole", "out")]
    assert files[0] == files[1]


def test_the_lock_ends_with_its_process(tmp_path: Path, data: Path) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom cuebench.runs.record import locked\n"
        "with locked(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    out = tmp_path / "run"
    out.mkdir()
    holder = subprocess.Popen([sys.executable, "-c", code, str(out)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    options: dict[str, Any] = {"data_root": data, "out": out, "resamples": 100}
    with pytest.raises(UserError, match="another run is writing"):
        cb.evaluate("ideal:shape", "cue_conflict", **options)
    holder.kill()
    holder.wait(10)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            assert cb.evaluate("ideal:shape", "cue_conflict", **options)
            return
        except UserError:
            time.sleep(0.05)
    pytest.fail("the lock outlived its process")
