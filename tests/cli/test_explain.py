"""``cuebench explain`` knows every word that is printed: columns, intervals, conditions, metrics, parts, options."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import get_args

import pytest

from cuebench import cli, registry
from cuebench.catalogue.explain import declared_words, explain
from cuebench.errors import UserError
from cuebench.interval_methods import method_meaning
from cuebench.protocols.base import NOT_MEASURED, PARTIAL
from cuebench.types import IntervalKind, Score
from cuebench.words import WORDS, read_condition
from planted_scores import planted_scores

CUE = '''
from cuebench.cues.base import CueInfo
@CueInfo(kind="texture", reference="nobody")
def upside_down(image, *, rng=0):
    """Turn an image upside down."""
    return image[::-1].copy()
number = 3
'''


@pytest.mark.parametrize("protocol", [*registry.protocols])
def test_every_score_is_explained(protocol: str) -> None:
    rows = planted_scores(protocol)
    assert {row.metric for row in rows} <= set(registry.metrics)
    for condition in {row.condition for row in rows}:
        for part, words in read_condition(condition, protocol, declared_words(protocol)):
            assert words or part in registry.cues, f"{part!r} of {condition!r} is not explained"
        assert explain(condition)["name"] == condition


@pytest.mark.parametrize("word", [*Score.columns(), *filter(None, get_args(IntervalKind)), *sorted(NOT_MEASURED),
                                  PARTIAL + "256 of 1,280 stimuli", "decided", "other", "no answer",
                                  "aligned"])  # fmt: skip
def test_every_other_word_is_explained(word: str) -> None:
    assert any(len(str(text)) > 15 for fact, text in explain(word).items() if fact != "name")


def test_every_kind_of_interval_that_occurs_is_declared() -> None:
    occurring = {row.ci_kind for protocol in registry.protocols for row in planted_scores(protocol)}
    assert occurring <= {*get_args(IntervalKind)}
    assert {word.pattern for word in WORDS if word.kind == "interval"} == {*get_args(IntervalKind)} - {""}


def test_every_interval_says_how_it_is_made() -> None:
    made = {row.ci_method for p in registry.protocols for row in planted_scores(p) if math.isfinite(row.ci_low)}
    assert {"linearised", "exact", "jackknife", "Wilson", "Fieller"} <= made
    for method in made:
        assert method_meaning(method) != method
        assert "method" in explain(method)


def test_a_condition_is_read_part_by_part() -> None:
    assert [part for part, _ in read_condition("16-way/class=cat", "cue_conflict")] == ["16-way", "class=cat"]
    assert [part for part, _ in read_condition("eed+voronoi64 H=run less 2")] == [
        "eed+voronoi64", "eed", "voronoi64", "H=run less 2"]  # fmt: skip
    (whole,) = read_condition("pair/texture=a/class=cassette player/recorder", "texture_association")
    assert "one texture with one class" in whole.words[0].meaning
    (first, second) = read_condition("clean_errors/label", "texture_association")
    assert "wrong answers" in first.words[0].meaning
    assert "true class" in second.words[0].meaning


def test_a_word_has_the_meaning_of_its_protocol() -> None:
    meanings = {p: read_condition("clean", p)[0].words[0].meaning for p in ("refined_bias", "corruption_robustness")}
    assert len(set(meanings.values())) == 2
    assert len(explain("clean")["clean"]) >= 3


@pytest.mark.parametrize("name", ["16-wy", "clas=cat", "16-way/clas=cat", "shape_bais", "nothing at all"])
def test_what_is_not_known_is_an_error(name: str) -> None:
    with pytest.raises(UserError, match=r"unknown (name|part of a condition:) '"):
        explain(name)


def test_a_protocol_tells_its_headline_options_and_origin() -> None:
    facts = explain("cue_conflict")
    headline = registry.protocols.get("cue_conflict").headline
    assert facts["headline"][0] == f"{headline.metric} in {', else '.join(headline.conditions)}"
    assert f"{headline.human:.3f}" in " ".join(facts["headline"])
    assert facts["origin"] == "cuebench"
    options = registry.protocols.get("triplets").options
    assert [line.partition("=")[0] for line in explain("triplets")["options"]] == [
        f"--set triplets.{name}" for name in options
    ]


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, parts in registry.KINDS.items() for name in [*parts]]
)
def test_every_part_is_explained_with_its_origin(kind: str, name: str) -> None:
    facts = explain(name)
    kinds = [facts["kind"], *(value for fact, value in facts.items() if fact.endswith(": kind"))]
    assert registry.KINDS[kind].kind in kinds
    assert registry.KINDS[kind].origin(name) in [v for fact, v in facts.items() if fact.endswith("origin")]
    json.dumps(facts)


def test_a_part_of_a_file_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.py"
    file.write_text(CUE)
    assert cli.invoke(["explain", f"python:{file}:upside_down", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["kind"] == "cue"
    assert facts["documentation"] == "Turn an image upside down."
    assert facts["origin"] == f"python:{file}:upside_down"
    assert cli.invoke(["explain", f"python:{file}:number"]) == 2
    assert "is a int, not a part" in " ".join(capsys.readouterr().err.split())
    assert cli.invoke(["explain", f"python:{file}:nothing"]) == 2
    registry.cues.added.clear()


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed distribution with a cue that works, one that cannot be imported, and a name that is taken."""
    (tmp_path / "cuebench_mine.py").write_text(CUE)
    home = tmp_path / "cuebench_mine-1.2.dist-info"
    home.mkdir()
    (home / "METADATA").write_text("Metadata-Version: 2.1\nName: cuebench-mine\nVersion: 1.2\n")
    (home / "entry_points.txt").write_text(
        "[cuebench.cues]\nupside_down = cuebench_mine:upside_down\nworse = cuebench_mine:missing\n"
        "[cuebench.metrics]\nshape_bias = cuebench_mine:number\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    fresh = {kind: replace_registry(parts) for kind, parts in registry.KINDS.items()}
    for kind, parts in fresh.items():
        monkeypatch.setitem(registry.KINDS, kind, parts)
    for name in ("cues", "metrics"):
        monkeypatch.setattr(registry, name, fresh[name])


def replace_registry(parts: registry.Registry) -> registry.Registry:
    """Return a registry of the same kind that has not looked for plug-ins yet."""
    from dataclasses import replace

    return replace(parts, added={})


@pytest.mark.usefixtures("plugins")
def test_plug_ins_are_listed_with_their_origin_and_broken_ones_with_the_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.invoke(["list", "cues", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["upside_down"]["origin"] == "cuebench-mine 1.2"
    assert rows["eed"]["origin"] == "cuebench"
    assert rows["worse"]["summary"].startswith("broken: cue 'worse' of cuebench-mine 1.2 cannot be loaded")
    assert cli.invoke(["list", "metrics", "--json"]) == 0
    metrics = [row for row in json.loads(capsys.readouterr().out) if row["name"] == "shape_bias"]
    assert [row["origin"] for row in metrics] == ["cuebench", "plug-in"]
    assert "taken by cuebench itself" in metrics[1]["summary"]


@pytest.mark.usefixtures("plugins")
def test_doctor_names_plug_ins_and_broken_ones() -> None:
    from cuebench.checkup import _plugins

    findings = {f.what: f for f in _plugins()}
    assert findings["plug-in cuebench-mine 1.2"].detail == "cue upside_down"
    assert findings["plug-in: cue worse"].status == "broken"
    assert "taken" in findings["plug-in: metric shape_bias"].detail


@pytest.mark.usefixtures("plugins")
def test_a_broken_plug_in_is_explained_and_ends_nothing() -> None:
    assert "cannot be loaded" in explain("worse")["problem"]
    assert explain("eed")["origin"] == "cuebench"
    assert explain("upside_down")["origin"] == "cuebench-mine 1.2"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("triplets.draw", "protocol triplets: --set triplets.draw=28"),
        ("draw", "protocol triplets: --set triplets.draw=28"),
        ("batch_size", "--batch-size (Python: batch_size="),
        ("--allow-unreadable", "Share of unreadable stimuli"),
        ("partial/class=cat", "16-way"),
        ("full", "1000-way"),
        ("resampled", "with replacement"),
        ("ideal:mixture?shape=0.4", "shape=0.4"),
        ("timm:resnet50.a1_in1k", "resnet50.a1_in1k, from the source 'timm'"),
    ],
)
def test_options_specs_and_the_literature_s_conditions_are_explained(name: str, said: str) -> None:
    facts = explain(name)
    assert facts["name"] == name
    assert said in json.dumps(facts, ensure_ascii=False)


@pytest.mark.parametrize("name", ["16-wy/class=cat", "cue_conflct", "patc", "nonsense/16-way"])
def test_an_unknown_name_lists_names_not_patterns(name: str) -> None:
    with pytest.raises(UserError) as unknown:
        explain(name)
    listed = unknown.value.hint.removeprefix("known: ").partition(" …")[0].split(", ")
    assert not [word for word in listed if set(word) & set("*?[=/")]


def test_a_wrong_option_of_a_spec_is_told() -> None:
    with pytest.raises(UserError, match="unknown option of observer 'ideal': 'shpe'"):
        explain("ideal:mixture?shpe=1")


@pytest.mark.parametrize(
    ("tried", "found"),
    [
        ("--limit", "Approximate number of stimuli"),
        ("humans", "all people of a recording"),
        ("recorded:", "recorded:PATH"),
        ("csv", "recorded:FILE.csv"),
        ("exit code", "130 Ctrl-C"),
        ("tav", "texture association values"),
        ("resume", "goes on where it stopped"),
    ],
)
def test_words_that_people_try_are_explained(capsys: pytest.CaptureFixture[str], tried: str, found: str) -> None:
    assert cli.invoke(["explain", tried]) == 0
    assert found in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("flag", ["--report", "--limit"])
def test_flags_are_explained_also_those_whose_value_can_be_left_out(flag, capsys):
    assert cli.invoke(["explain", flag]) == 0
    assert f"{flag}" in capsys.readouterr().out
