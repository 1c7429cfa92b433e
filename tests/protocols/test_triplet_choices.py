"""Recorded choices between matches, size and colour matches, and the classification of textured silhouettes."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from PIL import Image

from cuebench import cli
from cuebench.errors import UserError
from cuebench.metrics.triplet_shape_bias import shared_terms, terms
from cuebench.metrics.triplets import enumerate_triplets
from cuebench.observers.load import load
from cuebench.observers.recorded_files import CHOICE_SHAPE, CHOICE_TEXTURE
from cuebench.protocols import textured_silhouettes
from cuebench.protocols.triplets.choices import Chosen, chosen, contributions, stimuli_from_recordings
from cuebench.protocols.triplets.stimuli import MATCHES, matching_objects
from cuebench.responses.table import Responses
from cuebench.runs.evaluate import evaluate
from cuebench.statistics.clustered import share_interval
from cuebench.statistics.estimates import ratio_estimates
from cuebench.statistics.intervals import KINDS
from cuebench.statistics.paired import paired
from cuebench.stimuli.render import decode, render
from cuebench.stimuli.sources.novel_object import SHAPES
from cuebench.types import Stimulus, StimulusSet

HEADER = ["subject", "anchor", "shape_match", "texture_match", "choice"]


def write(path, rows, header=HEADER):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return f"recorded:{path}"


def trials(subject, shape_choices, total=20):
    """Triplets of a 6 × 6 grid of objects, the first so many of them decided by shape."""
    rows = []
    for i in range(total):
        a, b, x, y = f"s{i % 6}", f"s{(i + 1) % 6}", f"t{i % 5}", f"t{(i + 2) % 5}"
        rows.append([subject, f"{a}-{x}", f"{a}-{y}.png", f"{b}-{x}", "shape" if i < shape_choices else f"{b}-{x}"])
    return rows


def drawn_images(rng, number, sources):
    """Return triplets at random: the numbers of two shapes and two textures of each, and the names of its images."""
    shape, texture = rng.integers(0, sources, (2, number))
    other_shape, other_texture = ((own + rng.integers(1, sources, number)) % sources for own in (shape, texture))
    shown = shape, other_shape, texture, other_texture
    return shown, [[f"s{a}-t{x}", f"s{a}-t{y}", f"s{b}-t{x}"] for a, b, x, y in zip(*shown)]


def lean(rng, shown, sources, matches):
    """Return how much the shapes and textures of each triplet draw answers to shape; by how much matches count."""
    shapes, textures = rng.normal(0, 0.8, (2, sources))
    return 0.5 + shapes[shown[0]] - textures[shown[2]] + matches * (shapes[shown[1]] - textures[shown[3]])


def chance(log_odds):
    return 1 / (1 + np.exp(-log_odds))


def drawn_trials(rng, people, number, sources, matches):
    """Return choices of people who differ, and who gave them."""
    shown, images = drawn_images(rng, number, sources)
    rate = chance(lean(rng, shown, sources, matches)[None] + rng.normal(0, 0.5, people)[:, None])
    by_shape = (rng.random(rate.shape) < rate).ravel().astype(float)
    person = np.repeat([f"p{k}" for k in range(people)], number)
    return Chosen(np.arange(len(by_shape)), by_shape, np.array(images * people), 0), person


def test_a_source_counts_with_all_trials_that_show_it():
    trials, person = drawn_trials(np.random.default_rng(0), 3, 40, 6, 1.0)
    tally, clusters = trials.by_image(person)
    (estimate,) = ratio_estimates([terms(tally)], clusters, KINDS, shared=[shared_terms(tally)])
    assert estimate.value == pytest.approx(trials.shape.mean())
    assert estimate.n == len(trials.shape)
    psi = (trials.shape - trials.shape.mean()) / len(trials.shape)
    part = {"shape_sources": (0, [0, 2]), "texture_sources": (1, [0, 1])}  # shapes of anchor and other match; textures
    for kind, (place, roles) in part.items():
        shown = [{name.split("-")[place] for name in row[roles]} for row in trials.images]
        assert {len(pair) for pair in shown} == {2}
        sums = [sum(p for p, pair in zip(psi, shown) if source in pair) for source in set().union(*shown)]
        g = len(sums)
        variance = g * (g - 1) / (g - 2) ** 2 * sum(s * s for s in sums)
        found = next(i for i in estimate.intervals if i.kind == kind)
        expected = share_interval(estimate.value, variance, g - 1, estimate.n, kind)
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_a_condition_without_a_choice_has_no_number():
    nobody = Chosen(np.zeros(0, np.intp), np.zeros(0), np.zeros((0, 3), np.str_), 4)
    for people in (None, np.zeros(0, np.str_)):
        tally, clusters = nobody.by_image(people)
        (estimate,) = ratio_estimates([terms(tally)], clusters, KINDS, shared=[shared_terms(tally)])
        assert np.isnan(estimate.value)
        assert all(i.note for i in estimate.intervals)


def test_choices_about_something_else_are_refused():
    stimuli = StimulusSet("triplets", (Stimulus("cat1-dog2.png", condition="choices"),))
    answered = Responses("anna", "person", stimuli, np.zeros(1, np.intp), {"choices": np.array(["shape"])})
    with pytest.raises(UserError, match="choices of anna are not about triplets"):
        chosen(answered)


@pytest.mark.parametrize("matches", [0.0, 1.0])
def test_intervals_hold_whatever_the_matches_do(matches):
    """Over anchors alone, 68 % of the two-way intervals held the truth where matches mattered as much as anchors."""
    rng = np.random.default_rng(1)
    many = np.random.default_rng(2).normal(0, 1, (100_000, 3)) @ [0.8 * 2**0.5, 0.8 * 2**0.5 * matches, 0.5]
    truth = float(chance(0.5 + many).mean())
    held = 0
    for _ in range(60):
        trials, person = drawn_trials(rng, 8, 120, 16, matches)
        tally, clusters = trials.by_image(person)
        (estimate,) = ratio_estimates([terms(tally)], clusters, ["three_way"], shared=[shared_terms(tally)])
        held += estimate.intervals[0].low <= truth <= estimate.intervals[0].high
    assert held >= 50  # of intervals that hold in 93 %, fewer do in one of 400 cases; in 70 %, as many in one of 100


def test_people_of_the_same_bias_are_not_told_apart():
    """Each is drawn by other shapes and textures. Counted by anchors alone, 30 % of 200 such pairs had p ≤ .05."""
    rng, found = np.random.default_rng(3), 0
    for _ in range(40):
        shown, images = drawn_images(rng, 200, 16)
        stimuli = stimuli_from_recordings(["|".join(("choices", *names)) for names in images])
        place = {s.id.partition("|")[2]: k for k, s in enumerate(stimuli)}
        order = np.array([place["|".join(names)] for names in images])
        sums = []
        for name in ("anna", "ben"):
            by_shape = rng.random(len(order)) < chance(lean(rng, shown, 16, 1.0))
            answers = {"choices": np.where(by_shape, CHOICE_SHAPE, CHOICE_TEXTURE)}
            sums.append(contributions(Responses(name, "person", stimuli, order, answers), "choices"))
        found += paired(*sums).p <= 0.05
    assert found <= 6  # of tests that hold their level, more in one of 300 cases; at 30 %, as few in one of 40


def test_choices_of_people_are_scored_without_features(tmp_path):
    rows = [*trials("anna", 15), *trials("ben", 5)]
    rows[-1][-1] = ""  # no answer: excluded and counted, not a texture choice
    run = evaluate([write(tmp_path / "c.csv", rows)], "triplets", out=tmp_path / "run", resamples=200)
    assert run.value("anna", "triplet_shape_bias", "choices") == 0.75
    assert run.value("ben", "triplet_shape_bias", "choices") == pytest.approx(5 / 19)
    assert run.value("people", "triplet_shape_bias", "choices") == pytest.approx(20 / 39)
    assert run.value("people", "triplet_shape_bias", "choices/mean_of_subjects") == pytest.approx((0.75 + 5 / 19) / 2)
    pooled = [r for r in run.rows if r.observer == "people" and r.condition == "choices"]
    assert {r.ci_kind for r in pooled} == {
        "images",
        "shape_sources",
        "texture_sources",
        "two_way",
        "subjects",
        "three_way",
    }
    assert (pooled[0].n, pooled[0].n_excluded) == (39, 1)


def test_people_stand_beside_models_in_the_condition_that_the_file_names(tmp_path):
    where = "experiment3/size=1.0/aligned"
    rows = [[*row, where] for row in trials("anna", 15)]
    spec = write(tmp_path / "c.csv", rows, [*HEADER, "condition"])
    run = evaluate(
        [spec, "ideal:shape"], "triplets", out=tmp_path / "run", resamples=100, settings={"triplets.experiments": "3"}
    )
    assert run.value("anna", "triplet_shape_bias", where) == 0.75
    assert run.value("ideal:shape", "triplet_shape_bias", where) == 1


def test_a_recording_of_another_experiment_is_not_applicable_to_triplets(tmp_path):
    (tmp_path / "d.csv").write_text("stimulus,decision\ncat1-dog2,cat\n")
    names = [f"recorded:{tmp_path / 'd.csv'}", "ideal:shape"]
    run = evaluate(names, ["triplets", "cue_conflict"], out=tmp_path / "run", resamples=100,
                   settings={"triplets.experiments": "3"})  # fmt: skip
    rows = [r for r in run.rows if r.protocol == "triplets" and r.observer == "d"]
    assert [r.metric for r in rows] == ["not_applicable"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({4: "both"}, "choice 'both' is neither match"),
        ({1: "a|b"}, r"a name without \|"),
        ({1: ""}, "column anchor is empty"),
    ],
)
def test_wrong_cells_are_named_by_their_line(tmp_path, change, message):
    row = trials("anna", 1, 1)[0]
    for column, text in change.items():
        row[column] = text
    with pytest.raises(UserError, match=message):
        load(write(tmp_path / "c.csv", [row]))


def test_what_is_no_triplet_is_refused():
    with pytest.raises(UserError, match="is no shape match of"):
        stimuli_from_recordings(["choices|a-x|b-y|b-x"])
    with pytest.raises(UserError, match="no match of a-x in anything but shape"):
        stimuli_from_recordings(["choices|a-x|a-y|b-y"])
    with pytest.raises(UserError, match="no triplet"):
        stimuli_from_recordings(["cat1-dog2"])
    assert len(stimuli_from_recordings(["choices|one|two|three"])) == 1  # names that say nothing cannot be checked


# --- size and colour matches ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("match", MATCHES)
def test_a_match_shares_one_thing_with_its_anchor_and_no_other(match):
    objects = [s for s in matching_objects(match) if s.condition.endswith("unaligned")]
    steps = len({s.texture_source for s in objects})
    triplets = enumerate_triplets([s.shape_source for s in objects], [s.texture_source for s in objects])
    assert len(triplets) == len(objects) * (steps - 1) * (len(SHAPES) - 1)
    texture = [s.recipe.partition("texture=")[2].partition("&")[0] for s in objects]
    size = [s.recipe.partition("&size=")[2].partition("&")[0] for s in objects]
    for a, b, c in zip(triplets.anchor[::97], triplets.shape[::97], triplets.texture[::97]):
        assert objects[a].shape == objects[b].shape != objects[c].shape
        if match == "size":
            assert size[a] == size[c] != size[b]
            assert texture[a] not in (texture[b], texture[c])
        else:
            assert texture[a] == texture[c] != texture[b]  # a plain colour
            assert size[a] == size[b] == size[c]


def test_planted_biases_come_back_with_size_and_colour_matches(tmp_path):
    chosen = {"triplets.experiments": "size,colour"}
    run = evaluate(["ideal:shape", "ideal:texture"], "triplets", out=tmp_path, resamples=100, settings=chosen)
    for condition in (c for conditions in MATCHES.values() for c in conditions):
        assert run.value("ideal:shape", "triplet_shape_bias", condition) == 1
        assert run.value("ideal:texture", "triplet_shape_bias", condition) == 0


def test_coloured_objects_are_of_one_colour():
    stimulus = next(s for s in matching_objects("colour") if s.texture == "blue")
    pixels = np.asarray(render("", decode("", stimulus), stimulus)).reshape(-1, 3)
    found, counts = np.unique(pixels, axis=0, return_counts=True)
    most = [tuple(map(int, found[i])) for i in np.argsort(counts)[::-1][:2]]
    assert most == [(255, 255, 255), (0x2F, 0x5F, 0xD6)]


# --- classification of textured silhouettes -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def conflict_root(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for shape in ("cat", "dog", "car"):
        for folder in ("stimuli", "silhouettes"):
            (root / "cue_conflict" / folder / shape).mkdir(parents=True)
        mask = np.full((40, 40), 255, np.uint8)
        mask[10:30, 10:30] = 0
        for i in (1, 2):
            Image.fromarray(mask).save(root / "cue_conflict" / "silhouettes" / shape / f"{shape}{i}.png")
            for texture in ("cat", "dog", "car"):
                pixels = rng.integers(0, 200, (40, 40, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(root / "cue_conflict" / "stimuli" / shape / f"{shape}{i}-{texture}1.png")
    return root


def test_the_classification_procedure_gives_back_planted_biases_for_every_alpha(conflict_root, tmp_path):
    observers = ["ideal:shape", "ideal:texture", "ideal:mixture?shape=0.7"]
    run = evaluate(observers, "textured_silhouettes", data_root=conflict_root, out=tmp_path, resamples=100)
    for condition in textured_silhouettes.CONDITIONS:
        assert run.value("ideal:shape", "shape_bias", condition) == 1
        assert run.value("ideal:texture", "texture_accuracy", condition) == 1
        assert run.value("ideal:mixture?shape=0.7", "decided_fraction", condition) == 1
    assert run.rows[0].n == 12  # images in conflict


def test_pictures_of_one_image_stay_together_and_alpha_1_is_white_around_the_object(conflict_root, tmp_path):
    stimuli = textured_silhouettes.read(conflict_root)
    assert len({s.image for s in stimuli}) == 12
    for condition, background in (("alpha=0.0", False), ("alpha=1.0", True)):
        one = next(s for s in stimuli if s.condition == condition)
        pixels = np.asarray(render(conflict_root, decode(conflict_root, one), one))
        assert (pixels[:5, :5] == 255).all() == background
        assert not (pixels[15:25, 15:25] == 255).all()
    run = evaluate(["ideal:shape"], "textured_silhouettes", data_root=conflict_root, out=tmp_path, resamples=100,
                   limit=12)  # fmt: skip
    assert "2 of 12 images" in run.rows[0].note


def test_the_command_line(conflict_root, tmp_path, capsys):
    out = str(tmp_path / "run")
    arguments = ["run", "-p", "textured_silhouettes", "-o", "ideal:shape", "--data-root", str(conflict_root)]
    assert cli.invoke([*arguments, "--out", out, "--resamples", "100"]) == 0
    assert "alpha=1.0" in capsys.readouterr().out
