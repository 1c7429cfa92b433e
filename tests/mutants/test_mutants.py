"""The tests notice damaged formulas: three damages drawn by a seed; ``make mutants`` tries all."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from damages import DAMAGES, EXPLAINED

from mutants import REPOSITORY, selection, try_damages


def test_every_damage_can_be_done():
    for damage in DAMAGES:
        text = (REPOSITORY / "src" / "cuebench" / damage.file).read_text("utf-8")
        assert text.count(damage.old) == 1, f"{damage.file}: {damage.old!r}"
        assert damage.old != damage.new
        for test in damage.tests:
            assert test.startswith("calibration ") or (REPOSITORY / test).is_file(), test
    assert len(DAMAGES) >= 40
    assert set(EXPLAINED) <= {d.what for d in DAMAGES}


def test_names_of_protocols_select_their_studies_only():
    assert selection(["calibration triplets", "a.py"]) == [
        ["a.py"],
        ["tests/calibration/test_designs.py", "-k", "triplets] or triplets-"],
    ]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_three_damages_are_caught():
    chosen = random.Random(0).sample([d for d in DAMAGES if d.what not in EXPLAINED], 3)
    caught = try_damages(chosen, sound=False)
    assert all(caught.values()), [f"{d.file}: {d.what}" for d, found in caught.items() if not found]
