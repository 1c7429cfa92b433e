"""What files of users import: what lies beside them, as with ``python FILE.py``; and nobody else gets it by mistake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuebench.errors import UserError
from cuebench.processes import ProcessPool
from cuebench.python_files import import_file, load_file

INSTALLED = [sys.executable, "-P", "-c"]
"""As the installed command starts: without the current folder on the path."""


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture(autouse=True)
def path_of_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put Python's path back, and forget what was imported from the folder of the test."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for name, module in list(sys.modules.items()):
        contents = getattr(module, "__dict__", {})
        if str(tmp_path) in f"{contents.get('__file__')} {contents.get('__path__')}":
            del sys.modules[name]


def run(code: str) -> str:
    """Run code in a new process; return what it prints."""
    made = subprocess.run([*INSTALLED, code], capture_output=True, text=True, env={**os.environ}, check=False)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def test_a_file_imports_what_lies_beside_it_at_once_and_later(tmp_path: Path) -> None:
    write(
        tmp_path,
        model="from net import A\ndef late():\n    import later\n    return later.B",
        net="A = 1",
        later="from parts.last import B",
        **{"parts/last": "B = 2"},
    )
    code = f"from cuebench.python_files import load_file; m = load_file({str(tmp_path / 'model.py')!r})"
    assert run(f"{code}; print(m.A, m.late())") == "1 2"
    assert run(f"{code}; import importlib, pickle; print(importlib.import_module('net').A)") == "1"


def test_a_file_beside_hides_nothing_from_anybody_else(tmp_path: Path) -> None:
    """The standard library and installed packages stay what they are, whatever a user's folder holds."""
    taken = ("queue", "sched", "numpy", "scipy", "typer", "cuebench")
    write(tmp_path, model="import queue, sched\nOWN = queue.OWN, sched.OWN", **dict.fromkeys(taken, "OWN = 'mine'"))
    code = f"""
from cuebench.python_files import load_file
print(load_file({str(tmp_path / "model.py")!r}).OWN)
import sched, queue, numpy, scipy, typer, cuebench.runs, concurrent.futures
print(sched.scheduler, queue.Queue, numpy.array, scipy.__version__, typer.Typer)
"""
    lines = run(code).splitlines()
    assert lines[0] == "('mine', 'mine')"
    assert len(lines) == 2


def test_two_folders_with_modules_of_the_same_names_are_two(tmp_path: Path) -> None:
    """Also in packages with and without ``__init__.py``, and where something is imported later."""
    for number in (1, 2):
        write(
            tmp_path / str(number),
            model="from twins import N\nfrom models.small import M\nimport models.small\nfrom kit import K\n"
            "import kit.deep\ndef late():\n    import later\n    return later.L, models.small.M, kit.deep.K",
            twins=f"N = {number}",
            later="from twins import N as L",
            **{"models/small": "from twins import N as M", "kit/__init__": "from .deep import K"},
            **{"kit/deep": "import twins\nK = twins.N"},
        )
    one, two = (import_file(tmp_path / str(number) / "model.py") for number in (1, 2))
    assert (one.N, one.M, one.K, one.late()) == (1, 1, 1, (1, 1, 1))
    assert (two.N, two.M, two.K, two.late()) == (2, 2, 2, (2, 2, 2))
    assert two.K.__class__ is int
    assert sys.modules["twins"].N == 1


def test_the_hash_of_the_code_does_not_depend_on_what_was_loaded_before(tmp_path: Path) -> None:
    for number in (1, 2):
        write(tmp_path / str(number), model="from net import N\nimport queue", net=f"N = {number}", queue="A = 1")
    code = (
        "import sys; from cuebench.python_files import import_file; from cuebench.source_code import reachable_code\n"
        "for file in sys.argv[1:]: print(reachable_code([import_file(file).__name__]).digest)"
    )
    first, second = (str(tmp_path / n / "model.py") for n in "12")
    hashes = {}
    for files in ((first,), (second,), (first, second), (second, first)):
        made = subprocess.run([*INSTALLED, code, *files], capture_output=True, text=True, check=True)
        for file, digest in zip(files, made.stdout.split(), strict=True):
            assert hashes.setdefault(file, digest) == digest
    assert hashes[first] != hashes[second]


@pytest.mark.parametrize("changed", ["net.py", "queue.py", "kit/deep.py"])
def test_a_change_beside_is_noticed(tmp_path: Path, changed: str) -> None:
    write(tmp_path / "other", model="import net, kit", net="N = 0", **{"kit/__init__": ""})
    write(
        tmp_path / "mine",
        model="import net\ndef f():\n    import queue\n    from kit.deep import K",
        net="N = 1",
        queue="N = 1",
        **{"kit/__init__": "", "kit/deep": "K = 1"},
    )
    code = (
        "import sys; from cuebench.python_files import import_file; from cuebench.source_code import reachable_code\n"
        "for file in sys.argv[1:]: print(reachable_code([import_file(file).__name__]).digest)"
    )

    def digests() -> list[str]:
        files = [str(tmp_path / folder / "model.py") for folder in ("other", "mine")]
        return subprocess.run([*INSTALLED, code, *files], capture_output=True, text=True, check=True).stdout.split()

    before = digests()
    (tmp_path / "mine" / changed).write_text("K = N = 2")
    after = digests()
    assert before[0] == after[0]
    assert before[1] != after[1]


def test_a_module_that_the_program_has_loaded_is_the_same_module(tmp_path: Path) -> None:
    write(tmp_path, model="import net", net="N = 1")
    sys.path.insert(0, str(tmp_path))
    import net  # type: ignore[import-not-found]

    assert import_file(tmp_path / "model.py").net is net


def test_an_injected_module_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = type(sys)("net")
    monkeypatch.setitem(sys.modules, "net", fake)
    write(tmp_path, model="import net", net="raise SystemExit")
    assert import_file(tmp_path / "model.py").net is fake


def test_an_installed_package_is_not_a_folder_of_that_name(tmp_path: Path) -> None:
    """As with ``python FILE.py``: a folder without ``__init__.py`` comes after every package."""
    write(tmp_path, model="import numpy\nARRAY = numpy.array")
    (tmp_path / "numpy").mkdir()
    assert callable(import_file(tmp_path / "model.py").ARRAY)


def test_the_folder_of_a_linked_file_is_that_of_the_file(tmp_path: Path) -> None:
    write(tmp_path / "real", model="from net import N", net="N = 1")
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "model.py").symlink_to(tmp_path / "real" / "model.py")
    assert import_file(tmp_path / "link" / "model.py").N == 1


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    write(tmp_path, model="import nobody_has_this")
    with pytest.raises(UserError, match="No module named 'nobody_has_this'"):
        load_file(tmp_path / "model.py")


def test_worker_processes_import_it_too(tmp_path: Path) -> None:
    write(tmp_path / "other", part="import helper", helper="def f(x):\n    return x", queue="raise SystemExit")
    write(tmp_path, part="import helper", helper="def f(x):\n    return x + 1", queue="raise SystemExit")
    load_file(tmp_path / "part.py")
    load_file(tmp_path / "other" / "part.py")
    with ProcessPool(1) as pool:
        for folder, answer in ((tmp_path, 3), (tmp_path / "other", 2)):
            load = f"__import__('cuebench.python_files', fromlist=['load_file']).load_file({str(folder / 'part.py')!r})"
            assert pool.submit(eval, f"{load}.helper.f(2)").result() == answer
        assert pool.submit(sys.modules["helper"].f, 2).result() == 3


PARTS = {
    "cue": "from cuebench.cues.base import CueInfo\n"
    "def part(image):\n    from beside import SAME\n    return SAME(image)\n"
    "part.info = CueInfo(kind='corruption', reference='none')",
    "figure": "from beside import SAME\nfrom cuebench.registry import figures\npart = figures.get('confusion')",
    "protocol": "import beside\nfrom cuebench.registry import protocols\npart = protocols.get('cue_conflict')",
}


@pytest.mark.parametrize("kind", PARTS)
def test_parts_of_every_kind_import_it(kind: str, tmp_path: Path) -> None:
    write(tmp_path, part=PARTS[kind], beside="def SAME(image):\n    return image")
    name = f"python:{tmp_path / 'part.py'}:part"
    code = f"from cuebench import registry; part = registry.{kind}s.get({name!r})"
    assert run(f"{code}; print(type(part).__name__)")
    if kind == "cue":
        assert run(f"{code}; print(part(7))") == "7"


def test_the_command_measures_a_model_of_several_files(tmp_path: Path) -> None:
    """As docs/own_models.md has it, with the installed command."""
    from cuebench.stimuli.makers.base import make

    make("cue_conflict", tmp_path / "data", count=4)
    classes = list(json.loads((tmp_path / "data/cue_conflict/labels.json").read_text())["targets"])
    write(
        tmp_path,
        my_model="import cuebench as cb\nfrom net import answer\n"
        "def mine():\n    return cb.wrap(answer, preprocess=cb.Preprocess(size=8, resize=8), name='mine',\n"
        "        labels='labels.json', fingerprint='1')",
        net="import numpy as np\ndef answer(images):\n    return np.eye(LEN)[:1].repeat(len(images), 0)".replace(
            "LEN", f"{len(classes)}"
        ),
    )
    (tmp_path / "labels.json").write_text(json.dumps(classes))
    command = [str(Path(sys.executable).with_name("cuebench")), "run", "-p", "cue_conflict", "--data-root", "data",
               "--out", "run", "-o", "python:my_model.py:mine", "--resamples", "100"]  # fmt: skip
    made = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    assert "mine" in (tmp_path / "run/scores.json").read_text("utf-8")
