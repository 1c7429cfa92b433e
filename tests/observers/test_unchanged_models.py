"""Unchanged models keep their fingerprint: in every process, in any order, wherever their project lies."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cuebench
from cuebench.observers.base import LoadOptions
from cuebench.observers.load import load
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.fingerprint import hash_behaviour, hash_weights
from cuebench.observers.wrap import wrap

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]
torch = pytest.importorskip("torch")

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
        return x
def make():
    torch.manual_seed(0)
    {make}
"""
USUAL = {"top": "", "init": "pass", "inside": "pass", "make": "return Net()", "needs": ""}
CASES = {
    "compiled": {"make": "return torch.compile(Net(), backend='eager')"},
    "compiled layer": {"init": "self.f = torch.compile(self.f, backend='eager')"},
    "compiled function": {"top": "@torch.compile(backend='eager')\ndef g(x): return x", "inside": "x = g(x)"},
    "scripted": {"init": "self.scale = 1.0; self.depth = 2", "make": "return torch.jit.script(Net())"},
    "traced layer": {"init": "self.g = torch.jit.trace(torch.nn.Linear(2, 2), torch.ones(1, 2))"},
    "frozen script": {"make": "return torch.jit.freeze(torch.jit.script(Net().eval()))"},
    "attrs": {"top": "import attrs\n@attrs.frozen\nclass C:\n    a: int = 1", "init": "self.c = C()", "needs": "attrs"},
    "pydantic": {
        "top": "from pydantic import BaseModel\nclass C(BaseModel):\n    a: int = 1",
        "init": "self.c = C()",
        "needs": "pydantic",
    },
    "table": {"top": "import pandas", "init": "self.t = pandas.DataFrame({'a': [1]})", "needs": "pandas"},
    "bar": {
        "top": "from tqdm import tqdm",
        "init": "pass\n    def fit(self, data): return tqdm(data)",
        "make": "list(tqdm(range(2), disable=False))\n    return Net()",
        "needs": "tqdm",
    },
    "regex": {
        "top": "import regex\nP = regex.compile('(?<a>x)|[a-z]{2}|foo|bar')",
        "inside": "P.match('x')",
        "needs": "regex",
    },
    "tokenizer": {
        "top": "from tokenizers import Tokenizer, models",
        "init": "self.t = Tokenizer(models.WordLevel({'a': 0, 'b': 1}, unk_token='a'))",
        "needs": "tokenizers",
    },
    "distribution": {"top": "from scipy.stats import norm", "inside": "norm.cdf(0)"},
    "log": {"top": "import logging\nlog = logging.getLogger(__name__)", "inside": "log.debug(__file__)"},
    "handler": {"top": "import logging", "init": "self.h = logging.StreamHandler()"},
    "folder": {"top": "from pathlib import Path\nHERE = Path(__file__).parent", "inside": "HERE.exists()"},
    "folder as text": {
        "top": "import os\nHERE = os.path.dirname(os.path.abspath(__file__))",
        "init": "self.file = (os.path.join(HERE, 'a.txt'), 1)",
        "inside": "os.path.exists(HERE)",
    },
    "tools": {
        "top": "import sys, threading, queue\nLOCK, OUT, LOCAL = threading.Lock(), sys.stdout, threading.local()",
        "init": "self.q = queue.Queue(); self.r = threading.RLock(); self.e = threading.Event()",
        "inside": "LOCK, OUT, LOCAL",
    },
    "open file": {"init": "self.file = open(__file__)"},
    "types": {
        "top": "from typing import Optional\ndef g(x: Optional[int], y: Optional[int]): return x",
        "inside": "g(1, 2)",
    },
}
ASK = """
import json, sys, warnings
warnings.simplefilter("ignore")
from cuebench.observers.base import LoadOptions
from cuebench.observers.load import load
found = {}
for name in sys.argv[2:]:
    options = f"labels={sys.argv[1]}/ab.json&preprocess.size=8&preprocess.resize=8"
    (observer,) = load(f"python:{sys.argv[1]}/{name}/model.py:make?{options}", LoadOptions(device="cpu"))
    found[name] = observer.fingerprint, [n for n in observer.notes if "not found again" in n]
print(json.dumps(found))
"""


def written(folder: Path, name: str, **parts: str) -> str:
    """Write a model's file; return its spec."""
    (folder / name).mkdir(parents=True)
    (folder / name / "model.py").write_text(MODEL.format(**{**USUAL, **parts}))
    (folder / "ab.json").write_text('["a", "b"]')
    return f"python:{folder}/{name}/model.py:make?labels={folder}/ab.json&preprocess.size=8&preprocess.resize=8"


def fingerprint(spec: str) -> str:
    return str(load(spec, LoadOptions(device="cpu"))[0].fingerprint)


def test_in_every_process_in_any_order_and_anywhere(tmp_path: Path) -> None:
    names = [n for n, case in CASES.items() if not case.get("needs") or importlib.util.find_spec(case["needs"])]
    running = []
    for seed, place, order in (("1", "here", names), ("2", "moved/elsewhere", names[::-1])):
        for name in names:
            written(tmp_path / place, name, **CASES[name])
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-c", ASK, str(tmp_path / place), *order]
        running.append(
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
    answers = [process.communicate() for process in running]
    assert all(out for out, _ in answers), answers
    one, other = (json.loads(out.splitlines()[-1]) for out, _ in answers)
    assert [name for name in names if one[name] != other[name]] == []
    assert [name for name in names if one[name][1]] == []


@pytest.mark.parametrize("kind", ["Path({!r})", "str({!r})", "[{!r}]"])
def test_a_folder_that_lies_elsewhere_counts(kind: str, tmp_path: Path) -> None:
    top = "from pathlib import Path\nDATA = Path(__file__).with_name('where.txt').read_text()\nDATA = " + kind
    specs = [written(tmp_path, n, top=top.replace("{!r}", "DATA"), inside="DATA") for n in ("one", "two", "three")]
    for name, where in (("one", "/data/a"), ("two", "/data/a"), ("three", "/data/b")):
        (tmp_path / name / "where.txt").write_text(where)
    one, two, three = map(fingerprint, specs)
    assert one == two != three
    below = [written(tmp_path, n, top=top.replace("{!r}", "DATA"), inside="DATA") for n in ("four", "five")]
    for name in ("four", "five"):
        (tmp_path / name / "where.txt").write_text(str(tmp_path / name / "weights" / name))
    assert fingerprint(below[0]) != fingerprint(below[1])


def test_two_projects_that_each_have_a_helper_of_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    top = (
        "import os, sys\nsys.modules.pop('same_name', None)\nsys.path.insert(0, os.path.dirname(__file__))\n"
        "import same_name"
    )
    specs = [written(tmp_path, name, top=top, inside="x = same_name.f(x)") for name in ("one", "two")]
    for name, text in (("one", "import other_one\ndef f(x): return x"), ("two", "def f(x): return 2 * x")):
        (tmp_path / name / "same_name.py").write_text(text)
    (tmp_path / "one" / "other_one.py").write_text("")
    alone = [fingerprint(spec) for spec in specs]
    together = [load(spec, LoadOptions(device="cpu"))[0] for spec in specs]
    assert [str(o.fingerprint) for o in together] == alone
    assert alone[0] != alone[1]
    together = [load(spec, LoadOptions(device="cpu"))[0] for spec in specs[::-1]]
    assert [str(o.fingerprint) for o in together] == alone[::-1]
    sys.modules.pop("same_name")
    sys.modules.pop("other_one")


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("kind", ["weight_norm", "spectral_norm", "prune"])
def test_weights_that_torch_works_out_before_each_pass(kind: str) -> None:
    from torch.nn.utils import prune, spectral_norm, weight_norm

    def made(seed: int, state: dict[str, Any] | None = None) -> Any:
        torch.manual_seed(seed)
        layer = torch.nn.Linear(3, 2)
        if kind == "prune":
            prune.l1_unstructured(layer, "weight", 0.5)
        else:
            {"weight_norm": weight_norm, "spectral_norm": spectral_norm}[kind](layer)
        if state:
            layer.load_state_dict(state)
        return layer.eval()

    state = made(0).state_dict()
    one, same, other = made(1, state), made(2, state), made(3)
    assert kind != "weight_norm" or not torch.equal(one.weight, same.weight)
    before = [(hash_weights(m), hash_behaviour(m)) for m in (one, same, other)]
    assert before[0] == before[1] != before[2]
    one(torch.ones(1, 3))
    assert (hash_weights(one), hash_behaviour(one)) == before[0]


def test_what_cannot_be_hashed_is_told_before_anything_is_asked(data_root: Path, tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 4))
    model.numbers = (number for number in range(3))
    observer = wrap(model, preprocess=Preprocess(size=8), labels=["cat", "dog", "car", "clock"], device="cpu")
    events: list[Any] = []
    scores = cuebench.evaluate(
        observer, "cue_conflict", data_root=data_root, out=tmp_path, workers=0, resamples=100, on_event=events.append
    )
    kinds = [event.kind for event in events]
    (notice,) = (event.message for event in events if event.kind == "notice" and "not found again" in event.message)
    assert "numbers (cannot pickle" in notice
    assert kinds.index("notice") < kinds.index("batch")
    assert notice in scores.record.notices


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_script_counts_by_all_that_is_in_it() -> None:
    def identity(*layers: Any) -> str:
        torch.manual_seed(0)
        script = torch.jit.script(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 2), *layers).eval())
        return str(wrap(script, preprocess=Preprocess(size=8), labels=["a", "b"], device="cpu").fingerprint)

    relu, gelu = torch.nn.ReLU(), torch.nn.GELU()
    assert identity(relu) == identity(relu)
    assert len({identity(), identity(relu), identity(gelu), identity(relu, gelu), identity(gelu, relu)}) == 5
