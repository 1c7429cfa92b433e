"""The tests notice damaged formulas: three damages drawn by a seed; ``make mutants`` tries all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from damages import DAMAGES, EXPLAINED

from mutants import REPOSITORY, selection


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
    # In a process of its own: this one has imported the undamaged package.
    script = Path(__file__).with_name("mutants.py")
    done = subprocess.run([sys.executable, str(script), "--sample", "3"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 of 3 damages caught" in done.stdout
