"""The training callback: numbers, schedule, a network left as it was, Lightning's way of calling it, the figure."""

from __future__ import annotations

import json
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from cuebench.callbacks import UNALIGNED, BiasOverTraining
from cuebench.errors import UserError
from cuebench.observers.preprocess import Preprocess
from cuebench.protocols.headline import chosen_condition
from cuebench.protocols.triplets import PROTOCOL as TRIPLETS

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]

HEADLINE = "experiment3/size=1.0/aligned"
NUMBERS = (HEADLINE, UNALIGNED)
SIZE = Preprocess(size=32, mean=(0.5,) * 3, std=(0.5,) * 3)


class Outline(torch.nn.Module):
    """An embedding that sees only where the object is: the mask of what is not white, so nothing but shape."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(1))
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x):
        return self.drop((x < 0.9).any(dim=1).float().flatten(1)) * self.scale


class Colour(torch.nn.Module):
    """An embedding that sees only the mean colour of the object: nothing but texture."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        inside = (x < 0.9).any(dim=1, keepdim=True).float()
        mean = (x * inside).sum(dim=(2, 3)) / inside.sum(dim=(2, 3)).clamp(min=1)
        return mean * self.scale


@pytest.fixture(scope="module")
def watch():
    return BiasOverTraining(preprocess=SIZE, every=2, resamples=200)


def test_shape_and_texture_networks_are_told_apart(watch):
    seen = {
        name: {r.condition: r.value for r in watch.measure(net)} for name, net in (("o", Outline()), ("c", Colour()))
    }
    assert tuple(seen["o"]) == NUMBERS
    assert seen["o"][HEADLINE] > 0.95  # aligned: the outline is the same pixels
    assert max(seen["c"].values()) < 0.2


def test_the_headline_is_that_of_a_run_of_all_novel_objects(watch):
    watch.history.clear()
    values = watch(0, Outline())
    in_a_run = chosen_condition(TRIPLETS.headline, list(dict.fromkeys(s.condition for s in TRIPLETS.standalone())))
    assert in_a_run == HEADLINE
    assert next(iter(values)) == watch.history[0]["headline"]["triplets"] == f"triplet_shape_bias/{HEADLINE}"


def test_the_schedule_the_log_and_the_history(watch, tmp_path):
    logged = []
    watch.history.clear()
    watch.log = lambda values, epoch: logged.append((epoch, values))
    answers = [watch(epoch, Outline()) for epoch in range(5)]
    watch.log = None
    assert [bool(a) for a in answers] == [True, False, True, False, True]
    assert [e for e, _ in logged] == [0, 2, 4] == [r["epoch"] for r in watch.history]
    assert answers[0] == logged[0][1] == watch.history[0]["values"]
    assert watch.history[0]["about"].startswith("triplets, version ")
    assert watch.figure().footnote == watch.history[-1]["about"]
    assert all(r["low"][k] <= v <= r["high"][k] for r in watch.history for k, v in r["values"].items())
    saved = json.loads(watch.save(tmp_path / "bias.json").read_text())
    assert saved == watch.history


def test_a_network_that_keeps_tensors_can_be_trained_on(watch):
    class Caches(Colour):
        kept = None

        def forward(self, x):
            self.kept = torch.ones(3) if self.kept is None else self.kept  # as rotary embeddings do
            return super().forward(x) * self.kept

    net = Caches()
    watch.measure(net)
    net(torch.rand(2, 3, 32, 32)).sum().backward()  # an inference tensor cannot be saved for this
    assert net.scale.grad is not None


def test_the_network_is_left_as_it_was(watch):
    net = Outline()
    net.train()
    net.drop.eval()
    state, numbers = {k: v.clone() for k, v in net.state_dict().items()}, torch.random.get_rng_state()
    watch.measure(net)
    assert (net.training, net.drop.training) == (True, False)
    assert all(torch.equal(v, state[k]) for k, v in net.state_dict().items())
    assert torch.equal(torch.random.get_rng_state(), numbers)


def test_the_figure(watch, tmp_path):
    from cuebench.reports.figures.bias_over_training import bias_over_training

    watch.history[:] = []
    with pytest.raises(UserError, match="nothing was measured"):
        watch.figure()
    for epoch, net in ((0, Colour()), (2, Outline())):
        watch(epoch, net)
    picture = watch.figure()
    assert picture.csv() == bias_over_training(watch.save(tmp_path / "h.json")).csv()
    assert "triplet_shape_bias experiment3 on a fixed set" in picture.subtitle
    assert {row["name"] for row in picture.data} == {c.removeprefix("experiment3/") for c in NUMBERS}
    assert {row["epoch"] for row in picture.data} == {0, 2}
    assert picture.save(tmp_path / "bias.csv").file.stat().st_size > 100


def test_lightning_calls_it_and_logs_the_numbers(watch, monkeypatch):
    with pytest.raises(UserError, match="not imported"):
        watch.lightning()

    class Callback:
        pass

    fake = ModuleType("lightning.pytorch.callbacks")
    fake.Callback = Callback
    monkeypatch.setitem(sys.modules, fake.__name__, fake)
    hook, logged = watch.lightning(), {}
    assert isinstance(hook, Callback)
    module = Outline()
    module.log_dict = lambda values, **_: logged.update(values)
    hook.on_train_epoch_end(SimpleNamespace(current_epoch=1, is_global_zero=True), module)
    assert not logged
    hook.on_train_epoch_end(SimpleNamespace(current_epoch=2, is_global_zero=True), module)
    assert set(logged) == {f"triplet_shape_bias/{c}" for c in NUMBERS}
    state = hook.state_dict()
    length = len(state["history"])
    hook.load_state_dict({"history": list(state["history"])})
    assert len(watch.history) == length


def test_the_network_may_be_an_attribute_and_have_a_head():
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 10))
    watch = BiasOverTraining(preprocess=SIZE, labels=10, network=lambda m: m.net, prefix="val/", resamples=100)
    found = watch(0, SimpleNamespace(net=net))
    assert set(found) == {f"val/triplet_shape_bias/{c}" for c in NUMBERS}
    assert all(np.isfinite(v) for v in found.values())


def test_another_fast_protocol(data_root):
    class Red(torch.nn.Module):
        """Answers by the red channel, which is the shape class of the test images."""

        def __init__(self):
            super().__init__()
            self.unit = torch.nn.Parameter(torch.ones(1))

        def forward(self, x):
            red = ((x * 0.5 + 0.5) * 255)[:, 0].mean(dim=(1, 2))
            return -((red[:, None] - 40 * torch.arange(4.0)) ** 2) * self.unit

    from cuebench.labels import LabelSpace

    labels = LabelSpace("four", ("cat", "dog", "car", "clock"))
    watch = BiasOverTraining(
        preprocess=SIZE, labels=labels, protocols=["cue_conflict"], data_root=data_root, resamples=100
    )
    assert watch(0, Red())["shape_bias/4-way"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every": 0}, "every=0"),
        ({"protocols": ["triplet"]}, "Did you mean 'triplets'"),
        ({"protocols": ["cue_conflict"]}, "needs its stimuli"),
    ],
)
def test_mistakes_are_named(options, message):
    with pytest.raises(UserError, match=message):
        BiasOverTraining(preprocess=SIZE, **options)
