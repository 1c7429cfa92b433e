"""Exclusion rules: what they say, their hash, and the reason of every person and trial."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from cuebench.errors import UserError
from cuebench.study.exclusions import BY_HAND, TEMPLATE, Rules, apply_rules, changed, counted, parse_rules, read_rules


def row(participant="p0001", kind="trial", **values):
    usual = {"finished": True, "correct": True, "response": "cat", "rt_ms": 600.0, "planned_ms": 200, "shown_ms": 200.0}
    return {"participant": participant, "kind": kind, **usual, **values}


def test_the_template_uses_every_rule_and_is_read_from_a_study_folder(tmp_path):
    (tmp_path / "exclusions.toml").write_text(TEMPLATE)
    rules = read_rules(tmp_path)
    assert set(rules.sentences()) == {f.name for f in fields(Rules)}
    assert rules == parse_rules(TEMPLATE)


def test_the_hash_is_that_of_what_is_said_not_of_how_it_is_written():
    text = "[trials]\nrt_min_ms = 150\n[participants]\nattention = 0.5\n"
    again = "# a comment\n[participants]\nattention = 0.50\n\n[trials]\nrt_min_ms = 150.0\n"
    rules = parse_rules(text)
    assert rules.sha256 == parse_rules(again).sha256
    assert rules.sha256 != replace(rules, rt_min_ms=151).sha256
    assert Rules(focus_losses=0).sha256 != Rules().sha256  # a limit of nought is a rule


def test_all_mistakes_in_the_rules_are_reported_at_once():
    with pytest.raises(UserError) as problem:
        parse_rules("[participants]\nattention = 75\nfinished = 1\n[trials]\nrt_mn_ms = 3\n[people]\nx = 1\n")
    text = problem.value.message
    assert "4 problems" in text
    assert all(word in text for word in ("between 0 and 1", "true or false", "Did you mean 'rt_min_ms'", "'people'"))
    with pytest.raises(UserError, match="is not valid TOML"):
        parse_rules("[trials")
    with pytest.raises(UserError, match="every answer would be excluded"):
        parse_rules("[trials]\nrt_min_ms = 500\nrt_max_ms = 400\n")


def test_every_rule_of_trials_gives_its_reason_and_nothing_else_is_excluded():
    rules = parse_rules(TEMPLATE)
    rows = [
        row(),
        row(rt_ms=149.0),
        row(rt_ms=60001.0),
        row(shown_ms=251.0),
        row(shown_ms=149.0, rt_ms=10.0),
        row(shown_ms=None),  # not measured: nothing to compare
        row(rt_ms=None, response=""),  # no answer: counts as none, but is not excluded
        row(kind="practice", rt_ms=1.0),
        *[row() for _ in range(8)],
    ]
    reasons = apply_rules(rules, rows).rows
    assert reasons[:8] == [
        "",
        "reaction time below 150 ms",
        "reaction time above 60000 ms",
        "shown more than 50 ms longer or shorter than planned",
        "reaction time below 150 ms; shown more than 50 ms longer or shorter than planned",
        "",
        "",
        "",
    ]
    assert counted(reasons)["reaction time below 150 ms"] == 1


@pytest.mark.parametrize(
    ("rules", "rows", "reason"),
    [
        (Rules(finished=True), [row(finished=False)], "not finished"),
        (
            Rules(attention=0.75),
            [row(), row(kind="attention"), row(kind="attention", correct=False)],
            "attention checks: less than 75% right",
        ),
        (Rules(missing=0.4), [row(), row(response="")], "no answer in more than 40% of the trials"),
        (Rules(focus_losses=2), [row(focus_losses=1), row(focus_losses=2)], "page left more than 2 times"),
        (
            Rules(rt_min_ms=150, excluded_trials=0.4),
            [row(), row(rt_ms=1)],
            "more than 40% of the trials excluded",
        ),
    ],
)
def test_a_person_beyond_a_limit_is_left_out_as_a_whole_and_others_stay(rules, rows, reason):
    others = [row(participant="p0002"), row(participant="p0002")]
    applied = apply_rules(rules, [*rows, *others])
    assert applied.participants == {"p0001": reason}
    assert applied.rows == [reason] * len(rows) + ["", ""]


def test_limits_themselves_are_allowed_and_no_attention_check_is_no_failure():
    rules = Rules(attention=0.5, missing=0.5, focus_losses=3)
    rows = [row(response="", focus_losses=3), row(), row(kind="attention"), row(kind="attention", correct=False)]
    assert apply_rules(rules, rows).rows == [""] * 4
    assert apply_rules(rules, [row()]).rows == [""]


def test_the_decision_of_the_experimenter_stays():
    decided = f"{BY_HAND}the child of the lab answered"
    applied = apply_rules(Rules(finished=True, excluded_trials=0.1), [row(excluded=decided, finished=False)])
    assert applied.rows == [decided]
    assert apply_rules(Rules(excluded_trials=0.1), [row(excluded=decided), row()]).participants == {}


def test_changed_rules_are_noticed():
    old, new = Rules(rt_min_ms=150).sha256, Rules(rt_min_ms=100).sha256
    assert changed(old, old) == ""
    assert changed("", new) == ""
    assert old[:12] in changed(old, new)
    assert new[:12] in changed(old, new)
