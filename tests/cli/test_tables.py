"""What the table of a run says: numbers that have no value, and every reason why a set was partial."""

from __future__ import annotations

import pytest

from cuebench.cli._tables import print_scores
from cuebench.protocols.base import partial_notes
from cuebench.types import Score


def row(observer: str, value: float, note: str = "", metric: str = "shape_bias", condition: str = "all") -> Score:
    return Score("cue_conflict", 1, observer, condition, metric, value, value, value, "images", 9, 0, note)


def shown(capsys: pytest.CaptureFixture[str], *rows: Score) -> str:
    print_scores(rows)
    return " ".join(capsys.readouterr().out.split())


def test_a_number_without_value_stays_in_the_table_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, row("one", 0.5), row("two", float("nan"), "nothing was decided"))
    assert "two –" in text
    assert "– all: no shape_bias of two: nothing was decided" in text


def test_every_reason_of_a_partial_set_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    (note,) = partial_notes(["256 of 1,280 stimuli", "limited to 40 of 256 stimuli"])
    text = shown(capsys, row("one", 0.5, f"240 aligned; {note}; cut"), row("two", 0.5, note))
    assert text.count("partial set: 256 of 1,280 stimuli, limited to 40 of 256 stimuli") == 1


def test_a_failed_observer_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, row("one", 0.5), row("bad", float("nan"), "no such layer", "failed", ""))
    assert text.count("no such layer") == 1
