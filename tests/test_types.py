"""The nouns: what a stored answer is keyed by."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cuebench.types import Stimulus, StimulusSet

PLAIN = Stimulus("a", "a.png", "0" * 64, label="cat", shape="cat", texture="dog", shape_source="cat1", condition="c")


def test_the_fingerprint_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stimuli = StimulusSet("s", (PLAIN,))
    first = stimuli.fingerprint
    monkeypatch.setattr("cuebench.types.hashlib", None)
    assert stimuli.fingerprint == first


def test_the_fingerprint_is_that_of_earlier_versions() -> None:
    """It names the manifests of finished runs."""
    masked = replace(PLAIN, id="b", mask="m.png", mask_sha256="f" * 64)
    assert StimulusSet("s", (PLAIN,)).fingerprint.startswith("8b2a1418b7bd9f08")
    assert StimulusSet("s", (PLAIN, masked)).fingerprint.startswith("6f40920e1c5e6ed0")


def test_the_key_is_of_pixels_and_mask_alone() -> None:
    assert replace(PLAIN, label="dog", id="b").key == PLAIN.key == PLAIN.without_truth.key
    assert replace(PLAIN, mask="m.png").key != PLAIN.key
    assert replace(PLAIN, mask="m.png", mask_sha256="1").key == replace(PLAIN, mask="n.png", mask_sha256="1").key


@pytest.mark.parametrize("field", ["id", "path", "sha256", "label", "shape", "texture", "shape_source", "condition"])
def test_everything_is_everything(field: str) -> None:
    assert replace(PLAIN, **{field: "x"}).everything != PLAIN.everything
