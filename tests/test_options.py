"""The one parser of options: every type, its limits, and what is said of a mistake."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from cuebench.errors import UserError
from cuebench.options import Option, check_types, describe, parse, query_options, split

DECLARED = {
    "flag": Option(True, "a switch"),
    "number": Option(3, "a count", low=1, high=9, words=("all",)),
    "weight": Option(0.5, "a weight", low=0, high=1),
    "name": Option("", "any text"),
    "colour": Option("white", "a choice", choices=("white", "grey")),
    "layers": Option((), "any names"),
    "kinds": Option(("a", "b"), "some of a few", choices=("a", "b", "c")),
}


def value(name, given):
    return parse(DECLARED, {name: given}, "part 'x'")[name]


def test_without_a_word_all_have_their_defaults():
    assert parse(DECLARED, {}, "part 'x'") == {name: option.default for name, option in DECLARED.items()}
    assert parse({}, {}, "part 'x'") == {}


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        *[("flag", text, True) for text in ("true", "True", "1", "yes", "on", True)],
        *[("flag", text, False) for text in ("false", "FALSE", "0", "no", "off", " no ", False)],
        ("number", "9", 9),
        ("number", " 1 ", 1),
        ("number", 4.0, 4),
        ("number", "all", "all"),
        ("weight", "1", 1.0),
        ("weight", "2.5e-1", 0.25),
        ("weight", 0, 0.0),
        ("name", "two words", "two words"),
        ("name", 7, "7"),
        ("colour", "grey", "grey"),
        ("layers", "layer1, layer2.0,", ("layer1", "layer2.0")),
        ("layers", ["fc"], ("fc",)),
        ("layers", "", ()),
        ("kinds", "c,a", ("c", "a")),
        ("kinds", ("b",), ("b",)),
    ],
)
def test_values_have_the_declared_type(name, given, expected):
    found = value(name, given)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("name", "given", "accepted"),
    [
        *[("flag", text, "true or false") for text in ("ture", "", "2", "None", 2)],
        *[("number", text, "a whole number ≥ 1 and ≤ 9, or all") for text in ("0", "10", "2.5", 2.5, "two", True, "")],
        ("number", math.inf, "a whole number"),
        *[("weight", text, "a number ≥ 0 and ≤ 1") for text in ("1.01", "-0.1", "nan", "half", False)],
        ("colour", "blue", "one of white, grey"),
        ("colour", "Grey", "one of white, grey"),
        ("kinds", "a,d", r"a, b, c \(several with commas\)"),
        ("kinds", 5, "several with commas"),
    ],
)
def test_what_does_not_fit_is_an_error_that_says_what_does(name, given, accepted):
    with pytest.raises(UserError, match=rf"option of part 'x': {name}=.*expected .*{accepted}"):
        value(name, given)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UserError, match=r"unknown option of part 'x': 'colur'\. Did you mean 'colour'"):
        parse(DECLARED, {"colur": "grey"}, "part 'x'")


def test_all_mistakes_are_reported_at_once():
    with pytest.raises(UserError, match="2 problems") as caught:
        parse(DECLARED, {"flag": "ture", "number": "0", "colour": "grey"}, "part 'x'")
    assert "flag='ture'" in caught.value.message
    assert "number='0'" in caught.value.message


def test_parsed_values_are_parsed_to_themselves():
    values = parse(DECLARED, {"number": "all", "kinds": "a,c", "flag": "no"}, "part 'x'")
    assert parse(DECLARED, values, "part 'x'") == values


def test_settings_of_the_command_line():
    assert split(["a=1", " b = x=y ", "c="]) == {"a": "1", "b": "x=y", "c": ""}
    assert split([]) == {}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (["size"], "'size' is not key=value"),
        (["=3"], "'=3' is not key=value"),
        (["size=1", "seed=1", "size =2"], "'size' is given twice"),
        (["seed=1"], "'seed' is set with --seed"),
    ],
)
def test_settings_that_are_not_key_value_or_doubled_or_reserved(settings, problem):
    with pytest.raises(UserError, match=problem):
        split(settings, {"seed": "--seed"})


def test_every_option_is_listed_with_default_type_and_meaning():
    assert describe(DECLARED) == [
        "flag=true (true or false): a switch",
        "number=3 (a whole number ≥ 1 and ≤ 9, or all): a count",
        "weight=0.5 (a number ≥ 0 and ≤ 1): a weight",
        "name= (text): any text",
        "colour=white (one of white, grey): a choice",
        "layers= (a,b,c): any names",
        "kinds=a,b (a, b, c (several with commas)): some of a few",
    ]


@dataclass(frozen=True)
class _Declared:
    count: int = 1
    share: float = 0.5
    name: str = ""
    quick: bool = False
    workers: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"count": "32"}, r"count: expected a whole number; got '32' \(str\)"),
        ({"count": 1.5}, r"count: expected a whole number; got 1.5 \(float\)"),
        ({"count": True}, "count: expected a whole number; got True"),
        ({"count": 10**400}, "count: expected a whole number"),
        ({"share": "a"}, "share: expected a number"),
        ({"quick": 1}, "quick: expected True or False"),
        ({"workers": "2"}, "workers: expected a whole number or None"),
        ({"settings": ["a"]}, "settings: expected a mapping"),
        ({"names": ["a", 3]}, r"names\[1\]: expected text; got 3"),
        ({"names": "abc"}, "names: expected a list"),
        ({"count": "1", "share": None}, "2 problems"),
    ],
)
def test_values_of_another_type_are_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        check_types(values, _Declared)


def test_values_of_the_right_type_are_kept_and_numbers_of_numpy_become_pythons() -> None:
    values = {"count": np.int64(3), "share": np.float32(0.5), "quick": np.True_, "workers": None, "other": object()}
    checked = check_types(values, _Declared)
    assert checked == {"count": 3, "share": 0.5, "quick": True, "workers": None}
    assert [type(value) for value in checked.values()] == [int, float, bool, type(None)]
    assert check_types({"share": 1, "names": ("a",)}, _Declared) == {"share": 1, "names": ["a"]}


@pytest.mark.parametrize("text", ["a=", "a", "b=1&a=", "a=%20"])
def test_an_option_without_a_value_is_an_error(text: str) -> None:
    with pytest.raises(UserError, match="option 'a' has no value"):
        query_options(text, "observer 'x'")


def test_an_infinite_number_is_never_meant() -> None:
    declared = {"weight": Option(1.0, "a weight", low=0)}
    for value in ("inf", "nan", "1e999", float("inf")):
        with pytest.raises(UserError, match="expected a number"):
            parse(declared, {"weight": value}, "maker 'x'")
