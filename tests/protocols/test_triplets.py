"""The protocol ``triplets``: stimuli, planted biases, draws, exclusions, baselines and bad input."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import cuebench
import cuebench.metrics
from cuebench import cli
from cuebench.errors import UserError
from cuebench.observers.adapters._ideal_features import instance_features
from cuebench.observers.preprocess import Preprocess
from cuebench.options import parse
from cuebench.protocols.base import ScoreOptions, score_rows
from cuebench.protocols.headline import headline_column
from cuebench.protocols.triplets import PROTOCOL
from cuebench.protocols.triplets.stimuli import EXPERIMENTS, SAME, novel_objects, textured_silhouettes
from cuebench.registry import protocols
from cuebench.responses.table import Responses
from cuebench.stimuli.makers.base import make
from cuebench.stimuli.render import decode, render
from cuebench.stimuli.sources.novel_object import SHAPES, TEXTURES
from cuebench.types import StimulusSet

SMALL = {"triplets.experiments": "3"}
CLASSES = ("cat", "dog", "car")


def conflict_root(root, *, silhouettes=True, size=40):
    """Three shape classes with two instances each in three textures: 12 images in conflict and 6 aligned."""
    folder = root / "cue_conflict"
    rng = np.random.default_rng(0)
    for shape in CLASSES:
        (folder / "stimuli" / shape).mkdir(parents=True)
        (folder / "silhouettes" / shape).mkdir(parents=True) if silhouettes else None
        for i in (1, 2):
            for texture in CLASSES:
                pixels = rng.integers(0, 200, size=(size, size, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(folder / "stimuli" / shape / f"{shape}{i}-{texture}1.png")
            if silhouettes:
                plane = np.full((size, size, 3), 255, np.uint8)
                plane[10:30, 10 : 20 + 2 * i] = 0
                plane[9, 10:15] = 60  # a soft edge: not pure black, so background
                Image.fromarray(plane).save(folder / "silhouettes" / shape / f"{shape}{i}.png")
    return root


def answered(stimuli, features, name="net", **more):
    return Responses(name, "model", stimuli, np.arange(len(stimuli)), {"features": features}, **more)


def configured(**values):
    """The protocol as ``--set triplets.NAME=VALUE`` asks for it."""
    return PROTOCOL.configured(parse(PROTOCOL.options, values, "protocol 'triplets'"))


def scored(*responses, resamples=200, **values):
    options = ScoreOptions(resamples=resamples, values=parse(PROTOCOL.options, values, "protocol 'triplets'"))
    return score_rows(PROTOCOL, PROTOCOL.score(responses, options))


def value(rows, condition, metric="triplet_shape_bias", kind="images", observer=None):
    found = [r for r in rows if (r.condition, r.metric, r.ci_kind) == (condition, metric, kind)]
    return next(r for r in found if observer in (None, r.observer))


# ------------------------------------------------------------------------------------------------- stimuli


def test_the_names_that_others_rely_on():
    assert {c for conditions in EXPERIMENTS.values() for c in conditions} >= {
        "experiment1/alpha=1.0",
        "experiment2/size=0.4/unaligned",
        "experiment3/size=1.0/aligned",
    }
    assert [len(c) for c in EXPERIMENTS.values()] == [6, 10, 10]


def test_pictures_of_experiments_1_and_2_follow_the_definition(tmp_path):
    root = conflict_root(tmp_path)
    found = PROTOCOL.read(root)
    pictures = [s for s in found if s.id.startswith("cat1-dog1/")]
    assert len(pictures) == 14  # 6 + 10 conditions, two of which show the pictures of alpha = 1
    assert len([s for s in found if "experiment3" not in s.condition]) == 12 * 14
    image = np.asarray(Image.open(root / pictures[0].path)).astype(float)
    black = np.asarray(Image.open(root / "cue_conflict/silhouettes/cat/cat1.png")).max(axis=2) == 0
    for stimulus in pictures:
        shown = np.asarray(render(found.root, decode(found.root, stimulus), stimulus)).astype(float)
        if stimulus.condition.startswith("experiment1"):
            alpha = float(stimulus.condition.rpartition("=")[2])
            m = np.where(black, 1.0, 1 - alpha)[..., None]
            assert np.abs(shown - (m * image + (1 - m) * 255)).max() <= 0.51
        else:
            inside = np.argwhere((shown < 255).any(axis=2))
            share = float(stimulus.condition.split("/")[1].removeprefix("size="))
            assert (np.ptp(inside, axis=0) <= np.ceil(share * np.array([20, 12])) + 2).all()
    places = {c: SAME.get(c, c) for c in EXPERIMENTS["2"]}
    assert places["experiment2/size=1.0/unaligned"] == "experiment1/alpha=1.0"


def test_each_unaligned_picture_has_its_own_place(tmp_path):
    found = textured_silhouettes(conflict_root(tmp_path), ["experiment2/size=0.2/unaligned"])
    assert len({s.seed for s in found}) == len(found) == 12
    assert [s.seed for s in found] == [
        s.seed for s in textured_silhouettes(tmp_path, ["experiment2/size=0.2/unaligned"])
    ]


def test_another_silhouette_is_another_stimulus(tmp_path):
    conditions = ["experiment1/alpha=1.0"]
    before = {s.key for s in textured_silhouettes(conflict_root(tmp_path), conditions)}
    path = tmp_path / "cue_conflict/silhouettes/cat/cat1.png"
    Image.fromarray(np.asarray(Image.open(path))[::-1].copy()).save(path)
    after = {s.key for s in textured_silhouettes(tmp_path, conditions)}
    assert len(before & after) == 10


def test_real_silhouettes_are_accepted_and_the_part_is_named(shared):
    found = textured_silhouettes(shared, EXPERIMENTS["1"])
    assert (len(found), found.partial, found.expected) == (240 * 6, ("240 of 1,200 cue-conflict images",), 7200)


def test_a_class_that_is_missing_is_named(tmp_path):
    """Images of published classes only are a part of the set; a set with a label map of its own is not."""
    conflict_root(tmp_path)
    found = textured_silhouettes(tmp_path, ["experiment1/alpha=1.0"])
    (reason,) = found.partial
    assert reason.startswith(f"{len(found)} of 1,200 cue-conflict images, no shape of airplane, ")
    assert found.expected == 1200
    (tmp_path / "cue_conflict" / "labels.json").write_text('{"cat": ["tabby"], "dog": ["beagle"]}')
    assert textured_silhouettes(tmp_path, ["experiment1/alpha=1.0"]).partial == ()


@pytest.mark.parametrize("spoil", ["grey", "white", "missing", "size"])
def test_bad_silhouettes_are_all_named(tmp_path, spoil):
    root = conflict_root(tmp_path)
    for name in ("cat1", "dog2"):
        path = root / "cue_conflict/silhouettes" / name[:-1] / f"{name}.png"
        ramp = np.tile(np.linspace(0, 255, 40).astype(np.uint8), (40, 1))
        plane = {"grey": ramp, "white": np.full((40, 40), 255, np.uint8), "size": np.eye(30, dtype=np.uint8) * 255}
        path.unlink() if spoil == "missing" else Image.fromarray(plane[spoil]).save(path)
    problems = {"grey": "not binary", "white": "no pixel is black", "missing": "is missing", "size": "30×30 pixels"}
    with pytest.raises(UserError, match="2 problems") as caught:
        PROTOCOL.read(root)
    assert caught.value.message.count(problems[spoil]) == 2


def test_experiment_3_needs_no_data_and_says_what_is_left_out(tmp_path):
    alone = PROTOCOL.standalone()
    assert len(alone) == 9 * 256
    assert "experiments 1 and 2 left out" in alone.partial[0]
    only = configured(experiments="3").standalone()
    assert (len(only), only.partial, only.expected) == (9 * 256, (), 9 * 256)
    with pytest.raises(UserError, match="there is no folder"):
        configured(experiments="1").read(tmp_path)


def test_made_objects_take_the_place_of_the_built_in_ones(tmp_path):
    make("novel_objects", tmp_path, seed=5, shapes="dax,ruk", textures="bricks,wood")
    found = configured(experiments="3").read(tmp_path)
    assert len(found) == 9 * 4
    shown = decode(found.root, found.stimuli[0])
    assert shown.size == (224, 224)


def test_the_background_is_that_of_the_pictures():
    assert all("background=noise" in s.recipe for s in configured(experiments="3", background="noise").standalone())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"experiments": "4"}, r"experiments='4': expected 1, 2, 3, size, colour \(several with commas\)"),
        ({"draw": "some"}, "draw='some': expected a whole number ≥ 1, or all"),
        ({"draw": "0"}, "draw='0'"),
        ({"replications": "0"}, "replications='0'"),
        ({"similarity": "cosin"}, "similarity='cosin': expected cosine, dot, euclid"),
        ({"background": "blue"}, "background='blue': expected one of white, grey, noise"),
        ({"baselines": "-1"}, "baselines='-1': expected a whole number ≥ 0"),
        ({"drawn": "1"}, "Did you mean 'draw'"),
    ],
)
def test_wrong_options_fail_before_anything_is_shown(values, message):
    with pytest.raises(UserError, match=message):
        configured(**values)


def test_declaration():
    assert protocols.get("triplets") is PROTOCOL
    assert PROTOCOL.layers
    assert PROTOCOL.baselines
    values = parse(PROTOCOL.options, {"layers": "layer1, layer2.0", "baselines": "10"}, "protocol 'triplets'")
    assert (values["layers"], values["baselines"]) == (("layer1", "layer2.0"), 10)
    assert (PROTOCOL.options["layers"].default, PROTOCOL.options["baselines"].default) == ((), 0)
    assert (PROTOCOL.headline.metric, PROTOCOL.headline.direction) == ("triplet_shape_bias", "shape")


# ------------------------------------------------------------------------------------------------- planted biases


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    """Ideal observers on experiment 3, as a user runs them."""
    names = ["ideal:shape", "ideal:texture", "ideal:random"]
    names += [f"ideal:mixture?shape={p}" for p in (0.5, 0.8, 0.2)]
    out = tmp_path_factory.mktemp("run")
    return out, cuebench.evaluate(names, "triplets", out=out, settings=SMALL, resamples=1000)


@pytest.mark.parametrize("condition", EXPERIMENTS["3"])
def test_only_shape_is_one_and_only_texture_zero(calibrated, condition):
    _, rows = calibrated
    for observer, planted in (("ideal:shape", 1.0), ("ideal:texture", 0.0)):
        for suffix in ("", "/similarity=dot", "/similarity=euclid"):
            found = value(rows, condition + suffix, observer=observer)
            assert (found.value, found.n, found.n_excluded) == (planted, 57_600, 0)


@pytest.mark.parametrize(
    ("observer", "planted"),
    [
        ("ideal:random", 0.5),
        ("ideal:mixture?shape=0.5", 0.5),
        ("ideal:mixture?shape=0.8", 0.8),
        ("ideal:mixture?shape=0.2", 0.2),
    ],
)
def test_a_planted_share_lies_in_its_interval(calibrated, observer, planted):
    _, rows = calibrated
    found = [
        value(rows, c, kind="two_way", observer=observer)
        for c in dict.fromkeys(SAME.get(c, c) for c in EXPERIMENTS["3"])
    ]
    # Nine intervals of 95 %: more than one that misses has a chance of 7 %, were they independent.
    assert sum(f.ci_low <= planted <= f.ci_high for f in found) >= len(found) - 1
    assert np.mean([f.value for f in found]) == pytest.approx(planted, abs=0.02)


def test_intervals_cover_the_planted_share_and_the_two_way_one_is_the_widest():
    stimuli = novel_objects(SHAPES, TEXTURES, conditions=["experiment3/size=0.6/aligned"])
    covered = {"images": [], "two_way": []}
    values = []
    for seed in range(30):
        answers = answered(stimuli, instance_features(stimuli.stimuli, 0.7, seed))
        rows = {s.ci_kind: s for s in scored(answers, resamples=300, similarity="cosine")}
        values.append(rows["images"].value)
        for kind, hits in covered.items():
            hits.append(rows[kind].ci_low <= 0.7 <= rows[kind].ci_high)
        assert rows["two_way"].ci_high - rows["two_way"].ci_low >= rows["images"].ci_high - rows["images"].ci_low
    assert min(np.mean(hits) for hits in covered.values()) >= 0.85
    assert np.mean(values) == pytest.approx(0.7, abs=0.01)


def test_every_bias_has_four_intervals_and_a_table_by_class(calibrated):
    out, rows = calibrated
    biases = [r for r in rows if (r.observer, r.condition) == ("ideal:random", "experiment3/size=0.6/aligned")]
    assert [r.ci_kind for r in biases] == ["images", "shape_sources", "texture_sources", "two_way"]
    import pyarrow.parquet as pq

    table = pq.read_table(out / "tables" / "triplets.by_class.parquet").to_pylist()
    mine = [
        t
        for t in table
        if (t["observer"], t["condition"], t["cue"]) == (biases[0].observer, biases[0].condition, "shape")
    ]
    assert len(mine) == 16
    assert np.average([t["value"] for t in mine], weights=[t["trials"] for t in mine]) == pytest.approx(biases[0].value)


def test_scoring_again_gives_the_same_bytes_and_reads_the_settings(calibrated):
    out, _ = calibrated
    before = hashlib.sha256((out / "scores.parquet").read_bytes()).hexdigest()
    assert json.loads((out / "run.json").read_text())["arguments"]["settings"] == SMALL
    cuebench.score(out)
    assert hashlib.sha256((out / "scores.parquet").read_bytes()).hexdigest() == before


# ------------------------------------------------------------------------------------------------- scoring


def uneven():
    """A set in which the anchors have from 0 to many triplets."""
    whole = novel_objects(
        [f"s{i}" for i in range(6)], [f"t{i}" for i in range(6)], conditions=["experiment3/size=0.6/aligned"]
    )
    keep = [s for k, s in enumerate(whole) if k % 7 and k != 8]
    lonely = replace(keep[0], id="lonely/x", shape_source="alone", texture_source="alone.0")
    return StimulusSet("triplets", tuple(replace(s, condition="experiment1/alpha=1.0") for s in (*keep, lonely)))


def test_draws_all_triplets_and_notes():
    stimuli = uneven()
    features = np.random.default_rng(0).normal(size=(len(stimuli), 8)).astype(np.float32)
    whole, drawn, published = (
        value(scored(answered(stimuli, features), **values), "experiment1/alpha=1.0")
        for values in ({"draw": "all"}, {"draw": "10"}, {})
    )
    assert "all triplets" in whole.note
    assert f"1 of {len(stimuli)} anchors have no match" in whole.note
    assert drawn.n == 10 * (len(stimuli) - 1)
    assert "10 triplets of each anchor, mean of 3 draws" in drawn.note
    assert drawn.value == pytest.approx(whole.value, abs=0.1)
    assert "anchors have fewer triplets, and all of them are used" in published.note
    assert published.n == whole.n


def test_zero_vectors_and_nan_are_counted_and_left_out():
    stimuli = uneven()
    features = np.random.default_rng(0).normal(size=(len(stimuli), 8))
    features[3] = 0
    features[7, 2] = np.nan
    row = value(scored(answered(stimuli, features)), "experiment1/alpha=1.0")
    assert "1 images with a zero vector" in row.note
    assert "1 images with NaN or infinite features" in row.note
    assert f"{row.n_excluded} undecidable of {row.n + row.n_excluded}" in row.note
    assert row.n_excluded > 0
    assert np.isfinite(row.value)


def with_baselines():
    """A network whose last layer holds the shape alone, an inner layer of noise, and four random initialisations."""
    stimuli = uneven()
    rng = np.random.default_rng(0)
    truth = np.array([int(s.shape_source[1:]) if s.shape_source != "alone" else 6 for s in stimuli])
    trained = answered(stimuli, np.eye(7)[truth])
    trained = replace(trained, columns={**trained.columns, "features:early": rng.normal(size=(len(stimuli), 8))})
    nets = [
        answered(stimuli, rng.normal(size=(len(stimuli), 8)), f"net#random{k}", baseline_of="net") for k in range(4)
    ]
    return trained, nets


def test_layers_and_baselines_are_rows():
    trained, nets = with_baselines()
    rows = scored(trained, *nets, resamples=300)
    assert value(rows, "experiment1/alpha=1.0", observer="net").value == 1
    assert value(rows, "experiment1/alpha=1.0/layer=early").value == pytest.approx(0.5, abs=0.2)
    mean = value(rows, "experiment1/alpha=1.0/random_initialisation", kind="seeds")
    biases = [value(rows, "experiment1/alpha=1.0", observer=n.observer).value for n in nets]
    assert (mean.value, mean.n) == (pytest.approx(np.mean(biases)), 4)
    gain = value(rows, "experiment1/alpha=1.0", metric="triplet_bias_gain", kind="two_way")
    assert gain.value == pytest.approx(1 - np.mean(biases))
    assert 0 < gain.ci_low < gain.value < gain.ci_high
    assert "against 4 random initialisations" in gain.note


def test_a_baseline_that_saw_other_images_is_excluded():
    trained, nets = with_baselines()
    part = replace(nets[0], stimulus=nets[0].stimulus[:20], columns={"features": nets[0].columns["features"][:20]})
    mean = value(scored(trained, part, *nets[1:]), "experiment1/alpha=1.0/random_initialisation", kind="seeds")
    assert (mean.n, mean.n_excluded) == (3, 1)
    alone = value(scored(trained, part), "experiment1/alpha=1.0/random_initialisation", kind="seeds")
    assert (alone.n, np.isnan(alone.value)) == (0, True)


def test_novel_objects_do_not_carry_what_is_missing_of_the_cue_conflict_images():
    conflict = uneven()
    reasons = ("240 of 1,200 cue-conflict images", "limited to 500 of 2,304 stimuli")
    objects = novel_objects(SHAPES[:3], TEXTURES[:3], conditions=["experiment3/size=1.0/aligned"])
    stimuli = StimulusSet("triplets", (*conflict, *objects), partial=reasons)
    rows = scored(answered(stimuli, np.random.default_rng(0).normal(size=(len(stimuli), 8))))
    for row in rows:
        assert "partial set: " in row.note
        assert "limited to 500" in row.note
        assert ("cue-conflict images" in row.note) == (not row.condition.startswith("experiment3"))


# --------------------------------------------------------------------------------- what is explained is what runs


@pytest.mark.parametrize("draw", ["all", "10"])
@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclid"])
def test_the_public_function_gives_what_the_protocol_writes(draw, similarity):
    stimuli = uneven()
    features = np.random.default_rng(1).normal(size=(len(stimuli), 8))
    rows = scored(answered(stimuli, features), draw=draw, replications=2)
    suffix = "" if similarity == "cosine" else f"/similarity={similarity}"
    expected = cuebench.metrics.triplet_shape_bias(
        features,
        [s.shape_source for s in stimuli],
        [s.texture_source for s in stimuli],
        similarity=similarity,
        k=0 if draw == "all" else int(draw),
        replications=2,
        seed=0,
    )
    assert value(rows, f"experiment1/alpha=1.0{suffix}").value == expected


def test_the_gain_is_the_public_function_of_the_biases():
    trained, nets = with_baselines()
    rows = scored(trained, *nets)
    bias, *random = (value(rows, "experiment1/alpha=1.0", observer=r.observer).value for r in (trained, *nets))
    gain = value(rows, "experiment1/alpha=1.0", metric="triplet_bias_gain")
    assert gain.value == cuebench.metrics.triplet_bias_gain(bias, random)


def test_every_declared_metric_is_emitted_and_no_other():
    trained, nets = with_baselines()
    result = PROTOCOL.score([trained, *nets], ScoreOptions(resamples=200))
    assert {m.metric for m in result.measurements} == set(PROTOCOL.metrics)


def test_the_headline_is_one_plain_condition_for_everybody():
    trained, nets = with_baselines()
    column = headline_column(scored(trained, *nets), "triplets")
    assert (column.metric, column.condition) == ("triplet_shape_bias", "experiment1/alpha=1.0")
    assert set(column.rows) == {"net", *(n.observer for n in nets)}
    objects = novel_objects(SHAPES[:3], TEXTURES[:3])
    rows = scored(answered(objects, np.random.default_rng(0).normal(size=(len(objects), 8))))
    assert headline_column(rows, "triplets").condition == "experiment3/size=1.0/aligned"


class Headless:
    """A classifier whose features cannot be reached."""

    name, kind, fingerprint, labels = "headless", "model", "x", None
    preprocess = Preprocess()
    capabilities = frozenset({"logits"})

    def layers(self):
        return ["conv1", "pool", "fc"]

    def respond(self, batch, needs):
        return {"logits": np.zeros((len(batch), 3))}


def test_a_model_without_features_hears_which_layer_could_serve(tmp_path):
    reason = "needs features or choices; name a layer with \\?features=LAYER, for example conv1, pool, fc"
    with pytest.raises(UserError, match=reason):
        cuebench.evaluate(Headless(), "triplets", out=tmp_path, settings=SMALL, resamples=100)
    both = [Headless(), "ideal:shape"]
    with pytest.warns(RuntimeWarning, match="not measured: headless"):
        rows = cuebench.evaluate(both, "triplets", out=tmp_path, settings=SMALL, resamples=100, limit=99)
    (failed,) = [r for r in rows if r.observer == "headless"]
    assert failed.metric == "failed"
    assert "?features=LAYER" in failed.note


def test_the_command_line(tmp_path, capsys):
    base = ["run", "-p", "triplets", "-o", "ideal:shape", "--set", "triplets.experiments=3", "--resamples", "100"]
    assert cli.invoke([*base, "--set", "triplets.draw=all", "--out", str(tmp_path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert {r["value"] for r in shown["scores"]} == {1.0}
    settings = json.loads((tmp_path / "run.json").read_text())["arguments"]["settings"]
    assert settings == {"triplets.experiments": "3", "triplets.draw": "all"}
    assert cli.invoke([*base, "--set", "triplets.draw=most", "--out", str(tmp_path)]) != 0
    assert "draw='most'" in capsys.readouterr().err
