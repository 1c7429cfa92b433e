"""Object masks of images that come without: functions of the user, and the guess for contact sheets."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from cuebench.errors import UserError
from cuebench.stimuli.masks import grabcut, guess_mask, segmenter
from cuebench.stimuli.masks.base import BadSource

Y, X = np.mgrid[:100, :80]
DISC = (Y - 50) ** 2 + (X - 40) ** 2 < 25**2
OBJECT = np.where(DISC[..., None], (220, 40, 40), (30, 60, 90)).astype(np.uint8)


def overlap(first: np.ndarray, second: np.ndarray) -> float:
    return (first & second).sum() / (first | second).sum()


def test_a_segmenter_of_the_users_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def segment(image, label):\n    return image[..., 0] > len(label)\n")
    mask = segmenter(f"python:{tmp_path / 'mine.py'}:segment")(OBJECT, "x" * 100)
    assert np.array_equal(mask, DISC)
    for name in (f"python:{tmp_path / 'mine.py'}:nothing", f"python:{tmp_path / 'nowhere.py'}:segment"):
        with pytest.raises(UserError, match=r"nothing|nowhere"):
            segmenter(name)


def test_both_starts_of_grabcut_find_the_object() -> None:
    assert overlap(grabcut(OBJECT), DISC) > 0.9
    assert overlap(guess_mask(OBJECT), DISC) > 0.9


def test_without_an_object_grabcut_refuses_and_the_guess_is_a_disc() -> None:
    plain = np.full((60, 60, 3), 120, np.uint8)
    with pytest.raises(BadSource):
        grabcut(plain)
    guess = guess_mask(plain)
    assert guess[30, 30]
    assert not guess[0, 0]


def test_without_opencv_the_guess_is_a_disc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    guess = guess_mask(OBJECT)
    assert 0.3 < guess.mean() < 0.6
    assert guess[50, 40]
    with pytest.raises(UserError, match="needs the extra 'image'"):
        grabcut(OBJECT)
