"""The option ``classes``: a model that knows some classes is measured on these, by every protocol that asks for one."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cuebench
from cuebench.errors import UserError
from cuebench.labels import LabelSpace, label_map
from cuebench.observers.base import is_observer
from cuebench.protocols.classes import of_classes
from cuebench.registry import protocols
from cuebench.types import REMOVED

DATA = {
    "cue_conflict": ("silhouettes", ("cat", "dog")),
    "textured_silhouettes": ("silhouettes", ("cat", "dog", "car")),
    "pure_shape": ("pure_shapes", ("cat", "car")),
    "refined_bias": ("pure_cues", ("balloon", "camera", "tiger", "zebra")),
    "imagenet_accuracy": ("photographs", ("n02123045", "n02690373")),
    "feature_suppression": ("photographs", ("n02123045", "n02690373")),
    "corruption_robustness": ("photographs", ("n02123045", "n02690373")),
    "texture_association": ("textures_and_photographs", ("n02123045", "n02690373", "n04254680")),
    "cue_decomposition": ("decomposition", ("cat", "car", "clock")),
    "human_alignment": ("human_alignment", ("cat", "dog")),
}
"""Protocol → its small data root, and the classes that the model knows: some of those that are shown."""
ALWAYS_RIGHT = {"accuracy", "recognition", "shape_accuracy", "shape_bias", "quality_original", "relative_accuracy"}
"""Metrics that are 1 for a model that always answers with the class of the image or of its shape."""


class Knowing:
    """A model of a few classes that knows the class of an image, or of its shape; it looks at no pixels."""

    name, kind, fingerprint, preprocess = "few", "model", "always right", None
    capabilities = frozenset({"logits"})

    def __init__(self, classes):
        self.labels = LabelSpace("few", tuple(classes))

    def respond(self, batch, needs):
        names = [s.label or (s.shape if s.shape != REMOVED else "") or s.texture for s in batch.stimuli]
        places = [self.labels.find(name) for name in names]
        logits = np.zeros((len(places), len(self.labels)), np.float32)
        for row, place in enumerate(places):
            logits[row, row % len(self.labels) if place is None else place] = 9.0
        return {"logits": logits}


def test_the_model_keeps_the_contract_and_every_protocol_is_tried():
    assert is_observer(Knowing(["cat"]))
    for name in protocols:
        declared = protocols.get(name)
        has_classes = any(need in ("logits", "decisions", "masks") for needs in declared.needs for need in needs)
        if has_classes and name != "striped_objects":  # the example of a plug-in
            assert "classes" in declared.options or "classes" in declared.without, name
    assert {n for n in protocols if "classes" in protocols.get(n).options} == set(DATA)


SLOW = {"cue_decomposition"}  # its set has to be made first


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in DATA])
def test_a_model_of_some_classes(name, small_root, tmp_path):
    root, classes = small_root(DATA[name][0]), DATA[name][1]
    model = Knowing(classes)
    run = {"data_root": root, "resamples": 100, "workers": 0}
    with pytest.raises(UserError, match="cannot answer") as error:
        cuebench.evaluate([model], name, out=tmp_path / "whole", **run)
    assert f"--set {name}.classes={','.join(sorted(classes))}" in error.value.hint, "the hint names what it knows"
    scores = cuebench.evaluate([model], name, out=tmp_path / "some", settings={f"{name}.classes": classes}, **run)
    rows = [row for row in scores if row.observer == "few"]
    assert rows
    assert not scores.failures
    assert all(f"only the classes {', '.join(classes)}" in row.note for row in rows), "the result says what was shown"
    # Textures have no class, so that what follows from them is no right answer.
    right = [row.value for row in rows if row.metric in ALWAYS_RIGHT and not math.isnan(row.value)]
    if name not in ("human_alignment", "refined_bias"):
        assert right
    assert set(right) <= {1.0}
    again = cuebench.score(tmp_path / "some")
    assert repr(again.rows) == repr(scores.rows), "the run folder remembers the classes"


@pytest.mark.parametrize("name", ["triplets", "cue_decomposition_segmentation"])
def test_a_protocol_without_the_option_says_why_and_what_to_do(name, small_root, tmp_path):
    with pytest.raises(UserError, match="has no option 'classes'") as error:
        cuebench.evaluate("ideal:shape", name, out=tmp_path, settings={f"{name}.classes": "red,green"})
    assert ("leave the option out" if name == "triplets" else "--set classes=FILE") in error.value.hint


def test_pictures_with_masks_are_not_shown_in_part(small_root):
    declared = protocols.get("corruption_robustness")
    values = {"levels": "geirhos2018", "also": (), "keep_masks": 0, "classes": ("red",)}
    with pytest.raises(UserError, match="cannot be chosen") as error:
        declared.configured(values).read(small_root("segmentation"))
    assert "ignore" in error.value.hint


def test_textures_are_shown_to_models_of_any_classes(tmp_path):
    with pytest.raises(UserError, match="has a class that an observer must know") as error:
        cuebench.evaluate(
            Knowing(["a", "b"]), "texture_association", out=tmp_path, settings={"texture_association.classes": "a"}
        )
    assert "leave the option classes out" in error.value.hint


def test_other_reasons_why_a_set_is_partial_are_kept(small_root):
    from cuebench.protocols import pure_shape

    (small_root("pure_shapes") / "empty").mkdir(exist_ok=True)
    whole = pure_shape.read(small_root("pure_shapes"))
    some = of_classes(whole, ["cat"])
    assert whole.partial
    assert some.partial[:-1] == whole.partial
    assert label_map(some.targets).names == ("cat",)
