"""How a program ends: no thread is cut off in code of C++, which aborts the process ("terminate called …")."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from cuebench.files import arrow_source, open_parquet, parquet_bytes, read_rows
from cuebench.reading import parse_parquet

SOURCE = Path(__file__).parents[1] / "src" / "cuebench"
CSV = b"a,b,c\n" + b"1,2,3\n" * 20
PARQUET = parquet_bytes(pa.table({name: ["x"] * 50 for name in "abc"}))
released_here: list[bool] = []


class Bytes(np.ndarray):
    """Bytes that say which thread released them."""

    def __del__(self) -> None:
        released_here.append(threading.current_thread() is threading.main_thread())


READERS: dict[str, tuple[bytes, Callable[[memoryview], object]]] = {
    "CSV": (CSV, lambda data: pyarrow.csv.read_csv(arrow_source(data))),
    "parse_parquet": (PARQUET, lambda data: parse_parquet(data, "x")),
    "open_parquet": (PARQUET, lambda data: read_rows(open_parquet(data).file, threads=True)),
}


@pytest.mark.parametrize("reader", READERS)
def test_no_thread_of_arrow_releases_bytes_of_python(reader: str) -> None:
    raw, read = READERS[reader]
    released_here.clear()
    for _ in range(100):  # without the copy, each of them with a probability of .1 to .2
        read(memoryview(np.frombuffer(raw, np.uint8).view(Bytes)))
    time.sleep(0.1)
    assert len(released_here) >= 100
    assert all(released_here)


def test_a_program_waits_for_the_import_that_it_began(tmp_path: Path) -> None:
    done = tmp_path / "done"
    (tmp_path / "torch.py").write_text(f"import time\ntime.sleep(1)\nopen({str(done)!r}, 'w').close()\n")
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    words = ["run", "-p", "cue_conflict", "-o", "recorded:bad.csv", "-o", "torchvision:resnet18", "--out", "run"]
    paths = os.pathsep.join([str(tmp_path), str(SOURCE.parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", "from cuebench.cli import main; main()", *words, "--data-root", "nowhere"]
    ended = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True
    )
    assert ended.returncode == 2, ended.stderr
    assert done.exists()


DAEMONS = {
    "processes.py": "waits for a child process, which its pool ends and joins",
    "observers/chat/endpoint.py": "waits for the network, in C",
    "observers/adapters/_hub.py": "waits for the network, in C; resolving a name has no timeout",
    "study/writer.py": "joined when the server stops",
    "stimuli/curation/server.py": "waits for a browser, in C",
}
"""Files that start daemon threads → why nothing of C++ is cut off in them."""
OF_PYTHON = {"files.py": "columns that are written, not read", "responses/ray_worker.py": "answers, handed to Ray"}
"""Files that hand memory of Python's to Arrow → what for."""


def files_that_name(*names: str) -> set[str]:
    """Return the files of cuebench in which one of these attributes or keywords occurs."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            name = getattr(node, "attr", None) or (getattr(node, "arg", None) or getattr(node, "id", None))
            if isinstance(node, ast.Attribute | ast.keyword | ast.Name) and name in names:
                found.add(path.relative_to(SOURCE).as_posix())
    return found


def test_daemon_threads_run_no_code_of_cpp() -> None:
    assert files_that_name("daemon", "daemon_threads") == set(DAEMONS)


def test_arrow_reads_memory_of_its_own() -> None:
    assert files_that_name("BufferReader", "PythonFile", "input_stream") == {"files.py"}
    assert files_that_name("py_buffer") == set(OF_PYTHON)
