"""The texture association protocol: planted associations come back, and what is missing is reported."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from scipy.stats import t

from cuebench import metrics
from cuebench.errors import UserError
from cuebench.labels import LabelSpace, softmax
from cuebench.metrics.texture_agreement import KINDS
from cuebench.metrics.texture_association import associated_texture, count, texture_identity
from cuebench.metrics.texture_confidence import top1
from cuebench.metrics.texture_dominance import group
from cuebench.observers.preprocess import Preprocess
from cuebench.protocols import texture_association as protocol
from cuebench.protocols.base import ScoreOptions, score_rows
from cuebench.protocols.headline import headline_column
from cuebench.responses.table import Responses
from cuebench.runs.evaluate import evaluate
from cuebench.runs.score import score
from cuebench.stimuli.makers.base import make
from cuebench.types import Stimulus, StimulusSet

PROTOCOL = protocol.PROTOCOL
CLASSES = tuple(f"class{i}" for i in range(8))
TEXTURES = ("banded", "dotted", "grid", "woven")
SPACE = LabelSpace("eight", CLASSES)
QUICK = ScoreOptions(resamples=100)


def textures(per=25):
    return [
        Stimulus(f"texture/{t}{i}", texture=t, condition="texture", texture_source=f"{t}{i}")
        for t in TEXTURES
        for i in range(per)
    ]


def photographs(part, rows):
    """Rows of (label, answer): each is an image whose answer is planted."""
    return [Stimulus(f"{part}/{k}", label=CLASSES[a], condition=part, seed=b) for k, (a, b) in enumerate(rows)]


def one_hot(classes, sharpness=12.0):
    return sharpness * np.eye(len(CLASSES))[np.asarray(classes)]


def respond(stimuli, answers, name="planted", keep=None):
    everything = StimulusSet("planted", tuple(stimuli))
    rows = np.arange(len(everything)) if keep is None else np.asarray(keep)
    return Responses(name, "model", everything, rows, {"logits": one_hot(answers)[rows]}, SPACE)


def planted(clean=(), adversarial=(), **more):
    """Textures 0 … 3 are answered with classes 0 … 3; photographs as planted."""
    stimuli = [*textures(), *photographs("clean", clean), *photographs("adversarial", adversarial)]
    answers = [TEXTURES.index(s.texture) if s.texture else s.seed for s in stimuli]
    return respond(stimuli, answers, **more)


def scored(*responses):
    result = PROTOCOL.score(responses, QUICK)
    return {(s.observer, s.metric, s.condition): s for s in score_rows(PROTOCOL, result)}, result.tables


# ---------------------------------------------------------------------------------------------------------- planted


def test_planted_associations_are_found():
    rows, tables = scored(planted())
    pairs = {c: s for (_, m, c), s in rows.items() if m == "texture_association"}
    assert {c: s.value for c, s in pairs.items()} == {
        f"pair/texture={t}/class=class{i}": pytest.approx(1) for i, t in enumerate(TEXTURES)
    }
    assert {(s.n, s.n_excluded, math.isnan(s.ci_low)) for s in pairs.values()} == {(25, 0, True)}
    assert all("all alike" in s.note for s in pairs.values())
    assert tables["tav"].column("count").to_pylist() == [25] * 4
    sure = rows["planted", "texture_confidence", "textures/sure"]
    assert (sure.value, sure.n) == (1, 100)
    assert tables["confidence"].column("count").to_pylist()[-1] == 100


def test_confidence_has_an_interval_for_other_textures():
    """Pictures of one texture are alike, and textures differ: the interval is Student's over four textures."""
    stimuli = textures(50)
    confident = np.array([{"banded": 6.0, "dotted": 3.0}.get(s.texture, 1.0) for s in stimuli])
    logits = np.zeros((len(stimuli), 8))
    logits[:, 0] = confident
    answered = replace(respond(stimuli, np.zeros(len(stimuli), int)), columns={"logits": logits})
    rows = score_rows(PROTOCOL, PROTOCOL.score([answered], QUICK))
    found = {s.ci_kind: s for s in rows if (s.metric, s.condition) == ("texture_confidence", "textures")}
    assert list(found) == ["images", "classes"]
    means = 1 / (1 + 7 * np.exp(-np.array([6.0, 3.0, 1.0, 1.0])))
    centre, reach = means.mean(), t.ppf(0.975, 3) * means.std(ddof=1) / 2
    reach /= centre * (1 - centre)
    expected = [1 / (1 + math.exp(-(math.log(centre / (1 - centre)) + side * reach))) for side in (-1, 1)]
    assert (found["classes"].ci_low, found["classes"].ci_high) == pytest.approx(expected, abs=1e-6)
    assert found["images"].ci_high - found["images"].ci_low < 0.3 * (expected[1] - expected[0])


def test_an_observer_that_guesses_has_no_associations():
    rng = np.random.default_rng(0)
    stimuli = textures(400)
    rows, _ = scored(respond(stimuli, rng.integers(0, 8, len(stimuli))))
    strongest = max(s.value for (_, m, _), s in rows.items() if m == "texture_association")
    assert strongest < 0.002


def test_planted_dominance_by_label_and_by_prediction():
    """Class 0 shows its texture in 3 of 4 images and is right on exactly these; class 1 always."""
    clean = [(0, 0), (0, 0), (0, 0), (0, 2), (1, 1), (1, 1)]
    rows, tables = scored(planted(clean))
    get = lambda c: rows["planted", "texture_dominance", c].value  # noqa: E731
    assert get("label/with_dominant") == 1
    assert get("label/without_dominant") == 0
    assert get("label/gap") == 1
    assert get("label/all") == pytest.approx(5 / 6)
    assert get("label/textures") == pytest.approx(1.5)
    assert get("label/correlation") == pytest.approx(np.corrcoef([0.75, 0.25, 1], [1, 0, 1])[0, 1])
    assert get("prediction/textures") == 1
    assert math.isnan(get("prediction/without_dominant"))
    assert "undefined" in rows["planted", "texture_dominance", "prediction/gap"].note
    assert rows["planted", "accuracy", "clean"].value == pytest.approx(5 / 6)
    assert rows["planted", "texturedness", "clean"].value == pytest.approx(1, abs=1e-4)
    groups = [g for g in tables["groups"].to_pylist() if g["by"] == "label"]
    assert [(g["label"], g["texture"], g["n"], g["dominant"]) for g in groups] == [
        ("class0", "banded", 3, True),
        ("class0", "grid", 1, False),
        ("class1", "dotted", 2, True),
    ]


def test_planted_agreement_of_adversarial_images():
    """Clean images give classes 0 … 3 their textures; class 4 is never answered, so it has no usual texture."""
    clean = [(i, i) for i in range(4)]
    adversarial = [(1, 0), (2, 0), (3, 0), (0, 0), (4, 0)]
    rows, tables = scored(planted(clean, adversarial))
    value = {c: rows["planted", "texture_agreement", f"adversarial/{c}"] for c in ("prediction", "both", "not_label")}
    assert value["prediction"].value == 0.75
    assert (value["both"].value, value["both"].n, value["both"].n_excluded) == (0.25, 4, 1)
    assert value["not_label"].value == 0.75
    assert rows["planted", "texture_agreement", "adversarial/classes/only_prediction"].value == 1
    assert rows["planted", "texturedness", "adversarial-clean"].value == pytest.approx(0, abs=1e-6)
    assert tables["agreement"].column("label").to_pylist() == ["class1", "class2", "class3"]


def test_errors_on_clean_images_are_judged_by_the_associations():
    """Classes 0 … 3 are tied to textures: 1 taken for 0 shows the texture of 0; a class without a tie is not judged."""
    rows, _ = scored(planted([(1, 0), (2, 3), (5, 0), (0, 0)]))
    row = rows["planted", "texture_agreement", "clean_errors/prediction"]
    assert (row.value, row.n, row.n_excluded) == (1, 2, 1)
    assert rows["planted", "texture_agreement", "clean_errors/label"].value == 0
    assert ("planted", "texture_agreement", "clean_errors/label/shuffled") in rows


def test_shuffled_associations_show_what_arises_by_itself():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 8, 400)
    clean = [(int(a), int(a if rng.random() < 0.7 else rng.integers(8))) for a in labels]
    rows, _ = scored(planted(clean))
    shuffled = rows["planted", "texture_dominance", "label/gap/shuffled"]
    assert shuffled.ci_kind == "shuffles"
    assert shuffled.ci_low <= shuffled.value <= shuffled.ci_high
    assert shuffled.value > 0.3, "a wrong answer changes the texture that is read from it, whatever the TAV"
    assert "permuted" in shuffled.note


# ------------------------------------------------------------------------------------------------------------- gaps


def test_without_clean_images_agreement_is_undefined_and_says_why():
    rows, _ = scored(planted(adversarial=[(1, 0)]))
    row = rows["planted", "texture_agreement", "adversarial/prediction"]
    assert math.isnan(row.value)
    assert "imagenet_val" in row.note


def test_few_pictures_are_flagged():
    stimuli = textures(5)
    rows, tables = scored(respond(stimuli, [TEXTURES.index(s.texture) for s in stimuli]))
    assert "only 5 pictures of 'banded'" in rows["planted", "texture_confidence", "textures/class=banded"].note
    assert "only 5 pictures" in rows["planted", "texture_association", "pair/texture=grid/class=class2"].note
    assert tables["textures"].column("too_few").to_pylist() == [True] * 4


def test_unanswered_and_unreadable_stimuli_are_counted():
    clean = [(0, 0), (1, 1), (1, 1)]
    answers = planted(clean, keep=[*range(3, 102)])
    rows, _ = scored(replace(answers, excluded={"texture/banded0": "broken"}))
    banded = rows["planted", "texture_confidence", "textures/class=banded"]
    assert banded.n_excluded == 3
    assert "1 unreadable, 2 unanswered of 25" in banded.note
    assert rows["planted", "texture_confidence", "textures"].n_excluded == 3
    assert (rows["planted", "accuracy", "clean"].n, rows["planted", "accuracy", "clean"].n_excluded) == (2, 1)


def test_answers_without_logits_are_refused():
    bare = planted()
    with pytest.raises(UserError, match="no logits"):
        PROTOCOL.score([replace(bare, columns={"decisions": np.zeros(len(bare))})], QUICK)


def test_labels_that_the_model_does_not_have():
    stimuli = StimulusSet("s", (*textures(1), Stimulus("x", label="n99999999", condition="clean")))
    assert PROTOCOL.check(SPACE, stimuli) == ["1 labels are not in it (n99999999 …; 1 photographs)"]
    assert PROTOCOL.check(SPACE, StimulusSet("s", tuple(textures(1)))) == []


def test_two_observers_keep_apart():
    rows, tables = scored(planted(), planted(name="second"))
    assert {o for o, _, _ in rows} == {"planted", "second"}
    assert tables["tav"].num_rows == 8


# ------------------------------------------------------------------------------------------------------ data, engine


def picture(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((8, 8, 3), len(path.name), np.uint8)).save(path)


def test_reading_takes_what_is_there(tmp_path):
    drawn = PROTOCOL.read(tmp_path)
    assert len(drawn) == 100 * len({s.texture for s in drawn})
    assert {s.condition for s in drawn} == {"texture"}
    picture(tmp_path / "dtd" / "images" / "banded" / "a.png")
    picture(tmp_path / "imagenet_val" / "n01440764" / "b.png")
    picture(tmp_path / "imagenet_a" / "n01498041" / "c.png")
    stimuli = PROTOCOL.read(tmp_path)
    assert [(s.id, s.path, s.condition) for s in stimuli] == [
        ("texture/banded/a", "dtd/images/banded/a.png", "texture"),
        ("clean/n01440764/b", "imagenet_val/n01440764/b.png", "clean"),
        ("adversarial/n01498041/c", "imagenet_a/n01498041/c.png", "adversarial"),
    ]
    assert "dtd: 1 of 5,640 stimuli" in stimuli.partial
    picture(tmp_path / "textures" / "own" / "d.png")
    assert PROTOCOL.read(tmp_path).stimuli[0].id == "texture/own/d"


class Greys:
    """Looks at pixels: the class is the mean grey level of the picture."""

    name, kind, fingerprint, labels = "greys", "model", "1", SPACE
    preprocess = Preprocess(size=16, resize=16)
    capabilities = frozenset({"logits"})

    def respond(self, batch, needs):
        level = batch.images.mean((1, 2, 3)) / 255
        return {"logits": one_hot(np.minimum((level * 8).astype(int), 7), 6.0)}


def test_a_run_from_files_scores_again_to_the_same_bytes(tmp_path):
    make("textures", tmp_path, count=134, size=32)
    for i in range(6):
        picture(tmp_path / "imagenet_val" / f"class{i}" / f"{'x' * 20 * i}p.png")
    options = {"data_root": tmp_path, "out": tmp_path / "run", "resamples": 100, "workers": 1}
    done = evaluate(Greys(), "texture_association", **options)
    assert done.failures == []
    assert {s.metric for s in done} <= set(PROTOCOL.metrics)
    assert any("67 textures" in s.note for s in done)
    before = (tmp_path / "run" / "scores.json").read_bytes()
    assert json.loads(before)
    score(tmp_path / "run")
    assert (tmp_path / "run" / "scores.json").read_bytes() == before
    assert (tmp_path / "run" / "tables" / "texture_association.tav.parquet").is_file()


def test_a_run_without_any_file(tmp_path):
    done = evaluate(
        Greys(), "texture_association", data_root=tmp_path, out=tmp_path / "r", resamples=100, limit=70, workers=1
    )
    assert done.failures == []
    assert any("limited to 70 of 6,700" in s.note for s in done)


# ------------------------------------------------------------------------------------------- explained is what runs


@pytest.fixture(scope="module")
def random_answers():
    """An observer with noisy associations and answers to photographs of all kinds."""
    rng = np.random.default_rng(7)
    stimuli = [
        *textures(30),
        *photographs("clean", [(int(a), 0) for a in rng.integers(0, 8, 160)]),
        *photographs("adversarial", [(int(a), 0) for a in rng.integers(0, 8, 60)]),
    ]
    logits = rng.normal(0, 3, (len(stimuli), len(CLASSES)))
    for i, s in enumerate(stimuli):
        logits[i, TEXTURES.index(s.texture) if s.texture else CLASSES.index(s.label)] += 2.5
    everything = StimulusSet("planted", tuple(stimuli))
    return Responses("m", "model", everything, np.arange(len(stimuli)), {"logits": logits}, SPACE)


def test_the_public_functions_give_what_the_protocol_writes(random_answers):
    logits, part = random_answers.columns["logits"], random_answers.truth("condition")
    shown = {name: logits[part == name] for name in ("texture", "clean", "adversarial")}
    label = {
        name: np.array([CLASSES.index(s.label) for s in random_answers.stimuli if s.condition == name])
        for name in ("clean", "adversarial")
    }
    texture = np.array([TEXTURES.index(s.texture) for s in random_answers.stimuli if s.texture])
    classes, confidence = top1(shown["texture"])
    tav = metrics.texture_association(count(texture, classes, 4, 8))
    identity = {name: texture_identity(softmax(shown[name]), tav) for name in label}
    answer, sure = top1(shown["clean"])
    correct = answer == label["clean"]
    expected = {("texture_confidence", "textures"): metrics.texture_confidence(confidence)}
    for i, name in enumerate(TEXTURES):
        expected["texture_confidence", f"textures/class={name}"] = metrics.texture_confidence(confidence[texture == i])
        for j, klass in enumerate(CLASSES):
            if tav[i, j] > 0:
                expected["texture_association", f"pair/texture={name}/class={klass}"] = tav[i, j]
    for name in label:
        expected["accuracy", name] = metrics.accuracy(shown[name], label[name])
        expected["texturedness", name] = metrics.texturedness(identity[name].similarity)
    groups = {
        "label": group(label["clean"], identity["clean"].texture, correct, 4, 8),
        "prediction": group(answer, identity["clean"].texture, sure, 4, 8),
    }
    for by, grouped in groups.items():
        for name, statistic in metrics.texture_dominance(grouped)._asdict().items():
            expected["texture_dominance", f"{by}/{name}"] = statistic
    wrong = ~correct
    agreement = {
        "clean_errors": metrics.texture_agreement(
            identity["clean"].texture[wrong], answer[wrong], label["clean"][wrong], associated_texture(tav)
        ),
        "adversarial": metrics.texture_agreement(
            identity["adversarial"].texture,
            top1(shown["adversarial"])[0],
            label["adversarial"],
            groups["prediction"].dominant,
        ),
    }
    for name, judged in agreement.items():
        for i, kind in enumerate(KINDS):
            expected["texture_agreement", f"{name}/{kind}"] = judged.kinds[:, i].sum() / judged.judged.sum()
    rows, _ = scored(random_answers)
    assert {key: rows["m", *key].value for key in expected} == pytest.approx(expected, abs=1e-12)
    assert {metric for metric, _ in expected} == set(PROTOCOL.metrics) == {metric for _, metric, _ in rows}


def test_intervals_of_permuted_associations_are_their_range(random_answers):
    rows, _ = scored(random_answers)
    shuffled = [s for (_, _, condition), s in rows.items() if condition.endswith("/shuffled")]
    assert len(shuffled) == 10
    assert {s.ci_kind for s in shuffled} == {"shuffles"}
    assert all(s.ci_low <= s.value <= s.ci_high for s in shuffled)
    assert {s.ci_kind for s in rows.values()} == {"shuffles", "images", "classes"}


def test_the_headline_needs_textures_only(random_answers):
    rows, _ = scored(planted())
    column = headline_column(rows.values(), "texture_association")
    assert (column.metric, column.condition) == ("texture_confidence", "textures")
    assert column.rows["planted"].value == rows["planted", "texture_confidence", "textures"].value
    assert PROTOCOL.headline.direction == "texture"
    assert len(PROTOCOL.reference) == 40


# ------------------------------------------------------------------------------------------------ layers and colours


def test_classes_are_read_from_layers_by_the_nearest_mean_of_photographs():
    """A layer that holds the class gives the planted associations, one that holds noise gives none."""
    answered = planted(clean=[(i, i) for i in range(4)] * 5)
    rng = np.random.default_rng(0)
    classes = np.array([TEXTURES.index(s.texture) if s.texture else s.seed for s in answered.stimuli])
    early, late = rng.normal(size=(len(classes), 16)), np.eye(8)[classes] + 0.01
    columns = {**answered.columns, "features": late, "features:early": early, "features:late": late}
    rows, tables = scored(replace(answered, columns=columns))
    value = {c: s.value for (_, m, c), s in rows.items() if m == "texture_association" and c.startswith("layer=")}
    assert set(value) == {"layer=penultimate", "layer=early", "layer=late", "layer=output"}
    assert value["layer=late"] == value["layer=output"] == value["layer=penultimate"] == pytest.approx(1)
    assert value["layer=early"] < 0.35
    strongest = {(r["layer"], r["texture"]): r["label"] for r in tables["layers"].to_pylist()}
    assert strongest["late", "grid"] == "class2"


def test_classes_that_a_layer_does_not_tell_apart_are_not_told_apart_by_rounding():
    """Textures look like class 1; class 0 is as near but for 5e-13, which is more than any CPU rounds by."""
    answered = planted(clean=[(i, i) for i in range(2)] * 5)
    features = np.array([[1, 0 if s.seed == 0 and not s.texture else 1e-6] for s in answered.stimuli])
    _, tables = scored(replace(answered, columns={**answered.columns, "features": features}))
    rows = [(r["label"], r["share"]) for r in tables["layers"].to_pylist() if r["layer"] == "penultimate"]
    assert rows == [("class0", 1)] * len(TEXTURES)


def test_layers_without_photographs_say_what_is_missing():
    answered = planted()
    rows, _ = scored(replace(answered, columns={**answered.columns, "features": np.ones((len(answered), 2))}))
    row = rows["planted", "texture_association", "layer=penultimate"]
    assert math.isnan(row.value)
    assert "imagenet_val" in row.note


def test_layers_are_asked_for_only_when_they_are_wanted():
    values = {name: option.default for name, option in PROTOCOL.options.items()}
    assert PROTOCOL.configured(values).needs == (("logits",),)
    assert PROTOCOL.configured({**values, "layers": ("all",)}).needs == (("logits", "features"),)


def test_colours_take_the_place_of_textures(tmp_path):
    """A model that answers by the mean colour: each colour has its class, and rows say what was shown."""
    from cuebench import Preprocess as Prepared
    from cuebench import wrap
    from cuebench.stimuli.sources import colour

    centres = np.stack([colour.draw(seed=500, name=n, size=8).mean((0, 1)) / 255 for n in colour.COLOURS])

    def nearest(x):
        mean = x.mean((2, 3))
        return -200 * ((mean[:, None] - centres) ** 2).sum(-1)

    plain = Prepared(16, mean=(0, 0, 0), std=(1, 1, 1))
    model = wrap(nearest, name="eye", preprocess=plain, labels=list(colour.COLOURS), fingerprint="eye")
    run = evaluate([model], "texture_association", out=tmp_path, workers=0, resamples=100, limit=110,
                   settings={"texture_association.of": "colours"})  # fmt: skip
    for name in ("blue", "green", "brown"):
        assert run.value("eye", "texture_association", f"pair/texture={name}/class={name}") > 0.5
    assert all("colours in place of textures" in row.note for row in run.rows)


def test_every_colour_is_drawn_alike_every_time_and_without_structure():
    from cuebench.stimuli.sources import colour

    for name in colour.COLOURS:
        first, again, other = (colour.draw(seed=s, name=name, size=32) for s in (3, 3, 4))
        assert np.array_equal(first, again)
        assert not np.array_equal(first, other)
        assert np.abs(np.diff(first.astype(int), axis=0)).max() <= 3
    with pytest.raises(UserError, match="Did you mean 'blue'"):
        colour.draw(seed=0, name="blu")
