"""Every registered metric keeps its contract, is right on planted inputs, and is what the protocols write."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cuebench.metrics as public
from cuebench.errors import UserError
from cuebench.labels import label_map
from cuebench.metrics.base import Metric
from cuebench.metrics.texture_association import texture_identity
from cuebench.metrics.texture_confidence import top1
from cuebench.metrics.texture_dominance import group
from cuebench.options import parse
from cuebench.protocols.base import ScoreOptions, score_rows
from cuebench.registry import BUILT_IN, metrics, protocols
from cuebench.statistics.ratios import Terms
from cuebench.stimuli.cue_files import read_labels
from cuebench.stimuli.makers.base import make
from cuebench.testing import CheckFailed, check_metric, planted_responses

CONFLICT = (["cat", "dog", "cat", "car", "cat"], ["cat"] * 4 + ["cat"], ["dog"] * 4 + ["cat"])
"""Two answers by shape, one by texture, one by neither; one aligned trial."""
LOGITS = np.array([[0.9, 0.1, 0.5], [0.1, 0.2, 0.9], [0.3, 0.6, 0.1]])
RANKS = (LOGITS, np.array([0, 1, 0]), [np.array([0]), np.array([1])])
"""Ranks 1, 2 and 2 of the target class."""
MASKS = (np.array([[0, 0, 1, 1]]), np.array([[0, 1, 1, 1]]), 2)
FEATURES = ([[1, 0, 0, 0], [1, 0, 0.1, 0], [0, 1, 0.1, 0]], ["a", "a", "b"], ["x", "y", "y"])
"""One triplet: the anchor (a, y) is nearer to (a, x), which shares its shape, than to (b, y)."""

PLANTED = {
    "accuracy": [((LOGITS, np.array([0, 1, 0])), 1 / 3), ((LOGITS, np.array([0, 1, 0]), 2), 1.0)],
    "confusion": [((*CONFLICT, ["cat", "dog", "car"], "texture"), [[1, 0, 0, 0], [0.5, 0.25, 0.25, 0], [np.nan] * 4])],
    "decided_fraction": [(CONFLICT, 3 / 4)],
    "distorted_prediction": [(RANKS, 1 / 3)],
    "accuracy_difference": [(([1, 1, 0, 0], [1, 0, 0, 0]), 1 / 16)],
    "error_consistency": [(([1, 1, 0, 0], [1, 0, 0, 0]), 0.5)],
    "error_consistency_bound": [((0.9, 0.5), 0.2), ((1, 1), 1.0), ((1, 0), 0.0)],
    "mean_rank": [(([0.1, 0.2], [0.9, 0.8], [0.2, 0.3]), [4 / 3, 5 / 3])],
    "observed_consistency": [(([1, 1, 0, 0], [1, 0, 0, 0]), 0.75)],
    "mean_iou": [(MASKS, (1 / 2 + 2 / 3) / 2)],
    "quality_original": [((3, 4), 0.75)],
    "quality_shape": [((0, 0), math.nan)],
    "quality_texture": [((1, 4), 0.25)],
    "recognition": [((["cat", "na", "dog"], ["cat", "cat", "dog"]), 2 / 3)],
    "relative_accuracy": [(([True, False], [True, True]), 0.5), (([0.4, 0.2], [0.6]), 0.5)],
    "relative_robustness": [(([0.8, 0.4], 0.8), 0.75), (([], 0.8), math.nan)],
    "robustness_cd": [((0.5, 0.75, 1.0), 0.625)],
    "shape_accuracy": [(CONFLICT, 2 / 4)],
    "shape_bias": [(CONFLICT, 2 / 3), ((["car"], ["cat"], ["dog"]), math.nan)],
    "shape_bias_cd": [((0.6, 0.4, 0.3, 0.4), 2 / 3)],
    "shape_preference": [((0.6, 0.2), 0.75)],
    "shape_reliance": [((0.2, 0.6), 0.8 / 1.2)],
    "shape_sensitivity": [(RANKS, (1 + 1 / 2 + 1 / 2) / 3)],
    "shape_top1": [(RANKS, 1 / 3)],
    "shape_top5": [(RANKS, 1.0)],
    "texture_accuracy": [(CONFLICT, 1 / 4)],
    "texture_confidence": [(([0.5, 1.0],), 0.75)],
    "texture_preference": [((0.6, 0.2), 0.25)],
    "texture_sensitivity": [(RANKS, 2 / 3)],
    "texture_top1": [(RANKS, 1 / 3)],
    "texture_top5": [(RANKS, 1.0)],
    "texturedness": [((np.array([0.2, 0.6]),), 0.4)],
    "triplet_bias_gain": [((0.7, [0.5, 0.3]), 0.3)],
    "triplet_shape_bias": [(FEATURES, 1.0)],
}
"""Metric → calls with a known result, worked out by hand."""
IN_DOCSTRING = {"texture_agreement", "texture_association", "texture_dominance"}
"""Metrics that return more than a number: their docstrings hold the example."""


@pytest.mark.parametrize("name", list(metrics))
def test_metric(name):
    check_metric(name, planted=PLANTED.get(name, ()))


def test_every_metric_of_cuebench_has_a_planted_input():
    built_in = {name for name in metrics if metrics.origin(name) == BUILT_IN}
    assert built_in == {*PLANTED, *IN_DOCSTRING}
    assert all(">>> " in metrics.get(name).compute.__doc__ for name in IN_DOCSTRING)


# ------------------------------------------------------------------------------------- what the check must find


def share(values):
    """Return the mean of the values."""
    return sum(values) / len(values)


def undocumented(values, weights):
    """Return the mean of the values."""
    return sum(values)


def wrong_example(values):
    """Return the mean of the values.

    >>> wrong_example([1, 0])
    0.75
    """
    return share(values)


def no_docstring(values):
    return share(values)


GOOD = Metric("share", "Share", "n_1 / n", "all values", "-", compute=share, higher_is="more ones")


def hits(values):
    """Return the values as an array."""
    return np.asarray(values, bool)


RATIO = Metric(
    "ratio", "Share", "n_1 / n", "all values", "-", trials=hits, terms=lambda t: Terms(t, t | True), higher_is="more"
)


def test_a_good_metric_passes_as_object_and_from_a_file(tmp_path):
    check_metric(GOOD, planted=[(([1, 0],), 0.5)])
    check_metric(RATIO, planted=[(([1, 0],), 0.5), (([1, 0], {}), 0.5)])
    file = tmp_path / "mine.py"
    file.write_text(
        "from cuebench.metrics.base import Metric\n"
        "def f(x):\n    '''Return x.'''\n    return x\n"
        "MINE = Metric('mine', 'Mine', 'x', '1', '-', compute=f, higher_is='more')\n"
    )
    check_metric(f"python:{file}:MINE", planted=[((0.5,), 0.5)])
    with pytest.raises(CheckFailed, match=r"expected 0\.4, got 0\.5"):
        check_metric(f"python:{file}:MINE", planted=[((0.5,), 0.4)])


@pytest.mark.parametrize(
    ("metric", "planted", "message"),
    [
        (replace(GOOD, formula=" ", reference=""), (), "does not say its formula, reference"),
        (replace(GOOD, higher_is=""), (), "does not say its higher_is"),
        (replace(GOOD, name="shape bias"), (), "must be usable as"),
        (replace(GOOD, bounds=(1.0, 0.0)), (), "low < high"),
        (replace(GOOD, needs=("brainwaves",)), (), "needs brainwaves; observers give"),
        (replace(GOOD, compute=no_docstring), (), "has no docstring"),
        (replace(GOOD, compute=undocumented), (), "say what 'weights' is"),
        (replace(GOOD, compute=wrong_example), (), "an example of its docstring fails"),
        (GOOD, [(([1, 0],), 0.6)], "expected 0.6, got 0.5"),
        (GOOD, [(([1, 3],), 2.0)], r"expected a value in \[0, 1\], got 2"),
        (replace(RATIO, compute=lambda values: 0.9), [(([1, 0],), 0.9)], "has no docstring"),
        (
            replace(RATIO, terms=lambda t: Terms(t, t[:1] | True)),
            [(([1, 0],), 1.0)],
            "terms of one length, got 2 and 1",
        ),
        (replace(RATIO, compute=share, terms=lambda t: Terms(t, t)), [(([1, 0],), 0.5)], "its terms give 1.0"),
        (replace(RATIO, terms=3), (), "expected terms to be a function"),
        (share, (), "expected a Metric, got a function"),
    ],
)
def test_a_broken_metric_is_found_out(metric, planted, message):
    with pytest.raises(CheckFailed, match=message):
        check_metric(metric, planted=planted)


def test_a_metric_without_a_function_is_refused_when_it_is_made():
    with pytest.raises(UserError, match="has no function"):
        replace(GOOD, compute=None)


# ---------------------------------------------------------------------- the public function is what a protocol writes


class Scored:
    """What a protocol wrote for planted observers, and their answers before any summary."""

    def __init__(self, name: str, root: Path | None, observers=("ideal:mixture?shape=0.6&lapse=0.3",)):
        protocol = protocols.get(name)
        stimuli = protocol.read(root) if root else protocol.standalone()
        # Seeds differ, so that observers do: two people, two initialisations.
        responses = [planted_responses(protocol, stimuli, o, seed=k, name=f"{o}#{k}") for k, o in enumerate(observers)]
        responses = [replace(r, kind="person") if name == "cue_conflict" and k else r for k, r in enumerate(responses)]
        if protocol.baselines:
            responses[1:] = [replace(r, baseline_of=responses[0].observer) for r in responses[1:]]
        options = ScoreOptions(0, 100, parse(protocol.options, {}, name))
        result = protocol.score(responses, options)
        self.rows, self.tables = score_rows(protocol, result), result.tables
        plain = replace(protocol, reduce=None)
        self.all = [planted_responses(plain, stimuli, o, seed=k) for k, o in enumerate(observers)]
        self.answers, self.name = self.all[0], responses[0].observer

    def value(self, metric: str, condition: str, observer: str = "") -> float:
        """Return what the protocol wrote."""
        place = (observer or self.name, metric, condition)
        values = {r.value for r in self.rows if (r.observer, r.metric, r.condition) == place}
        assert len(values) == 1, f"{metric} ({condition}): {values}"
        (value,) = values
        assert math.isfinite(value)
        return value

    def correct(self, condition: str) -> np.ndarray:
        """Return whether each picture of a condition was answered with its label."""
        rows = self.answers.truth("condition") == condition
        names = np.array(self.answers.labels.names)[self.answers.columns["logits"][rows].argmax(axis=1)]
        return names == self.answers.truth("label")[rows]


THREE = ("ideal:mixture?shape=0.6&lapse=0.3",) * 3


def test_cue_conflict_writes_its_metrics(tmp_path):
    make("cue_conflict", tmp_path, count=100, size=32)
    scored = Scored("cue_conflict", tmp_path, THREE)
    names = np.array(scored.answers.labels.names)
    decisions = [names[a.columns["logits"].argmax(axis=1)] for a in scored.all]
    shape, texture = scored.answers.truth("shape"), scored.answers.truth("texture")
    for metric in ("shape_bias", "shape_accuracy", "texture_accuracy", "decided_fraction"):
        assert scored.value(metric, f"{len(names)}-way") == getattr(public, metric)(decisions[0], shape, texture)
    people = [d == shape for d in decisions[1:]]
    written = scored.value("error_consistency", f"{len(names)}-way", f"{THREE[1]}#1")
    assert written == pytest.approx(public.error_consistency(*people))
    counts = np.zeros((len(names), len(names) + 1))
    answers = [*names, "none"]
    for r in scored.tables["confusion"].to_pylist():
        if r["observer"] == scored.name:
            counts[answers.index(r["texture"]), answers.index(r["response"])] += r["count"]
    shown = counts.sum(axis=1) > 0
    shares = public.confusion(decisions[0], shape, texture, names, "texture")
    np.testing.assert_allclose((counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))[shown], shares[shown])


def test_imagenet_accuracy_writes_its_metric(small_root):
    scored = Scored("imagenet_accuracy", small_root("photographs"))
    target = np.array([scored.answers.labels.find(label) for label in scored.answers.truth("label")])
    for k in (1, 5):
        assert scored.value("accuracy", f"top{k}") == public.accuracy(scored.answers.columns["logits"], target, k)


def test_feature_suppression_writes_its_metrics(small_root):
    scored = Scored("feature_suppression", small_root("photographs"))
    levels = [f"patch_shuffle/grid={g}" for g in range(2, 17, 2)]
    target = np.array([scored.answers.labels.find(label) for label in scored.answers.truth("label")])
    rows = scored.answers.truth("condition") == levels[0]
    accuracy = public.accuracy(scored.answers.columns["logits"][rows], target[rows])
    assert scored.value("accuracy", levels[0]) == accuracy == scored.correct(levels[0]).mean()
    original = scored.correct("original")
    relative = public.relative_accuracy([scored.correct(c).mean() for c in levels], [original.mean()])
    assert scored.value("relative_accuracy", "patch_shuffle") == pytest.approx(relative)
    kinds = [scored.value("relative_accuracy", f"suppress={kind}") for kind in ("shape", "texture")]
    assert scored.value("shape_reliance", "all") == pytest.approx(public.shape_reliance(*kinds))


def test_corruption_robustness_writes_its_metrics(small_root):
    scored = Scored("corruption_robustness", small_root("photographs"))
    levels = dict.fromkeys(c for c in scored.answers.truth("condition").tolist() if c.startswith("contrast/"))
    relative = public.relative_robustness([scored.correct(c).mean() for c in levels], scored.correct("clean").mean())
    assert scored.value("relative_robustness", "contrast") == pytest.approx(relative)


def test_segmentation_writes_its_metrics(small_root):
    scored = Scored("cue_decomposition_segmentation", small_root("segmentation"))
    stimuli = scored.answers.stimuli
    classes = len(label_map(stimuli.targets).names)
    rows = [i for i, s in enumerate(stimuli) if s.condition == "voronoi"]
    truth = np.stack([read_labels(Path(stimuli.root) / stimuli.stimuli[i].mask) for i in rows])
    answer = np.stack([scored.answers.columns["masks"][i] for i in rows])
    assert scored.value("quality_texture", "voronoi") == pytest.approx(public.mean_iou(truth, answer, classes))


def test_cue_decomposition_writes_its_metrics(small_root):
    scored = Scored("cue_decomposition", small_root("decomposition"), THREE)
    parts = {"quality_original": "original", "quality_shape": "eed", "quality_texture": "voronoi"}
    quality = {
        metric: getattr(public, metric)(scored.correct(condition).sum(), len(scored.correct(condition)))
        for metric, condition in parts.items()
    }
    for metric, condition in parts.items():
        assert scored.value(metric, condition) == pytest.approx(quality[metric])
    original, shape, texture = quality.values()
    robustness = public.robustness_cd(shape, texture, original)
    assert scored.value("robustness_cd", "eed+voronoi") == pytest.approx(robustness)
    population = next(
        r for r in scored.tables["population"].to_pylist() if (r["population"], r["cues"]) == ("run", "eed+voronoi")
    )
    bias = public.shape_bias_cd(shape, texture, population["s"], population["t"])
    assert scored.value("shape_bias_cd", "eed+voronoi H=run") == pytest.approx(bias)


def test_refined_bias_writes_its_metrics(small_root):
    scored = Scored("refined_bias", small_root("pure_cues"))
    answers = scored.answers
    members = label_map(answers.stimuli.targets).resolve(answers.labels)
    values = {}
    for cue in ("shape", "texture"):
        rows = answers.truth(cue) != ""
        target = np.array([members.names.index(name) for name in answers.truth(cue)[rows]])
        trials = (answers.columns["logits"][rows], target, members.members)
        for measure in ("sensitivity", "top1", "top5"):
            values[f"{cue}_{measure}"] = getattr(public, f"{cue}_{measure}")(*trials)
        distorted = public.distorted_prediction(*trials)
        assert scored.value("distorted_prediction", f"faithful/cue={cue}") == pytest.approx(distorted)
    sensitivities = values["shape_sensitivity"], values["texture_sensitivity"]
    for cue in ("shape", "texture"):
        values[f"{cue}_preference"] = getattr(public, f"{cue}_preference")(*sensitivities)
    for metric, value in values.items():
        assert scored.value(metric, "faithful") == pytest.approx(value)


def test_triplets_write_their_metrics():
    scored = Scored("triplets", None, THREE)
    condition = "experiment3/size=0.4/aligned"
    stimuli = [s for s in scored.answers.stimuli if s.condition == condition]
    sources = [s.shape_source for s in stimuli], [s.texture_source for s in stimuli]
    rows = scored.answers.truth("condition") == condition
    biases = [public.triplet_shape_bias(a.columns["features"][rows], *sources) for a in scored.all]
    assert scored.value("triplet_shape_bias", condition) == pytest.approx(biases[0])
    gain = public.triplet_bias_gain(biases[0], biases[1:])
    assert scored.value("triplet_bias_gain", condition) == pytest.approx(gain)


def test_texture_association_writes_its_metrics(small_root):
    scored = Scored("texture_association", small_root("textures_and_photographs"))
    answers, logits = scored.answers, scored.answers.columns["logits"]
    part, truth, space = answers.truth("condition"), answers.truth("texture"), answers.labels
    classes, confidence = top1(logits)
    shown = part == "texture"
    assert scored.value("texture_confidence", "textures") == pytest.approx(public.texture_confidence(confidence[shown]))
    names = sorted(set(truth[shown].tolist()))
    counts = np.zeros((len(names), len(space)))
    np.add.at(counts, ([names.index(t) for t in truth[shown]], classes[shown]), 1)
    tav = public.texture_association(counts)
    pair = max(
        (r for r in scored.rows if r.metric == "texture_association" and r.condition.startswith("pair/")),
        key=lambda r: r.value,
    )
    texture, _, label = pair.condition.removeprefix("pair/texture=").partition("/class=")
    assert pair.value == pytest.approx(tav[names.index(texture), space.find(label)])
    clean = part == "clean"
    exponential = np.exp(logits[clean] - logits[clean].max(axis=1, keepdims=True))
    found = texture_identity(exponential / exponential.sum(axis=1, keepdims=True), tav)
    assert scored.value("texturedness", "clean") == pytest.approx(public.texturedness(found.similarity))
    target = np.array([space.find(label) for label in answers.truth("label")[clean]])
    correct = classes[clean] == target
    groups = group(target, found.texture, correct, len(names), len(space))
    assert scored.value("texture_dominance", "label/textures") == public.texture_dominance(groups).textures
    assert scored.value("accuracy", "clean") == public.accuracy(logits[clean], target)
    wrong = part == "adversarial"
    exponential = np.exp(logits[wrong] - logits[wrong].max(axis=1, keepdims=True))
    shown = texture_identity(exponential / exponential.sum(axis=1, keepdims=True), tav).texture
    adversarial = np.array([space.find(label) for label in answers.truth("label")[wrong]])
    dominant = group(classes[clean], found.texture, confidence[clean], len(names), len(space)).dominant
    agreement = public.texture_agreement(shown, classes[wrong], adversarial, dominant)
    neither = agreement.kinds.sum(axis=0)[3] / agreement.judged.sum()
    assert scored.value("texture_agreement", "adversarial/neither") == pytest.approx(neither)
