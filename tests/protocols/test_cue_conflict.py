"""The cue-conflict protocol: ideal observers give back what is planted, and every row says what it is about."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cuebench.metrics
from cuebench.errors import UserError
from cuebench.labels import LabelSpace, label_map, label_space
from cuebench.observers.adapters.ideal import load as load_ideal
from cuebench.observers.base import Batch, LoadOptions, Spec
from cuebench.observers.preprocess import Preprocess
from cuebench.protocols.base import ScoreOptions, score_rows
from cuebench.protocols.cue_conflict import PROTOCOL
from cuebench.protocols.headline import headline_column
from cuebench.registry import metrics, protocols
from cuebench.responses.table import Responses
from cuebench.types import Score, StimulusSet

IN16 = label_map("in16").names
QUICK = ScoreOptions(resamples=400)
NAMES = [f"{s}{i}-{t}{1 + (i + k) % 3}" for k, s in enumerate(IN16) for t in IN16 for i in range(1, 6)]
KAPPA = ("error_consistency", "16-way")
NUMBERS = ("shape_bias", "shape_accuracy", "texture_accuracy", "decided_fraction")


@pytest.fixture(scope="module")
def stimuli() -> StimulusSet:
    return PROTOCOL.stimuli_from_recordings(NAMES)


def ideal(body, stimuli, seed=0):
    (observer,) = load_ideal(Spec.parse(f"ideal:{body}"), LoadOptions(targets=IN16, seed=seed))
    return respond(observer, stimuli)


def respond(observer, stimuli, name="", kind=""):
    columns = dict(observer.respond(Batch(stimuli.stimuli), ["logits"]))
    rows = np.arange(len(stimuli))
    return Responses(name or observer.name, kind or observer.kind, stimuli, rows, columns, observer.labels)


def decided(stimuli, decisions, name="net", kind="model", keep=None):
    rows = np.arange(len(stimuli)) if keep is None else np.asarray(keep)
    return Responses(name, kind, stimuli, rows, {"decisions": np.asarray(decisions)[rows]})


def scored(*responses, options=QUICK):
    return score_rows(PROTOCOL, PROTOCOL.score(responses, options))


def value(scores, metric, condition="16-way", kind="images"):
    (found,) = [s for s in scores if (s.metric, s.condition, s.ci_kind) == (metric, condition, kind)]
    return found


def test_shape_and_texture_observers_are_recovered_exactly(stimuli):
    for body, bias in (("shape", 1.0), ("texture", 0.0)):
        scores = scored(ideal(body, stimuli))
        assert value(scores, "shape_bias").value == bias
        assert value(scores, "shape_accuracy").value == bias
        assert value(scores, "texture_accuracy").value == 1 - bias
        assert value(scores, "decided_fraction").value == 1


def test_random_observer_is_at_chance(stimuli):
    scores = scored(ideal("random", stimuli))
    decided_share = value(scores, "decided_fraction")
    assert decided_share.ci_low < 2 / 16 < decided_share.ci_high
    bias = value(scores, "shape_bias", kind="two_way")
    assert bias.ci_low < 0.5 < bias.ci_high


@pytest.mark.parametrize("weight", [0.1, 0.35, 0.7, 0.9])
def test_a_planted_mixture_is_recovered(stimuli, weight):
    biases = [value(scored(ideal(f"mixture?shape={weight}", stimuli, seed)), "shape_bias").value for seed in range(3)]
    # 1,200 trials each, three independent seeds.
    assert np.mean(biases) == pytest.approx(weight, abs=4 * math.sqrt(weight * (1 - weight) / 3600))


def test_a_mixture_with_lapses_keeps_its_bias_and_loses_decisions(stimuli):
    scores = scored(ideal("mixture?shape=0.8&lapse=0.4", stimuli))
    assert value(scores, "decided_fraction").value == pytest.approx(0.6 + 0.4 * 2 / 16, abs=0.06)
    assert value(scores, "shape_bias").value == pytest.approx((0.6 * 0.8 + 0.4 / 16) / (0.6 + 0.4 / 8), abs=0.06)


def test_rows_of_one_observer(stimuli):
    scores = scored(ideal("mixture?shape=0.6", stimuli))
    plain = [s for s in scores if "class=" not in s.condition]
    kinds = ("images", "shape_sources", "texture_sources", "two_way")
    # The observer answers among 16 classes: the restricted and the whole label space are the same.
    assert [(s.metric, s.condition, s.ci_kind) for s in plain] == list(itertools.product(NUMBERS, ["16-way"], kinds))
    by_class = [s for s in scores if "class=" in s.condition]
    assert [(s.metric, s.condition) for s in by_class] == [(m, f"16-way/class={c}") for m in NUMBERS[:3] for c in IN16]
    assert {s.ci_kind for s in by_class} == {"images"}
    assert all(s.protocol == "cue_conflict" and s.protocol_version == 3 for s in scores)
    assert all(s.ci_low <= s.value <= s.ci_high for s in plain)


def test_numbers_and_denominators(stimuli):
    answers = np.array([s.shape for s in stimuli])
    conflict = np.flatnonzero([s.shape != s.texture for s in stimuli])
    answers[conflict[:300]] = np.array([s.texture for s in stimuli])[conflict[:300]]
    answers[conflict[300:410]] = "na"
    answers[conflict[410:420]] = "zebra"
    scores = scored(decided(stimuli, answers))
    bias = value(scores, "shape_bias")
    assert (bias.value, bias.n, bias.n_excluded) == (780 / 1080, 1080, 200)
    assert bias.note == "80 aligned, 120 no answer of 1,280"
    accuracy = value(scores, "shape_accuracy")
    assert (accuracy.value, accuracy.n, accuracy.n_excluded) == (780 / 1200, 1200, 80)
    assert accuracy.note == "80 aligned of 1,280"
    assert value(scores, "decided_fraction").value == 1080 / 1200


def test_class_rows_are_by_shape_class_and_by_texture_class(stimuli):
    answers = np.array([s.shape if s.shape == "cat" else s.texture if s.texture == "dog" else "na" for s in stimuli])
    scores = scored(decided(stimuli, answers))
    cat = value(scores, "shape_accuracy", "16-way/class=cat")
    assert (cat.value, cat.n, cat.n_excluded) == (1.0, 75, 5)
    assert cat.note == "every decision alike: exact for 75 images; 5 aligned of 80"
    assert value(scores, "shape_accuracy", "16-way/class=bear").value == 0
    assert value(scores, "texture_accuracy", "16-way/class=dog").value == 70 / 75  # five have the shape of a cat
    nothing = value(scores, "shape_bias", "16-way/class=dog")
    assert math.isnan(nothing.value)
    assert nothing.n == 0
    assert "no trial in the denominator" in nothing.note


def test_decisions_only_have_no_full_space(stimuli):
    scores = scored(decided(stimuli, [s.shape for s in stimuli]))
    full = [s for s in scores if s.condition == "1000-way"]
    assert [s.metric for s in full] == list(NUMBERS)
    assert all(math.isnan(s.value) and s.n == 0 and s.n_excluded == 1280 and s.ci_kind == "" for s in full)
    reason = "decisions among the 16 classes were given: the whole label space needs logits"
    assert {s.note for s in full} == {f"{reason}; 1,280 without logits of 1,280"}


def test_top1_decisions_in_a_big_space_are_not_restricted_to_16_classes(stimuli):
    space = label_space("imagenet1k")
    first = {t: m[0] for t, m in label_map("in16").targets.items()}
    answers = decided(stimuli, [first[s.shape] for s in stimuli])
    scores = scored(replace(answers, labels=space))
    assert value(scores, "shape_bias", "1000-way").value == 1
    assert math.isnan(value(scores, "shape_bias", "16-way", "").value)
    assert not [s for s in scores if "class=" in s.condition]


def test_missing_answers_and_unreadable_files_are_counted(stimuli):
    keep = np.arange(100, 1280)
    answers = decided(stimuli, [s.shape for s in stimuli], keep=keep)
    lost = {s.id: "truncated" for s in stimuli.stimuli[:7]}
    bias = value(scored(replace(answers, excluded=lost)), "shape_bias")
    aligned = sum(stimuli.stimuli[i].shape == stimuli.stimuli[i].texture for i in keep)
    assert (
        bias.note
        == f"every decision alike: exact for 1,107 images; {aligned} aligned, 7 unreadable, 93 unanswered of 1,280"
    )
    assert bias.n + bias.n_excluded == 1280


def test_an_observer_without_answers_is_nan_not_a_crash(stimuli):
    scores = scored(decided(stimuli, [s.shape for s in stimuli], keep=np.zeros(0, int)))
    assert all(math.isnan(s.value) for s in scores if s.metric in NUMBERS)
    assert "1,280 unanswered of 1,280" in value(scores, "shape_bias").note


def test_partial_sets_say_so_in_every_row(stimuli):
    part = PROTOCOL.stimuli_from_recordings(NAMES[::5])
    assert part.partial == ("256 of 1,280 stimuli",)
    scores = scored(replace(ideal("shape", part), notes=("bf16",)))
    assert all("partial set: 256 of 1,280 stimuli" in s.note and s.note.endswith("bf16") for s in scores)
    assert not any("partial set" in s.note for s in scored(ideal("shape", stimuli)))


def people(stimuli, number=3):
    """People who answer by shape with errors on partly the same images; returned with the pool of them."""
    rng = np.random.default_rng(0)
    hard = rng.random(len(stimuli)) < 0.3
    truth = np.array([s.shape for s in stimuli])
    answers = [np.where(hard & (rng.random(len(stimuli)) < 0.8), "na", truth) for _ in range(number)]
    persons = [decided(stimuli, a, f"s{i}", "person") for i, a in enumerate(answers)]
    columns = {"decisions": np.concatenate(answers), "subject": np.repeat([p.observer for p in persons], len(stimuli))}
    pool = Responses("people", "people", stimuli, np.tile(np.arange(len(stimuli)), number), columns)
    return persons, pool


def test_pooled_people_have_a_subjects_interval_and_a_mean_of_subjects(stimuli):
    persons, pool = people(stimuli)
    scores = [s for s in scored(*persons, pool) if s.observer == "people"]
    bias = [s for s in scores if s.metric == "shape_accuracy" and s.condition == "16-way"]
    assert [s.ci_kind for s in bias] == [
        "images",
        "shape_sources",
        "texture_sources",
        "two_way",
        "subjects",
        "three_way",
    ]
    assert bias[0].n == 3600
    assert bias[0].note.endswith("of 3,840")
    mean = value(scores, "shape_accuracy", "16-way/mean_of_subjects", "subjects")
    ratios = [value(scored(p), "shape_accuracy").value for p in persons]
    assert mean.value == pytest.approx(np.mean(ratios))
    assert (mean.n, mean.n_excluded) == (3, 0)


def test_error_consistency_compares_with_people(stimuli):
    persons, pool = people(stimuli)
    clone = replace(persons[0], observer="clone", kind="model")
    rows = {s.observer: s for s in scored(clone, *persons, pool) if (s.metric, s.condition) == KAPPA}
    assert list(rows) == ["clone", "s0", "s1", "s2", "people"]
    assert rows["clone"].ci_low < rows["clone"].value < rows["clone"].ci_high
    pairs = {(a, b): kappa(persons[a], persons[b]) for a, b in itertools.combinations(range(3), 2)}
    assert rows["clone"].value == pytest.approx((1 + pairs[0, 1] + pairs[0, 2]) / 3)
    assert rows["s0"].value == pytest.approx((pairs[0, 1] + pairs[0, 2]) / 2)
    assert rows["people"].value == pytest.approx(np.mean(list(pairs.values())))
    assert (rows["clone"].n, rows["clone"].n_excluded) == (1200, 80)
    assert rows["s0"].note == "mean of κ over 2 people; 80 aligned of 1,280"


def kappa(a, b):
    """Cohen's κ by the confusion matrix, on conflict stimuli."""
    stimuli = a.stimuli.stimuli
    first, second = ({i: d == stimuli[i].shape for i, d in zip(r.stimulus, r.columns["decisions"])} for r in (a, b))
    shared = [i for i in sorted(set(first) & set(second)) if stimuli[i].shape != stimuli[i].texture]
    table = np.zeros((2, 2))
    for i in shared:
        table[int(first[i]), int(second[i])] += 1
    p = table / table.sum()
    chance = (p.sum(0) * p.sum(1)).sum()
    return (np.trace(p) - chance) / (1 - chance)


def test_error_consistency_uses_only_what_both_saw_and_matches_by_stimulus(stimuli):
    persons, _ = people(stimuli)
    some = PROTOCOL.stimuli_from_recordings([s.id for s in stimuli.stimuli[::3]])
    net = ideal("mixture?shape=0.5", some)
    row = next(s for s in scored(net, persons[0]) if s.metric == "error_consistency")
    assert row.n == sum(s.shape != s.texture for s in some)
    whole = {s.id: d for s, d in zip(stimuli, persons[0].columns["decisions"])}
    same = decided(some, [whole[s.id] for s in some], "again", "person")
    hard = decided(some, net.columns["decisions"])
    assert row.value == pytest.approx(kappa(hard, same))


def test_undefined_error_consistency_is_nan_with_a_reason(stimuli):
    perfect = decided(stimuli, [s.shape for s in stimuli], "s0", "person")
    row = next(s for s in scored(ideal("shape", stimuli), perfect) if s.metric == "error_consistency")
    assert math.isnan(row.value)
    assert "undefined for 1 of 1 pairs: expected agreement is 1" in row.note


def test_without_people_there_is_no_error_consistency(stimuli):
    assert not [s for s in scored(ideal("shape", stimuli)) if s.metric == "error_consistency"]


def test_confusion_table(stimuli):
    responses = ideal("mixture?shape=0.5&lapse=0.2", stimuli)
    table = PROTOCOL.score([responses, decided(stimuli, ["na"] * 1280)], QUICK).tables["confusion"].to_pylist()
    assert list(table[0]) == ["observer", "condition", "shape", "texture", "response", "count"]
    for observer, condition in (("ideal:mixture?shape=0.5&lapse=0.2", "16-way"), ("net", "16-way")):
        rows = [r for r in table if (r["observer"], r["condition"]) == (observer, condition)]
        assert sum(r["count"] for r in rows) == 1280
    assert {r["response"] for r in table if r["observer"] == "net"} == {"none"}
    cell = [r for r in table if r["condition"] == "16-way" and (r["shape"], r["texture"]) == ("cat", "dog")]
    truth = [d for s, d in zip(stimuli, responses.columns["decisions"]) if (s.shape, s.texture) == ("cat", "dog")]
    assert {r["response"]: r["count"] for r in cell if r["observer"] != "net"} == {
        c: truth.count(c) for c in set(truth)
    }


def test_scoring_twice_and_in_company_gives_the_same_rows(stimuli):
    persons, pool = people(stimuli)
    net = ideal("mixture?shape=0.4", stimuli)
    first, again = (repr(PROTOCOL.score([net, *persons, pool], QUICK)) for _ in range(2))
    assert first == again
    alone = [s for s in scored(net) if s.metric in NUMBERS]
    assert alone == [s for s in scored(*persons, net) if s.observer == net.observer and s.metric in NUMBERS]
    other = [s for s in scored(net, options=ScoreOptions(seed=1, resamples=400)) if s.metric in NUMBERS]
    assert other == alone  # closed forms: nothing is drawn


def test_16_way_and_1000_way_differ_for_a_big_label_space(stimuli):
    space = label_space("imagenet1k")
    resolved = label_map("in16").resolve(space)
    outside = int(np.flatnonzero(resolved.target_of(1000) == -1)[0])
    logits = np.zeros((len(stimuli), 1000))
    for i, s in enumerate(stimuli):
        logits[i, resolved.members[IN16.index(s.shape)]] = 5
        logits[i, outside] = 9 if i % 2 else 0
    answers = Responses("net", "model", stimuli, np.arange(len(stimuli)), {"logits": logits}, space)
    scores = scored(answers)
    kinds = ("images", "shape_sources", "texture_sources", "two_way")
    rows = [(s.metric, s.condition, s.ci_kind) for s in scores if "class=" not in s.condition]
    assert rows == list(itertools.product(NUMBERS, ("16-way", "1000-way"), kinds))
    assert value(scores, "shape_accuracy", "16-way").value == 1
    wanted = np.mean([i % 2 == 0 for i, s in enumerate(stimuli) if s.shape != s.texture])
    assert value(scores, "shape_accuracy", "1000-way").value == pytest.approx(wanted)
    assert value(scores, "shape_bias", "1000-way").value == 1


def test_recorded_names_of_both_forms_are_the_same_stimuli():
    long = [f"{i:04d}_s5n_dnn_0_{n.partition('-')[0].rstrip('0123456789')}_00_{n}.png" for i, n in enumerate(NAMES)]
    assert PROTOCOL.stimuli_from_recordings(long) == PROTOCOL.stimuli_from_recordings([f"{n}.png" for n in NAMES])
    found = PROTOCOL.stimuli_from_recordings(NAMES)
    assert (len(found), found.expected, found.partial, found.targets) == (1280, 1280, (), "in16")
    one = next(s for s in found if s.id == "airplane1-bicycle2")
    assert (one.shape, one.texture, one.shape_source, one.texture_source) == (
        "airplane", "bicycle", "airplane1", "bicycle2",
    )  # fmt: skip


def test_recorded_names_of_another_experiment():
    with pytest.raises(UserError, match=r"2 problems(.|\n)*'n02690373_1' is not <shape>i-<texture>j"):
        PROTOCOL.stimuli_from_recordings(["n02690373_1.png", "x.png", "airplane1-bicycle2.png"])
    with pytest.raises(UserError, match="recorded image names"):
        PROTOCOL.stimuli_from_recordings([])


def test_read_a_set_of_own_classes(data_root):
    found = PROTOCOL.read(data_root)
    assert (len(found), found.expected, found.partial) == (32, 0, ())
    assert found.targets.endswith("labels.json")
    assert PROTOCOL.check(LabelSpace("own", ("cat", "dog", "car", "clock")), found) == []
    assert "'dog' is none of its classes" in PROTOCOL.check(LabelSpace("own", ("cat", "car", "clock")), found)[0]


def test_read_published_classes_without_a_label_map(data_root):
    (data_root / "cue_conflict" / "labels.json").unlink()
    found = PROTOCOL.read(data_root)
    assert (found.targets, found.expected, found.partial) == ("in16", 1280, ("32 of 1,280 stimuli",))
    assert PROTOCOL.check(label_space("imagenet1k"), found) == []


def test_own_classes_without_a_label_map_say_what_to_write(data_root):
    labels = data_root / "cue_conflict" / "labels.json"
    labels.write_text(json.dumps({"targets": {"cat": ["cat"], "dog": ["dog"]}}))
    with pytest.raises(UserError, match=r"class 'car' is not a target(.|\n)*labels\.json"):
        PROTOCOL.read(data_root)


def test_missing_stimuli_name_the_folder(tmp_path):
    with pytest.raises(UserError, match="cue_conflict"):
        PROTOCOL.read(Path(tmp_path))


def test_coverage_counts_stimuli(stimuli):
    problems = PROTOCOL.check(LabelSpace("pets", ("tabby",), ("n02123045",)), stimuli)
    assert len(problems) == 15
    assert "(155 stimuli have it)" in problems[0]  # 80 by shape, 80 by texture, 5 of them both


def test_declaration():
    assert protocols.get("cue_conflict") is PROTOCOL
    assert PROTOCOL.needs == (("logits",), ("decisions",))
    assert set(PROTOCOL.metrics) <= set(metrics)
    assert (PROTOCOL.headline.metric, PROTOCOL.headline.conditions[0]) == ("shape_bias", "*-way")
    assert PROTOCOL.targets == IN16
    (view,) = PROTOCOL.views
    geometry = view.change(Preprocess(size=224, resize=256)).geometry
    assert (view.name, geometry.resize, geometry.crop) == ("native", (224, 224), False)
    assert PROTOCOL.citation.bibtex.startswith("@inproceedings")
    assert "CC-BY-4.0" in PROTOCOL.citation.licence
    assert {r.metric for r in PROTOCOL.reference} == {"shape_bias"}


def bounds(scores):
    return [(s.metric, s.ci_kind, s.value, s.ci_low, s.ci_high) for s in scores if s.condition == "16-way"]


def test_aligned_images_do_not_touch_the_intervals(stimuli):
    conflict = PROTOCOL.stimuli_from_recordings([s.id for s in stimuli if s.shape != s.texture])
    body = "mixture?shape=0.3&lapse=0.3"
    assert bounds(scored(ideal(body, stimuli))) == bounds(scored(ideal(body, conflict)))


def test_people_who_always_agree_are_as_uncertain_about_images_as_one_person(stimuli):
    one = ideal("mixture?shape=0.6&lapse=0.2", stimuli).columns["decisions"]
    columns = {"decisions": np.tile(one, 4), "subject": np.repeat(["a", "b", "c", "d"], len(stimuli))}
    pool = Responses("people", "people", stimuli, np.tile(np.arange(len(stimuli)), 4), columns)
    pooled = [b for b in bounds(scored(pool)) if b[1] not in ("subjects", "three_way")]
    assert pooled == bounds(scored(decided(stimuli, one)))


# --------------------------------------------------------------------------------- what is explained is what runs


def planted(stimuli):
    """A network that answers by shape, by texture, by another class and outside all classes, seldom in agreement."""
    rng = np.random.default_rng(3)
    shape, texture = (np.array([getattr(s, cue) for s in stimuli]) for cue in ("shape", "texture"))
    kind = rng.integers(4, size=len(stimuli))
    answers = np.select([kind == 0, kind == 1, kind == 2], [shape, texture, rng.choice(IN16, len(stimuli))], "na")
    return answers, shape, texture


@pytest.mark.parametrize("metric", NUMBERS)
def test_the_public_function_gives_what_the_protocol_writes(stimuli, metric):
    answers, shape, texture = planted(stimuli)
    function = getattr(cuebench.metrics, metric)
    scores = scored(decided(stimuli, answers))
    assert value(scores, metric).value == function(answers, shape, texture)
    if metric != "decided_fraction":
        cue = texture if metric == "texture_accuracy" else shape
        for name in ("cat", "truck"):
            rows = cue == name
            expected = function(answers[rows], shape[rows], texture[rows])
            assert value(scores, metric, f"16-way/class={name}").value == expected


def test_error_consistency_is_the_mean_of_the_public_function(stimuli):
    answers, shape, texture = planted(stimuli)
    persons, _ = people(stimuli)
    conflict = shape != texture
    correct = [
        (np.asarray(r)[conflict] == shape[conflict]) for r in (answers, *(p.columns["decisions"] for p in persons))
    ]
    rows = {s.observer: s for s in scored(decided(stimuli, answers), *persons) if (s.metric, s.condition) == KAPPA}
    expected = [cuebench.metrics.error_consistency(correct[0], other) for other in correct[1:]]
    assert rows["net"].value == pytest.approx(np.mean(expected), abs=1e-12)


@pytest.mark.parametrize("by", ["shape", "texture"])
def test_the_table_of_confusions_holds_the_public_functions_counts(stimuli, by):
    answers, shape, texture = planted(stimuli)
    table = PROTOCOL.score([decided(stimuli, answers)], QUICK).tables["confusion"].to_pylist()
    names = (*IN16, "none")
    counts = np.zeros((16, 17))
    for row in table:
        counts[IN16.index(row[by]), names.index(row["response"])] += row["count"]
    shares = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(cuebench.metrics.confusion(answers, shape, texture, IN16, by=by), shares)


def test_every_declared_metric_is_emitted_and_no_other(stimuli):
    persons, pool = people(stimuli)
    emitted = {
        m.metric for m in PROTOCOL.score([decided(stimuli, planted(stimuli)[0]), *persons, pool], QUICK).measurements
    }
    assert emitted == set(PROTOCOL.metrics)


def test_the_headline_is_among_the_classes_of_the_stimuli_whatever_the_observers_know():
    """On a set of eight classes, the 16 classes of one observer are its whole label space, as another's 1,000 are."""
    values = {("a", "8-way"): 0.3, ("a", "1000-way"): 0.4, ("b", "16-way"): 0.6, ("b", "8-way"): 0.5}
    rows = [
        Score("cue_conflict", 3, o, c, "shape_bias", value, 0.1, 0.9, "two_way") for (o, c), value in values.items()
    ]
    column = headline_column(rows, "cue_conflict")
    assert column.condition == "8-way"
    assert {o: row.value for o, row in column.rows.items()} == {"a": 0.3, "b": 0.5}


def test_the_headline_is_the_pooled_shape_bias_with_its_widest_interval(stimuli):
    scores = scored(decided(stimuli, planted(stimuli)[0]))
    column = headline_column(scores, "cue_conflict")
    widest = max(
        (s for s in scores if (s.metric, s.condition) == ("shape_bias", "16-way")), key=lambda s: s.ci_high - s.ci_low
    )
    assert (column.metric, column.condition, column.rows) == ("shape_bias", "16-way", {"net": widest})


def test_images_can_be_shown_as_in_refined_bias(tmp_path):
    """Resize 256, centre crop 224, with Pillow alone; every row says so, and without it none does."""
    from PIL import Image

    rng = np.random.default_rng(0)
    folder = tmp_path / "cue_conflict" / "stimuli" / "cat"
    folder.mkdir(parents=True)
    for texture in ("dog", "clock"):
        pixels = rng.integers(0, 256, (224, 224, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"cat1-{texture}1.png")
    sums = []

    def net(x):
        sums.append(x.sum(axis=(1, 2, 3)))
        return np.tile(np.arange(16.0), (len(x), 1))

    plain = Preprocess(size=224, resize=224, mean=(0, 0, 0), std=(1, 1, 1), scale=1.0)
    observer = cuebench.wrap(net, name="net", preprocess=plain, labels=list(IN16), fingerprint="1")
    for view, said in (("native", False), ("resized", True)):
        sums.clear()
        run = cuebench.evaluate([observer], "cue_conflict", data_root=tmp_path, out=tmp_path / view, workers=0,
                                resamples=100, settings={"cue_conflict.view": view})  # fmt: skip
        assert all(("resized to 256 and cut to 224" in r.note) is said for r in run.rows)
        picture = Image.open(folder / "cat1-dog1.png")
        if said:
            picture = picture.resize((256, 256), Image.Resampling.BILINEAR).crop((16, 16, 240, 240))
        expected = float(np.asarray(picture, np.float64).sum())
        assert any(abs(float(s) - expected) < 64 for part in sums for s in part)
