"""Figures that need a run of their own: sheets of photographs, people's judgements, layers, kept masks, procedures."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from PIL import Image

import cuebench
from cuebench.analyses.texture_judgements import (
    identified,
    judge,
    judgement_trials,
    read_judgements,
    write_trials,
)
from cuebench.errors import UserError
from cuebench.labels import LabelSpace
from cuebench.observers.preprocess import Preprocess
from cuebench.registry import figures
from cuebench.runs.evaluate import evaluate
from cuebench.runs.kept import kept_masks
from cuebench.stimuli.makers.base import make
from cuebench.testing import check_figure

CLASSES = tuple(f"shade {i}" for i in range(8))
TEXTURES = {"night": (5, 60), "dusk": (70, 120), "dawn": (135, 180), "fog": (195, 250)}


class Greys:
    """The class is the mean grey level of the picture; the features are the level in two ways."""

    name, kind, fingerprint, labels = "greys", "model", "1", LabelSpace("greys", CLASSES)
    preprocess = Preprocess(size=16, resize=16)
    capabilities = frozenset({"logits", "features"})

    def respond(self, batch, needs):
        level = batch.images.mean((1, 2, 3)) / 255 * 8
        logits = -4 * np.abs(level[:, None] - 0.5 - np.arange(8)[None])
        answers = {"logits": logits}
        if "features" in needs:
            answers |= {"features": np.exp(logits), "features:early": np.stack([level, 9 - level], 1)}
        return answers

    def reading(self, names):
        return self


def flat(path, level):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((16, 16, 3), level, np.uint8)).save(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Textures of four ranges of grey; photographs of all levels, natural adversarial images with wrong labels."""
    root = tmp_path_factory.mktemp("figures")
    for name, (low, high) in TEXTURES.items():
        for i, level in enumerate(np.linspace(low, high, 24).astype(int)):
            flat(root / "textures" / name / f"{i}.png", int(level))
    for folder in ("imagenet_val", "imagenet_a"):
        for i, level in enumerate(range(4, 252, 8)):
            wrong = folder == "imagenet_a" or i % 5 == 0
            flat(root / folder / CLASSES[(level // 32 + wrong * 4) % 8] / f"{i}.png", level)
    evaluate(Greys(), "texture_association", data_root=root, out=root / "run", resamples=100, workers=0,
             settings={"texture_association.layers": "early"})  # fmt: skip
    return root / "run"


@pytest.fixture(scope="module")
def answers(run, tmp_path_factory):
    """Two people: one always names the identified texture, the other never does."""
    path = tmp_path_factory.mktemp("people") / "answers.csv"
    textures = {row.image: row.texture for row in identified(run)[1]}
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["subject", "image", "options", "answer"])
        for trial in judgement_trials(run, number=12, seed=1):
            found = textures[trial["image"]]
            other = next(word for word in trial["options"].split(";") if word != found)
            writer.writerow(["agrees", trial["image"], trial["options"], f"{found};{other}"])
            writer.writerow(["differs", trial["image"], trial["options"], other])
    return path


@pytest.mark.parametrize("name", ["texture_examples", "texturedness", "texture_agreement_classes", "tav_layers"])
def test_figures_of_texture_association(run, name):
    check_figure(name, run)


@pytest.mark.parametrize("name", ["texture_judgements", "texture_disagreements"])
def test_figures_of_what_people_see(run, answers, name):
    check_figure(name, run, options={"answers": str(answers)})


def test_agreement_with_people_is_counted_by_image_and_texture(run, answers):
    judged = judge(read_judgements(answers), identified(run)[1])
    assert judged.overall.value == 0.5
    assert judged.overall.n == 24
    assert all(estimate.value == 0.5 for estimate in judged.by_texture.values())
    assert sum(len(images) for images in judged.disagreements.values()) == 12


def test_trials_for_people_do_not_say_what_was_identified(run, tmp_path):
    trials = judgement_trials(run, number=10)
    assert len(trials) == 10
    textures = {row.image: row.texture for row in identified(run)[1]}
    places = [trial["options"].split(";").index(textures[trial["image"]]) for trial in trials]
    assert len(set(places)) > 1
    assert all(len(set(trial["options"].split(";"))) == 4 for trial in trials)
    assert trials == judgement_trials(run, number=10)
    write_trials(trials, tmp_path / "t.csv")
    with pytest.raises(UserError, match="no answer"):
        read_judgements(tmp_path / "t.csv")


def test_wrong_judgements_are_named_by_their_line(tmp_path):
    (tmp_path / "j.csv").write_text("image,options,answer\nclean/1,a;b,c\n")
    with pytest.raises(UserError, match="line 2: 'c' was not among a, b"):
        read_judgements(tmp_path / "j.csv")


def test_a_sheet_holds_the_photographs_of_one_texture_most_textured_first(run):
    picture = figures.get("texture_examples")(run, texture="fog", number=5)
    assert {row["texture"] for row in picture.data} == {"fog"}
    values = [row["texturedness"] for row in picture.data]
    assert values == sorted(values, reverse=True)
    mistaken = figures.get("texture_examples")(run, part="adversarial", prediction="shade 7")
    assert {row["prediction"] for row in mistaken.data} == {"shade 7"}
    with pytest.raises(UserError, match="Did you mean 'fog'"):
        figures.get("texture_examples")(run, texture="frog")


def test_the_shares_of_a_class_add_up(run):
    picture = figures.get("texture_agreement_classes")(run)
    sums = {}
    for row in picture.data:
        sums[row["class"]] = sums.get(row["class"], 0) + row["value"]
    assert all(value == pytest.approx(1) for value in sums.values())


# --- masks, triplets, procedures ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def masks_run(tmp_path_factory):
    root = tmp_path_factory.mktemp("masks")
    colours = np.array([[220, 20, 20], [20, 220, 20], [20, 20, 220]], np.uint8)
    rng = np.random.default_rng(0)
    for i in range(3):
        labels = np.kron(rng.integers(0, 3, (3, 4)), np.ones((8, 8), int))
        for folder, pixels in (("images", colours[labels]), ("masks", (10 * labels + 1).astype(np.uint8))):
            (root / folder).mkdir(exist_ok=True)
            Image.fromarray(pixels).save(root / folder / f"{i}.png")
    classes = ",".join(f'{{"name": "{n}", "ids": [{10 * k + 1}]}}' for k, n in enumerate(("red", "green", "blue")))
    (root / "classes.json").write_text(f'{{"dataset": "colours", "classes": [{classes}], "ignore": [0]}}')
    make(
        "cue_decomposition",
        root / "data",
        source=str(root),
        cues="eed,voronoi,edge_blur",
        steps=3,
        workers=1,
        device="cpu",
    )

    def paint(x):
        pixels = np.moveaxis(x, 1, -1)[..., None, :]
        return -np.moveaxis(((pixels - colours.astype(float)) ** 2).sum(-1), -1, 1)

    plain = Preprocess((24, 32), mean=(0, 0, 0), std=(1, 1, 1), scale=1.0)
    painter = cuebench.wrap(paint, name="painter", task="segmentation", preprocess=plain,
                            labels=["red", "green", "blue"], fingerprint="p")  # fmt: skip
    name = "cue_decomposition_segmentation"
    evaluate([painter, "ideal:shape"], name, data_root=root / "data", out=root / "run", workers=0, resamples=100,
             settings={f"{name}.keep_masks": 2})  # fmt: skip
    return root / "run"


def test_the_grid_of_predicted_masks(masks_run):
    check_figure("segmentation_grid", masks_run)
    picture = figures.get("segmentation_grid")(masks_run)
    assert [r["row"] for r in picture.data[::3]] == ["picture", "truth", "painter", "shape"]
    quality = {(r["row"], r["condition"]): r["miou"] for r in picture.data}
    assert quality["painter", "original"] == quality["painter", "voronoi"] == 1


def test_a_cue_that_moves_no_pixels_shares_the_masks_of_the_originals(masks_run):
    stimuli, kept = kept_masks(masks_run, "cue_decomposition_segmentation")
    masks = {c: {s.mask for s in stimuli if s.condition == c} for c in ("original", "edge_blur", "voronoi")}
    assert masks["edge_blur"] == masks["original"] != masks["voronoi"]
    assert {k.observer for k in kept} == {"painter", "ideal:shape"}


def test_a_sheet_of_triplets_needs_nothing():
    picture = figures.get("triplet_sheet")(conditions=("experiment3/size=0.4/unaligned", "novel/match=colour/aligned"))
    assert len(picture.data) == 4
    for row in picture.data:
        (shape, other), (same, _), (_, shared) = (row[k].split("-") for k in ("anchor", "shape match", "other match"))
        assert shape == same
        assert other == shared
    check_figure("triplet_sheet", options={"conditions": ("novel/match=size/unaligned",), "trials": 1})


@pytest.mark.slow
def test_two_procedures_on_the_same_pictures(tmp_path):
    for shape in ("cat", "dog", "car"):
        for i in (1, 2):
            home = tmp_path / "cue_conflict"
            flat(home / "silhouettes" / shape / f"{shape}{i}.png", 255)
            with Image.open(home / "silhouettes" / shape / f"{shape}{i}.png") as picture:
                pixels = np.array(picture)
            pixels[4:12, 4:12] = 0
            Image.fromarray(pixels).save(home / "silhouettes" / shape / f"{shape}{i}.png")
            for texture in ("cat", "dog", "car"):
                flat(home / "stimuli" / shape / f"{shape}{i}-{texture}1.png", 100 + i)
    evaluate(["ideal:shape", "ideal:texture"], ["textured_silhouettes", "triplets"], data_root=tmp_path,
             out=tmp_path / "run", resamples=100, settings={"triplets.experiments": "1"})  # fmt: skip
    check_figure("silhouette_procedures", tmp_path / "run")
    picture = figures.get("silhouette_procedures")(tmp_path / "run")
    assert {r["panel"] for r in picture.data} == {"Classification", "Triplets"}
    assert {r["value"] for r in picture.data if r["observer"] == "ideal:shape"} == {1.0}
