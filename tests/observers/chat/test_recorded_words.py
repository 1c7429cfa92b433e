"""Published files of answers in words: the counts of Gavrikov et al. 2025 from the raw responses."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import cuebench
from cuebench.errors import UserError
from cuebench.labels import label_map
from cuebench.observers.base import LoadOptions
from cuebench.observers.load import load
from cuebench.protocols.cautions import cautions

CLASSES = label_map("in16").names
GOLDEN = {
    "llava_1_5_7b": (595, 374, 0),
    "openai_vision": (401, 436, 126),
    "instructblip_flan_t5_xl": (651, 304, 3),
    "gemini_pro_vision": (633, 355, 6),
}
"""Shape, texture, unreadable on the 1,200 conflict images."""


def of_targets(spec: str) -> list:
    return [o.among(CLASSES) for o in load(spec, LoadOptions(targets=CLASSES))]


def counts(observer) -> tuple[int, int, int]:
    cues = [tuple(part.rstrip("0123456789") for part in name.split("-")) for name in observer.names]
    pairs = [(s, t, d) for (s, t), d in zip(cues, observer.columns["decisions"]) if s != t]
    return (
        sum(d == s for s, _, d in pairs),
        sum(d == t for _, t, d in pairs),
        sum(d == "undecided" for *_, d in pairs),
    )


def test_the_published_counts_come_from_the_raw_responses(shared: Path) -> None:
    observers = of_targets(f"recorded:{shared / 'vlm' / 'vqa'}")
    assert {o.name.split("_", 2)[2]: counts(o) for o in observers} == GOLDEN
    for observer in observers:
        with open(shared / "vlm" / "vqa" / f"{observer.name}.csv", newline="") as file:
            labels = [row["pred_label"] for row in csv.DictReader(file)]
        expected = ["undecided" if label in ("", "None") else label for label in labels]
        assert list(observer.columns["decisions"]) == expected


def test_captions_agree_with_the_authors_labels(shared: Path) -> None:
    agreement = {}
    for observer in of_targets(f"recorded:{shared / 'vlm' / 'captioning'}?prompt=caption"):
        with open(shared / "vlm" / "captioning" / f"{observer.name}.csv", newline="") as file:
            labels = np.array([row["pred_label"] for row in csv.DictReader(file)])
        read = observer.columns["decisions"] != "undecided"
        agreement[observer.name.split("_", 2)[2]] = (
            int(read.sum()),
            int((observer.columns["decisions"] == labels)[read].sum()),
        )
    # By names, fewer captions are decided than by the authors' text embedding, which decides every one.
    assert {name: (n > 500, same / n > 0.96) for name, (n, same) in agreement.items()} == {
        "openai_vision": (True, True),
        "llava_1_5_7b": (True, True),
    }


def test_classifiers_and_clips_are_read_as_they_were(shared: Path) -> None:
    resnet, vit = of_targets(f"recorded:{shared / 'vlm' / 'inet_classifier'}")
    assert resnet.wording is None
    assert counts(resnet)[0] / sum(counts(resnet)[:2]) < counts(vit)[0] / sum(counts(vit)[:2])
    clips = of_targets(f"recorded:{shared / 'vlm' / 'clip'}")
    assert len(clips) == 6
    assert all(sum(counts(o)[:2]) > 600 and not counts(o)[2] for o in clips)


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    file = tmp_path / "model.csv"
    rows = ["cat1-dog1,A", "dog1-cat1,B. dog", 'car1-cat1,"I\'m sorry, I cannot help."', "clock1-dog2,The answer is D"]
    file.write_text("\n".join(["image,response,pred_label", *(f"{row},cat" for row in rows)]) + "\n")
    return file


def test_letters_are_those_of_the_protocols_classes(answers: Path) -> None:
    (observer,) = load(f"recorded:{answers}", LoadOptions(targets=("zebra", "cat", "dog", "car", "clock")))
    read = observer.among(("cat", "dog", "car", "clock"))
    assert list(read.columns["decisions"]) == ["cat", "dog", "undecided", "clock"]
    assert list(read.columns["read_by"]) == ["letter", "letter", "refusal", "letter"]
    assert read.columns["text"][2] == "I'm sorry, I cannot help."
    assert read.notes == ()
    assert observer.among(("dog", "cat", "car", "clock")).columns["decisions"][0] == "dog"
    own = load(f"recorded:{answers}?options=dog,cat,car,clock", LoadOptions(targets=("cat", "dog", "car", "clock")))
    assert own[0].columns["decisions"][0] == "dog"
    assert own[0].fingerprint != observer.fingerprint


def test_undecided_answers_are_counted_in_the_scores(answers: Path, data_root: Path, tmp_path: Path) -> None:
    scores = cuebench.evaluate(
        f"recorded:{answers}", "cue_conflict", data_root=data_root, out=tmp_path / "run", resamples=100
    )
    row = next(r for r in scores.rows if r.metric == "shape_bias" and r.condition == "4-way")
    assert (row.value, row.n, row.n_excluded) == (1.0, 3, 1)
    assert "1 no answer of 4" in row.note
    assert "answers in words: 3 by letter; 1 of 4 undecided (1 refused)" in row.note
    headline = [r for r in scores.rows if r.condition == "4-way"]
    assert "model: 1 of 4 undecided (1 refused)" in cautions(headline, "shape_bias")  # said under the printed table


def test_spelling_mistakes_stay_undecided(tmp_path: Path) -> None:
    file = tmp_path / "p.csv"
    file.write_text("image,response\ncat1-dog1,cat\ndog1-cat1,dogg\n")
    (observer,) = load(f"recorded:{file}", LoadOptions(targets=("cat", "dog")))
    assert observer.wording is None
    assert "'dogg'" in observer.notes[0]
    file.write_text("image,response\ncat1-dog1,left\ndog1-cat1,right\n")
    with pytest.raises(UserError, match="no response is a class"):
        load(f"recorded:{file}", LoadOptions(targets=("cat", "dog")))


def test_keys_that_people_pressed_are_no_letters(tmp_path: Path) -> None:
    """A response time, or a column of participants, says that people answered: `c` may be the key for cats."""
    file, targets = tmp_path / "keys.csv", ("ball", "cat", "dog")
    for header, end in [("image,response,rt", ",0.7"), ("image,response,participant", ",p1")]:
        file.write_text(f"{header}\ncat1-dog1,c{end}\ndog1-cat1,b{end}\n")
        with pytest.raises(UserError, match="no response is a class"):
            load(f"recorded:{file}", LoadOptions(targets=targets))
        said = load(f"recorded:{file}?options=ball,cat,dog", LoadOptions(targets=targets))
        assert list(said[0].columns["decisions"]) == ["dog", "cat"]
    file.write_text("image,response\ncat1-dog1,c\ndog1-cat1,b\n")
    (model,) = load(f"recorded:{file}", LoadOptions(targets=targets))
    assert list(model.columns["decisions"]) == ["dog", "cat"]


def test_bare_numbers_are_no_options(tmp_path: Path) -> None:
    """They may be indices of classes counted from 0; numbered options are counted from 1."""
    file, targets = tmp_path / "numbers.csv", tuple(f"thing {i}" for i in range(30))
    for numbers in (("0", "4"), ("3", "4"), ("3.0", "4.0")):
        file.write_text("image,response\n" + "".join(f"{i},{n}\n" for i, n in enumerate(numbers)))
        with pytest.raises(UserError, match="no response is a class"):
            load(f"recorded:{file}", LoadOptions(targets=targets))
    (said,) = load(f"recorded:{file}?prompt=vqa", LoadOptions(targets=targets))
    assert list(said.columns["decisions"]) == ["undecided"] * 2
    file.write_text("image,response\na,The answer is 4.\nb,5\n")
    (words,) = load(f"recorded:{file}", LoadOptions(targets=targets))
    assert list(words.columns["decisions"]) == ["thing 3", "thing 4"]


def test_lists_that_ran_on_are_counted_apart(shared: Path) -> None:
    observers = of_targets(f"recorded:{shared / 'vlm' / 'vqa'}")
    lists = {o.name.split("_", 2)[2]: int((o.columns["read_by"] == "first of a list").sum()) for o in observers}
    assert lists == {"llava_1_5_7b": 0, "openai_vision": 0, "instructblip_flan_t5_xl": 21, "gemini_pro_vision": 0}
