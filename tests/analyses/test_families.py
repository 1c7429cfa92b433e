"""Family files and the test of a family against its baseline."""

from __future__ import annotations

import pytest
from scipy import stats

from cuebench.analyses.families import Families, Family, family_tests, read_families
from cuebench.errors import UserError


def test_the_test_is_a_one_sample_t_test_against_the_baseline():
    values = {"base": 0.5, "a": 0.61, "b": 0.64, "c": 0.66, "x": 0.2, "y": 0.25, "z": 0.4, "u": 0.45, "v": 0.6}
    families = Families(
        "base",
        (Family("up", ("a", "b", "c"), "shape"), Family("down", ("x", "y", "z"), "shape"), Family("none", ("u", "v"))),
    )
    up, down, none = family_tests(values, families)
    assert up.p == pytest.approx(stats.ttest_1samp([0.61, 0.64, 0.66], 0.5).pvalue)
    assert (up.says, up.agrees, up.n, up.mean) == ("shape", True, 3, pytest.approx((0.61 + 0.64 + 0.66) / 3))
    assert (down.says, down.agrees) == ("neither", False)
    assert family_tests(values, families, alpha=0.2)[1].says == "texture"
    assert (none.says, none.agrees) == ("neither", True)


def test_families_that_cannot_be_tested():
    families = Families("base", (Family("one", ("a",)), Family("gone", ("x", "a", "b"), "shape")))
    one, gone = family_tests({"base": 0.5, "a": 0.6, "b": 0.7}, families)
    assert (one.says, one.note) == ("", "1 model: no test")
    assert gone.note == "without x"
    with pytest.raises(UserError, match="baseline 'base' has no value"):
        family_tests({}, families)


def test_reading_a_family_file(tmp_path):
    path = tmp_path / "f.json"
    path.write_text('{"baseline": "b", "families": {"f": {"models": ["m", "n"], "expected": "shape"}}}')
    assert read_families(path) == Families("b", (Family("f", ("m", "n"), "shape"),))
    with pytest.raises(UserError, match="does not exist"):
        read_families(tmp_path / "gone.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "family file"),
        ('{"families": {}}', "baseline"),
        ('{"baseline": "b", "families": {"f": {"models": [], "expected": "up"}}}', "2 problems"),
    ],
)
def test_bad_family_files(tmp_path, text, message):
    (tmp_path / "f.json").write_text(text)
    with pytest.raises(UserError, match=message):
        read_families(tmp_path / "f.json")
