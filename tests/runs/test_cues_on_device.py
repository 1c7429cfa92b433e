"""Cues that the observer's device makes: the same answers, other keys, and nobody is shown unfinished pictures."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

torch = pytest.importorskip("torch")

import cuebench as cb  # noqa: E402
from cuebench.errors import UserError  # noqa: E402
from cuebench.files import hash_file  # noqa: E402
from cuebench.observers.torch import observer as torch_observer  # noqa: E402
from cuebench.observers.torch.observer import TorchObserver  # noqa: E402
from cuebench.protocols import corruption_robustness  # noqa: E402
from cuebench.protocols.base import Protocol, Result, View  # noqa: E402
from cuebench.registry import protocols  # noqa: E402
from cuebench.responses import job, pictures  # noqa: E402
from cuebench.responses.ray_worker import Answering, Order, Setup, Work, decoded, report_of  # noqa: E402
from cuebench.responses.store import Shards, batches  # noqa: E402
from cuebench.runs.evaluate import evaluate  # noqa: E402
from cuebench.runs.plan import plan_run  # noqa: E402
from cuebench.runs.record import RunOptions  # noqa: E402
from cuebench.types import Citation, Estimate, Headline, Stimulus, StimulusSet  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("torch")]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SQUARE = "square?size=32&resize=36"
RECIPES = {
    "clean": SQUARE,
    "contrast": f"{SQUARE};contrast?level=0.3",
    "noise": f"{SQUARE};uniform_noise?width=0.2",
    "shuffle": f"{SQUARE};patch_shuffle?grid=4",
    "after the CPU": f"{SQUARE};uniform_noise?width=0.1;sketch;low_pass?sigma=1",
    "whole": "contrast?level=0.5",
}
"""Condition → recipe."""


def read(root):
    """All conditions of each file together, each with a seed of its own."""
    stimuli = []
    for file in sorted(root.glob("*.png")):
        sha256 = hash_file(file).sha256
        for number, (condition, recipe) in enumerate(RECIPES.items()):
            picture = Stimulus(f"{file.stem}|{condition}", file.name, sha256, label="a", condition=condition)
            stimuli.append(replace(picture, recipe=recipe, seed=100 * len(stimuli) + number))
    return StimulusSet("coloured", tuple(stimuli), str(root))


def score(responses, options):
    result = Result()
    for answers in responses:
        result.add(answers, "all", "mean_logit", Estimate(float(answers.columns["logits"].mean()), n=len(answers)))
    return result


PROTOCOL = Protocol(
    name="coloured",
    version=1,
    title="Pictures made in the stream",
    needs=(("logits",),),
    read=read,
    views=(View("native", lambda preprocess: preprocess),),
    score=score,
    metrics=("mean_logit",),
    headline=Headline("mean_logit", ("all",)),
    conditions={"all": "all pictures"},
    citation=Citation("A toy, 2026.", "@misc{toy}", "-", "none"),
)


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(5):
        coarse = Image.fromarray(rng.integers(0, 256, (5, 6, 3), dtype=np.uint8))
        coarse.resize((48, 40), Image.Resampling.BICUBIC).save(folder / f"p{number}.png")
    return folder


@pytest.fixture
def on_cpu_too(monkeypatch):
    """Let the CPU count as a device."""
    monkeypatch.setattr(torch_observer, "MAKES_CUES", frozenset({"cpu", "cuda"}))


class Net(torch.nn.Module):
    """Every pixel counts in its place."""

    def __init__(self, seed):
        super().__init__()
        weights = np.random.default_rng(seed).normal(size=(3, 3 * 32 * 32)).astype(np.float32) / 50
        self.head = torch.nn.Linear(3 * 32 * 32, 3, bias=False)
        self.head.weight = torch.nn.Parameter(torch.from_numpy(weights))

    def forward(self, x):
        return self.head(x.flatten(1))


PREPROCESS = cb.Preprocess(size=32, resize=32)


def net(name="net", seed=1, **changes):
    arguments = {"preprocess": PREPROCESS, "labels": ("a", "b", "c"), "device": DEVICE, "fingerprint": name, **changes}
    return cb.wrap(Net(seed), name=name, **arguments)


def function(name="function"):
    """The same network, asked by a function of the user's."""
    network = Net(1)

    def respond(pixels):
        with torch.inference_mode():
            return network(torch.from_numpy(pixels)).numpy()

    return cb.wrap(respond, name=name, preprocess=PREPROCESS, labels=("a", "b", "c"), fingerprint=name)


def run(root, out, observers, cues_on, **options):
    options = {"workers": 0, "shard_size": 8, "resamples": 100, **options}
    return evaluate(observers, PROTOCOL, data_root=root, out=out, cues_on=cues_on, **options)


def logits(scores, root, observer="net"):
    """All stored answers of an observer, and the folder where they lie."""
    record = next(j for j in scores.record.jobs if j.observer == observer)
    shards = Shards(scores.out / "responses" / record.folder)
    return np.concatenate([shards.read(batch)[0]["logits"] for _, batch in batches(read(root).stimuli, 8)])


def folder(scores, observer="net"):
    return next(j.folder for j in scores.record.jobs if j.observer == observer)


def test_answers_agree_and_are_kept_apart(root, tmp_path, on_cpu_too):
    events = []
    plain = run(root, tmp_path / "cpu", net(), "cpu")
    made = run(root, tmp_path / "device", net(), "device", on_event=events.append)
    first, second = logits(plain, root), logits(made, root)
    assert np.ptp(first) > 1
    np.testing.assert_allclose(first, second, atol=0.02 * np.ptp(first))
    assert folder(plain) != folder(made)
    recipes = made.record.jobs[0].key["preprocess"]["recipes"]
    assert {n for n, v in recipes.items() if v.endswith(f" on {DEVICE}")} >= {"contrast", "low_pass", "patch_shuffle"}
    assert not recipes["sketch"].endswith(f" on {DEVICE}")
    assert all(f"cues made on {DEVICE}" in row.note for row in made.rows)
    assert not any("cues made" in row.note for row in plain.rows)
    assert not [e.message for e in events if e.kind == "notice"]


def test_unfinished_pictures_are_told_from_finished_ones(root, tmp_path, on_cpu_too, monkeypatch):
    """The comparison above can fail: without the device's part the answers are far away."""
    plain = run(root, tmp_path / "cpu", net(), "cpu")
    monkeypatch.setattr(job, "render_on_device", lambda images, stimuli, geometry: images)
    bare = run(root, tmp_path / "device", net(), "device")
    first, second = logits(plain, root), logits(bare, root)
    assert np.abs(first - second).max() > 0.2 * np.ptp(first)


def test_pictures_are_made_once_for_all_networks_and_cut_once_for_each_file(root, tmp_path, on_cpu_too, monkeypatch):
    made, cut = [], []
    render_on_device, render = job.render_on_device, pictures.render

    def counting(images, stimuli, geometry):
        made.append(len(images))
        return render_on_device(images, stimuli, geometry)

    def counting_cuts(folder, image, stimulus):
        cut.append(stimulus.recipe)
        return render(folder, image, stimulus)

    monkeypatch.setattr(job, "render_on_device", counting)
    monkeypatch.setattr(pictures, "render", counting_cuts)
    scores = run(root, tmp_path / "one", net(), "device", batch_size=64)  # a GPU tries which size suits it
    one, cuts = list(made), list(cut)
    made.clear()
    run(root, tmp_path / "two", [net(), net("other", 2)], "device", batch_size=64)
    # Each network is probed and asked twice for two stimuli; the pictures of the set are made once.
    assert sum(made) - sum(one) == 1 + 2
    assert scores.record.images_decoded == 5
    probing = 1
    assert cuts.count(SQUARE) == 5 + probing  # for four conditions of each file
    assert sum("sketch" in recipe for recipe in cuts) == 5
    assert not any("low_pass" in recipe for recipe in cuts)


def test_the_same_command_goes_on(root, tmp_path, on_cpu_too):
    out = tmp_path / "run"
    before = logits(run(root, out, net(), "device"), root)
    stored = sorted((out / "responses").glob("*/*.parquet"))
    assert len(stored) > 2
    stored[1].unlink()
    scores = run(root, out, net(), "device")
    np.testing.assert_array_equal(logits(scores, root), before)
    asked = scores.record.jobs[0].asked_again
    assert asked["stimuli"] >= 4
    assert asked["differing"] == 0
    assert not list((out / "responses").glob("*.stale-*"))


def test_each_observer_is_shown_what_it_can_finish(root, tmp_path, on_cpu_too):
    class Own(TorchObserver):
        """Looks at the pixels in its own way."""

        def respond(self, batch, needs):
            with torch.inference_mode():
                return {"logits": self.module(self.pixels(batch.images.copy())).numpy()}

        submit = cb.observers.base.ObserverBase.submit

    def own():
        return Own(Net(1), name="own", preprocess=PREPROCESS, labels=net().labels, device="cpu",
                   settings={"fingerprint": "own"})  # fmt: skip

    larger = cb.Preprocess(size=32, resize=40)
    observers = [net(), function(), own(), net("larger", preprocess=larger)]
    plain = run(root, tmp_path / "cpu", observers, "cpu")
    made = run(root, tmp_path / "device", observers, "device")
    for name in ("function", "own", "larger"):
        np.testing.assert_array_equal(logits(plain, root, name), logits(made, root, name))
        assert folder(plain, name) == folder(made, name)
        assert [n for n in made.record.notices if f"for {name} are made where files are decoded" in n]
    assert folder(plain) != folder(made)
    assert not [n for n in made.record.notices if "for net " in n]
    np.testing.assert_allclose(
        logits(made, root), logits(made, root, "function"), atol=0.02 * np.ptp(logits(made, root))
    )


def test_a_network_on_the_cpu_is_shown_finished_pictures(root, tmp_path):
    plain, made = (run(root, tmp_path / where, net(device="cpu"), where) for where in ("cpu", "device"))
    assert folder(plain) == folder(made)
    assert [n for n in made.record.notices if "no torch network on a GPU" in n]


@pytest.mark.slow
def test_worker_processes_and_the_cache(root, tmp_path, on_cpu_too):
    options = {"workers": 1, "cache": tmp_path / "cache"}
    first = run(root, tmp_path / "one", net(), "device", **options)
    again = run(root, tmp_path / "two", net(), "device", **options)
    plain = run(root, tmp_path / "three", net(), "cpu", **options)
    assert [s.record.images_decoded for s in (first, again, plain)] == [5, 0, 5]
    np.testing.assert_array_equal(logits(first, root), logits(again, root))
    np.testing.assert_allclose(logits(first, root), logits(plain, root), atol=0.02 * np.ptp(logits(plain, root)))


def test_an_observer_that_does_not_finish_pictures_is_stopped(root, tmp_path, on_cpu_too, monkeypatch):
    """Whatever an observer claims, answers to unfinished pictures are never stored."""

    def forward(self, batch, needs):
        return lambda: {"logits": np.zeros((len(batch), 3), np.float32)}

    monkeypatch.setattr(TorchObserver, "submit", forward)
    with pytest.warns(RuntimeWarning, match="without their cues"):
        scores = run(root, tmp_path / "run", net(), "device")
    assert "shown pictures without their cues" in scores.failures[0]
    assert not list((tmp_path / "run" / "responses").glob("*/*.parquet"))


def test_a_node_of_a_cluster_finishes_pictures(root, tmp_path, on_cpu_too, monkeypatch):
    """What a Ray actor does with a shard, without Ray."""
    plain = run(root, tmp_path / "cpu", net(), "cpu")
    options = RunOptions(cues_on="device", shard_size=8)
    plan = plan_run([net()], [protocols.resolve(PROTOCOL)], root, tmp_path / "run", options, lambda event: None)
    (asked,) = plan.jobs
    asked.shards.open()
    order = Order(
        **{n: getattr(asked, n) for n in ("protocol", "view", "needs", "preprocess", "reduce", "shards", "record")},
        **{"observer": "net", "batch_size": 4, "fingerprint": asked.shards.key.weights, "cues_on": asked.cues_on},
    )
    _, batch = next(iter(batches(asked.stimuli.stimuli, 8)))
    work = Work(0, str(root), tuple(batch), (0,), (asked.geometry,))
    shard = decoded(pa.table({"work": [pickle.dumps(work)]}))
    for observer, stored in ((net(), [0]), (function(), [])):
        monkeypatch.setattr(Answering, "_made", lambda self, order, observer=observer: observer)
        report = report_of(Answering(Setup({0: order}, os.getcwd()))(shard).to_pylist()[0])
        assert report.stored == stored
    assert "cues are to be made on" in report.failed[0].reason
    found = asked.shards.read(batch)[0]["logits"]
    np.testing.assert_allclose(found, logits(plain, root)[: len(batch)], atol=0.02 * np.ptp(found))


def test_an_unreadable_file_is_left_out(root, tmp_path, on_cpu_too):
    (root / "p2.png").write_bytes(b"no picture")
    options = {"allow_unreadable": 0.5}
    plain = run(root, tmp_path / "cpu", net(), "cpu", **options)
    made = run(root, tmp_path / "device", net(), "device", **options)
    first, second = logits(plain, root), logits(made, root)
    assert len(first) == len(second) == 4 * len(RECIPES)
    np.testing.assert_allclose(first, second, atol=0.02 * np.ptp(first))


def test_a_wrong_place_is_refused(root, tmp_path):
    with pytest.raises(UserError, match="one of cpu, device"):
        run(root, tmp_path / "run", net(), "gpu")


def test_corruption_robustness(tmp_path, on_cpu_too, monkeypatch):
    """A published protocol, with the cheap ones of its corruptions: the same accuracies."""
    quick = ("clean", "contrast", "low_pass", "uniform_noise")
    planned = corruption_robustness.corruptions
    monkeypatch.setattr(
        corruption_robustness,
        "corruptions",
        lambda **options: [c for c in planned(**options) if c.condition.startswith(quick)],
    )
    folder = tmp_path / "data" / "imagenet_val"
    rng = np.random.default_rng(1)
    for label in ("a", "b"):
        (folder / label).mkdir(parents=True)
        coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        coarse.resize((96, 64), Image.Resampling.BICUBIC).save(folder / label / f"{label}.png")

    class Mean(torch.nn.Module):
        def forward(self, x):
            corner = x[:, :, :56, :56].mean((2, 3))
            return torch.stack([corner[:, 0] - corner[:, 1], corner[:, 1] - corner[:, 2]], 1)

    observer = cb.wrap(Mean(), name="mean", preprocess=cb.Preprocess(size=224, resize=224), labels=("a", "b"),
                       device=DEVICE, fingerprint="mean")  # fmt: skip
    options = {"data_root": tmp_path / "data", "workers": 0, "resamples": 100}
    plain, made = (
        evaluate(observer, "corruption_robustness", out=tmp_path / where, cues_on=where, **options)
        for where in ("cpu", "device")
    )
    values = [{(r.metric, r.condition): r.value for r in s.rows if r.metric == "accuracy"} for s in (plain, made)]
    assert values[0] == values[1]
    assert len(values[0]) > 10
    assert all(f"cues made on {DEVICE}" in row.note for row in made.rows)
