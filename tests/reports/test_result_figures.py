"""Figures of results: the numbers that they show are those of the scores, of the published data, or planted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cuebench.errors import UserError
from cuebench.registry import figures
from cuebench.reports import vega
from cuebench.runs.evaluate import evaluate
from cuebench.runs.results import read_scores, write_scores
from cuebench.stimuli.makers.base import make
from cuebench.types import Score

IDEAL = ("ideal:shape", "ideal:texture", "ideal:mixture?shape=0.6")


@pytest.fixture(scope="module")
def conflicts(tmp_path_factory):
    """Ideal observers on images that are made here."""
    root = tmp_path_factory.mktemp("conflicts")
    make("cue_conflict", root, count=24)
    evaluate(IDEAL, "cue_conflict", data_root=root, out=root / "run", resamples=100, workers=0)
    return root / "run"


@pytest.fixture(scope="module")
def recorded(shared: Path, tmp_path_factory):
    """The recorded people and networks of Geirhos et al. 2019."""
    out = tmp_path_factory.mktemp("recorded") / "run"
    answers = f"recorded:{shared / 'cue_conflict' / 'responses'}"
    evaluate(answers, "cue_conflict", data_root=shared, out=out, resamples=100, workers=0)
    return out


def scores_of(folder, observers, protocols):
    """Write scores: observer → the value in each protocol."""
    rows = [
        Score(protocol, 1, observer, condition, metric, value, value - half, value + half, "images", 100)
        for observer, values in observers.items()
        for (protocol, condition, metric), (value, half) in zip(protocols, values)
    ]
    write_scores(folder, rows, {})
    return folder


def by_name(picture, **chosen):
    return {r["name"]: r for r in picture.data if all(r.get(k) == v for k, v in chosen.items())}


def test_class_by_class_shape_bias_is_that_of_the_paper(recorded):
    picture = figures.get("shape_bias")(recorded)
    overall = by_name(picture, **{"class": "all classes"})
    values = {name: round(r["value"], 4) for name, r in overall.items()}
    assert values == {"people": 0.9587, "resnet50": 0.2207, "resnet50-train-60-epochs": 0.8061, "squeezenet1-1": 0.1822,
                      "vgg16": 0.0921}  # fmt: skip
    assert len({r["class"] for r in picture.data}) == 16 + 1
    assert 0.6 < overall["resnet50"]["decided"] < 0.7  # Geirhos et al. 2019: about two thirds
    each = figures.get("shape_bias")(recorded, people="each")
    assert sum(r["class"] == "all classes" for r in each.data) == 4 + 1 + 10


def test_pairwise_agreement_is_what_the_scores_average(recorded):
    picture = figures.get("agreement_matrix")(recorded)
    assert {r["n"] for r in picture.data} == {1200}
    assert len(picture.data) == 14 * 13 / 2
    kappa = {frozenset((r["first"], r["second"])): r["error_consistency"] for r in picture.data}
    people = [f"subject-{k:02}" for k in range(1, 11)]
    for row in read_scores(recorded):
        if (
            row.metric == "error_consistency"
            and row.condition == "16-way"
            and row.observer in ("resnet50", "subject-03")
        ):
            pairs = [kappa[frozenset((row.observer, p))] for p in people if p != row.observer]
            assert row.value == pytest.approx(np.mean(pairs))


def test_planted_biases_are_seen(conflicts):
    picture = figures.get("shape_bias")(conflicts)
    overall = by_name(picture, **{"class": "all classes"})
    assert (overall["shape"]["value"], overall["texture"]["value"]) == (1, 0)
    assert vega.drawn(picture.unfitted(480, 504))["concat_0"]["symbol"] == len(picture.data)
    confusion = figures.get("confusion")(conflicts, observer="ideal:texture")
    diagonal = {(r["cue"], r["class"]): r["share"] for r in confusion.data if r["class"] == r["answer"]}
    assert {share for (cue, _), share in diagonal.items() if cue == "texture"} == {1}
    assert not [key for key in diagonal if key[0] == "shape"]


def test_a_figure_says_what_its_numbers_rest_on(conflicts):
    picture = figures.get("shape_bias")(conflicts)
    assert picture.footnote.startswith("cue_conflict, version 3; n = ")
    assert "95 % intervals over " in picture.footnote
    svg = picture.svg("column")
    for word in ("version", "intervals"):
        assert word in svg.partition("</desc>")[2]
    assert picture.csv().splitlines()[0].endswith(",footnote")
    # Counts of answers are no scores: the headline says what they rest on, without its intervals.
    confusion = figures.get("confusion")(conflicts, observer="ideal:texture")
    assert confusion.footnote.endswith(" (shape_bias).")


def test_a_figure_of_a_part_of_the_stimuli_says_so(tmp_path):
    note = "partial set: 60 of 1,280 stimuli"
    row = Score("cue_conflict", 3, "net", "16-way", "shape_bias", 0.5, 0.4, 0.6, "two_way", 60, 0, note)
    write_scores(tmp_path, [row], {})
    picture = figures.get("intervals")(tmp_path)
    assert picture.footnote == f"cue_conflict, version 3; n = 60; 95 % intervals over two way; {note}."
    assert note in picture.svg()
    assert note in picture.csv()


def test_decisions_of_one_image_by_everybody(conflicts):
    picture = figures.get("decisions")(conflicts)
    outcomes = {r["name"]: r["outcome"] for r in picture.data}
    assert (outcomes["shape"], outcomes["texture"]) == ("shape", "texture")
    drawn = vega.drawn(picture.unfitted(480, 504))
    assert sum(marks["image"] for marks in drawn.values()) == 1  # its file is there
    stimulus = picture.data[0]["stimulus"]
    assert figures.get("decisions")(conflicts, image=stimulus).data == picture.data
    with pytest.raises(UserError, match="image of this run 'dragon'"):
        figures.get("decisions")(conflicts, image="dragon")


def test_observers_that_cannot_be_told_apart_share_a_bar(conflicts, tmp_path):
    paired = by_name(figures.get("intervals")(conflicts))
    assert not set(paired["shape"]["ties"]) & set(paired["texture"]["ties"])
    assert "same stimuli" in figures.get("intervals")(conflicts).subtitle
    headline = (("cue_conflict", "16-way", "shape_bias"),)
    values = {"a": [(0.9, 0.05)], "b": [(0.5, 0.1)], "c": [(0.45, 0.1)]}
    by_intervals = figures.get("intervals")(scores_of(tmp_path, values, headline))
    assert [(r["name"], r["ties"]) for r in by_intervals.data] == [("a", "a"), ("b", "b"), ("c", "b")]
    assert "overlapping intervals" in by_intervals.subtitle


def test_the_plane_has_the_published_models_behind_it(tmp_path):
    protocols = (("refined_bias", "faithful", "shape_sensitivity"), ("refined_bias", "faithful", "texture_sensitivity"))
    run = scores_of(tmp_path, {"net": [(0.6, 0.05), (0.4, 0.05)]}, protocols)
    picture = figures.get("sensitivity_plane")(run)
    assert sum(r["source"] == "published" for r in picture.data) == 51
    (own,) = (r for r in picture.data if r["source"] == "run")
    assert (own["shape"], own["texture"]) == (0.6, 0.4)
    assert vega.drawn(picture.unfitted(480, 504))[""]["symbol"] == 52
    with pytest.raises(UserError, match="does not measure shape and texture apart"):
        figures.get("sensitivity_plane")(run, protocol="triplets")


def test_a_correlation_is_given_for_four_models_and_more(tmp_path):
    protocols = (("imagenet_accuracy", "top1", "accuracy"), ("cue_conflict", "16-way", "shape_bias"))
    values = {f"net{k}": [(0.5 + k / 20, 0.01), (0.2 + k / 10, 0.05)] for k in range(6)}
    picture = figures.get("accuracy_vs_bias")(scores_of(tmp_path / "six", values, protocols))
    assert "Rank correlation over 6 models: +1.00 [+0.77, +1.00], p = 0.0028" in picture.subtitle
    few = figures.get("accuracy_vs_bias")(scores_of(tmp_path / "two", dict(list(values.items())[:2]), protocols))
    assert "No correlation: it needs 4 models, here are 2" in few.subtitle
    with pytest.raises(UserError, match=r"no observer has the headline of imagenet_accuracy(.|\n)*cuebench run -p"):
        figures.get("accuracy_vs_bias")(scores_of(tmp_path / "one", {"a": [(0.5, 0.1)]}, protocols[1:]))


def test_the_profile_has_a_strip_for_each_protocol_and_people_where_they_are_known(tmp_path):
    protocols = (("imagenet_accuracy", "top1", "accuracy"), ("cue_conflict", "16-way", "shape_bias"))
    run = scores_of(tmp_path, {"a": [(0.5, 0.1), (0.2, 0.1)], "b": [(0.6, 0.1), (0.3, 0.1)]}, protocols)
    picture = figures.get("profile")(run)
    drawn = vega.drawn(picture.unfitted(480, 504))
    assert [marks["symbol"] for marks in drawn.values()] == [2, 3]  # the published value of people in cue conflict
    only = figures.get("profile")(run, protocols=["imagenet_accuracy"])
    assert {r["protocol"] for r in only.data} == {"imagenet_accuracy"}


def test_the_profile_knows_every_direction_of_a_headline():
    from cuebench.reports.comparison import LARGER
    from cuebench.reports.figures import profile

    assert set(profile._LARGER) == set(LARGER)
