"""Changes of what a model does: each gives another fingerprint, or is found by asking again; none goes unnoticed.

Every case is a model of two files or more, a change, and by which of the two it is noticed.
"""

from __future__ import annotations

import builtins
import collections
import enum
import functools
import importlib
import json
import os
import pathlib
import random
import subprocess
import sys
import threading
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image

from cuebench import imports, source_code
from cuebench.files import hash_file
from cuebench.labels import LabelSpace
from cuebench.observers.base import LoadOptions
from cuebench.observers.load import load
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.fingerprint import hash_behaviour, hash_hooks, hash_weights
from cuebench.observers.wrap import wrap
from cuebench.python_files import import_file, name_of_file
from cuebench.responses.collect import collect
from cuebench.responses.job import Job, JobRecord
from cuebench.responses.pictures import DecodePool
from cuebench.responses.store import Key, ShardFolder
from cuebench.types import Stimulus, StimulusSet

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]
torch = pytest.importorskip("torch")

HASH, AGAIN = "fingerprint", "asking again"
MODEL = """
import torch
{top}

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.f = torch.nn.Linear(3, 2)
        {init}

    def forward(self, x):
        x = self.f(x.mean((2, 3)))
        {inside}
        return {result}
"""
SCALE = "SCALE = 2\ndef f(x):\n    return x * SCALE\n"


@dataclass(frozen=True)
class Case:
    """A model in ``model.py``, further files, and a change: (file, old text, new text) or a function."""

    change: Any
    by: str = HASH
    top: str = ""
    init: str = "pass"
    inside: str = "pass"
    result: str = "x"
    files: dict[str, str] = field(default_factory=dict)
    module: str = ""


def replaced_function() -> None:
    sys.modules["helper"].f = lambda x: x * 3  # type: ignore[attr-defined]


def replaced_constant() -> None:
    sys.modules["helper"].SCALE = 3  # type: ignore[attr-defined]


def replaced_in_torch() -> None:
    torch.nn.functional.hardtanh = lambda x: x * 3


def global_hook() -> None:
    torch.nn.modules.module.register_module_forward_hook(lambda module, given, output: output * 3)


def environment() -> None:
    os.environ["CUEBENCH_TEST_SCALE"] = "3"


IN_HELPER = ("helper.py", "SCALE = 2", "SCALE = 3")
CASES = {
    "forward": Case(("model.py", "x * 2", "x * 3"), result="x * 2"),
    "a constant of the same file": Case(("model.py", "K = 2", "K = 3"), top="K = 2", result="x * K"),
    "a helper's function": Case(
        ("helper.py", "x * SCALE", "x / SCALE"), top="import helper", result="helper.f(x)", files={"helper.py": SCALE}
    ),
    "a helper's constant": Case(IN_HELPER, top="from helper import f", result="f(x)", files={"helper.py": SCALE}),
    "a helper of a helper": Case(
        IN_HELPER,
        top="from middle import g",
        result="g(x)",
        files={"helper.py": SCALE, "middle.py": "import helper\ndef g(x):\n    return helper.f(x)\n"},
    ),
    "import package.module": Case(
        ("pp/sub.py", "= 2", "= 3"),
        top="import pp.sub",
        result="pp.sub.f(x)",
        files={"pp/__init__.py": "", "pp/sub.py": SCALE},
    ),
    "a module of a package that others import": Case(
        ("pp/sub.py", "= 2", "= 3"),
        top="import pp\nimport other",
        result="pp.sub.f(x)",
        files={"pp/__init__.py": "", "pp/sub.py": SCALE, "other.py": "import pp.sub\n"},
    ),
    "the package that a model is in": Case(
        ("pp/__init__.py", "= 2", "= 3"),
        module="pp.inside.model",
        top="import sys",
        result="x * sys.modules['pp'].SCALE",
        files={"pp/__init__.py": "SCALE = 2", "pp/inside/__init__.py": ""},
    ),
    "the package of a computed import": Case(
        ("pp/__init__.py", "= 2", "= 3"),
        top="import importlib\nhelper = importlib.import_module('pp' + '.sub')",
        result="helper.f(x)",
        files={
            "pp/__init__.py": "SCALE = 2",
            "pp/sub.py": "def f(x):\n    import sys\n    return x * sys.modules['pp'].SCALE",
        },
    ),
    "a package without __init__": Case(
        ("space/sub.py", "= 2", "= 3"), top="from space import sub", result="sub.f(x)", files={"space/sub.py": SCALE}
    ),
    "a relative import": Case(
        ("pp/sub.py", "= 2", "= 3"),
        module="pp.model",
        top="from . import sub",
        result="sub.f(x)",
        files={"pp/__init__.py": "", "pp/sub.py": SCALE},
    ),
    "a star import": Case(
        ("pp/sub.py", "= 2", "= 3"),
        top="from pp import *",
        result="f(x)",
        files={"pp/__init__.py": "from .sub import *\n", "pp/sub.py": SCALE},
    ),
    "an import inside forward": Case(
        IN_HELPER, inside="import helper", result="helper.f(x)", files={"helper.py": SCALE}
    ),
    "an import in a try": Case(
        IN_HELPER,
        top="try:\n    import helper\nexcept ImportError:\n    pass",
        result="helper.f(x)",
        files={"helper.py": SCALE},
    ),
    "import_module inside forward": Case(
        IN_HELPER,
        inside="import importlib; helper = importlib.import_module('helper')",
        result="helper.f(x)",
        files={"helper.py": SCALE},
    ),
    "a computed import while it is loaded": Case(
        IN_HELPER,
        top="import importlib\nhelper = importlib.import_module('hel' + 'per')",
        result="helper.f(x)",
        files={"helper.py": SCALE},
    ),
    "a computed import inside forward": Case(
        IN_HELPER,
        AGAIN,
        inside="import importlib; helper = importlib.import_module('hel' + 'per')",
        result="helper.f(x)",
        files={"helper.py": SCALE},
    ),
    "a module kept as an attribute": Case(
        IN_HELPER, init="import helper; self.m = helper", result="self.m.f(x)", files={"helper.py": SCALE}
    ),
    "a module in a list": Case(
        IN_HELPER, init="import helper; self.m = [helper]", result="self.m[0].f(x)", files={"helper.py": SCALE}
    ),
    "an object of a helper's class": Case(
        ("helper.py", "x * 2", "x * 3"),
        init="from helper import C; self.m = C()",
        result="self.m(x)",
        files={"helper.py": "class C:\n    def __call__(self, x):\n        return x * 2\n"},
    ),
    "an enum of a helper": Case(
        ("helper.py", "A = 2", "A = 3"),
        init="from helper import E; self.m = E.A",
        result="x * self.m.value",
        files={"helper.py": "import enum\nclass E(enum.Enum):\n    A = 2\n"},
    ),
    "a decorator of a helper": Case(
        ("helper.py", "x) * 2", "x) * 3"),
        top="import helper\n@helper.twice\ndef g(x):\n    return x",
        result="g(x)",
        files={"helper.py": "def twice(g):\n    return lambda x: g(x) * 2\n"},
    ),
    "a helper named like a standard module": Case(
        ("tabnanny.py", "= 2", "= 3"), top="import tabnanny", result="tabnanny.f(x)", files={"tabnanny.py": SCALE}
    ),
    "a helper named like a library": Case(
        ("open_clip.py", "= 2", "= 3"), top="import open_clip", result="open_clip.f(x)", files={"open_clip.py": SCALE}
    ),
    "a function replaced from outside": Case(
        replaced_function, top="import helper", result="helper.f(x)", files={"helper.py": SCALE}
    ),
    "a constant replaced from outside": Case(
        replaced_constant, top="import helper", result="helper.f(x)", files={"helper.py": SCALE}
    ),
    "a function of torch replaced": Case(replaced_in_torch, AGAIN, result="torch.nn.functional.hardtanh(x)"),
    "a hook of all modules": Case(global_hook),
    "an environment variable": Case(
        environment, AGAIN, top="import os", result="x * int(os.environ.get('CUEBENCH_TEST_SCALE', 2))"
    ),
    "a data file": Case(
        ("scale.txt", "2", "3"),
        AGAIN,
        top="from pathlib import Path",
        result="x * int((Path(__file__).parent / 'scale.txt').read_text())",
        files={"scale.txt": "2"},
    ),
    "an installed package of another version": Case(
        ("site-packages/strange-1.0.dist-info/METADATA", "Version: 1.0", "Version: 1.1"),
        top="import strange",
        result="strange.f(x)",
    ),
    "a constant of an installed package": Case(
        ("site-packages/strange/__init__.py", "SCALE = 2", "SCALE = 3"),
        AGAIN,
        top="import strange",
        result="strange.f(x)",
    ),
    "a file among installed packages": Case(
        ("site-packages/dropped.py", "SCALE = 2", "SCALE = 3"), top="import dropped", result="dropped.f(x)"
    ),
}
INSTALLED = {
    "site-packages/dropped.py": SCALE,
    "site-packages/strange/__init__.py": SCALE,
    "site-packages/strange-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: strange\nVersion: 1.0\n",
    "site-packages/strange-1.0.dist-info/top_level.txt": "strange\n",
}


def forget_modules(folder: Path) -> None:
    """Do as a new process does: nothing below the folder is loaded, nothing is known of installed packages."""
    for name, module in list(sys.modules.items()):
        file, paths = (getattr(module, "__dict__", {}).get(key) for key in ("__file__", "__path__"))
        if str(folder) in f"{file} {paths}":
            del sys.modules[name]
    importlib.invalidate_caches()
    for cached in (source_code._packages, source_code._distributions, source_code._kind_of_file):
        cached.cache_clear()


@pytest.fixture
def stimuli(tmp_path: Path) -> StimulusSet:
    rng = np.random.default_rng(0)
    for number in range(8):
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(tmp_path / f"{number}.png")
    hashes = [hash_file(tmp_path / f"{number}.png").sha256 for number in range(8)]
    pictures = tuple(Stimulus(f"s{n}", path=f"{n}.png", sha256=sha) for n, sha in enumerate(hashes))
    return StimulusSet("few", pictures, str(tmp_path))


def ask(observer: Any, stimuli: StimulusSet, out: Path) -> list[Path]:
    """Collect the answers of an observer; return what was set aside."""
    preprocess = observer.preprocess
    key = Key(observer.fingerprint, preprocess.describe(), "", observer.loaded_by, "float32", ("logits",))
    shards = ShardFolder(out, "net", key)
    record = JobRecord("p", "", "net", "model", "", ("logits",), "", shards.folder.name, None, key.parts())
    job = Job(protocol="p", observer=observer, stimuli=stimuli, needs=("logits",), preprocess=preprocess,
              shards=shards, record=record)  # fmt: skip
    with DecodePool(0) as pool:
        progress = collect([job], pool, shard_size=4, on_event=lambda event: None)
    assert not progress.failures, progress.failures[0]
    assert not record.notes
    return list(out.glob("*.stale-*"))


@pytest.mark.parametrize(
    ("name", "on_path"), [(n, on) for n, c in CASES.items() for on in (True, False)[: 2 - bool(c.module)]]
)
def test_every_change_is_noticed(
    name: str, on_path: bool, stimuli: StimulusSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``on_path``: the user has put the folder on Python's path; else the installed command finds it by the file."""
    case, code = CASES[name], tmp_path / "code"
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "open_clip", raising=False)  # another test may have imported the library
    monkeypatch.setattr(sys, "path", [*[str(code)][: int(on_path)], str(code / "site-packages"), *sys.path])
    monkeypatch.setattr(torch.nn.functional, "hardtanh", torch.nn.functional.hardtanh)
    monkeypatch.setenv("CUEBENCH_TEST_SCALE", "2")
    file = f"{case.module.replace('.', '/') or 'model'}.py"
    text = MODEL.format(top=case.top, init=case.init, inside=case.inside, result=case.result)
    for path, content in {**INSTALLED, **case.files, file: text}.items():
        (code / path).parent.mkdir(parents=True, exist_ok=True)
        (code / path).write_text(content)
    (tmp_path / "ab.json").write_text('["a", "b"]')
    spec = f"python:{case.module or code / file}:Net?labels={tmp_path}/ab.json&preprocess.size=8&preprocess.resize=8"

    def loaded() -> Any:
        return load(spec, LoadOptions(device="cpu"))[0]

    hooks = dict(torch.nn.modules.module._global_forward_hooks)
    saved = dict(sys.modules)
    try:
        forget_modules(code)
        before = loaded()
        fingerprint = before.fingerprint
        ask(before, stimuli, tmp_path / "out")
        forget_modules(code)
        again = loaded()
        assert again.fingerprint == fingerprint, "nothing has changed"
        assert not ask(again, stimuli, tmp_path / "out")
        if callable(case.change):
            case.change()
            after = loaded() if "replaced" not in name else again
        else:
            path, old, new = case.change
            changed = (code / path).read_text().replace(old, new)
            assert changed != (code / path).read_text()
            (code / path).write_text(changed)
            forget_modules(code)
            after = loaded()
        noticed = HASH if after.fingerprint != fingerprint else AGAIN if ask(after, stimuli, tmp_path / "out") else ""
    finally:
        forget_modules(code)
        sys.modules.update({k: v for k, v in saved.items() if k not in sys.modules})
        torch.nn.modules.module._global_forward_hooks.clear()
        torch.nn.modules.module._global_forward_hooks.update(hooks)
    assert noticed == case.by


# ------------------------------------------------------------------------------------------ computed imports

ASKS = {
    "import_module": "import importlib\nH = importlib.import_module('shared' + '_helper')",
    "import_module of another name": "from importlib import import_module as get\nH = get('shared' + '_helper')",
    "__import__": "H = __import__('shared' + '_helper')",
    "exec": "space = {}\nexec('import shared' + '_helper', space)\nH = space['shared_helper']",
    "exec from": "space = {}\nexec('from shared' + '_space import shared_inside', space)\nH = space['shared_inside']",
    "by a helper": "import asker\nH = asker.ask('shared')",
    "in the factory": "H = None\ndef late():\n    global H\n    import importlib\n"
    "    H = importlib.import_module('shared' + '_helper')",
    "from a path": "import importlib.util as u, os\n"
    "s = u.spec_from_file_location('by_path', os.path.join(os.path.dirname(__file__), 'shared_helper.py'))\n"
    "H = u.module_from_spec(s)\ns.loader.exec_module(H)",
}
FACTORY = """
import torch, cuebench as cb
{top}
WHOLE = dict(preprocess=cb.Preprocess(size=8, resize=8), labels=["a", "b"], device="cpu")
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.f = torch.nn.Conv2d(3, 2, 1)
    def forward(self, x):
        return self.f(x) * H.SCALE
def net():
    globals().get("late", int)()
    torch.manual_seed(0)
    return cb.wrap(Net(), name="net", **WHOLE)
def masks():
    globals().get("late", int)()
    torch.manual_seed(0)
    return cb.wrap(Net(), name="masks", task="segmentation", **WHOLE)
def function():
    globals().get("late", int)()
    del WHOLE["device"]
    return cb.wrap(lambda x: x.mean((2, 3))[:, :2] * H.SCALE, name="function", fingerprint="1", **WHOLE)
"""


def keys(folder: Path, *specs: str) -> dict[str, tuple[str, str]]:
    """Return spec → what identifies its observer, when they are loaded in this order in a process of its own."""
    forget_modules(folder)
    imports._asked.clear()
    found = {}
    for spec in specs:
        (observer,) = load(f"python:{folder}/{spec}", LoadOptions(device="cpu"))
        found[spec] = (observer.fingerprint, observer.loaded_by)
    forget_modules(folder)
    return found


@pytest.mark.parametrize("kind", ["net", "masks", "function"])
@pytest.mark.parametrize("how", ASKS)
def test_computed_imports_count_for_all_who_ask(
    how: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    asker = "import importlib\ndef ask(name):\n    return importlib.import_module(name + '_helper')\n"
    (tmp_path / "asker.py").write_text(asker)
    (tmp_path / "shared_helper.py").write_text("SCALE = 2\n")
    (tmp_path / "other_helper.py").write_text("SCALE = 2\n")
    (tmp_path / "shared_space").mkdir()
    (tmp_path / "shared_space" / "shared_inside.py").write_text("SCALE = 2\n")
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(FACTORY.format(top=ASKS[how]))
    other = ASKS["by a helper"].replace("shared", "other")
    (tmp_path / "three.py").write_text(FACTORY.format(top=other))
    one, two, three = (f"{name}.py:{kind}" for name in ("one", "two", "three"))
    alone = {**keys(tmp_path, one), **keys(tmp_path, two), **keys(tmp_path, three)}
    assert keys(tmp_path, one, two, three) == keys(tmp_path, three, two, one) == alone
    (tmp_path / "shared_helper.py").write_text("SCALE = 3\n")
    (tmp_path / "shared_space" / "shared_inside.py").write_text("SCALE = 3\n")
    changed = keys(tmp_path, one, two, three)
    assert [changed[spec] == alone[spec] for spec in (one, two, three)] == [False, False, True]


def test_a_failing_import_is_shown_where_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("import importlib\nimportlib.import_module('no_such_' + 'module')\n")
    with pytest.raises(ModuleNotFoundError) as caught:
        load(f"python:{tmp_path}/wrong.py:Net", LoadOptions(device="cpu"))
    assert caught.traceback[-1].path.name in ("wrong.py", "__init__.py")
    assert not any(entry.path.name == "imports.py" and "_import" in entry.name for entry in caught.traceback)
    assert builtins.__import__.__module__ == "builtins", "nobody watches any more"


TWO_FACTORIES = """
import importlib, cuebench as cb
def made(scale):
    return cb.wrap(lambda x: x.mean((2, 3))[:, :2] * scale, name="f", fingerprint="1",
                   preprocess=cb.Preprocess(size=8, resize=8), labels=["a", "b"])
def asks():
    return made(importlib.import_module("shared" + "_helper").SCALE)
def asks_nothing():
    return made(2)
"""


def test_what_another_factory_of_the_file_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "shared_helper.py").write_text("SCALE = 2\n")
    (tmp_path / "one.py").write_text(TWO_FACTORIES)
    specs = [f"one.py:{name}" for name in ("asks", "asks_nothing")]
    alone = {**keys(tmp_path, specs[0]), **keys(tmp_path, specs[1])}
    assert keys(tmp_path, *specs) == keys(tmp_path, *reversed(specs)) == alone


def test_what_a_file_no_longer_asks_for(tmp_path: Path) -> None:
    name = name_of_file(tmp_path / "one.py")
    for text, asked in (("import importlib\nimportlib.import_module('js' + 'on')", {"importlib", "json"}), ("", set())):
        (tmp_path / "one.py").write_text(text)
        import_file(tmp_path / "one.py")
        assert {a.name for a in imports.asked_by(name)} - {name} == asked


def test_another_library_replaces_the_functions_of_importing() -> None:
    plain, bootstrap, execute = (
        builtins.__import__,
        imports._BOOTSTRAP._gcd_import,
        dict(vars(imports.SourceFileLoader)),
    )

    def of_a_library(*given: Any, **named: Any) -> Any:
        return plain(*given, **named)

    try:
        with imports.watched("watched_one"):
            builtins.__import__ = of_a_library
        assert builtins.__import__ is of_a_library
        assert imports._BOOTSTRAP._gcd_import is bootstrap
        assert dict(vars(imports.SourceFileLoader)) == execute
        with imports.watched("watched_two"):
            exec("import json", {"__name__": "cuebench.somebody"})
            kept = builtins.__import__
        exec("import csv", {"__name__": "cuebench.somebody", "__builtins__": {"__import__": kept}})
        assert builtins.__import__ is of_a_library
    finally:
        builtins.__import__ = plain
    assert {asked.name for asked in imports.asked_by("watched_two")} == {"json"}


def test_imports_of_other_threads_are_not_noted() -> None:
    def other() -> None:
        exec("import csv", {"__name__": "cuebench.somebody"})
        with imports.watched("watched_there"):
            exec("import json", {"__name__": "cuebench.somebody"})

    with imports.watched("watched_here"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        exec("import ast", {"__name__": "cuebench.somebody"})
    assert {asked.name for asked in imports.asked_by("watched_here")} == {"ast"}
    assert {asked.name for asked in imports.asked_by("watched_there")} == {"json"}
    assert builtins.__import__.__module__ == "builtins"


# ------------------------------------------------------------------------------------------ edited while it runs


@pytest.mark.parametrize("kind", ["net", "masks", "function"])
@pytest.mark.parametrize("how", ["a name", "a path"])
def test_a_helper_that_is_edited_while_its_old_code_runs(
    how: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "shared_helper.py").write_text("SCALE = 2\n")
    path = "import asker\nH = asker.H"
    (tmp_path / "asker.py").write_text(ASKS["from a path"])
    (tmp_path / "one.py").write_text(FACTORY.format(top="import shared_helper as H" if how == "a name" else path))

    def key() -> tuple[str, str]:
        (observer,) = load(f"python:{tmp_path}/one.py:{kind}", LoadOptions(device="cpu"))
        return observer.fingerprint, observer.loaded_by

    source_code.notices_of_code()
    forget_modules(tmp_path)
    before = key()
    (tmp_path / "shared_helper.py").write_text("SCALE = 2  # a comment changes nothing\n")
    assert key() == before
    (tmp_path / "shared_helper.py").write_text("SCALE = 3\n")
    assert len({before, key(), key()}) == 3
    (notice,) = source_code.notices_of_code()
    assert "shared_helper.py was edited since it was imported" in notice
    forget_modules(tmp_path)
    after = key()
    assert after == key() != before
    forget_modules(tmp_path)


def test_a_helper_that_was_edited_and_loaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    helper = tmp_path / "loaded_again.py"
    helper.write_text("SCALE = 2\n")
    module = importlib.import_module("loaded_again")
    before = source_code.reachable_code(["loaded_again"])
    helper.write_text("SCALE = 30\n")
    assert source_code.reachable_code(["loaded_again"]).unreadable
    importlib.reload(module)
    after = source_code.reachable_code(["loaded_again"])
    assert not after.unreadable
    assert after.digest != before.digest
    forget_modules(tmp_path)


# ------------------------------------------------------------------------------------------ values without a file


class Net(torch.nn.Module):
    def __init__(self, extra: Any = None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.f = torch.nn.Linear(3, 2)
        self.extra = extra

    def forward(self, x: Any) -> Any:
        return self.f(x.mean((2, 3)))


def fingerprint(model: Any) -> str:
    ab = LabelSpace("ab", ("a", "b"))
    return str(wrap(model, preprocess=Preprocess(size=8), labels=ab, device="cpu").fingerprint)


def built(text: str, **values: Any) -> Any:
    """Return ``made`` of some code that has no file, as in a notebook."""
    space: dict[str, Any] = {"__name__": "__main__", "collections": collections, "enum": enum, "NamedTuple": NamedTuple}
    space |= {"torch": torch, "np": np, "functools": functools, "types": types, "pathlib": pathlib, "Net": Net}
    exec(text.format(**values), space)
    return space["made"]


WITHOUT_FILE = {
    "enum": "class E(enum.Enum):\n    A = {k}\nmade = E.A",
    "flag": "class E(enum.IntFlag):\n    A = {k}\nmade = E.A",
    "attribute of an enum's member": "class E(enum.Enum):\n    A = 1\nE.A.scale = {k}\nmade = E.A",
    "factory of a defaultdict": "made = collections.defaultdict(lambda: {k})",
    "subclass of dict": "class D(dict):\n    def __missing__(self, key):\n        return {k}\nmade = D(a=1)",
    "attribute of a dict": "class D(dict):\n    pass\nmade = D(a=1)\nmade.scale = {k}",
    "subclass of list": "class L(list):\n    def __getitem__(self, i):\n        return {k}\nmade = L([1])",
    "subclass of tuple": "class T(tuple):\n    def __len__(self):\n        return {k}\nmade = T([1])",
    "subclass of set": "class S(set):\n    def __len__(self):\n        return {k}\nmade = S([1])",
    "NamedTuple": "class P(NamedTuple):\n    a: int\n    def scale(self):\n        return {k}\nmade = P(1)",
    "order of fields": "made = collections.namedtuple('P', ['ab', 'ba'] if {k} == 2 else ['ba', 'ab'])(1, 2)",
    "metaclass": "class M(type):\n    def scale(cls):\n        return {k}\nclass C(metaclass=M):\n    pass\nmade = C()",
    "slots": "class C:\n    __slots__ = ('a',)\nmade = C()\nmade.a = {k}",
    "slots of a base": "class B:\n    __slots__ = ('a',)\nclass C(B):\n    pass\nmade = C()\nmade.a = {k}",
    "lossy __getstate__": "class C:\n    def __getstate__(self):\n        return {{}}\nmade = C()\nmade.a = {k}",
    "lossy __reduce__": "class C:\n    def __reduce__(self):\n        return C, ()\nmade = C()\nmade.a = {k}",
    "constant of a class": "class C:\n    __scale__ = {k}\nmade = C()",
    "class attribute that is called": "class C:\n    __call__ = [{k}].append\nmade = C()",
    "pattern": "import re\nmade = re.compile('a{{{k}}}')",
    "deque": "made = collections.deque([1], maxlen={k})",
    "names of arguments": "made = {{2: lambda a, b: a, 3: lambda b, a: b}}[{k}]",
    "names of keyword arguments": "made = {{2: lambda *, a, b: a, 3: lambda *, b, a: b}}[{k}]",
    "arguments that have no name": "made = {{2: lambda a: a, 3: lambda a, /: a}}[{k}]",
    "attribute of a function": "def made(): return made.scale\nmade.scale = {k}",
    "attribute of a method": "class C:\n    def f(self): return C.f.scale\nC.f.scale = {k}\nmade = C()",
    "attribute of a partial": "made = functools.partial(int)\nmade.scale = {k}",
    "annotation of a function": "def made(x: {k}): return made.__annotations__",
    "annotation of a class": "class made:\n    a: {k}",
    "subclass of property": "class P(property):\n    scale = {k}\nclass made:\n    a = P(len)",
    "attribute of a classmethod": "class P(classmethod):\n    pass\nclass made:\n    a = P(len)\n    a.scale = {k}",
    "subclass of cached_property": (
        "class P(functools.cached_property):\n    def __get__(s, *o):\n        return {k}\nclass made:\n    a = P(len)"
    ),
    "module without a file": "made = types.ModuleType('cfg')\nmade.scale = {k}",
    "function in a module without a file": "made = types.ModuleType('m')\nexec('def g(): return {k}', vars(made))",
    "class of a module": "class M(types.ModuleType):\n    scale = {k}\nmade = M('m')",
    "subclass of Tensor": "class T(torch.Tensor):\n    scale = {k}\nmade = torch.ones(2).as_subclass(T)",
    "attribute of a tensor": "made = torch.ones(2)\nmade.scale = {k}",
    "subclass of ndarray": "class A(np.ndarray):\n    scale = {k}\nmade = np.zeros(2).view(A)",
    "attribute of an array": "class A(np.ndarray):\n    pass\nmade = np.zeros(2).view(A)\nmade.scale = {k}",
    "mask of an array": "made = np.ma.MaskedArray([2.0, 3.0], mask=[{k} == 3, {k} == 2])",
    "fields of an array": "made = np.zeros(1, [('a', 'f8'), ('b', 'f8')][:: 1 if {k} == 2 else -1])",
    "subclass of Path": "class P(pathlib.PurePosixPath):\n    scale = {k}\nmade = P('a')",
    "weak reference": "class C:\n    pass\nkept = C()\nkept.a = {k}\nimport weakref\nmade = weakref.ref(kept), kept",
    "constant of a traced function": "t = torch.ones(3) * {k}\nmade = torch.jit.trace(lambda x: x * t, torch.ones(3))",
    "private attribute of torch's": (
        "d = torch.distributions\nn = d.Normal(torch.tensor([{k}.0, 1]), torch.ones(2))\n"
        "made = d.MixtureSameFamily(d.Categorical(torch.ones(2)), n)"
    ),
    "function in a graph": (
        "import torch.fx\ndef leaf(x): return x * {k}\ng = torch.fx.Graph()\n"
        "g.output(g.call_function(leaf, (g.placeholder('x'),)))\nmade = torch.fx.GraphModule({{}}, g)"
    ),
    "items of a set": "made = {{('a', {k}), ('b', 1), int}}",
    "function that numba compiles": "import numba\n@numba.njit\ndef made(): return {k}",
    "variable of a context": "import contextvars\nmade = contextvars.ContextVar('v', default={k})",
    "semaphore": "import threading\nmade = threading.Semaphore({k})",
    "alias of types": "from typing import Annotated\nmade = Annotated[int, {k}]",
    "ChainMap": "made = collections.ChainMap({{'a': {k}}}, {{'a': 1}})",
}


@pytest.mark.parametrize("name", WITHOUT_FILE)
def test_values_without_a_file(name: str) -> None:
    one, same, other = (fingerprint(Net(built(WITHOUT_FILE[name], k=k))) for k in (2, 2, 3))
    assert one == same != other


IN_THE_MODEL = {
    "state dict that leaves out a frozen backbone": """
class N(Net):
    def state_dict(self, *a, **kw):
        return {{k: v for k, v in super().state_dict(*a, **kw).items() if k != "backbone"}}
made = N()
made.backbone = torch.nn.Parameter(torch.tensor({k}.0))""",
    "hook of the state dict": """
made = Net()
made.backbone = torch.nn.Parameter(torch.tensor({k}.0))
made._register_state_dict_hook(lambda module, state, prefix, local: state.__delitem__("backbone"))""",
    "state dict of other numbers": """
made = Net()
made.backbone = torch.nn.Parameter(torch.tensor({k}.0))
made._register_state_dict_hook(lambda module, state, prefix, local: state.update(backbone=torch.zeros(())))""",
    "parameters that are not named": """
class N(Net):
    def named_parameters(self, *a, **kw):
        return iter(())
    def state_dict(self, *a, **kw):
        return {{}}
made = N()
made.backbone = torch.nn.Parameter(torch.tensor({k}.0))""",
    "configuration of the user's": "made = Net()\nmade.default_cfg = {{'scale': {k}}}",
    "attribute of a parameter": "made = Net()\nmade.f.weight.scale = {k}",
    "subclass of Parameter": "class P(torch.nn.Parameter):\n    scale = {k}\nmade = Net()\nmade.p = P(torch.ones(2))",
    "mode of a class that does not change it": (
        "class B(torch.nn.BatchNorm1d):\n    def train(self, mode=True):\n        return self\n"
        "made = Net(B(2))\nmade.extra.training = {k} == 3"
    ),
    "shared layer": ("a, b = torch.nn.ReLU(), torch.nn.ReLU()\nmade = torch.nn.Sequential(a, b, [a, b][{k} - 2])"),
    "sparse buffer": "made = Net()\nmade.register_buffer('b', torch.tensor([0, {k}.0]).to_sparse())",
    "sparse buffer of rows": "made = Net()\nmade.register_buffer('b', torch.tensor([[0, {k}.0]]).to_sparse_csr())",
    "conjugated buffer": "b = torch.tensor([1j])\nmade = Net()\nmade.register_buffer('b', [b, b.conj()][{k} - 2])",
    "negated buffer": (
        "b = torch.tensor([1j])\nmade = Net()\nmade.register_buffer('b', [b.imag, b.conj().imag][{k} - 2])"
    ),
    "nested buffer": (
        "made = Net()\nb = [torch.full((2,), {k}.0), torch.ones(3)]\n"
        "made.register_buffer('b', torch.nested.nested_tensor(b), persistent=False)"
    ),
    "buffer without numbers": "made = Net()\nmade.register_buffer('b', torch.empty({k}, device='meta'))",
}


def identity(model: Any) -> tuple[str, list[str]]:
    """Return the fingerprint of a model that need not run, and what could not be read."""
    found = [hash_weights(model), hash_behaviour(model), hash_hooks(model)]
    return "".join(digest for digest, _ in found), [what for _, opaque in found for what in opaque]


@pytest.mark.parametrize("name", IN_THE_MODEL)
def test_values_in_the_model(name: str) -> None:
    one, same, other = (identity(built(IN_THE_MODEL[name], k=k)) for k in (2, 2, 3))
    assert one == same != other
    assert not one[1]


HARMLESS = {
    "a dictionary with attributes": "class A(dict):\n    __getattr__ = dict.__getitem__\nmade = Net(A(a=1))",
    "a function of numpy's global generator": "made = Net(np.random.rand)",
    "an attribute that raises": "class A:\n    def __getattr__(self, k):\n        return {{}}[k]\nmade = Net(A())",
    "a function of random's global generator": "import random\nmade = Net(random.random)",
    "a method of a compiled class": "made = Net([str.upper, dict.keys, type(np.random).__dict__['__dict__']])",
}
THE_SAME = {
    "set of tuples": "made = Net({{('a', 'b'), ('c', 'd'), ('e', 'f'), ('g', 'h')}})",
    "set of types": "made = Net({{torch.nn.Linear, torch.nn.Conv2d, torch.nn.LayerNorm, Net}})",
    "set of functions": "f = torch.nn.functional\nmade = Net({{f.relu, f.gelu, f.silu, f.elu}})",
    "set of enums": "made = Net(set(enum.Enum('E', 'a b c d e')))",
    "set of paths": "made = Net({{pathlib.Path(c) for c in 'abcdef'}})",
    "subclass of Path in a set": "class P(pathlib.PurePosixPath):\n    pass\nmade = Net({{P(c) for c in 'abcdef'}})",
    "frozenset of frozensets": "made = Net(frozenset(frozenset(c) for c in ('ab', 'cd', 'ef', 'gh')))",
    "set in extra_repr": "class N(Net):\n    def extra_repr(self):\n        return str(set('abcdef'))\nmade = N()",
    "handle of a hook": "made = Net()\nmade.handle = made.f.register_forward_hook(print)",
    "the environment": "from os import environ\nmade = Net(environ)",
    "numpy's global generator": "made = Net(np.random.rand)",
    "python's global generator": "import random\nmade = Net(random.random)",
    "library of C": "import ctypes\nmade = Net(ctypes.CDLL(None))",
    "function that numba compiles": "import numba\n@numba.njit\ndef f(): return 2\nmade = Net(lambda: f())",
    "recurrent layer": "made = torch.nn.LSTM(2, 2)",
    "class of pandas": "from pandas import DataFrame\nmade = Net(lambda: DataFrame())",
    "helper": "import helper_of_hashes\nmade = Net(lambda: helper_of_hashes.f())",
}


def test_unchanged_models_are_the_same_in_every_process(tmp_path: Path) -> None:
    helper = "def f(): return 2\nTABLE = (('a', f), (f, frozenset({'b', 'c', 'd'})))\n"
    (tmp_path / "helper_of_hashes.py").write_text(helper)
    code = (
        "import json, sys, torch, cuebench; from tests.observers import test_code_changes as here\n"
        "def found(text):\n    torch.manual_seed(0)\n    return here.identity(here.built(text))\n"
        "print(json.dumps({name: found(text) for name, text in here.THE_SAME.items()}))"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    one, other = (
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
        )
        for seed in ("1", "2")
    )
    assert one.stdout, one.stderr
    found = [json.loads(run.stdout.splitlines()[-1]) for run in (one, other)]
    assert [name for name in THE_SAME if found[0][name] != found[1][name]] == []
    assert [name for name in THE_SAME if found[0][name][1]] == []


UNREADABLE = {
    "__getstate__": "class A:\n    def __getstate__(self):\n        raise KeyError('no')\nmade = Net(A())",
    "items": "class A(dict):\n    def items(self):\n        raise KeyError('no')\nmade = Net(A())",
    "state_dict": "class N(Net):\n    def state_dict(self):\n        raise KeyError('no')\nmade = N()",
    "a layer that is made later": "made = Net(torch.nn.LazyLinear(3))",
}


@pytest.mark.parametrize("name", HARMLESS)
def test_sound_models_have_a_fingerprint(name: str) -> None:
    one, same = (identity(built(HARMLESS[name])) for _ in range(2))
    assert one == same
    assert not one[1]


@pytest.mark.parametrize("name", UNREADABLE)
def test_hashing_fails_no_model(name: str) -> None:
    observer = wrap(built(UNREADABLE[name]), preprocess=Preprocess(size=8), labels=["a", "b"], device="cpu")
    assert "not found again" in observer.notes[-1]
    assert observer.fingerprint


@pytest.mark.parametrize("text", ["import numba\n@numba.njit\ndef f(): return 2", "from pandas import DataFrame as f"])
def test_compiled_code_of_a_library_fails_no_model(text: str) -> None:
    assert fingerprint(Net(built(f"{text}\nmade = lambda: f()")))


def test_a_slot_of_a_module() -> None:
    text = "import torch\nclass N(torch.nn.Module):\n    __slots__ = ('scale',)\nmade = N"
    kind = built(text)
    models = [kind() for _ in range(2)]
    for model, scale in zip(models, (2, 3)):
        object.__setattr__(model, "scale", scale)
    assert hash_behaviour(models[0])[0] != hash_behaviour(models[1])[0]


@pytest.mark.parametrize(
    "make", [lambda: torch.Generator(), lambda: random.Random(0), lambda: np.random.default_rng(0)]
)
def test_the_state_of_a_generator(make: Any) -> None:
    def drawn(generator: Any, steps: int) -> str:
        for _ in range(steps):
            torch.rand(1, generator=generator) if isinstance(generator, torch.Generator) else generator.random()
        return fingerprint(Net(generator))

    assert drawn(make(), 1) == drawn(make(), 1) != drawn(make(), 2)


def test_a_running_generator_cannot_be_read() -> None:
    numbers = (n for n in range(3))
    assert "extra" in hash_behaviour(Net(numbers))[1][0]


def test_a_module_without_a_file_counts_by_its_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for factor in (2, 2, 3):
        module = types.ModuleType("made_here")
        exec(f"def scale(x):\n    return x * {factor}", vars(module))
        monkeypatch.setitem(sys.modules, "made_here", module)
        space: dict[str, Any] = {"__name__": "__main__", "made_here": module}
        exec("def f(x):\n    return made_here.scale(x)", space)
        found.append(fingerprint(Net(space["f"])))
    assert found[0] == found[1] != found[2]


def test_the_docstring_of_a_compiled_function_does_not_count() -> None:
    text = "def made(x):\n    {doc}\n    return {k}"
    one, other = (fingerprint(Net(built(text, doc=d, k=2))) for d in ("'Text.'", "'Other.'"))
    assert one == other != fingerprint(Net(built(text, doc="'Text.'", k=3)))
    same, changed = (fingerprint(Net(built(text, doc="'a'", k=k))) for k in ("'a'", "'b'"))
    assert same != changed != fingerprint(Net(built(text, doc="'b'", k="'a'")))


def test_a_comment_and_a_docstring_do_not_count(tmp_path: Path) -> None:
    one = b"'''Text.'''\ndef f(x):\n    '''Text.'''\n    return x\n"
    same = b"'''Other.'''\ndef f( x ):\n    '''Other.'''\n    return x  # a comment\n"
    other = b"def f(x):\n    return -x\n"
    digests = [source_code._file(text, True, "m", False)[0] for text in (one, same, other)]
    assert digests[0] == digests[1] != digests[2]


# ------------------------------------------------------------------------------------------ numbers


IMAGE = np.random.default_rng(0).integers(0, 256, (2, 8, 8, 3), dtype=np.uint8)


def logits(observer: Any) -> Any:
    from cuebench.observers.base import Batch

    return observer.respond(Batch([Stimulus("a"), Stimulus("b")], IMAGE), ["logits"])["logits"]


@pytest.mark.parametrize("as_function", [False, True])
def test_an_autocast_around_a_run_changes_nothing(as_function: bool) -> None:
    model = Net().eval()
    options = {"preprocess": Preprocess(size=8), "labels": ["a", "b"]}
    observer = wrap(lambda x: model(torch.as_tensor(x)).detach(), **options) if as_function else wrap(model, **options)
    plain = logits(observer)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.is_autocast_enabled("cpu")
        np.testing.assert_array_equal(logits(observer), plain)
        assert torch.is_autocast_enabled("cpu")


def test_reduced_products_of_matrices_are_switched_off() -> None:
    seen = []

    class Asks(Net):
        def forward(self, x: Any) -> Any:
            seen.append(torch.get_float32_matmul_precision())
            return super().forward(x)

    torch.set_float32_matmul_precision("medium")
    try:
        logits(wrap(Asks(), preprocess=Preprocess(size=8), labels=["a", "b"]))
        assert (seen, torch.get_float32_matmul_precision()) == (["highest"], "medium")
    finally:
        torch.set_float32_matmul_precision("highest")


def test_another_default_type_is_another_observer() -> None:
    model = Net()
    before = fingerprint(model)
    torch.set_default_dtype(torch.float64)
    try:
        assert fingerprint(model) != before
    finally:
        torch.set_default_dtype(torch.float32)
    assert fingerprint(model) == before


def test_two_files_of_one_name_are_two_models(tmp_path: Path) -> None:
    (tmp_path / "ab.json").write_text('["a", "b"]')
    observers = []
    for name, factor in (("one", 2), ("two", 3)):
        (tmp_path / name).mkdir()
        text = MODEL.format(top="", init="pass", inside="pass", result=f"x * {factor}")
        (tmp_path / name / "model.py").write_text(text)
        spec = f"python:{tmp_path}/{name}/model.py:Net?labels={tmp_path}/ab.json&preprocess.size=8&preprocess.resize=8"
        observers.append(load(spec, LoadOptions(device="cpu"))[0])
    first = observers[0].fingerprint
    (tmp_path / "two" / "model.py").write_text("raise SystemExit")
    assert observers[0].fingerprint == first
