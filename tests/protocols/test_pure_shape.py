"""Silhouettes and edges: what is read, and what planted observers score."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import cuebench
from cuebench.errors import UserError
from cuebench.protocols.pure_shape import SETS, read

CLASSES = ("cat", "car", "clock")


def write(root, *folders, classes=CLASSES, count=4):
    for folder in folders:
        for name in classes:
            for i in range(1, count + 1):
                path = root / folder / name / f"{name}{i}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(np.full((8, 8, 3), i, np.uint8)).save(path)
    return root


@pytest.mark.parametrize("places", [("cue_conflict/silhouettes", "model_vs_human/stimuli/edge"),
                                    ("model_vs_human/stimuli/silhouette", "cue_conflict/edges")])  # fmt: skip
def test_both_sets_are_found_in_either_place(tmp_path, places):
    stimuli = read(write(tmp_path, *places))
    assert [sum(s.condition == name for s in stimuli) for name in SETS] == [12, 12]
    assert stimuli.partial == ("silhouettes: 12 of 160 stimuli", "edges: 12 of 160 stimuli")
    first = stimuli.stimuli[0]
    assert (first.id, first.label, first.texture, first.shape_source) == ("silhouettes/car1", "car", "-", "car1")
    assert (tmp_path / first.path).is_file()
    assert {s.shape_source for s in stimuli} == {f"{c}{i}" for c in CLASSES for i in range(1, 5)}


def test_a_made_set_is_no_part_of_the_published_one(tmp_path):
    write(tmp_path, "cue_conflict/silhouettes", "cue_conflict/edges")
    (tmp_path / "cue_conflict" / "made.json").write_text('{"maker": "toy_world", "count": 128}')
    stimuli = read(tmp_path)
    assert (stimuli.partial, stimuli.expected) == ((), 0)
    assert stimuli.notes == ("made by `cuebench make toy_world`, not the published images",)


def test_one_set_is_enough_and_none_is_an_error(tmp_path):
    with pytest.raises(UserError, match="neither silhouettes nor edge images"):
        read(tmp_path)
    assert "no edges" in read(write(tmp_path, "cue_conflict/silhouettes")).partial
    write(tmp_path, "cue_conflict/silhouettes", classes=("unicorn",))
    with pytest.raises(UserError, match="'unicorn' is no class"):
        read(tmp_path)


def test_planted_answers_come_back(tmp_path):
    """A recording with the names of the stimuli: all silhouettes right, of the edges only those of cats."""
    write(tmp_path, "cue_conflict/silhouettes", "cue_conflict/edges")
    rows = ["stimulus,decision"]
    rows += [f"silhouettes/{c}{i},{c}" for c in CLASSES for i in range(1, 5)]
    rows += [f"edges/{c}{i},cat" for c in CLASSES for i in range(1, 4)]
    (tmp_path / "answers.csv").write_text("\n".join(rows))
    observers = [f"recorded:{tmp_path / 'answers.csv'}?name=planted", "ideal:shape", "ideal:texture"]
    scores = cuebench.evaluate(observers, ["pure_shape"], data_root=tmp_path, out=tmp_path / "run", resamples=100)
    assert scores.value("planted", "recognition", "silhouettes/16-way") == 1
    assert scores.value("planted", "recognition", "edges/16-way") == pytest.approx(1 / 3)
    assert scores.value("planted", "recognition", "edges/16-way/class=cat") == 1
    assert scores.value("planted", "recognition", "edges/16-way/class=car") == 0
    edges = next(s for s in scores if (s.observer, s.condition) == ("planted", "edges/16-way"))
    assert (edges.n, edges.n_excluded) == (9, 3)
    assert "3 unanswered of 12" in edges.note
    kinds = {s.ci_kind for s in scores if (s.observer, s.condition) == ("planted", "edges/16-way")}
    assert kinds == {"images", "classes"}
    assert scores.value("ideal:shape", "recognition", "silhouettes/16-way") == 1
    assert scores.value("ideal:texture", "recognition", "silhouettes/16-way") < 0.5


def test_real_silhouettes_and_edges(shared):
    stimuli = read(shared)
    assert (len(stimuli), stimuli.partial) == (320, ())
