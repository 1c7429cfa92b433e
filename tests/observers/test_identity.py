"""The fingerprint of a torch observer: another one for everything that can change an answer, else the same."""

from __future__ import annotations

import subprocess
import sys
from functools import lru_cache, partial

import numpy as np
import pytest

from cuebench.labels import LabelSpace
from cuebench.observers.base import LoadOptions
from cuebench.observers.conformance import check_observer
from cuebench.observers.load import load
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.torch.fingerprint import hash_behaviour, hash_module
from cuebench.observers.wrap import wrap
from cuebench.source_code import NOWHERE, place_of

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]
torch = pytest.importorskip("torch")

AB = LabelSpace("ab", ("a", "b"))
SOURCE = """
import torch

FACTOR = {factor}

def helper(x):
    # a comment: {comment}
    return x * {inside}

class Base(torch.nn.Module):
    def last(self, x):
        return x{base}

class Net(Base):
    def __init__(self):
        super().__init__()
        self.f = torch.nn.Linear(48, 2)
    def forward(self, x):
        return self.last(self.f(helper(x{channels}).flatten(1))) * FACTOR
"""
USUAL = {"factor": 2.0, "comment": "one", "inside": "3.0", "base": "", "channels": ""}


class Net(torch.nn.Module):
    """With an attribute that no layer shows."""

    def __init__(self, extra=None, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.f = torch.nn.Linear(48, 2)
        self.extra = extra

    def forward(self, x):
        return self.f(x.flatten(1))


def observer(model, **options):
    return wrap(model, **{"preprocess": Preprocess(size=4), "labels": AB, "device": "cpu", **options})


def fingerprint(model):
    return observer(model).fingerprint


def compiled(**changed):
    space: dict[str, object] = {}
    exec(SOURCE.format(**{**USUAL, **changed}), space)
    torch.manual_seed(0)
    return space["Net"]()


@pytest.mark.parametrize(
    "change",
    [{"channels": ".flip(1)"}, {"factor": 5.0}, {"inside": "4.0"}, {"base": " + 1"}],
    ids=["forward", "global constant", "function that is called", "method of a base class"],
)
def test_edited_code_is_another_observer(change):
    assert fingerprint(compiled()) == fingerprint(compiled(comment="another"))
    assert fingerprint(compiled()) != fingerprint(compiled(**change))


def weights_in_a_list(seed):
    return [Net(seed=seed)]  # torch does not see a module in a plain list, and so not its weights


class Thing:
    def __init__(self, value):
        self.value = value


VALUES = [
    (1.0, 5.0),
    ({"t": 1, "u": [2]}, {"t": 1, "u": [3]}),
    ({"b", "a"}, {"b", "c"}),
    (torch.ones(2), torch.zeros(2)),
    (torch.ones(2), torch.ones(2, dtype=torch.float64)),
    (np.arange(3), np.arange(4)),
    (torch.float16, torch.bfloat16),
    (Thing(1), Thing(2)),
    (lambda x: x, lambda x: -x),
    (partial(max, 1), partial(max, 2)),
    (lru_cache(lambda x: x + 1), lru_cache(lambda x: x + 2)),
    (torch.nn.functional.relu, torch.nn.functional.gelu),
    (weights_in_a_list(0), weights_in_a_list(1)),
    (Thing, Net),
    (torch.ones(3).to_sparse(), torch.zeros(3).to_sparse()),
]


@pytest.mark.parametrize(("one", "other"), VALUES, ids=lambda v: type(v).__name__)
def test_every_attribute_counts(one, other):
    assert fingerprint(Net(one)) == fingerprint(Net(one))
    assert fingerprint(Net(one)) != fingerprint(Net(other))


def test_a_value_that_contains_itself():
    ring = [1]
    ring.append(ring)
    assert fingerprint(Net(ring)) != fingerprint(Net([1, 1]))


def test_closures_defaults_and_replaced_methods():
    def scaled(by):
        return lambda x: x * by

    assert fingerprint(Net(scaled(2))) != fingerprint(Net(scaled(3)))
    model = Net()
    before = fingerprint(model)
    model.forward = lambda x: -Net.forward(model, x)
    assert fingerprint(model) != before


def test_hooks_count_also_on_frozen_models():
    plain, hooked = Net(), Net()
    hooked.f.register_forward_hook(lambda m, i, o: o * 0)
    assert fingerprint(plain) != fingerprint(hooked)
    (frozen,) = load("timm:test_vit?weights=random", LoadOptions(device="cpu"))
    before = frozen.fingerprint
    handle = frozen.module.blocks[0].register_forward_pre_hook(lambda m, i: None)
    assert frozen.fingerprint != before
    handle.remove()
    assert frozen.fingerprint == before


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_packed_int8_weights():
    def quantised(seed):
        torch.manual_seed(seed)
        model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 2))
        return torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)

    assert fingerprint(quantised(0)) == fingerprint(quantised(0)) != fingerprint(quantised(1))
    assert observer(quantised(0)).weights_sha256 != observer(quantised(1)).weights_sha256
    assert not observer(quantised(0)).notes[1:]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_counts_by_its_program():
    class Minus(Net):
        def forward(self, x):
            return -self.f(x.flatten(1))

    one, again, other = (torch.jit.script(kind()) for kind in (Net, Net, Minus))
    assert fingerprint(one) == fingerprint(again) != fingerprint(other)


def test_the_training_mode_does_not_count():
    model = Net().train()
    wrapped = observer(model)
    before = wrapped.fingerprint
    model.train()
    assert wrapped.fingerprint == before


def test_the_origin_of_a_librarys_model_does_not_count():
    (model,) = (o.module for o in load("timm:test_vit?weights=random", LoadOptions(device="cpu")))
    before = hash_behaviour(model)
    model.name_or_path = model.default_cfg = "/home/me/models"
    assert hash_behaviour(model) == before
    assert not before[1]


def running():
    """Return something that nobody can read without changing it."""
    return (number for number in range(3))


class TestUnreadable:
    def test_it_is_noted_and_never_found_again(self):
        first, second = (observer(Net(running())) for _ in range(2))
        assert "extra (cannot pickle" in first.notes[-1]
        assert "fingerprint=" in first.notes[-1]
        assert first.fingerprint != second.fingerprint
        check_observer(first)

    def test_a_name_of_the_users_stands_for_it(self):
        one, again, other = (observer(Net(running()), fingerprint=f) for f in ("v1", "v1", "v2"))
        assert one.fingerprint == again.fingerprint != other.fingerprint
        assert not any("not found again" in note for note in one.notes)

    def test_a_hook_and_a_segmentation(self):
        model = torch.nn.Conv2d(3, 2, 1)
        model.register_forward_hook(partial(lambda numbers, *_: None, running()))
        first, second = (observer(model, task="segmentation") for _ in range(2))
        assert "hook of the model" in first.notes[-1]
        assert first.fingerprint == first.fingerprint != second.fingerprint

    def test_what_is_too_large(self, monkeypatch):
        monkeypatch.setattr("cuebench.observers.torch.content.MOST", 50)
        assert "more than can be looked at" in hash_behaviour(Net([[i] for i in range(100)]))[1][0]


def test_it_is_the_same_in_every_process(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(SOURCE.format(**USUAL) + "    names = {'x', 'y', 'zebra'}\n")
    code = (
        "import torch, sys, mine; from cuebench.observers.torch.fingerprint import hash_behaviour, hash_module;"
        "torch.manual_seed(0); net = mine.Net(); print(hash_behaviour(net), hash_module(net))"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONHASHSEED": seed}, capture_output=True, text=True
        )
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout
    assert "[]" in runs[0].stdout, runs[0].stderr


def test_a_factory_counts_with_its_file(tmp_path):
    spec = f"python:{tmp_path}/mine.py:Net?preprocess.size=4&preprocess.resize=4&labels={tmp_path}/ab.json"
    (tmp_path / "ab.json").write_text('["a", "b"]')
    found = []
    for change in ({}, {"comment": "two"}, {"inside": "4.0"}):
        (tmp_path / "mine.py").write_text(SOURCE.format(**{**USUAL, **change}))
        found.append(load(spec, LoadOptions(device="cpu"))[0].fingerprint)
    assert found[0] == found[1] != found[2]


def test_weights_of_ordinary_modules_hash_as_their_tensors():
    from cuebench.observers.torch.fingerprint import hash_tensors

    model = Net()
    assert hash_module(model) == hash_tensors(model.state_dict())


def test_the_program_that_was_started_is_nobodys_code(monkeypatch) -> None:
    # multiprocessing registers it a second time when torch is imported, which may be in another thread.
    monkeypatch.setitem(sys.modules, "__mp_main__", sys.modules["__main__"])
    assert place_of("__mp_main__") == place_of("__main__") == NOWHERE
