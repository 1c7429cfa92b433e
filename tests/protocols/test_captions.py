"""The caption of numbers: what must not be lost when they leave the run."""

from __future__ import annotations

import math

from cuebench.protocols.captions import MOST, caption, partial_sets
from cuebench.types import Score

PARTIAL = "partial set: 60 of 1,280 stimuli"


def row(observer: str = "a", *, protocol: str = "cue_conflict", n: int = 60, note: str = PARTIAL) -> Score:
    return Score(protocol, 3, observer, "16-way", "shape_bias", 0.5, 0.4, 0.6, "two_way", n, 0, note, "linearised")


def test_everything_is_there() -> None:
    text = caption([row(n=35), row("b", n=1048)])
    assert text == (
        "cue_conflict, version 3; n = 35 to 1,048; 95 % intervals over two way (linearised); "
        "partial set: 60 of 1,280 stimuli."
    )


def test_who_saw_all_stimuli_is_not_said_to_have_seen_a_part() -> None:
    assert "60 of 1,280 stimuli (1 of 2 observers)" in caption([row(), row("people", note="decided 9 of 10")])


def test_each_protocol_has_a_sentence() -> None:
    first, second = caption([row(note=""), row(protocol="triplets")]).split(". ")
    assert first.startswith("cue_conflict, version 3; n = 60")
    assert "partial" not in first
    assert second.startswith("triplets, version 3")
    assert PARTIAL in second


def test_a_number_without_a_value_has_no_part_in_it() -> None:
    absent = Score("cue_conflict", 3, "c", "16-way", "shape_bias", math.nan, note="partial set: something else")
    assert caption([row(), absent]) == caption([row()])
    assert caption([absent]) == ""


def test_a_figure_has_a_short_one() -> None:
    long = f"partial set: 3 of 17 data sets, without {', '.join(f'number{k}' for k in range(40))}"
    text = caption([row(note=long)], short=True)
    assert "(linearised)" not in text
    assert text.endswith(" and more.")
    assert "partial set: 3 of 17 data sets" in text
    assert len(text) < len("cue_conflict, version 3; n = 60; 95 % intervals over two way; ") + MOST + 12
    assert caption([row()], intervals=False) == f"cue_conflict, version 3; n = 60 (shape_bias); {PARTIAL}."


def test_partial_sets_are_found_among_other_notes() -> None:
    assert partial_sets([row(note=f"5 aligned of 60; {PARTIAL}; a remark"), row()]) == [PARTIAL]
