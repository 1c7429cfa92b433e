"""Human alignment: golden values, an independent implementation, planted observers, bad input."""

from __future__ import annotations

import csv
import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.stats import rankdata, t

import cuebench
from cuebench.errors import UserError
from cuebench.labels import label_map
from cuebench.metrics import (
    accuracy_difference,
    error_consistency,
    error_consistency_bound,
    mean_rank,
    observed_consistency,
)
from cuebench.metrics.human_agreement import agreement
from cuebench.observers.adapters.recorded import UNTIMED, load
from cuebench.observers.base import Batch, LoadOptions, Spec
from cuebench.observers.model_vs_human import CATEGORIES, DATA_SETS, IMAGES, Trial, parse_name, trial_of
from cuebench.protocols.base import ScoreOptions, score_rows
from cuebench.protocols.headline import one_row_each
from cuebench.protocols.human_alignment import PROTOCOL, read
from cuebench.protocols.human_alignment.intervals import intervals
from cuebench.protocols.human_alignment.numbers import METRICS, align
from cuebench.protocols.human_alignment.trials import Contest, Measured
from cuebench.responses.table import Responses

RAW = ["subj", "session", "trial", "rt", "object_response", "category", "condition", "imagename"]
MEANS = ("accuracy", "accuracy_difference", "observed_consistency", "error_consistency")
# The four means where false-colour/true and uniform-noise/0.0, 0.6, 0.9 are kept: the files spell them true, 0.00, ….
BY_SPELLING = {
    "resnet50": (0.5575, 0.0853, 0.6700, 0.2034),
    "clip": (0.7022, 0.0232, 0.7608, 0.2764),
    "convnext_base": (0.7616, 0.0411, 0.7536, 0.2017),
    "bagnet33": (0.4020, 0.1514, 0.5765, 0.1367),
    "resnet50_trained_on_SIN": (0.6690, 0.0533, 0.6964, 0.2193),
    "people": (0.7161, 0.0065, 0.8105, 0.4268),
}
PUBLISHED = {"resnet50": (0.559, 0.087, 0.665, 0.208), "clip": (0.708, 0.023, 0.758, 0.281)}


# ------------------------------------------------------------------------------------------- the public raw data


def answered(observer, stimuli=None):
    """Return the responses of a recorded observer, as a run would store them."""
    stimuli = stimuli or PROTOCOL.stimuli_from_recordings(observer.stimulus_names())
    columns = dict(observer.respond(Batch(stimuli.stimuli), ["decisions"]))
    return Responses(observer.name, observer.kind, stimuli, columns.pop("stimulus"), columns, notes=observer.notes)


def observers_in(folder, options=""):
    return load(Spec.parse(f"recorded:{folder}{options}"), LoadOptions(targets=CATEGORIES))


def scored(responses, resamples=200, **values):
    rows = score_rows(PROTOCOL, PROTOCOL.score(responses, ScoreOptions(0, resamples, values)))
    return {(s.observer, s.condition, s.metric): s for s in one_row_each(rows)}


@pytest.fixture(scope="module")
def published(shared):
    return [answered(observer) for observer in observers_in(shared / "model_vs_human" / "raw-data")]


@pytest.mark.xdist_group("golden")
@pytest.mark.slow
def test_means_of_the_public_raw_data_equal_the_golden_values(published):
    assert len(published) == 16
    assert len(published[0].stimuli) == IMAGES == 18_080
    scores = scored(published, resamples=2, left_out="by_spelling")
    for observer, values in BY_SPELLING.items():
        ours = [scores[observer, "mean", metric].value for metric in MEANS]
        assert ours == pytest.approx(values, abs=0.0005), observer


@pytest.mark.xdist_group("golden")
@pytest.mark.slow
def test_with_the_conditions_of_the_paper_the_printed_table_comes_out(published):
    scores = scored(published, resamples=2)
    for observer, values in PUBLISHED.items():
        ours = [scores[observer, "mean", metric].value for metric in MEANS]
        assert ours == pytest.approx(values, abs=0.0005 if observer == "resnet50" else 0.0011), observer
    assert scores["people", "mean", "error_consistency"].value == pytest.approx(PROTOCOL.headline.human, abs=5e-5)
    ranks = {o: scores[o, "mean", "mean_rank"].value for o in BY_SPELLING if o != "people"}
    assert min(ranks, key=ranks.get) == "clip"
    assert ranks["clip"] == 1
    # No consistency above its bound, and people's is far below theirs too.
    for (observer, condition, metric), score in scores.items():
        if metric == "error_consistency":
            assert score.value <= scores[observer, condition, "error_consistency_bound"].value + 1e-12
    assert scores["people", "mean", "error_consistency_bound"].value < 0.83
    left_out = scores["clip", "uniform-noise/0.9", "accuracy"]
    assert "left out of the means: people are right in less than 20 %" in left_out.note
    assert "control condition" in scores["clip", "false-colour/true", "accuracy"].note
    assert scores["clip", "mean", "accuracy"].n + scores["clip", "mean", "accuracy"].n_excluded == IMAGES
    for data_set in DATA_SETS.values():
        for condition in data_set.too_hard:
            people = scores["people", f"{data_set.name}/{condition}", "accuracy"].value
            assert people <= 0.2005, (data_set, condition)


# ------------------------------------------------------------------------------------------- small made-up data


class World:
    """Three data sets with planted answers: one condition, several conditions, and conflicts."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.trials = [trial_of("edge", f"{c}{i}.png", category=c) for c in ("cat", "dog") for i in range(1, 31)]
        for condition in DATA_SETS["contrast"].conditions:
            self.trials += [
                trial_of("contrast", f"n0{condition}_{c}{i}.png", condition, c)
                for c in ("cat", "car")
                for i in range(20)
            ]
        self.trials += [
            trial_of("cue-conflict", f"{a}{i}-{b}{1 + i % 3}.png", "", a)
            for a in ("cat", "dog")
            for b in ("car", "bear")
            for i in range(1, 11)
        ]
        self.correct = {}

    def answer(self, name, accuracy, like="", copied=0.0):
        """Let somebody answer; a share of the trials is right or wrong as for somebody else."""
        right = self.rng.random(len(self.trials)) < accuracy
        if like:
            right = np.where(self.rng.random(len(right)) < copied, self.correct[like], right)
        self.correct[name] = right
        return self

    def write(self, folder, names=None, skip=()):
        """Write one file for each subject and data set, people with prefixes and models without."""
        for name in names or self.correct:
            person = name.startswith("subject")
            by_set = {}
            for k, (trial, right) in enumerate(zip(self.trials, self.correct[name])):
                if (name, trial.data_set) in skip:
                    continue
                wrong = "oven" if trial.category != "oven" else "boat"
                prefix = f"{k:04d}_x_{'s01' if person else 'dnn'}_{trial.condition or 0}_{trial.category}_10_"
                plain = not person and not trial.condition
                image = trial.image + ".png" if plain else prefix + trial.image + ".png"
                condition = trial.condition or ("0" if person else "NaN")
                answer = trial.category if right else wrong
                rt = 0.5 if person else "NaN"
                by_set.setdefault(trial.data_set, []).append([name, 1, k, rt, answer, trial.category, condition, image])
            for data_set, rows in by_set.items():
                file = folder / data_set / f"{data_set}_{name.replace('_', '-')}_session-1.csv"
                file.parent.mkdir(parents=True, exist_ok=True)
                header = ["subj", "Session", *RAW[2:]] if person else RAW
                with file.open("w", newline="") as out:
                    csv.writer(out).writerows([header, *rows])
        return folder

    def means(self, observer, people, data_sets=("edge", "contrast", "cue-conflict")):
        """Return the four means and the bound, straight from the definitions."""
        sets = []
        for data_set in data_sets:
            left_out = DATA_SETS[data_set].left_out
            conditions = [c for c in (DATA_SETS[data_set].conditions or ("",)) if c not in left_out]
            of_people = []
            for person in people:
                of_conditions = []
                for condition in conditions:
                    here = [t.data_set == data_set and t.condition == condition for t in self.trials]
                    a, b = self.correct[observer][here], self.correct[person][here]
                    p, q = a.mean(), b.mean()
                    expected = p * q + (1 - p) * (1 - q)
                    observed = np.mean(a == b)
                    kappa = 1.0 if observed == 1 else (observed - expected) / (1 - expected)
                    bound = 1.0 if expected == 1 else (1 - abs(p - q) - expected) / (1 - expected)
                    of_conditions.append([p, (p - q) ** 2, observed, kappa, bound])
                of_people.append(np.mean(of_conditions, axis=0))
            sets.append(np.mean(of_people, axis=0))
        return np.mean(sets, axis=0)


PEOPLE = ("subject-01", "subject-02", "subject-03")


@pytest.fixture(scope="module")
def world():
    made = World().answer("subject-01", 0.8)
    made.answer("subject-02", 0.7, "subject-01", 0.5).answer("subject-03", 0.75, "subject-01", 0.4)
    made.answer("twin", 0.5, "subject-01", 1.0).answer("some_net", 0.6, "subject-02", 0.3).answer("guess", 1 / 16)
    return made


@pytest.fixture(scope="module")
def raw(world, tmp_path_factory):
    return world.write(tmp_path_factory.mktemp("world") / "model_vs_human" / "raw-data")


@pytest.fixture(scope="module")
def scores(raw):
    return scored([answered(o) for o in observers_in(raw)])


def test_means_equal_an_independent_implementation(world, scores):
    for observer in ("twin", "some_net", "guess"):
        ours = [scores[observer, "mean", m].value for m in (*MEANS, "error_consistency_bound")]
        assert ours == pytest.approx(world.means(observer, PEOPLE), abs=1e-12), observer
    for person in PEOPLE:
        ours = [scores[person, "mean", m].value for m in (*MEANS, "error_consistency_bound")]
        assert ours == pytest.approx(world.means(person, [p for p in PEOPLE if p != person]), abs=1e-12)
    pairs = np.mean([world.means(a, [b])[1:] for a, b in combinations(PEOPLE, 2)], axis=0)
    pooled = [scores["people", "mean", m].value for m in (*MEANS[1:], "error_consistency_bound")]
    assert pooled == pytest.approx(pairs, abs=1e-12)


def test_planted_agreement_comes_back(scores):
    """The twin of a person errs like people do, a guesser by chance; both have the rank that was planted."""
    alone = scores["twin", "mean", "error_consistency"]
    assert alone.value > scores["some_net", "mean", "error_consistency"].value > 0.05
    chance = scores["guess", "mean", "error_consistency"]
    assert chance.ci_low <= 0 <= chance.ci_high
    assert scores["twin", "mean", "mean_rank"].value == 1
    assert scores["guess", "mean", "mean_rank"].value == 3
    assert ("subject-01", "mean", "mean_rank") not in scores
    assert scores["guess", "mean", "error_consistency_bound"].value < 0.2


@pytest.fixture(scope="module")
def rows(raw):
    found = score_rows(PROTOCOL, PROTOCOL.score([answered(o) for o in observers_in(raw)], ScoreOptions(0, 2, {})))
    return {(row.observer, row.condition, row.metric, row.ci_kind): row for row in found}


def test_every_number_has_intervals_of_the_stated_kinds(rows):
    kinds = {}
    for (*number, kind), row in rows.items():
        kinds.setdefault(tuple(number), []).append(kind)
        if kind and row.metric != "accuracy_difference":  # corrected for few images, it may lie below the value
            assert row.ci_low <= row.value <= row.ci_high or "all alike" in row.note
    assert kinds["some_net", "mean", "error_consistency"] == ["images", "subjects", "data_sets"]
    assert kinds["some_net", "mean", "accuracy"] == ["images", "data_sets"]
    assert kinds["some_net", "mean", "accuracy_difference"] == ["images", "data_sets"]
    assert kinds["people", "mean", "accuracy"] == ["images", "subjects", "data_sets"]
    assert kinds["some_net", "contrast/c10", "observed_consistency"] == ["images", "subjects"]
    assert kinds["some_net", "edge", "accuracy"] == ["images"]


def test_numbers_that_describe_the_answers_have_no_interval_and_say_why(rows):
    for metric in ("error_consistency_bound", "mean_rank"):
        row = rows["some_net", "mean", metric, ""]
        assert math.isnan(row.ci_low)
        assert "no interval: " in row.note
        assert not any(m == metric and kind for _, _, m, kind in rows)


def student(centre, variance, df):
    """Return the interval of κ, symmetric in Fisher's z."""
    z, reach = math.atanh(centre), t.ppf(0.975, df) * math.sqrt(variance) / (1 - centre**2)
    return math.tanh(z - reach), math.tanh(z + reach)


def test_intervals_over_images_leave_out_each_image_of_each_condition(world, rows):
    """The jackknife in a loop, for one observer in a data set of several conditions."""
    kept = [c for c in DATA_SETS["contrast"].conditions if c not in DATA_SETS["contrast"].left_out]
    chosen = {c: np.flatnonzero([x.data_set == "contrast" and x.condition == c for x in world.trials]) for c in kept}

    def kappa(a, b):
        expected = a.mean() * b.mean() + (1 - a.mean()) * (1 - b.mean())
        return (np.mean(a == b) - expected) / (1 - expected)

    def value(of):
        kappas = [[kappa(world.correct["some_net"][i], world.correct[p][i]) for i in of.values()]
                  for p in PEOPLE]  # fmt: skip
        return np.mean(kappas)

    bias, variance, doubt = 0.0, 0.0, 0.0
    for condition, images in chosen.items():
        n = len(images)
        without = np.array([value({**chosen, condition: np.delete(images, i)}) for i in range(n)])
        bias += (n - 1) * (without.mean() - value(chosen))
        part = (n - 1) / n * ((without - without.mean()) ** 2).sum()
        variance, doubt = variance + part, doubt + part**2 / (n - 1)
    row = rows["some_net", "contrast", "error_consistency", "images"]
    assert row.value == pytest.approx(value(chosen))
    assert (row.ci_low, row.ci_high) == pytest.approx(student(value(chosen) - bias, variance, variance**2 / doubt))


def test_intervals_over_people_are_those_of_their_values(world, rows):
    kappas = np.array([world.means("some_net", [p], ("edge",))[3] for p in PEOPLE])
    row = rows["some_net", "edge", "error_consistency", "subjects"]
    assert (row.ci_low, row.ci_high) == pytest.approx(student(kappas.mean(), kappas.var(ddof=1) / 3, 2))
    pairs = [world.means(a, [b], ("edge",))[3] for a, b in combinations(PEOPLE, 2)]  # without the third person
    row = rows["people", "edge", "error_consistency", "subjects"]
    variance = 2 / 3 * ((pairs - np.mean(pairs)) ** 2).sum()
    assert (row.ci_low, row.ci_high) == pytest.approx(student(np.mean(pairs), variance, 2))


def test_intervals_over_data_sets_are_students_of_the_corrected_values(rows):
    """A squared difference of accuracies without its noise: p̂ and q̂ are those of n images, within each condition."""
    centres = []
    for name in ("edge", "contrast", "cue-conflict"):
        row = rows["some_net", name, "accuracy", "images"]
        centres.append(row.value)  # an accuracy has no bias
    row = rows["some_net", "mean", "accuracy", "data_sets"]
    centre, error = np.mean(centres), np.std(centres, ddof=1) / math.sqrt(3)
    reach = t.ppf(0.975, 2) * error / (centre * (1 - centre))
    expected = [1 / (1 + math.exp(-(math.log(centre / (1 - centre)) + side * reach))) for side in (-1, 1)]
    assert (row.ci_low, row.ci_high) == pytest.approx(expected)


def test_a_squared_difference_is_corrected_for_the_noise_of_few_images():
    """Equal accuracies: the published number is far above 0 with 20 images; the interval begins at 0."""
    rng = np.random.default_rng(4)
    centres, values = [], []
    for _ in range(80):
        correct = rng.random((5, 100)) < 0.7
        places = {f"contrast/c{k}": np.arange(20 * k, 20 * (k + 1)) for k in range(5)}
        contest = Contest([Measured(None, None, None)], list("abcde"), np.ones_like(correct), correct, places,
                          [np.array([0])], np.array([(0, k) for k in range(1, 5)]), [np.arange(4)])  # fmt: skip
        found = align(contest, {}, np.array([], int)).data_sets["contrast"]
        row = METRICS.index("accuracy_difference")
        values.append(found.values[row, 0])
        centres.append(found.spread["images"].centre[row, 0])
    expected = 2 * 0.7 * 0.3 / 20
    assert np.mean(values) == pytest.approx(expected, rel=0.15)
    assert np.mean(centres) == pytest.approx(0, abs=0.15 * expected)


def test_intervals_over_images_have_the_width_of_a_binomial(world, scores):
    """Accuracy of one condition: the interval of a share of 60 independent images."""
    row = scores["some_net", "edge", "accuracy"]
    expected = 2 * 1.96 * math.sqrt(row.value * (1 - row.value) / 60)
    assert row.ci_high - row.ci_low == pytest.approx(expected, rel=0.2)


@pytest.mark.slow
def test_intervals_over_images_contain_the_truth_of_the_population():
    """Images of five difficulties, drawn 80 times anew; the truth is that of 50,000 images of each."""
    rng = np.random.default_rng(1)
    levels = np.linspace(1.5, -0.5, 5)

    def answers(images, level):
        shared = rng.normal(size=images)
        own = rng.normal(size=(4, images)) * np.array([[1.5], [0.8], [0.8], [0.8]])
        return shared + own + level - np.array([[0.4], [0], [0], [0]]) > 0

    def compared(correct):
        counts = [np.array([correct.shape[1]]), correct[:1].sum(axis=1), correct[1:].sum(axis=1)]
        both = agreement(*(c.astype(float) for c in counts), (correct[:1] & correct[1:]).sum(axis=1).astype(float))
        return [correct[0].mean(), *(values.mean() for values in both)]

    truth = np.mean([compared(answers(50_000, level)) for level in levels], axis=0)
    places = {f"contrast/c{k}": np.arange(160 * k, 160 * (k + 1)) for k in range(5)}
    pairs = np.array([(0, 1), (0, 2), (0, 3)])
    alone = Measured(None, None, None)
    contained = np.zeros(4)
    for _ in range(80):
        correct = np.concatenate([answers(160, level) for level in levels], axis=1)
        contest = Contest([alone], list("abcd"), np.ones_like(correct), correct, places, [np.array([0])], pairs,
                          [np.arange(3)])  # fmt: skip
        numbers = align(contest, {}, np.array([], int)).data_sets["contrast"]
        for k, metric in enumerate(METRICS[:-1]):
            (images, *_) = intervals(numbers, metric, 0, pooled=False)
            contained[k] += images.low <= truth[k] <= images.high
    assert (contained / 80 > 0.88).all(), contained / 80


@pytest.mark.slow
def test_seeds_repeat_and_processes_do_not_matter(raw, tmp_path):
    spec = f"recorded:{raw}"
    first = cuebench.evaluate([spec], ["human_alignment"], out=tmp_path / "a", resamples=100)
    cuebench.score(tmp_path / "a", workers=2)
    again = cuebench.evaluate([spec], ["human_alignment"], out=tmp_path / "b", resamples=100)
    assert (tmp_path / "a" / "scores.json").read_bytes() == (tmp_path / "b" / "scores.json").read_bytes()
    assert first.value("some_net", "error_consistency", "mean") == again.value("some_net", "error_consistency", "mean")


# ------------------------------------------------------------------------------------------- metrics


def test_metrics_of_one_pair_equal_other_implementations():
    from statsmodels.stats.inter_rater import cohens_kappa

    rng = np.random.default_rng(3)
    for _ in range(20):
        a, b = rng.random(50) < rng.random(), rng.random(50) < rng.random()
        assert observed_consistency(a, b) == pytest.approx(np.mean(a == b))
        assert accuracy_difference(a, b) == pytest.approx((a.mean() - b.mean()) ** 2)
        table = [[np.sum(a & b), np.sum(a & ~b)], [np.sum(~a & b), np.sum(~a & ~b)]]
        assert error_consistency(a, b) == pytest.approx(cohens_kappa(np.array(table)).kappa, nan_ok=True)


def test_the_bound_is_the_largest_kappa_of_all_arrangements():
    """Every way to arrange the right answers of two observers over six trials."""
    n = 6
    masks = [np.array([k >> i & 1 for i in range(n)], bool) for k in range(2**n)]
    best = {}
    for a in masks:
        for b in masks:
            counts = (np.array([float(v)]) for v in (n, a.sum(), b.sum(), (a & b).sum()))
            kappa = agreement(*counts).error_consistency[0]
            key = (a.sum() / n, b.sum() / n)
            best[key] = max(best.get(key, -2), kappa)
    for (p, q), kappa in best.items():
        assert error_consistency_bound(p, q) == pytest.approx(kappa), (p, q)


def test_always_right_together_is_one_as_published_and_undefined_in_cue_conflict():
    counts = (np.array([8.0]) for _ in range(4))
    assert agreement(*counts).error_consistency[0] == 1
    assert math.isnan(error_consistency([True] * 8, [True] * 8))


def test_ranks_equal_those_of_scipy():
    values = np.random.default_rng(0).integers(0, 4, (3, 50, 6)).astype(float)
    expected = np.mean([rankdata(v, axis=-1) for v in (values[0], -values[1], -values[2])], axis=0)
    assert mean_rank(*values) == pytest.approx(expected)


@pytest.mark.parametrize("wrong", [(-0.1, 0.5), (0.5, 1.2)])
def test_accuracies_outside_of_0_and_1_are_refused(wrong):
    with pytest.raises(UserError, match="between 0 and 1"):
        error_consistency_bound(*wrong)


# ------------------------------------------------------------------------------------------- data sets and names


def test_the_published_design():
    assert len(DATA_SETS) == 17
    assert sum(not d.conditions for d in DATA_SETS.values()) == 5
    assert label_map("in16").names == CATEGORIES
    assert DATA_SETS["uniform-noise"].left_out.keys() == {"0.0", "0.6", "0.9"}
    assert DATA_SETS["eidolonIII"].left_out.keys() == {"1-0-10", "16-0-10", "32-0-10", "64-0-10", "128-0-10"}


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("contrast", "0001_cop_s01_c30_knife_10_n03041632_7380.png"), "contrast/c30/knife/n03041632_7380"),
        (("contrast", "n03041632_7380.png", "c30", "knife"), "contrast/c30/knife/n03041632_7380"),
        (("cue-conflict", "airplane1-bicycle2.png"), "cue-conflict/airplane/airplane1-bicycle2"),
        (("cue-conflict", "0001_s5n_s01_0_bird_00_bird3-bird2.png", "0", "bird"), "cue-conflict/bird/bird3-bird2"),
        (("edge", "airplane1.png", "NaN", "airplane"), "edge/airplane/airplane1"),
        (("sketch", "0001_ske_dnn_0_airplane_00_airplane-0001-sketch-0.png"), "sketch/airplane/airplane-0001-sketch-0"),
        (("uniform-noise", "0001_nse_s01_0.60_oven_10_n0_1.png", "0.6", "oven"), "uniform-noise/0.6/oven/n0_1"),
        (("false-colour", "0001_fc_s01_true_oven_10_n0_1.png", "True", "oven"), "false-colour/true/oven/n0_1"),
        (("high-pass", "1_hp_s01_1_keyboard_10_n0_1.png", "1.0", "keyboard"), "high-pass/1/keyboard/n0_1"),
    ],
)  # fmt: skip
def test_both_naming_forms_give_one_name(arguments, name):
    trial = trial_of(*arguments)
    assert isinstance(trial, Trial), trial
    assert trial.name == name
    assert parse_name(name) == trial


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("contrast", "x.png", "c31", "knife"), "'c31' is no condition of contrast"),
        (("edge", "penguin1.png"), "'nothing' is no category"),
        (("edge", "cat1.png", "", "dog"), "named 'cat', its category is 'dog'"),
        (("moon", "cat1.png"), "'moon' is no data set"),
    ],
)
def test_what_a_name_cannot_say_is_told(arguments, message):
    assert message in trial_of(*arguments)


def write_images(root: Path, files) -> Path:
    for number, name in enumerate(files):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8, 3), number, np.uint8)).save(file)
    return root


LAYOUT = (
    "model_vs_human/stimuli/contrast/dnn/session-1/0001_cop_dnn_c30_knife_10_n03041632_7380.png",
    "model_vs_human/stimuli/contrast/dnn/session-1/0002_cop_dnn_c100_cat_10_n03041632_1.png",
    "model_vs_human/stimuli/edge/cat/cat1.png",
    "model_vs_human/stimuli/edge/dog/dog1.png",
    "cue_conflict/silhouettes/cat/cat1.png",
    "cue_conflict/stimuli/cat/cat1-dog2.png",
)


def test_stimuli_of_the_public_layout_are_read_and_missing_sets_named(tmp_path):
    stimuli = read(write_images(tmp_path, LAYOUT))
    assert [s.id for s in stimuli] == [
        "contrast/c100/cat/n03041632_1",
        "contrast/c30/knife/n03041632_7380",
        "cue-conflict/cat/cat1-dog2",
        "edge/cat/cat1",
        "edge/dog/dog1",
        "silhouette/cat/cat1",
    ]
    assert stimuli.stimuli[2].texture == "dog"
    assert "4 of 17 data sets, without sketch, stylized, colour" in stimuli.partial[0]
    assert "2 of 160 images of edge" in stimuli.partial


def test_wrong_stimuli_are_listed_together(tmp_path):
    write_images(tmp_path, [*LAYOUT, "model_vs_human/stimuli/edge/penguin1.png", "model_vs_human/stimuli/colour/1.png"])
    with pytest.raises(UserError, match=r"2 problems[\s\S]*no condition of colour") as error:
        read(tmp_path)
    assert "penguin1.png: 'nothing' is no category" in error.value.message
    with pytest.raises(UserError, match="does not exist"):
        read(tmp_path / "nowhere")


# ------------------------------------------------------------------------------------------- runs


def test_people_beside_the_stimuli_join_a_run_of_models(world, tmp_path):
    raw = world.write(tmp_path / "model_vs_human" / "raw-data", names=PEOPLE)
    assert raw.is_dir()
    names = [
        f"model_vs_human/stimuli/edge/{t.category}/{t.image}.png" for t in world.trials if t.data_set == "edge"
    ][:40]  # fmt: skip
    write_images(tmp_path, names)
    scores = cuebench.evaluate(
        ["ideal:shape", "ideal:mixture?lapse=0.5"], ["human_alignment"], data_root=tmp_path, out=tmp_path / "run",
        resamples=100,
    )  # fmt: skip
    assert {s.observer for s in scores.rows} == {"ideal:shape", "ideal:mixture?lapse=0.5", "people"}
    assert scores.value("ideal:shape", "accuracy", "edge") == 1
    assert scores.value("ideal:mixture?lapse=0.5", "accuracy", "mean") == pytest.approx(0.53, abs=0.2)
    assert scores.value("ideal:shape", "error_consistency_bound", "mean") == 0
    people = next(s for s in scores.rows if s.observer == "people")
    assert people.n == 40
    assert "only the 40 of" in people.note
    (manifest,) = {job.stimuli for job in scores.record.jobs if job.observer == "people"}
    assert (tmp_path / "run" / "stimuli" / manifest).is_file()


def test_without_people_there_is_accuracy_and_a_word_about_it(tmp_path):
    root = write_images(tmp_path, [f"model_vs_human/stimuli/edge/cat/cat{i}.png" for i in range(1, 5)])
    scores = cuebench.evaluate(
        ["ideal:shape"], ["human_alignment"], data_root=root, out=tmp_path / "run", resamples=100
    )
    assert {s.metric for s in scores.rows} == {"accuracy"}
    assert "nobody to compare with" in scores.rows[0].note
    assert any("nobody to compare with" in notice for notice in scores.record.notices)


def test_the_same_folder_serves_cue_conflict_too(raw, tmp_path):
    scores = cuebench.evaluate(
        [f"recorded:{raw}?only=models"], ["cue_conflict", "human_alignment"], out=tmp_path / "run", resamples=100
    )
    in_conflict = {s.observer for s in scores.rows if s.protocol == "cue_conflict" and s.metric == "shape_accuracy"}
    assert in_conflict == {"twin", "some_net", "guess"}


# ------------------------------------------------------------------------------------------- bad input


@pytest.fixture
def folder(world, tmp_path):
    return world.write(tmp_path / "raw-data", names=("subject-01", "subject-02", "some_net"))


def rewritten(file: Path, change) -> None:
    with file.open(newline="") as opened:
        rows = list(csv.reader(opened))
    with file.open("w", newline="") as out:
        csv.writer(out).writerows(change(rows))


def test_people_are_told_by_name_and_models_apart(folder):
    kinds = {o.name: o.kind for o in observers_in(folder)}
    assert kinds == {"some_net": "model", "subject-01": "person", "subject-02": "person", "people": "people"}
    assert [o.name for o in observers_in(folder, "?only=people")] == ["subject-01", "subject-02", "people"]
    assert [o.name for o in observers_in(folder, "?only=models")] == ["some_net"]
    assert [o.name for o in observers_in(folder, "?only=pooled")] == ["people"]
    for file in folder.glob("*/*subject*"):
        file.unlink()
    with pytest.raises(UserError, match="holds no people"):
        observers_in(folder, "?only=people")


def test_files_that_do_not_cover_what_people_saw_are_named(folder):
    rewritten(folder / "contrast" / "contrast_some-net_session-1.csv", lambda rows: rows[:101])
    (net, *_) = observers_in(folder)
    assert net.notes == (
        UNTIMED,
        "files that do not cover the trials that people saw: contrast_some-net_session-1.csv (100 of 320 trials)",
    )
    scores = scored([answered(o) for o in observers_in(folder)])
    row = scores["some_net", "contrast", "error_consistency"]
    assert row.n < 200
    assert "100 of 1,280 images of contrast" in row.note


def test_a_condition_that_nobody_answered_is_no_part_of_the_mean(world, folder):
    file = folder / "contrast" / "contrast_some-net_session-1.csv"
    rewritten(file, lambda rows: [row for row in rows if row[6] != "c15"])
    scores = scored([answered(o) for o in observers_in(folder)])
    assert ("some_net", "contrast/c15", "accuracy") not in scores
    assert math.isfinite(scores["some_net", "contrast", "error_consistency"].value)
    assert ("subject-01", "contrast/c15", "accuracy") in scores


def test_where_all_conditions_are_left_out_there_is_no_mean(world, folder):
    for file in folder.glob("*/*.csv"):
        if file.parent.name == "contrast":
            rewritten(file, lambda rows: [rows[0], *(row for row in rows[1:] if row[6] == "c100")])
        else:
            file.unlink()
    scores = scored([answered(o) for o in observers_in(folder)])
    assert {condition for _, condition, _ in scores} == {"contrast/c100"}
    assert "control condition" in scores["some_net", "contrast/c100", "error_consistency"].note


def test_unknown_answers_count_as_wrong_and_are_noted(folder):
    def change(rows):
        rows[1][4], rows[2][4] = "penguin", "na"
        return rows

    rewritten(folder / "edge" / "edge_some-net_session-1.csv", change)
    net = observers_in(folder)[0]
    assert "1 answers are no class of the stimuli ('penguin')" in net.notes[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: [*rows, rows[1]], "answered 'edge/cat/cat1' at .* and again at"),
        (lambda rows: [rows[0], [*rows[1][:5], "penguin", *rows[1][6:]], *rows[2:]], "'penguin' is no category"),
        (lambda rows: [[c for c in row if c != rows[0][7]][:7] for row in rows], "missing column imagename"),
        (lambda rows: [rows[0], rows[1][:4]], "cannot be read"),
        (lambda rows: rows[:1], "holds no trial"),
    ],
    ids=["twice", "category", "column", "damaged", "empty"],
)
def test_damaged_files_are_named(folder, change, message):
    rewritten(folder / "edge" / "edge_subject-01_session-1.csv", change)
    with pytest.raises(UserError, match=message):
        observers_in(folder)


def test_all_damaged_files_are_named_at_once(folder):
    for name in ("edge/edge_subject-01_session-1.csv", "contrast/contrast_some-net_session-1.csv"):
        (folder / name).write_bytes(b"\x89PNG\r\n\x00\x00")
    with pytest.raises(UserError, match=r"2 of 9 files: 2 problems") as error:
        observers_in(folder)
    assert "edge_subject-01" in error.value.message
    assert "contrast_some-net" in error.value.message


def test_recordings_of_other_images_do_not_fit(tmp_path):
    with (tmp_path / "mine.csv").open("w", newline="") as out:
        csv.writer(out).writerows([["subject", "stimulus", "decision"], ["anna", "cat1", "cat"], ["anna", "x", "dog"]])
    with pytest.raises(UserError, match="belongs to no data set") as error:
        cuebench.evaluate(
            [f"recorded:{tmp_path / 'mine.csv'}"], ["human_alignment"], out=tmp_path / "run", resamples=100
        )
    assert "put the files into a folder named like their data set" in str(error.value)


# ------------------------------------------------------------------------------------------- one tidy file


def test_import_writes_one_file_that_reads_back_the_same(folder, tmp_path, capsys):
    import json

    from cuebench.cli import invoke

    (folder / "notes").mkdir()
    (folder / "notes" / "x.csv").write_text("a,b\n1,2\n")
    rewritten(folder / "contrast" / "contrast_some-net_session-1.csv", lambda rows: rows[:101])
    out = tmp_path / "all.parquet"
    assert invoke(["import", "model-vs-human", str(folder.parent), "--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["unknown_files"] == ["notes/x.csv"]
    assert told["incomplete_files"] == ["contrast/contrast_some-net_session-1.csv (100 of 320 trials)"]
    by_set = {row["data set"]: row for row in told["data_sets"]}
    assert by_set["edge"] == {"data set": "edge", "files": 3, "people": 2, "models": 1, "trials": 180}
    (folder / "notes" / "x.csv").unlink()  # as an observer a folder is read whole, or refused
    direct = scored([answered(o) for o in observers_in(folder)])
    through = scored([answered(o) for o in observers_in(out)])
    assert {k: s.value for k, s in direct.items()} == {k: s.value for k, s in through.items()}


def test_import_refuses_what_is_no_raw_data(folder, tmp_path, capsys):
    from cuebench.cli import invoke

    (tmp_path / "empty").mkdir()
    out = str(tmp_path / "x.parquet")
    assert invoke(["import", "model-vs-human", str(tmp_path / "empty"), "--out", out]) == 2
    assert "holds no raw responses" in capsys.readouterr().err
    assert invoke(["import", "model-vs-human", str(folder), "--out", str(tmp_path / "x.csv")]) == 2
    assert "not a .parquet file" in capsys.readouterr().err
    rewritten(folder / "edge" / "edge_subject-01_session-1.csv", lambda rows: [*rows, rows[1]])
    assert invoke(["import", "model-vs-human", str(folder), "--out", out]) == 2
    assert "repeated trials" in capsys.readouterr().err


def test_trials_are_decisions_among_the_categories(raw, tmp_path):
    from cuebench.runs.trials import Trials

    cuebench.evaluate([f"recorded:{raw}?only=models"], ["human_alignment"], out=tmp_path / "run", resamples=100)
    rows = Trials(tmp_path / "run", ("human_alignment",)).table().to_pylist()
    some = [r for r in rows if r["observer"] == "some_net" and r["condition"] == "edge"]
    assert len(some) == 60
    assert {r["correct"] for r in some} == {True, False}
    assert all(r["correct"] == (r["decision"] == r["label"]) for r in some)
