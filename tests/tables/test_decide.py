"""Answers become trials: the five words, by position and never by name, from logits, decisions and words."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

import cuebench as cb
from cuebench.errors import UserError
from cuebench.labels import LabelSpace, label_map, label_space
from cuebench.protocols.cue_conflict import QUANTITIES
from cuebench.responses.table import Responses
from cuebench.tables.decide import RANK, condense, decide
from cuebench.tables.engine import Result, measure, sums
from cuebench.tables.trials import BOTH, NO_ANSWER, OTHER, OUTCOMES, SHAPE, TEXTURE, Words
from cuebench.types import Stimulus, StimulusSet

PAIRS = (("cat", "dog"), ("dog", "cat"), ("cat", "cat"), ("car", "dog"), ("clock", "cat"), ("cat", "cat"))
STIMULI = StimulusSet(
    "small",
    tuple(
        Stimulus(f"{s}{i}-{t}{i}", shape=s, texture=t, shape_source=f"{s}{i}", texture_source=f"{t}{i}")
        for i, (s, t) in enumerate(PAIRS)
    ),
    targets="in16",
)


def trials_of(columns, labels=None, kind="model", stimuli=STIMULI, stimulus=None, needs=()):
    places = np.arange(len(stimuli)) if stimulus is None else np.asarray(stimulus, np.intp)
    responses = Responses("net", kind, stimuli, places, columns, labels)
    return decide(responses.condensed(condense(stimuli, labels, needs)), needs)


def test_each_word_has_one_meaning() -> None:
    said = np.array(["cat", "cat", "cat", "oven", "na", "dog"])
    trials = trials_of({"decisions": said})
    assert trials.outcome.texts().tolist() == [SHAPE, TEXTURE, BOTH, OTHER, NO_ANSWER, OTHER]
    assert trials.correct.tolist() == [True, False, True, False, False, False]
    assert trials.space.words == ("16-way",)
    assert trials.absent.keys() == {"1000-way"}
    assert trials_of({"decisions": np.array(["penguin"] * 6)}).outcome.texts().tolist() == [NO_ANSWER] * 6


def test_logits_are_read_in_both_sets_of_classes() -> None:
    space = label_space("imagenet1k")
    members = label_map("in16").resolve(space).members
    logits = np.zeros((6, 1000), np.float32)
    for row, name in enumerate(("cat", "cat", "cat", "oven", "clock", "dog")):
        logits[row, members[label_map("in16").names.index(name)][0]] = 9
    logits[4, space.find("tench")] = 20  # first of all, and none of the 16: another class, but no missing answer
    trials = trials_of({"logits": logits}, space)
    assert trials.space.words == ("16-way", "1000-way")
    few, many = (trials.only(trials.space.codes == code).outcome.texts().tolist() for code in (0, 1))
    assert few == [SHAPE, TEXTURE, BOTH, OTHER, SHAPE, OTHER]
    assert many == [SHAPE, TEXTURE, BOTH, OTHER, OTHER, OTHER]
    assert trials.among_targets.tolist() == [True] * 6 + [False] * 6


def test_a_class_is_known_by_its_place_not_by_its_name() -> None:
    """ImageNet has two cranes: the truth is the one that the set means, and the answer the other one."""
    space = LabelSpace("birds", ("crane", "crane", "cat"), ("bird", "machine", "cat"))
    photographs = StimulusSet("photographs", (Stimulus("a", label="machine"), Stimulus("b", label="bird")))
    logits = np.array([[3, 2, 1], [3, 2, 1]], np.float32)
    trials = trials_of({"logits": logits}, space, stimuli=photographs, stimulus=[0, 1], needs=(RANK,))
    assert trials.correct.tolist() == [False, True]
    assert trials.extra[RANK].tolist() == [2, 1]


@pytest.mark.parametrize(("columns", "problem"), [
    ({"logits": np.full((6, 1000), np.nan, np.float32)}, "NaN"),
    ({"logits": np.zeros((6, 10), np.float32)}, "10 logits for the 1000 classes"),
])  # fmt: skip
def test_bad_answers_are_an_error(columns, problem) -> None:
    with pytest.raises(UserError, match=problem):
        trials_of(columns, label_space("imagenet1k"))


def test_bad_stimuli_are_an_error_and_no_answers_are_no_trials() -> None:
    unknown = StimulusSet("bad", (Stimulus("a", shape="unicorn", texture="cat"),), targets="in16")
    with pytest.raises(UserError, match="no target"):
        trials_of({"decisions": np.array(["cat"])}, stimuli=unknown)
    assert len(trials_of({"decisions": np.array([], np.str_)}, stimulus=[])) == 0


def test_columns_of_words_compare_by_their_words() -> None:
    a = Words(np.array([0, 1, 0]), ("cat", "dog"))
    assert (a == "dog").tolist() == [False, True, False]
    assert (a != Words(np.array([1, 1, 1]), ("dog", "cat"))).tolist() == [False, True, False]
    assert (a == "bear").tolist() == [False] * 3
    assert Words.of(["b", "a", "b"]).texts().tolist() == ["b", "a", "b"]


def test_the_engine_counts_what_a_loop_counts() -> None:
    """Numbers, denominators and reasons of random answers of three people, some of them missing."""
    rng = np.random.default_rng(0)
    names = label_map("in16").names
    stimuli = StimulusSet("random", tuple(
        Stimulus(f"{i}", shape=names[i % 5], texture=names[(i // 5) % 5], shape_source=f"s{i % 20}",
                 texture_source=f"t{i % 15}") for i in range(100)), targets="in16")  # fmt: skip
    stimulus = np.sort(rng.choice(300, 270, replace=False)) % 100
    subject = np.array([f"p{k}" for k in rng.integers(0, 3, 270)])
    said = np.array([rng.choice([stimuli[int(i)].shape, stimuli[int(i)].texture, "oven", "na"]) for i in stimulus])
    columns = {"decisions": said, "subject": subject}
    result = Result()
    trials = trials_of(columns, kind="people", stimuli=stimuli, stimulus=stimulus)
    measure(trials, QUANTITIES, result)
    counts: Counter[str] = Counter()
    for i, word in zip(stimulus, said):
        s, t = stimuli[int(i)].shape, stimuli[int(i)].texture
        counts["aligned" if s == t else "no answer" if word == "na" else "shape" if word == s else "texture"
               if word == t else "other"] += 1  # fmt: skip
    (bias,) = (m.estimate for m in result.measurements if (m.metric, m.condition) == ("shape_bias", "16-way"))
    assert bias.value == counts["shape"] / (counts["shape"] + counts["texture"])
    assert dict(bias.excluded) == {"aligned": counts["aligned"], "other": counts["other"],
                                   "no answer": counts["no answer"], "unreadable": 0, "unanswered": 30}  # fmt: skip
    assert {i.kind for i in bias.intervals} >= {"two_way", "three_way"}
    headline = sums(trials, QUANTITIES[0], "16-way")
    assert headline.value == bias.value
    assert headline.sources.keys() == {"shape_sources", "texture_sources", "subjects"}
    assert sums(trials, QUANTITIES[0], "12-way") is None


def test_a_tiny_recording_has_the_same_counts_everywhere(tmp_path) -> None:
    """Eight answers: the note of the score, the trials and the report say the same of them."""
    said = {"cat1-dog1": "cat", "dog1-cat1": "cat", "cat2-car1": "oven", "car2-cat2": "na", "clock1-dog2": "dog",
            "dog2-clock1": "zebra", "cat3-cat4": "cat", "dog3-dog4": "oven"}  # fmt: skip
    rows = "\n".join(f"{image},{word}" for image, word in said.items())
    (tmp_path / "tiny.csv").write_text(f"image,response\n{rows}\n")
    scores = cb.evaluate(f"recorded:{tmp_path / 'tiny.csv'}", "cue_conflict", out=tmp_path / "run", data_root=tmp_path)
    note = next(s.note for s in scores if s.metric == "shape_bias" and s.condition == "16-way")
    assert note.startswith("2 aligned, 1 other, 2 no answer of 8")
    (count,) = scores.trials("cue_conflict").count()
    assert count["outcomes"] == {SHAPE: 1, TEXTURE: 2, BOTH: 1, OTHER: 2, NO_ANSWER: 2}
    assert set(count["outcomes"]) <= set(OUTCOMES)
    assert json.loads(json.dumps(count["outcomes"])) == count["outcomes"]
