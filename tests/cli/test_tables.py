"""The tables of a run: headlines first, numbers without a value, and every reason why a set is partial."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rich.console import Console

from cuebench.cli._tables import print_scores, value_with_interval
from cuebench.protocols.base import PARTIAL
from cuebench.protocols.headline import headline_column, one_row_each
from cuebench.registry import protocols
from cuebench.types import Score
from planted_scores import MIXTURES, planted_scores


def row(observer: str, value: float, note: str = "", metric: str = "shape_bias", condition: str = "16-way") -> Score:
    return Score("cue_conflict", 1, observer, condition, metric, value, value, value, "images", 9, 0, note)


def shown(capsys: pytest.CaptureFixture[str], *rows: Score) -> str:
    print_scores(rows, Console(width=300, highlight=False, markup=False, emoji=False))
    return capsys.readouterr().out


def lines(capsys: pytest.CaptureFixture[str], *rows: Score) -> list[str]:
    return [" ".join(line.split()) for line in shown(capsys, *rows).splitlines()]


@pytest.mark.parametrize("protocol", [*protocols])
def test_the_headline_comes_first_with_its_widest_interval(capsys: pytest.CaptureFixture[str], protocol: str) -> None:
    rows = planted_scores(protocol)
    column = headline_column(rows, protocol)
    assert column is not None
    printed = lines(capsys, *rows)
    assert printed[0] == f"{protocol} v{protocols.get(protocol).version} · {column.condition}"
    table = printed[: printed.index("")]
    for observer, score in column.rows.items():
        (line,) = [line for line in table if line.startswith(f"{observer} ")]
        assert line.startswith(f"{observer} {value_with_interval(score)}")


def test_all_headlines_come_before_other_conditions(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [*planted_scores("cue_conflict"), *planted_scores("imagenet_accuracy")]
    titles = [line for line in lines(capsys, *rows) if re.search(r" v\d+ · ", line)]
    assert titles[:2] == ["cue_conflict v3 · 16-way", "imagenet_accuracy v2 · top1"]
    assert set(titles[2:]) == {
        "cue_conflict v3 · 1000-way",
        "cue_conflict v3 · 16-way/mean_of_subjects",
        "cue_conflict v3 · 16-way/with_aligned",
        "imagenet_accuracy v2 · top5",
    }


def test_a_title_never_calls_a_label_space_partial(capsys: pytest.CaptureFixture[str]) -> None:
    printed = lines(capsys, *planted_scores("cue_conflict"))
    warning = "! cue_conflict: partial set: 32 of 1,280 stimuli"
    assert [line for line in printed if "partial" in line] == [warning]
    assert printed.index(warning) < printed.index(""), "it stands under the table of the headline"


def test_the_direction_and_the_value_of_people_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    headline = protocols.get("cue_conflict").headline
    (line,) = [line for line in lines(capsys, *planted_scores("cue_conflict")) if "the headline is" in line]
    assert line.startswith("cue_conflict: the headline is shape_bias in 16-way; larger means more shape; people: 0.959")
    assert headline.human_source in line


def test_conditions_that_differ_in_a_number_are_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    rows = planted_scores("triplets")
    version = protocols.get("triplets").version
    printed = lines(capsys, *rows)
    start = printed.index(f"triplets v{version} · experiment1/alpha: triplet_shape_bias")
    assert printed[start + 1] == "observer 0.0 0.2 0.4 0.6 0.8 1.0"
    own = {r.condition: r for r in one_row_each(rows) if r.observer == MIXTURES[1]}
    curve = [value_with_interval(own[f"experiment1/alpha={a}"]) for a in ("0.0", "0.2", "0.4", "0.6", "0.8", "1.0")]
    assert f"{MIXTURES[1]} {' '.join(curve)}" in printed[start:], "there is room for intervals"
    (more,) = [line for line in printed if "more conditions" in line]
    titles = [line for line in printed if line.startswith(f"triplets v{version} · ")]
    assert len(titles) == 6
    assert int(more.split()[1]) < len({r.condition for r in rows}) - 6


def test_refined_bias_shows_every_patch_size(capsys: pytest.CaptureFixture[str]) -> None:
    rows = planted_scores("refined_bias")
    printed = lines(capsys, *rows)
    for view in ("faithful", "native"):
        start = printed.index(f"refined_bias v3 · {view}/patch: texture_sensitivity")
        assert printed[start + 1] == "observer 4 8"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_tables_fit_the_screen_and_keep_what_is_needed(capsys: pytest.CaptureFixture[str], width: int) -> None:
    rows = [replace(r, observer=f"a-rather-long-name/{r.observer}") for r in planted_scores("cue_conflict")]
    print_scores(rows, Console(width=width, highlight=False, markup=False, emoji=False))
    printed = capsys.readouterr().out.splitlines()
    assert max(map(len, printed)) <= width
    header = " ".join(printed[1].split()), " ".join(printed[2].split())
    assert header[0].startswith("shape decided")
    assert header[1].startswith("observer bias n fraction")
    missing = [line for line in printed if line.startswith("not shown for lack of width")]
    assert bool(missing) == ("error" not in header[0])


def test_few_decided_trials_and_strange_answers_stand_under_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    note = "3 answers are no class of the stimuli ('catt'): undecided"
    text = lines(
        capsys,
        row("one", 0.5, note),
        row("one", 0.2, metric="decided_fraction"),
        row("two", 0.5),
        row("two", 0.9, metric="decided_fraction"),
    )
    below = text[: text.index("")]
    assert "! cue_conflict: most trials were decided for neither cue and do not count: one 20%" in below
    assert "! cue_conflict: few trials: shape_bias rests on 9 of one, 9 of two" in below
    assert f"! cue_conflict: one: {note}" in below


def test_scores_of_a_protocol_that_is_not_installed_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [replace(r, protocol="gone_protocol") for r in planted_scores("imagenet_accuracy")]
    assert "gone_protocol v2 · top1" in lines(capsys, *rows)


def test_a_number_without_value_stays_in_the_table_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(shown(capsys, row("one", 0.5), row("two", float("nan"), "nothing was decided")).split())
    assert "two –" in text
    assert "– 16-way: no shape_bias of two: nothing was decided" in text


def test_every_reason_of_a_partial_set_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    note = f"{PARTIAL}256 of 1,280 stimuli, limited to 40 of 256 stimuli"
    text = shown(capsys, row("one", 0.5, f"240 aligned; {note}; cut"), row("two", 0.5, note))
    assert text.count(note) == 1


def test_a_failed_observer_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, row("one", 0.5), row("bad", float("nan"), "no such layer", "failed", ""))
    assert text.count("no such layer") == 1
