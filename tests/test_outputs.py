"""What stands at the path of an output stays what it is: links, pipes, devices, folders; `-` prints."""

from __future__ import annotations

import ast
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cuebench.errors import UserError
from cuebench.files import make_folder, only_files, replacing, write_atomic

SOURCE = Path(__file__).parents[1] / "src" / "cuebench"
pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes and links as POSIX has them")


def received(pipe: Path, write: object) -> bytes:
    """Return what a reader of a pipe receives meanwhile."""
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    assert callable(write)
    write()
    reader.join(10)
    return got[0]


@pytest.mark.parametrize("links", [1, 2])
def test_links_stay_and_their_file_is_replaced(tmp_path: Path, links: int) -> None:
    home, file = tmp_path / "home", tmp_path / "elsewhere" / "file"
    home.mkdir()
    file.parent.mkdir()
    file.write_bytes(b"old")
    before = file.stat().st_ino
    (home / "0").symlink_to(Path("..") / "elsewhere" / "file")
    for number in range(1, links):
        (home / f"{number}").symlink_to(f"{number - 1}")
    link = home / f"{links - 1}"
    write_atomic(link, b"new")
    assert link.is_symlink()
    assert file.read_bytes() == b"new"
    assert file.stat().st_ino != before  # replaced as a whole, not written into
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == sorted(["file", *map(str, range(links))])


def test_a_link_to_nothing_leads_to_a_new_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("new/file")
    write_atomic(tmp_path / "link", b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "new" / "file").read_bytes() == b"x"


def test_links_in_a_circle_are_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(UserError, match="circle"):
        write_atomic(tmp_path / "a", b"x")


def test_a_pipe_stays_and_is_written_into(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("pipe")
    for path in (pipe, link):
        assert received(pipe, lambda path=path: write_atomic(path, b"x" * 100_000)) == b"x" * 100_000
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert {p.name for p in tmp_path.iterdir()} == {"pipe", "link"}


def test_nothing_reaches_a_pipe_after_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "pipe") as file:
        file.write_bytes(b"half" + (tmp_path / "missing").read_bytes())
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_device_is_written_into(tmp_path: Path) -> None:
    (tmp_path / "null").symlink_to(os.devnull)  # a link: the device itself is never at risk
    write_atomic(tmp_path / "null", b"x")
    assert (tmp_path / "null").is_symlink()
    assert stat.S_ISCHR((tmp_path / "null").stat().st_mode)


def test_folders_are_a_mistake_and_stay(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    for path in (tmp_path, tmp_path / "link"):
        with pytest.raises(UserError, match="is a folder") as caught:
            write_atomic(path, b"x")
        assert "NAME" in caught.value.hint
    assert [p.name for p in tmp_path.iterdir()] == ["link"]


def test_a_private_file_stays_private(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "file").chmod(0o600)
    write_atomic(tmp_path / "file", b"new")
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


def test_a_folder_is_never_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for make in (lambda: make_folder(Path("-")), lambda: write_atomic(Path("-/x.png"), b"x")):
        with pytest.raises(UserError, match="cannot be printed"):
            make()
    assert not list(tmp_path.iterdir())


def test_what_else_is_printed_gets_out_of_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with only_files():
        print("a summary")
        write_atomic(Path("-"), "τ,\N{DEGREE SIGN}\n".encode())
    assert capsys.readouterr() == ("τ,\N{DEGREE SIGN}\n", "a summary\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("to", ["pipe", "file"])
@pytest.mark.parametrize("path", ["-", "/dev/stdout", "/dev/fd/1", "/dev/stderr"])
def test_standard_streams_get_the_bytes(tmp_path: Path, path: str, to: str) -> None:
    if not Path("/dev/stdout").exists():
        pytest.skip("no /dev/stdout")
    code = (
        "import sys; from pathlib import Path; from cuebench.files import write_atomic; print('first', flush=True);"
        "print('first', file=sys.stderr, flush=True); write_atomic(Path(sys.argv[1]), bytes(range(256)));"
        "print('last'); print('last', file=sys.stderr)"
    )
    files = {name: (tmp_path / name).open("w+b") for name in ("stdout", "stderr")}
    streams = files if to == "file" else dict.fromkeys(files, subprocess.PIPE)
    command = [sys.executable, "-c", code, path]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parent)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, check=True, **streams)
    printed = {"stdout": done.stdout, "stderr": done.stderr}
    if to == "file":
        printed = {name: (tmp_path / name).read_bytes() for name in files}
    for file in files.values():
        file.close()
    data = bytes(range(256))
    assert printed["stderr" if path == "/dev/stderr" else "stdout"] == b"first\n" + data + b"last\n"
    assert printed["stdout" if path == "/dev/stderr" else "stderr"] == b"first\nlast\n"
    assert {p.name for p in tmp_path.iterdir()} == {"stdout", "stderr"}


RENAMES = {
    "files.py": "the one function",
    "stimuli/archive.py": "a folder that was unpacked aside",
    "stimuli/fetch.py": "a download that can be continued, beside the file behind the links",
    "responses/collect.py": "answers that are set aside",
}
"""Files in which something is renamed or replaced → why not by `files.replacing`."""
OPENED = {
    "files.py": "the one function",
    "_process_main.py": "the pipe to the process that asked",
    "folders.py": "the mark of a folder that is being filled",
    "observers/adapters/suite.py": "the temporary file of `replacing`",
    "reports/board/folder.py": "the temporary file of `replacing`",
    "responses/pixel_cache.py": "the temporary file of `replacing`",
    "responses/shared_memory.py": "memory that processes share",
    "runs/record.py": "the lock of a run",
    "stimuli/_download.py": "the unfinished part of a download",
    "stimuli/archive.py": "files of a new folder",
    "stimuli/curation/verdict_log.py": "lines are added",
    "stimuli/fetch.py": "the lock of a download",
    "stimuli/input_log.py": "lines are added",
    "study/bundle.py": "files of a new folder",
    "study/folder.py": "images of a new folder",
    "study/secrets.py": "a file of a new folder, which nobody else can read",
    "study/vendor.py": "libraries of the study's page, in the package itself",
}
"""Files that open files for writing themselves → what for."""


def calls(tree: ast.AST) -> dict[str, set[str]]:
    """Return whether files are renamed and opened for writing in a file."""
    found: dict[str, set[str]] = {"renamed": set(), "opened": set()}
    for node in (n for n in ast.walk(tree) if isinstance(n, ast.Call)):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        owner = getattr(getattr(node.func, "value", None), "id", "")
        given = [part for value in (*node.args, *(k.value for k in node.keywords)) for part in ast.walk(value)]
        texts = [part.value for part in given if isinstance(part, ast.Constant)]
        if name == "rename" or (name == "replace" and (owner == "os" or (len(node.args) == 1 and not node.keywords))):
            found["renamed"].add(ast.unparse(node))
        modes = [t for t in texts if isinstance(t, str) and len(t) < 4 and set(t) <= set("rwaxbt+")]
        writes = name in ("open", "fdopen") and any(set(mode) & set("wax+") for mode in modes)
        if writes or name in ("write_bytes", "write_text", "mkstemp", "NamedTemporaryFile"):
            found["opened"].add(ast.unparse(node))
    return found


@pytest.mark.parametrize(("what", "allowed"), [("renamed", RENAMES), ("opened", OPENED)])
def test_every_output_is_written_by_the_one_function(what: str, allowed: dict[str, str]) -> None:
    files = {path.relative_to(SOURCE).as_posix(): path for path in SOURCE.rglob("*.py")}
    found = {name: calls(ast.parse(path.read_text("utf-8")))[what] for name, path in files.items()}
    assert {name: found[name] for name in found if found[name] and name not in allowed} == {}
    assert {name for name in allowed if not found[name]} == set()
