"""Ideal observers: what is planted comes out, whatever the batching."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cuebench.errors import UserError
from cuebench.labels import label_map
from cuebench.observers.adapters.ideal import SURE, WEIGHTS, load
from cuebench.observers.base import Batch, LoadOptions, Observer, Spec
from cuebench.types import REMOVED, Stimulus

CLASSES = tuple("abcdefgh")
STIMULI = [
    Stimulus(f"{s}{i}-{t}{i}", shape=s, texture=t)
    for s, t, i in itertools.product(CLASSES, CLASSES, range(60))
    if s != t
]


def ideal(body, seed=0, targets=CLASSES):
    (observer,) = load(Spec.parse(f"ideal:{body}"), LoadOptions(targets=targets, seed=seed))
    return observer


def shares(observer, stimuli=STIMULI):
    said = observer.respond(Batch(stimuli), ["decisions"])["decisions"]
    return np.mean(said == [s.shape for s in stimuli]), np.mean(said == [s.texture for s in stimuli])


@pytest.mark.parametrize("body", WEIGHTS)
def test_contract(body):
    observer = ideal(body)
    assert isinstance(observer, Observer)
    assert (observer.kind, observer.preprocess, observer.name) == ("ideal", None, f"ideal:{body}")
    assert observer.labels.names == CLASSES
    found = observer.respond(Batch(STIMULI[:5]), ["logits", "features", "decisions"])
    assert found["logits"].shape == (5, 8)
    assert found["features"].shape == (5, 16)
    assert (np.array(CLASSES)[found["logits"].argmax(1)] == found["decisions"]).all()
    assert len(observer.respond(Batch([]), ["logits"])["logits"]) == 0


def test_shape_and_texture_are_exact():
    assert shares(ideal("shape")) == (1.0, 0.0)
    assert shares(ideal("texture")) == (0.0, 1.0)


def test_random_answers_all_classes_equally_often():
    by_shape, by_texture = shares(ideal("random"))
    sd = np.sqrt(1 / 8 * 7 / 8 / len(STIMULI))
    assert abs(by_shape - 1 / 8) < 4 * sd
    assert abs(by_texture - 1 / 8) < 4 * sd


@pytest.mark.parametrize(("weight", "lapse"), [(0.7, 0.0), (0.2, 0.0), (0.7, 0.1), (0.5, 1.0)])
def test_mixture_has_the_planted_shares(weight, lapse):
    by_shape, by_texture = shares(ideal(f"mixture?shape={weight}&lapse={lapse}"))
    expected = (1 - lapse) * weight + lapse / 8
    assert abs(by_shape - expected) < 4 * np.sqrt(expected * (1 - expected) / len(STIMULI))
    assert abs(by_shape + by_texture - (1 - lapse * 6 / 8)) < 0.03


def test_answers_do_not_depend_on_batching_or_order():
    observer = ideal("mixture?shape=0.6&lapse=0.3")
    whole = observer.respond(Batch(STIMULI[:200]), ["logits"])
    single = [observer.respond(Batch([s]), ["logits"]) for s in reversed(STIMULI[:200])]
    for column in ("decisions", "logits", "features"):
        np.testing.assert_array_equal(whole[column], np.concatenate([r[column] for r in single])[::-1])


def test_another_seed_gives_other_answers_and_another_fingerprint():
    first, again, other = (ideal("random", seed) for seed in (0, 0, 1))
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert first.fingerprint != ideal("random", targets=CLASSES[:4]).fingerprint
    answers = [o.respond(Batch(STIMULI[:50]), [])["decisions"].tolist() for o in (first, again, other)]
    assert answers[0] == answers[1] != answers[2]


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.7, 1.0])
def test_features_share_similarity_between_the_cues_as_planted(weight):
    observer = ideal(f"mixture?shape={weight}")
    trio = [
        Stimulus("x", shape="a", texture="b"),
        Stimulus("y", shape="a", texture="c"),
        Stimulus("z", shape="d", texture="b"),
    ]
    anchor, same_shape, same_texture = observer.respond(Batch(trio), ["features"])["features"].astype(float)
    assert np.linalg.norm(anchor) == pytest.approx(1)
    assert anchor @ same_shape == pytest.approx(weight, abs=1e-6)
    assert anchor @ same_texture == pytest.approx(1 - weight, abs=1e-6)


def test_a_photograph_is_answered_by_its_label():
    found = ideal("mixture?shape=0.5").respond(Batch([Stimulus("x", label="c")]), ["decisions"])
    assert found["decisions"].tolist() == ["c"]


def test_a_missing_cue_is_answered_at_random():
    stimuli = [Stimulus(f"t{i}", texture="c") for i in range(4000)]
    found = ideal("shape").respond(Batch(stimuli), ["logits"])["logits"]
    ranks = 1 + (found > found[:, [2]]).sum(axis=1)
    harmonic = np.mean([1 / k for k in range(1, 9)])
    assert np.mean(1 / ranks) == pytest.approx(harmonic, abs=4 * (1 / ranks).std() / np.sqrt(4000))
    assert (ideal("texture").respond(Batch(stimuli), ["decisions"])["decisions"] == "c").all()
    removed = Stimulus("x", label="a", shape=REMOVED, texture="a")
    assert ideal("texture").respond(Batch([removed]), [])["decisions"].tolist() == ["a"]
    assert ideal("shape").respond(Batch([removed]), [])["logits"].std() > 0


def test_answers_in_a_larger_label_space():
    targets = label_map("refined_bias")
    told = ideal("shape?labels=imagenet1k", targets=targets.names).among(targets.names, targets)
    assert len(told.labels) == 1000
    found = told.respond(Batch([Stimulus("x", shape="clock"), Stimulus("y", texture="tiger")]), [])
    assert found["logits"].shape == (2, 1000)
    assert found["features"].shape == (2, 40)
    assert found["logits"][0].argmax() in targets.resolve(told.labels).members[targets.names.index("clock")]
    assert found["logits"][1].max() < SURE
    # Without a map, or where a class has no member there, the answers stay in the classes themselves.
    plain = ideal("shape?labels=imagenet1k", targets=("unheard-of",))
    assert len(plain.among(("unheard-of",), label_map({"unheard-of": ["unheard-of"]})).labels) == 1
    with pytest.raises(UserError, match="label space 'imagenet'"):
        ideal("shape?labels=imagenet")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("shap", "Did you mean 'shape'"),
        ("mixture?shape=2", "shape='2'"),
        ("mixture?shape=much", "shape='much'"),
        ("mixture?lapse=-1", "lapse='-1'"),
        ("mixture?shape=nan", "shape='nan'"),
        ("shape?shape=0.5", "option of observer 'ideal:shape.shape=0.5': 'shape'"),
    ],
)
def test_bad_specs(body, message):
    with pytest.raises(UserError, match=message):
        ideal(body)


def test_unknown_classes():
    with pytest.raises(UserError, match="must know the classes"):
        ideal("shape", targets=())
    with pytest.raises(UserError, match="'x' has shape 'zebra'"):
        ideal("shape").respond(Batch([Stimulus("x", shape="zebra", texture="a")]), [])
    with pytest.raises(UserError, match="'x' has neither a shape nor a label"):
        ideal("shape").respond(Batch([Stimulus("x")]), [])
