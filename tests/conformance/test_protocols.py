"""Every registered protocol keeps its contract, and the check finds what a protocol does wrong."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from cuebench.cues.base import CueInfo
from cuebench.errors import UserError
from cuebench.metrics.cue_conflict import decided_fraction, outcomes, shape_bias
from cuebench.observers.preprocess import Preprocess
from cuebench.options import Option
from cuebench.protocols.base import Protocol, Result, View
from cuebench.protocols.trials import TrialRows, TrialTable
from cuebench.registry import protocols
from cuebench.statistics.clustered import Sums
from cuebench.statistics.estimates import ratio_estimates
from cuebench.statistics.intervals import Clusters
from cuebench.statistics.ratios import Terms
from cuebench.stimuli.sources import novel_object
from cuebench.testing import CheckFailed, check_protocol
from cuebench.types import Axis, Citation, Headline, Interval, Reference, Stimulus, StimulusSet

DATA = {
    "imagenet_accuracy": "photographs",
    "feature_suppression": "photographs",
    "corruption_robustness": "photographs",
    "texture_association": "textures_and_photographs",
    "cue_decomposition": "decomposition",
    "cue_decomposition_segmentation": "segmentation",
    "refined_bias": "pure_cues",
    "pure_shape": "pure_shapes",
    "textured_silhouettes": "silhouettes",
    "human_alignment": "human_alignment",
}
"""Protocol → the small data root that it is checked with; a protocol that is not here draws or makes its stimuli."""
ABSENT = {"corruption_robustness": ("mean_iou",)}
"""Metrics that need other stimuli than those of the data root."""


@pytest.mark.parametrize("name", list(protocols))
def test_protocol(name, small_root):
    root = small_root(DATA[name]) if name in DATA else None
    check_protocol(name, data_root=root, absent=ABSENT.get(name, ()))


def test_corruptions_of_images_with_masks(small_root):
    check_protocol("corruption_robustness", data_root=small_root("segmentation"), absent=("accuracy",))


# ------------------------------------------------------------------------------------- what the check must find

SHAPES, TEXTURES = ("dax", "fep", "blick", "zup"), ("bricks", "fur", "scaly", "woven")


def conflicts() -> StimulusSet:
    """Every shape in every texture, drawn when shown."""
    return StimulusSet(
        "conflicts",
        tuple(
            Stimulus(
                f"{shape}-{texture}",
                shape=shape,
                texture=texture,
                shape_source=shape,
                texture_source=texture,
                recipe=novel_object.recipe(shape, texture, pixels=32),
            )
            for shape in SHAPES
            for texture in TEXTURES
        ),
    )


def score(responses, options):
    """Return the shape bias and the decided fraction, with the functions of the metrics."""
    result = Result()
    for answers in responses:
        trials = outcomes(answers.columns["decisions"], answers.truth("shape"), answers.truth("texture"))
        ids = answers.truth("id")
        clusters = Clusters(ids, answers.truth("shape_source"), answers.truth("texture_source"))
        ratios = (shape_bias, decided_fraction)
        estimates = ratio_estimates([m.terms(trials) for m in ratios], clusters, ("images",))
        for metric, estimate in zip(ratios, estimates):
            excluded = {"unanswered or undecided": len(answers.stimuli) - estimate.n}
            result.add(answers, "8-way", metric.name, estimate.excluding(excluded))
    return result


GOOD = Protocol(
    name="toy",
    version=1,
    title="A toy",
    needs=(("decisions",),),
    read=lambda root: conflicts(),
    standalone=conflicts,
    views=(View("native", Preprocess.whole_image),),
    score=score,
    metrics=("shape_bias", "decided_fraction"),
    headline=Headline("shape_bias", ("8-way",), human=0.9, human_source="ten people"),
    conditions={"*-way": "decided among so many classes"},
    citation=Citation("A toy, 2026.", "@misc{toy}", "-", "none"),
    options={"size": Option(3, "how large", low=1, high=9), "mode": Option("a", "how", choices=("a", "b"))},
    configure=lambda protocol, options: protocol,
)


def altered(change, *, only=None):
    """Return a scoring function whose measurements are changed one by one; None drops a measurement."""

    def altered_score(responses, options):
        result = score(responses, options)
        changed = [change(m) if only in (None, m.metric) else m for m in result.measurements]
        return Result([m for m in changed if m is not None])

    return altered_score


def estimate(**fields):
    """Return a change of the estimate of a measurement; a function gets the estimate."""

    def change(m):
        values = {k: v(m.estimate) if callable(v) else v for k, v in fields.items()}
        return m._replace(estimate=replace(m.estimate, **values))

    return change


def own_formula(responses, options):
    """Write a number as shape_bias that another formula gave: shape answers among all trials."""
    result = score(responses, options)
    measurements = []
    for m in result.measurements:
        answers = m.responses
        value = float(np.mean(answers.columns["decisions"] == answers.truth("shape")))
        mixture = answers.observer == "ideal:mixture?shape=0.7"
        measurements.append(estimate(value=value * 0.9)(m) if m.metric == "shape_bias" and mixture else m)
    return Result(measurements)


def forgets_the_seed(responses, options):
    drawn = np.random.default_rng().random() / 1000
    wider = estimate(intervals=lambda e: tuple(replace(i, high=i.high + drawn) for i in e.intervals))
    return altered(wider)(responses, options)


def changing_table(responses, options):
    result = score(responses, options)
    result.tables["times"] = pa.table({"time": [time.perf_counter_ns()]})
    return result


def reads_logits(responses, options):
    return Result([answers.columns["logits"] for answers in responses])


def counts_what_is_missing(m):
    """Claim that every stimulus was answered."""
    return m._replace(estimate=replace(m.estimate, n=len(m.responses.stimuli), excluded={}))


def with_stimuli(change):
    """Return the fields of a protocol that shows changed stimuli."""
    return {
        "read": lambda root: replace(conflicts(), stimuli=tuple(map(change, conflicts()))),
        "standalone": lambda: replace(conflicts(), stimuli=tuple(map(change, conflicts()))),
    }


@CueInfo(kind="corruption", reference="none")
def session_cue(image):
    return image


def refuse(root):
    raise UserError("no data")


BROKEN = {
    "version": ({"version": 0}, "expected version 1 or more, got 0"),
    "licence": ({"citation": Citation("x", "x", "x", "")}, "has no licence"),
    "unknown answers": ({"needs": (("brainwaves",),)}, "needs brainwaves"),
    "two views of one name": ({"views": (*GOOD.views, *GOOD.views)}, "views of different names"),
    "no metric": ({"metrics": ()}, "names no metric"),
    "unexplained metric": ({"metrics": ("shape_bias", "decided_fraction", "magic")}, "cannot be explained: magic"),
    "headline not declared": ({"headline": Headline("shape_accuracy", ("8-way",))}, "is not among its metrics"),
    "direction": ({"headline": Headline("shape_bias", ("8-way",), direction="up")}, "direction of"),
    "value of people": ({"headline": Headline("shape_bias", ("8-way",), human=7.0)}, r"in \[0, 1\], got 7"),
    "neutral value": ({"headline": Headline("shape_bias", ("8-way",), neutral=1.5)}, "the neutral value in .0, 1.+1.5"),
    "source of people": ({"headline": Headline("shape_bias", ("8-way",), human=0.9)}, "no human_source"),
    "published value": ({"reference": (Reference("x", "accuracy", "8-way", 1.0, "x"),)}, "published value of x"),
    "no hint": ({"read": refuse}, "expected a hint where its data should lie, got: no data"),
    "option without words": ({"options": {"size": Option(3)}}, "'size' does not say what it changes"),
    "option out of range": ({"options": {"size": Option(3, "x", low=5)}}, "expected its default 3 to be accepted"),
    "option not a choice": ({"options": {"size": Option("c", "x", choices=("a",))}}, "'c' to be accepted"),
    "option no Option": ({"options": {"size": 3}}, "expected an Option, got 3"),
    "configure": (
        {"configure": lambda protocol, options: replace(protocol, version=2)},
        r"to return \('toy', 1\), got \('toy', 2\)",
    ),
    "ids": (with_stimuli(lambda s: replace(s, id="same")), "expected unique ids, got 'same'"),
    "unknown cue": (with_stimuli(lambda s: replace(s, recipe=s.recipe + ";magic")), "cannot be shown .* 'magic'"),
    "bad option of a cue": (
        with_stimuli(lambda s: replace(s, recipe=s.recipe + ";contrast?level=9")),
        "cannot be shown .* level is 9",
    ),
    "cue of this session": (
        with_stimuli(lambda s: replace(s, recipe=s.recipe + ";session_cue")),
        "cannot be shown .* unknown cue 'session_cue'",
    ),
    "shape left in a shuffle": (
        with_stimuli(lambda s: replace(s, recipe=s.recipe + ";patch_shuffle?grid=8")),
        "'patch_shuffle', which takes the shape away; expected Stimulus.shape=REMOVED",
    ),
    "texture left in a blur": (
        with_stimuli(lambda s: replace(s, recipe=s.recipe + ";gaussian_blur?kernel=9")),
        "'gaussian_blur', which takes the texture away",
    ),
    "label only": (
        with_stimuli(lambda s: replace(s, label=s.shape, shape="", texture="", recipe=s.recipe + ";eed")),
        "'eed', which takes the texture away",
    ),
    "other stimuli each time": (
        {"standalone": lambda: replace(conflicts(), stimuli=tuple(
            replace(s, seed=time.perf_counter_ns() % 2**31) for s in conflicts()))},
        "expected the same stimuli",
    ),
    "no stimuli": ({"standalone": lambda: StimulusSet("none", ())}, "has no stimuli"),
    "undeclared metric": ({"metrics": ("shape_bias",)}, "decided_fraction, which it does not declare"),
    "metric not emitted": (
        {"metrics": ("shape_bias", "decided_fraction", "shape_accuracy")},
        "declares shape_accuracy, which it does not emit",
    ),
    "twice": ({"score": lambda r, o: Result(score(r, o).measurements * 2)}, "emits twice"),
    "headline in no condition": ({"headline": Headline("shape_bias", ("16-way",))}, "a condition like 16-way; it"),
    "axis in no condition": (
        {"headline": Headline("shape_bias", ("8-way",), plane=(
            Axis("decided_fraction", ("9-way",)), Axis("decided_fraction", ("8-way",))))},
        "its axis 'decided_fraction' in a condition like 9-way",
    ),
    "headline of some observers": (
        {"score": altered(lambda m: None if m.responses.observer == "ideal:random" else m, only="shape_bias")},
        "expected shape_bias .* for ideal:random; it has none",
    ),
    "no interval": ({"score": altered(estimate(intervals=()))}, "expected an interval"),
    "no kind of interval": ({"score": altered(estimate(intervals=(Interval(0, 1, ""),)))}, "what would be drawn anew"),
    "no method": ({"score": altered(estimate(intervals=(Interval(0, 1, "images"),)))}, "say how it is made"),
    "headline is NaN": ({"score": altered(estimate(value=math.nan), only="shape_bias")}, "expected a number, got NaN"),
    "unexplained condition": (
        {"score": altered(lambda m: m._replace(condition="8-way/blue moon"), only="decided_fraction")},
        "expected an explanation of 'blue moon'",
    ),
    "wrong direction": (
        {"headline": Headline("shape_bias", ("8-way",), direction="texture")},
        "ideal:texture was expected above ideal:shape; got ideal:shape 1.000, ideal:texture 0.000",
    ),
    "reversed number": ({"score": altered(estimate(value=lambda e: 1 - e.value))}, "ideal:shape was expected above"),
    "cannot tell the cues apart": (
        with_stimuli(lambda s: replace(s, texture=s.shape, texture_source=s.shape_source)),
        "expected a number, got NaN",
    ),
    "constant": ({"score": altered(estimate(value=0.4), only="shape_bias")}, "must be marked with .*REMOVED"),
    "out of bounds": (
        {"score": altered(estimate(value=lambda e: e.value * 2), only="decided_fraction")},
        r"expected a value in \[0, 1\], got 2",
    ),
    "upside down": (
        {"score": altered(estimate(intervals=(Interval(0.9, 0.1, "images"),)), only="decided_fraction")},
        "expected low < high",
    ),
    "NaN without a note": (
        {"score": altered(estimate(value=math.nan, excluded={}), only="decided_fraction")},
        "no note says why",
    ),
    "negative counts": ({"score": altered(estimate(excluded={"x": -1}))}, "expected counts of 0 or more"),
    "a value of nothing": ({"score": altered(estimate(n=0), only="decided_fraction")}, "expected n > 0"),
    "counts disagree": (
        {"score": altered(lambda m: estimate(n=9)(m) if m.responses.observer == "ideal:texture" else m)},
        "expected n \\+ n_excluded = 16 as for ideal:shape",
    ),
    "silent loss": ({"score": altered(counts_what_is_missing)}, "expected a smaller n or a larger n_excluded"),
    "own seed": ({"score": forgets_the_seed}, "the same row for the same seed"),
    "own table": ({"score": changing_table}, "the same table 'times'"),
    "own formula": ({"score": own_formula}, "expected shape_bias to come from the function of the metric 'shape_bias'"),
    "undeclared answers": ({"score": reads_logits}, "KeyError: 'logits'; it was given the columns decisions"),
    "no result": ({"score": lambda r, o: []}, "expected score to return a Result"),
    "strange trials": ({"trials": TrialTable(lambda r, o: [TrialRows("8-way", np.arange(1), {"mood": ["glad"]})])},
                       "trials have the columns mood"),
    "trials of nobody": ({"trials": TrialTable(lambda r, o: [TrialRows("8-way", np.array([99]), {"n": [1]})])},
                         "answers that are not there"),
    "trials of other lengths": ({"trials": TrialTable(lambda r, o: [TrialRows("8-way", np.arange(2), {"n": [1]})])},
                                "2 trials with columns of"),
    "sums of something else": ({"contributions": lambda r, asked: Sums.of_ratio(
        Terms(np.zeros(len(r)), np.ones(len(r))), r.truth("id"))}, "give 0.0, the headline is 1.0"),
}  # fmt: skip


def test_a_good_protocol_passes_as_object_and_from_a_file(tmp_path):
    check_protocol(GOOD)
    file = tmp_path / "mine.py"
    file.write_text(
        "from dataclasses import replace\nfrom cuebench.protocols.imagenet_accuracy import PROTOCOL\n"
        "MINE = replace(PROTOCOL, name='mine')\nBAD = replace(PROTOCOL, name='bad', version=0)\n"
    )
    check_protocol(f"python:{file}:MINE", only=["description", "missing_data"])
    with pytest.raises(CheckFailed, match="protocol 'bad': expected version"):
        check_protocol(f"python:{file}:BAD", only=["description"])


DECLARED = {
    "no metric": "is not one of its metrics",
    "headline not declared": "is not one of its metrics",
    "option no Option": "is not a cuebench.options.Option",
}
"""Broken declarations that cannot even be made."""


@pytest.mark.parametrize(
    ("fields", "message"),
    [({"views": ()}, "it has no view"), ({"name": "../evil"}, "use letters, digits and underscores")],
)
def test_a_protocol_that_would_show_nothing_or_write_elsewhere_is_refused(fields, message):
    with pytest.raises(UserError, match=message):
        replace(GOOD, **fields)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_protocol_is_found_out(name):
    fields, message = BROKEN[name]
    if name in DECLARED:  # refused when it is declared, before any check
        with pytest.raises(UserError, match=DECLARED[name]):
            replace(GOOD, **fields)
        return
    with pytest.raises(CheckFailed, match=message):
        check_protocol(replace(GOOD, **fields))


@pytest.mark.parametrize("check", ["stimuli", "bias"])
def test_a_suppression_that_does_not_mark_what_it_removes_is_found_out(check, small_root):
    """By the names of its cues, and by ideal observers of shape and texture that score the same."""
    suppression = protocols.get("feature_suppression")

    def unmarked(root):
        stimuli = suppression.read(root)
        kept = [replace(s, shape=s.label, texture=s.label) for s in stimuli]
        return replace(stimuli, stimuli=tuple(kept))

    root = small_root("photographs")
    check_protocol(suppression, data_root=root, only=[check])
    with pytest.raises(CheckFailed, match="REMOVED"):
        check_protocol(replace(suppression, read=unmarked), data_root=root, only=[check])


def test_an_error_rate_is_not_correct(small_root):
    accuracy = protocols.get("imagenet_accuracy")

    def errors(responses, options):
        return Result(
            [estimate(value=lambda e: 1 - e.value)(m) for m in accuracy.score(responses, options).measurements]
        )

    with pytest.raises(CheckFailed, match="an observer that knows the classes above one that guesses"):
        check_protocol(replace(accuracy, score=errors), data_root=small_root("photographs"), only=["bias"])


def test_a_condition_can_be_explained_by_the_protocol_itself():
    strange = altered(lambda m: m._replace(condition="8-way/blue moon"), only="decided_fraction")
    check_protocol(replace(GOOD, score=strange, conditions={**GOOD.conditions, "blue *": "rare"}))


def test_a_protocol_without_stimuli_asks_for_them():
    with pytest.raises(UserError, match="no maker makes its stimuli") as raised:
        check_protocol(replace(GOOD, standalone=None), only=["metrics"])
    assert "data_root=" in raised.value.hint
    with pytest.raises(UserError, match="Did you mean 'bias'"):
        check_protocol(GOOD, only=["bais"])


def test_metrics_that_need_other_stimuli_can_be_named():
    more = replace(GOOD, metrics=(*GOOD.metrics, "shape_accuracy"))
    check_protocol(more, absent=["shape_accuracy"])
