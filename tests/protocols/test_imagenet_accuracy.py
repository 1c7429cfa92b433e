"""ImageNet accuracy: planted ranks come back, and the protocol writes what the public function returns."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from scipy import stats

import cuebench.metrics
from cuebench.errors import UserError
from cuebench.labels import LabelSpace, label_space
from cuebench.protocols.base import ScoreOptions, score_rows
from cuebench.protocols.headline import headline_column
from cuebench.protocols.imagenet_accuracy import PROTOCOL
from cuebench.responses.table import Responses
from cuebench.types import Stimulus, StimulusSet

SPACE = LabelSpace("twelve", tuple(f"class {i}" for i in range(12)))
STIMULI = StimulusSet("imagenet_val", tuple(Stimulus(str(i), label=f"class {i % 12}") for i in range(240)))


def answered(logits, stimuli=STIMULI, rows=None, labels=SPACE, **more):
    rows = np.arange(len(stimuli)) if rows is None else rows
    return Responses("net", "model", stimuli, rows, {"logits": logits}, labels, **more)


def scored(responses):
    return {s.condition: s for s in score_rows(PROTOCOL, PROTOCOL.score([responses], ScoreOptions(resamples=2000)))}


def planted():
    """Logits in which the right class has rank 1 for a third of the images, 4 for a third and 9 for the others."""
    logits = np.tile(-np.arange(12.0), (240, 1))
    for i in range(240):
        order = [c for c in range(12) if c != i % 12]
        order.insert((0, 3, 8)[i % 3], i % 12)
        logits[i, order] = -np.arange(12.0)
    return logits


def test_planted_ranks_come_back():
    rows = scored(answered(planted()))
    assert list(rows) == ["top1", "top5"]
    assert (rows["top1"].value, rows["top5"].value) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert {(s.metric, s.n, s.n_excluded, s.ci_kind) for s in rows.values()} == {("accuracy", 240, 0, "images")}
    expected = stats.binomtest(80, 240).proportion_ci(method="wilson")
    assert (rows["top1"].ci_low, rows["top1"].ci_high) == pytest.approx((expected.low, expected.high), abs=0.02)


def test_the_public_function_gives_what_the_protocol_writes():
    logits = np.random.default_rng(0).integers(0, 6, size=(240, 12)).astype(float)  # with ties
    target = np.array([SPACE.find(s.label) for s in STIMULI])
    rows = scored(answered(logits))
    for k in (1, 5):
        assert rows[f"top{k}"].value == cuebench.metrics.accuracy(logits, target, k=k)
    assert {s.metric for s in rows.values()} == set(PROTOCOL.metrics)
    assert headline_column(rows.values(), "imagenet_accuracy").rows == {"net": rows["top1"]}


def test_an_index_in_labels_csv_is_that_of_imagenet(tmp_path):
    place, space = tmp_path / "imagenet_val", label_space("imagenet1k")
    place.mkdir()
    rows = {f"{i}.png": i for i in (0, 134, 517, 999)}  # 134 and 517 are both called crane
    for name in rows:
        Image.new("RGB", (4, 4)).save(place / name)
    (place / "labels.csv").write_text("file,index\n" + "".join(f"{name},{i}\n" for name, i in rows.items()))
    stimuli = PROTOCOL.read(tmp_path)
    assert PROTOCOL.check(space, stimuli) == []
    assert {s.path: space.find(s.label) for s in stimuli} == rows


def test_unreadable_images_are_excluded_and_counted():
    rows = np.arange(5, 240)
    top1 = scored(answered(planted()[5:], rows=rows, excluded={str(i): "truncated" for i in range(5)}))["top1"]
    assert (top1.n, top1.n_excluded) == (235, 5)
    assert top1.note == "5 unreadable of 240"


def test_labels_that_the_observer_does_not_know():
    assert PROTOCOL.check(SPACE, STIMULI) == []
    problems = PROTOCOL.check(LabelSpace("few", SPACE.names[:10]), STIMULI)
    assert problems == ["2 labels are not in it (class 10, class 11 …; 40 stimuli)"]
    with pytest.raises(UserError, match="net has no label space"):
        scored(answered(planted(), labels=None))
