"""Windows and macOS: what only some systems have is used where something else is done without it.

Nobody runs these tests on Windows for us: the first part reads the source for what would fail there, the second takes
away what only Linux has and runs the rest.
"""

from __future__ import annotations

import ast
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuebench import files
from cuebench.observers.base import Spec
from cuebench.responses.shared_memory import SharedMemory, bytes_of
from cuebench.responses.store import slug

SOURCE = Path(__file__).parents[1] / "src" / "cuebench"
FILES = sorted(SOURCE.rglob("*.py"))
POSIX_MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix", "syslog", "readline", "uvloop"}
WINDOWS_MODULES = {"msvcrt", "winreg", "winsound", "_winapi"}
POSIX_NAMES = {
    *("fork", "forkpty", "getuid", "geteuid", "getgid", "setsid", "killpg", "getpgid", "wait3", "wait4", "sysconf"),
    *("memfd_create", "posix_fallocate", "posix_fadvise", "sched_getaffinity", "sched_setaffinity", "setpriority"),
    *("pread", "pwrite", "preadv", "pwritev", "mkfifo", "mknod", "chown", "nice", "getloadavg", "statvfs", "uname"),
    *("O_DIRECTORY", "O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_SYNC"),
}
"""What ``os`` has on some systems only."""
POSIX_SIGNALS = {
    "SIGKILL",
    "SIGHUP",
    "SIGQUIT",
    "SIGUSR1",
    "SIGUSR2",
    "SIGALRM",
    "SIGCHLD",
    "SIGPIPE",
    "alarm",
    "pause",
}
"""What ``signal`` has on some systems only."""
TEXT_FILES = {"read_text": 0, "write_text": 1}
"""Method → place of its encoding among the arguments."""


def problems_in(text: str) -> list[str]:
    """Return what would fail, or give other bytes, on another system."""
    tree = ast.parse(text)
    guarded = _guarded(tree)
    found = []
    for node in ast.walk(tree):
        line = f"line {getattr(node, 'lineno', 0)}"
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            only = {n.partition(".")[0] for n in names} & (POSIX_MODULES | WINDOWS_MODULES)
            found += [f"{line}: import of {n}" for n in only if id(node) not in guarded]
        elif isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            missing = {"os": POSIX_NAMES, "signal": POSIX_SIGNALS}.get(owner, set())
            if node.attr in missing and id(node) not in guarded:
                found.append(f"{line}: {owner}.{node.attr}")
        elif isinstance(node, ast.Call):
            found += [f"{line}: {problem}" for problem in _of_call(node)]
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(("/tmp", "/dev/"))
        ):
            found.append(f"{line}: {node.value}")
    return found


def _guarded(tree: ast.AST) -> set[int]:
    """Return the nodes that run only where they work: behind hasattr or the name of the system, or in a try.

    A try counts if it expects that the module or the name is missing, and so does what stands in its branches.
    """
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.If, ast.IfExp)):
            test = ast.unparse(node.test)
            if any(word in test for word in ("hasattr(os", "sys.platform", "os.name")):
                inside |= {id(inner) for inner in ast.walk(node)}
        elif isinstance(node, ast.Try):
            expected = " ".join(ast.unparse(handler.type) for handler in node.handlers if handler.type)
            if any(error in expected for error in ("ImportError", "ModuleNotFoundError", "AttributeError")):
                inside |= {id(inner) for inner in ast.walk(node)}
    return inside


def _of_call(node: ast.Call) -> list[str]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    keywords = {k.arg for k in node.keywords}
    if name in TEXT_FILES and "encoding" not in keywords and len(node.args) <= TEXT_FILES[name]:
        return [f"{name} without an encoding: Windows would take its own"]
    if name == "write_text" and "newline" not in keywords:
        return ["write_text would end lines with CR LF on Windows: say newline, or use write_atomic"]
    if name == "open" and isinstance(node.func, ast.Name) and _is_text(node) and "encoding" not in keywords:
        return ["open without an encoding"]
    inner = node.args[0].func if node.args and isinstance(node.args[0], ast.Call) else None
    if name == "str" and inner is not None and ast.unparse(inner).endswith("relative_to"):
        return ["str of a relative path has \\ on Windows: as_posix()"]
    if any(k.arg in ("preexec_fn", "shell") for k in node.keywords):
        return ["preexec_fn and shell= differ between systems"]
    return []


def _is_text(call: ast.Call) -> bool:
    mode = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "mode"), None)
    return not (isinstance(mode, ast.Constant) and "b" in str(mode.value))


def test_nothing_of_one_system_only() -> None:
    found = {p.relative_to(SOURCE).as_posix(): problems_in(p.read_text("utf-8")) for p in FILES}
    assert not {name: problems for name, problems in found.items() if problems}


@pytest.mark.parametrize(
    "text",
    [
        "import fcntl",
        "def f():\n    import resource",
        "import msvcrt",
        "import os\nos.fork()",
        "import os\nn = len(os.sched_getaffinity(0))",
        "import signal\nsignal.SIGKILL",
        "open('x')",
        "open('x', 'w')",
        "path.read_text()",
        "path.write_text('x')",
        "path.write_text('x', 'utf-8')",
        "name = str(path.relative_to(root))",
        "place = '/tmp/x'",
        "subprocess.run('x', shell=True)",
        "try:\n    import fcntl\nexcept OSError:\n    pass",
    ],
)
def test_the_check_can_fail(text: str) -> None:
    assert problems_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    import fcntl\nexcept ImportError:\n    import msvcrt",
        "import os\nn = len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()",
        "open('x', 'rb')",
        "open('x', encoding='utf-8')",
        "path.read_text('utf-8')",
        "path.write_text('x', 'utf-8', newline='\\n')",
        "path.relative_to(root).as_posix()",
        "import signal\nsignal.SIGTERM",
    ],
)
def test_the_check_passes_what_works(text: str) -> None:
    assert not problems_in(text)


# ------------------------------------------------------------------------------------------- without what Linux has


def test_shared_memory_without_anonymous_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.delattr(os, "posix_fallocate", raising=False)

    def refuse(descriptor: int, size: int) -> None:  # as Windows does while a file is mapped
        if size == 0:
            raise OSError("user-mapped file")
        shorten(descriptor, size)

    shorten = os.ftruncate
    monkeypatch.setattr(os, "ftruncate", refuse)
    memory = SharedMemory()
    block = memory.take(1000)
    assert isinstance(block.file, str)
    bytes_of(block)[:3] = (1, 2, 3)
    program = (
        "import sys\nfrom cuebench.responses.shared_memory import Block, bytes_of\n"
        f"print(bytes_of(Block(*{tuple(block)!r}))[:3].tolist())"
    )
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == "[1, 2, 3]", "another process opens the file by its name"
    memory.empty()
    assert bytes_of(memory.take(10)).size >= 10
    memory.close()
    assert not Path(block.file).exists()


class Locks:
    """Stands for msvcrt: mandatory locks of bytes, each held by one descriptor."""

    LK_NBLCK = 2

    def __init__(self) -> None:
        self.held: dict[int, int] = {}

    def locking(self, descriptor: int, mode: int, count: int) -> None:
        assert (mode, count) == (self.LK_NBLCK, 1)
        place = os.lseek(descriptor, 0, os.SEEK_CUR)
        if self.held.setdefault(place, descriptor) != descriptor:
            raise PermissionError(13, "Permission denied")


def test_locks_of_windows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    locks = Locks()
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", locks)
    with (tmp_path / "x").open("ab") as one, (tmp_path / "x").open("ab") as two:
        files.take_lock(one.fileno())
        assert min(locks.held) > 2**30, "what is locked is no byte that anybody reads"
        with pytest.raises(PermissionError):
            files.take_lock(two.fileno())
        one.write(b"first")
        one.flush()
    assert (tmp_path / "x").read_bytes() == b"first"


def test_a_journal_of_answers_without_what_linux_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from cuebench.errors import UserError
    from cuebench.observers.chat.journal import Journal

    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", Locks())
    monkeypatch.delattr(os, "pread", raising=False)
    first = Journal(tmp_path / "j", {"model": "m"})
    first.open()
    first.asked("key", 0.5)
    second = Journal(tmp_path / "j", {"model": "m"})
    with pytest.raises(UserError, match="another process is asking"):
        second.open()


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("timm:resnet50?pretrained=false", "timm_resnet50_pretrained_false"),
        ("nul", "_nul"),
        ("CON.pth", "_CON.pth"),
        ("console", "console"),
        ('a<b>|"*?c', "a_b_c"),
        ("C:\\models\\net.pt", "C_models_net.pt"),
    ],
)
def test_folders_of_observers_are_names_of_every_system(name: str, folder: str) -> None:
    assert slug(name) == folder


@pytest.mark.parametrize(
    ("text", "scheme", "body"),
    [
        ("checkpoint:C:\\runs\\best.pth?arch=timm:resnet50", "checkpoint", "C:\\runs\\best.pth"),
        ("recorded:D:/people.csv", "recorded", "D:/people.csv"),
        ("python:C:\\code\\net.py:make", "python", "C:\\code\\net.py:make"),
    ],
)
def test_paths_with_a_drive(text: str, scheme: str, body: str) -> None:
    spec = Spec.parse(text)
    assert (spec.scheme, spec.body) == (scheme, body)


def test_every_character_can_be_printed_into_a_pipe_of_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    from cuebench import cli

    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", stream)
    cli._print_anything()
    print("τ ≥ 0")
    stream.flush()
    assert written.getvalue().strip() == b"\\u03c4 \\u2265 0"
