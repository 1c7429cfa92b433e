"""The report as a file: what it says follows from the scores and answers, and nothing in it can do harm."""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
import sys
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import cuebench
from cuebench import cli
from cuebench.errors import UserError
from cuebench.files import parquet_bytes
from cuebench.labels import LabelSpace, label_map
from cuebench.registry import protocols
from cuebench.reports import theme
from cuebench.reports.html import page as page_module
from cuebench.reports.html.answers import _ranks
from cuebench.reports.html.findings import findings
from cuebench.reports.html.gallery import Gallery, Picture, choose, make_gallery, thumbnail
from cuebench.reports.html.material import Material, Run, read_runs
from cuebench.reports.html.methods import methods, repeat_command
from cuebench.runs.record import RunRecord
from cuebench.runs.scores import Scores
from cuebench.types import Score, Stimulus
from report_run import HOSTILE, PROTOCOL, make_run

MODEL = HOSTILE


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Scores:
    return make_run(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def page(scores: Scores) -> str:
    """The report without figures, which have tests of their own."""
    made = cuebench.report(scores, scores.out / "report.html", figures=False)
    assert made.images == 34
    assert made.size == made.path.stat().st_size
    return made.path.read_text("utf-8")


class Page(HTMLParser):
    """Elements with their attributes, in order, and the text outside of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._silent = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._silent = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._silent = False

    def handle_data(self, data: str) -> None:
        self.text += "" if self._silent else f"{data} "

    def all(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag in tags]


# ------------------------------------------------------------------------------------------------- what it says


def planted(
    *rows: tuple[str, float, float, float], kinds: dict[str, str] | None = None, expected: int = 1280
) -> Material:
    """Return a run of cue conflict with these shape biases and intervals."""
    scores = [
        Score("cue_conflict", 1, o, "16-way", "shape_bias", v, low, high, "two_way", 99) for o, v, low, high in rows
    ]
    record = RunRecord({}, stimuli={"s": {"expected": expected}})
    material = Material((Run(Scores(tuple(scores), Path("run"), record), {}),))
    vars(material)["kinds"] = kinds or {}
    vars(material)["shows_published"] = lambda protocol: bool(expected)
    return material


def test_findings_go_by_the_whole_interval() -> None:
    material = planted(("low", 0.2, 0.1, 0.3), ("high", 0.8, 0.7, 0.9), ("between", 0.45, 0.35, 0.55))
    (finding,) = findings(material)
    assert {s.verdict: [name for name, _ in s.entries] for s in finding.statements} == {
        "more texture": ["low"],
        "more shape": ["high"],
        "not clear": ["between"],
        "people": ["people"],
    }
    assert "low 0.200 [0.10, 0.30]: the whole interval lies below 0.5" in finding.statements[1].text
    assert "Each of the 3 models lies below people" in finding.statements[-1].text
    assert "other objects and other textures" in finding.uncertainty


@pytest.mark.parametrize(
    ("protocol", "metric", "condition"),
    [
        ("feature_suppression", "shape_reliance", "all"),
        ("cue_decomposition", "shape_bias_cd", "eed+voronoi H=run"),
        ("cue_decomposition_segmentation", "shape_bias_cd", "eed+voronoi H=run"),
        ("refined_bias", "shape_preference", "faithful"),
    ],
)
def test_no_verdict_where_the_middle_depends_on_the_pictures(protocol: str, metric: str, condition: str) -> None:
    rows = [Score(protocol, 1, "control:texture", condition, metric, 0.9, 0.85, 0.95, "images", 99)]
    rows += [Score(protocol, 1, "other", condition, metric, 0.1, 0.05, 0.15, "images", 99)]
    material = Material((Run(Scores(tuple(rows), Path("run"), RunRecord({})), {}),))
    (finding,) = findings(material)
    assert [s.verdict for s in finding.statements] == ["in order"]
    assert "0.5" not in finding.statements[0].text


def test_only_protocols_whose_cues_compete_have_a_neutral_value() -> None:
    declared = {name: protocol.headline.neutral for name, protocol in protocols.usable()}
    assert {n for n, value in declared.items() if value is not None} - {"striped_objects"} == {
        "cue_conflict",
        "textured_silhouettes",
        "triplets",
    }


def test_people_of_the_run_go_before_published_ones() -> None:
    kinds = {"people": "people", "a": "person"}
    material = planted(("net", 0.95, 0.9, 0.97), ("people", 0.9, 0.8, 0.93), ("a", 0.9, 0.8, 0.93), kinds=kinds)
    text = findings(material)[0].statements[-1].text
    assert "In this run: people 0.900 [0.80, 0.93]" in text
    assert "The model has an interval that reaches people" in text
    assert "published" not in text


def test_stimuli_of_ones_own_are_not_compared_with_published_people() -> None:
    material = planted(("net", 0.2, 0.1, 0.3), expected=0)
    assert [s.verdict for s in findings(material)[0].statements] == ["more texture"]


def test_many_observers_make_a_short_sentence() -> None:
    material = planted(*((f"net{i}", 0.1 + i / 1000, 0.05, 0.2) for i in range(30)))
    text = findings(material)[0].statements[0].text
    assert "25 more (0.105 to 0.129)" in text
    assert len(text) < 500


def test_the_gallery_gives_the_answers_that_were_scored(scores: Scores) -> None:
    """Counting the outcomes of all pictures gives back the shape bias and the decided fraction of every observer."""
    gallery = make_gallery(read_runs(scores), images=1000)
    pictures = [p for p in gallery.pictures if p.protocol == "cue_conflict"]
    assert len(pictures) == 32
    compared = 0
    for observer in ("ideal:shape", "ideal:texture", "ideal:mixture?shape=0.7", MODEL, "anna", "bert"):
        conflict = [p for p in pictures if dict(p.facts)["shape"] != dict(p.facts)["texture"]]
        counts = Counter(p.answers[observer].outcome for p in conflict)
        decided = counts["shape"] + counts["texture"]
        value = scores.value(observer, "shape_bias", "4-way")
        assert counts["shape"] / decided == pytest.approx(value)
        assert decided / len(conflict) == pytest.approx(scores.value(observer, "decided_fraction", "4-way"))
        compared += 1
    assert compared == 6
    pooled = [p.answers["people"] for p in pictures]
    assert {a.people for a in pooled} == {2}
    assert all(abs(sum(share for _, share in a.top) - 1) < 1e-9 for a in pooled)


def test_answers_that_nobody_scored_are_not_shown(scores: Scores) -> None:
    """Ideal observers give logits also where features were asked for."""
    material = read_runs(scores)
    jobs = [replace(job, needs=("features",)) for job in scores.record.jobs]
    shown = make_gallery(Material((Run(replace(scores, record=replace(scores.record, jobs=jobs)), {}),)), 10)
    assert shown.pictures == []
    assert "cue_conflict: its answers are not classes of single images" in shown.remarks[0]
    assert make_gallery(material, 10).remarks == []


def test_probabilities_and_facts_of_a_picture(scores: Scores) -> None:
    (picture,) = [p for p in make_gallery(read_runs(scores), 1000).pictures if p.id == "cat1-dog1"]
    answer = picture.answers["ideal:texture"]
    assert (answer.decision, answer.outcome) == ("dog", "texture")
    assert answer.top[0][0] == "dog"
    assert answer.top[0][1] > 0.99
    assert dict(picture.facts)["shape taken from"] == "cat1"
    assert picture.alt == "Stimulus cat1-dog1: shape cat, texture dog"


def test_pictures_are_chosen_so_that_outcomes_differ() -> None:
    stimuli = [Stimulus(f"s{i}") for i in range(100)]
    outcomes = {s.id: ("shape", "texture") if i in (7, 70) else ("shape", "shape") for i, s in enumerate(stimuli)}
    chosen = choose(stimuli, outcomes, 4, seed=3)
    assert sorted(outcomes[s.id][1] for s in chosen) == ["shape", "shape", "texture", "texture"]
    assert chosen == choose(stimuli, outcomes, 4, seed=3)
    assert chosen != choose(stimuli, outcomes, 4, seed=4)
    assert len({s.id for s in choose(stimuli, outcomes, 1000, seed=3)}) == 100


def test_pictures_whose_files_are_gone_leave_their_answers(scores: Scores, tmp_path: Path) -> None:
    run = shutil.copytree(scores.out, tmp_path / "run")
    root = Path(scores.record.stimuli[scores.record.jobs[0].stimuli]["root"])
    moved = root.rename(root.with_name("elsewhere"))
    try:
        made = cuebench.report(run, tmp_path / "r.html", figures=False)
    finally:
        moved.rename(root)
    text = Page(made.path.read_text("utf-8")).text
    assert "cue_conflict: 32 pictures could not be drawn, only the answers are shown" in text
    assert text.count("picture not here") == 32


def test_answers_without_pictures_have_no_empty_frames() -> None:
    source, problem = thumbnail("", Stimulus("cat1-dog2"))
    assert (source, problem) == ("", "recorded answers only: this run was made without the pictures")
    absent = Picture("cue_conflict", "cat1-dog2", [], {}, problem=problem)
    assert not Gallery([absent]).drawn
    assert Gallery([absent, replace(absent, source="data:image/png;base64,")]).drawn


def test_a_report_repeats_its_run(scores: Scores, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command of the provenance gives the same scores in another folder."""
    material = read_runs(scores)
    command = repeat_command(material.runs[0])
    assert "-p cue_conflict" in command
    assert "--resamples 200" in command
    words = [w for w in shlex.split(command)[1:] if w not in ("-p", "hostile")]
    words.insert(1, "-p")  # without the protocol of this session, which no command line can name
    words[words.index("--out") + 1] = str(tmp_path / "again")
    assert cli.invoke([*words, "-q"]) == 0
    again = cuebench.load(tmp_path / "again")
    # As texts: what is undefined is not equal to itself.
    assert [repr(row) for row in again] == [repr(row) for row in scores if row.protocol == "cue_conflict"]


def test_warnings_of_a_run_are_banners(scores: Scores) -> None:
    record = replace(scores.record, status="interrupted", unreadable={"a": "cut short"})
    record.failures = [*record.failures, type(record.skipped[0])("net", "out of memory", "cue_conflict")]
    made = cuebench.report(Scores(scores.rows, scores.out, record), scores.out / "w.html", figures=False, images=0)
    text = " ".join(made.warnings)
    for part in (
        "was not finished",
        "net could not be measured with cue_conflict: out of memory",
        "1 stimulus could not",
    ):
        assert part in text
    assert "partial set" in text
    assert all(warning in Page(made.path.read_text("utf-8")).text for warning in made.warnings)


def test_two_runs_with_the_same_observers(scores: Scores, tmp_path: Path) -> None:
    other = shutil.copytree(scores.out, tmp_path / "second")
    material = read_runs([scores.out, other])
    assert {"ideal:shape (run)", "ideal:shape (second)"} <= set(material.observers)
    assert material.kinds["ideal:shape (second)"] == "ideal"
    made = cuebench.report([scores.out, other], tmp_path / "both.html", images=8)
    text = Page(made.path.read_text("utf-8")).text
    assert "ideal:shape (second)" in text
    assert made.images == 8


def test_a_calibration_table_is_shown(scores: Scores, tmp_path: Path) -> None:
    run = shutil.copytree(scores.out, tmp_path / "run")
    record = RunRecord.read(run)
    data = parquet_bytes(pa.table({"planted": [0.25, 0.75], "recovered": [0.2512, 0.749], "covered": [True, True],
                                   "limits": [[0.25, 0.5], None]}))  # fmt: skip
    (run / "tables" / "cue_conflict.calibration.parquet").write_bytes(data)
    record.files["tables/cue_conflict.calibration.parquet"] = hashlib.sha256(data).hexdigest()
    record.write(run)
    made = cuebench.report(run, tmp_path / "r.html", figures=False, images=0)
    text = Page(made.path.read_text("utf-8")).text
    assert "Calibration of cue_conflict" in text
    assert "0.251" in text
    assert "[0.25, 0.5]" in text  # whatever a protocol of somebody's own puts there


def test_every_headline_says_what_simulations_found_of_it(page: str) -> None:
    parsed = Page(page)
    assert any(a.get("id") == "table-trust-known" for _, a in parsed.elements)
    assert "In simulations" in parsed.text
    assert "mixes in competence" in parsed.text  # the shape bias of cue conflict
    assert "cuebench calibrate" in parsed.text


# ------------------------------------------------------------------------------------------------- the page


def test_the_page_is_complete_and_consistent(page: str) -> None:
    parsed = Page(page)
    ids = [a["id"] for _, a in parsed.elements if "id" in a]
    assert len(ids) == len(set(ids))
    targets = [a["href"][1:] for a in parsed.all("a") if (a.get("href") or "").startswith("#")]
    assert set(targets) <= set(ids)
    assert {"found", "overview", "cue_conflict", "gallery", "people", "trust", "methods", "provenance"} <= set(targets)
    assert all(a.get("alt") for a in parsed.all("img"))
    assert all(a.get("scope") for a in parsed.all("th"))
    tags = Counter(tag for tag, _ in parsed.elements)
    assert tags["h1"] == tags["main"] == tags["nav"] == tags["header"] == tags["footer"] == 1
    assert "people with each other" in parsed.text
    assert "Geirhos et al., 2019" in parsed.text
    assert "@inproceedings{geirhos2019imagenet" in parsed.text


def test_the_methods_say_how_each_interval_was_made(scores: Scores) -> None:
    material = read_runs(scores)
    text = methods(material).paragraphs[-1]
    assert "cue_conflict" in text
    assert "Closed form: a ratio of sums is linearised" in text
    assert "bootstrap" not in text
    assert "resamples" not in text
    drawn = [replace(s, ci_method="percentiles of 300 resamples") if s.metric == "shape_bias" else s for s in scores]
    run = Scores(tuple(drawn), scores.out, scores.record)
    text = methods(Material((Run(run, {}),))).paragraphs[-1]
    assert "Bootstrap: percentiles of 300 seeded resamples, moved to the value (cue_conflict: shape bias" in text
    assert "Seed: 0." in text
    old = Scores(tuple(replace(s, ci_method="") for s in scores), scores.out, scores.record)
    text = methods(Material((Run(old, {}),))).paragraphs[-1]
    assert "How they were made is not recorded; to record it: cuebench score RUN" in text


def test_every_table_of_scores_says_what_its_numbers_rest_on(page: str) -> None:
    notes = {
        a["id"]: a.get("data-note") or "" for a in Page(page).all("div") if (a.get("id") or "").startswith("table-")
    }
    for name in ("table-overview", "table-headline-cue_conflict", "table-trust-intervals"):
        assert re.search(r"cue_conflict, version \d; n = .*; 95 % intervals over ", notes[name]), name
    assert notes["table-headline-cue_conflict"] in Page(page).text


def test_the_page_asks_nobody_for_anything(page: str) -> None:
    parsed = Page(page)
    policy = next(a["content"] for a in parsed.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert re.search(r"script-src 'sha256-", policy)
    for tag, attributes in parsed.elements:
        for name in ("src", "srcset", "data", "poster", "action"):
            assert not attributes.get(name) or str(attributes[name]).startswith("data:"), (tag, attributes)
        assert tag not in ("iframe", "object", "embed", "base")
        assert not [name for name in attributes if name.startswith("on")]
    assert [a["href"] for a in parsed.all("link")] == ["data:,"]
    assert "@import" not in page
    assert "url(http" not in page


def test_hostile_names_are_texts(page: str) -> None:
    parsed = Page(page)
    assert HOSTILE in parsed.text
    assert "window.hacked=1</script>" not in page
    assert "<img src=x" not in page
    assert "javascript:" not in page


def test_the_same_run_gives_the_same_page(scores: Scores, page: str, tmp_path: Path) -> None:
    made = cuebench.report(scores.out, tmp_path / "again.html", figures=False)
    assert made.path.read_text("utf-8") == page


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_words_have_enough_contrast(dark: bool) -> None:
    own = page_module._DARK if dark else page_module._LIGHT
    shared = {"paper": theme.PAPER, "ink": theme.INK, "soft": theme.SOFT}
    colours = {**{k: theme.DARK[v] if dark else v for k, v in shared.items()}, **own}
    pairs = [(word, "paper") for word in ("ink", "soft", "link", "shape-text", "texture-text", "right", "wrong")]
    pairs += [("ink", "panel"), ("soft", "panel"), ("ink", "caution"), ("ink", "problem")]
    for word, ground in pairs:
        light, low = sorted((luminance(colours[word]), luminance(colours[ground])), reverse=True)
        assert (light + 0.05) / (low + 0.05) >= 4.5, (word, ground)


# ------------------------------------------------------------------------------------------------- figures, the verb


def invoke(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    status = cli.invoke([str(word) for word in words])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_the_verb_writes_a_page(scores: Scores, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "r.html"
    status, said, _ = invoke(
        capsys, "report", scores.out, "--out", out, "--no-figures", "--images", 5, "--title", "Mine"
    )
    assert status == 0
    assert "5 pictures" in said
    assert "read with care: cue_conflict: partial set" in said
    assert "<h1>Mine</h1>" in out.read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["RUN", "--format", "html"], "a report as HTML is a file"),
        (["RUN", "RUN", "--format", "csv"], "several runs make one report as HTML only"),
        (["RUN", "--out", "x.doc"], "the format of x.doc is not known"),
        (["RUN", "--out", "x.html", "--images", "-1"], "images must be 0"),
        (["nowhere", "--out", "x.html"], "is not a run folder"),
    ],
)
def test_what_cannot_be_done_is_said(
    scores: Scores, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    status, _, said = invoke(capsys, "report", *(str(scores.out) if w == "RUN" else w for w in words))
    assert status == 2
    assert message in " ".join(said.split())


@pytest.mark.slow
def test_run_makes_its_report_at_once(tmp_path: Path, data_root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "-o", "ideal:shape", "-p", "cue_conflict", "--data-root", data_root, "--resamples", "100"]
    status, said, _ = invoke(capsys, *words, "--out", tmp_path / "a", "--report", "--workers", 0)
    assert status == 0
    parsed = Page((tmp_path / "a" / "report.html").read_text("utf-8"))
    assert len([a for a in parsed.all("figure") if a.get("class") == "cuebench-chart"]) >= 2
    ids = [a["id"] for _, a in parsed.elements if "id" in a]
    assert len(ids) == len(set(ids))  # the drawings have clip paths of their own
    assert f"report: {tmp_path / 'a' / 'report.html'}" in said.replace("\n", "")
    _, said, _ = invoke(capsys, *words, "--out", tmp_path / "b")
    assert f"report: cuebench report {tmp_path / 'b'} --out report.html" in said.replace("\n", " ").replace("  ", " ")


def test_a_flag_can_stand_without_its_value() -> None:
    assert cli._with_values(["run", "--report"]) == ["run", "--report="]
    assert cli._with_values(["run", "--report", "x.html", "-q"]) == ["run", "--report", "x.html", "-q"]
    assert cli._with_values(["run", "--report", "-q"]) == ["run", "--report=", "-q"]


def test_the_extra_is_named_where_it_is_missing(scores: Scores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(UserError, match=r"needs the extra 'report'") as error:
        cuebench.report(scores, "never.html")
    assert error.value.hint == "pip install 'cuebench[report]'"


def test_protocols_that_are_not_here_are_still_reported(scores: Scores, monkeypatch: pytest.MonkeyPatch) -> None:
    from cuebench import registry

    monkeypatch.delitem(registry.protocols.added, PROTOCOL.name)
    made = cuebench.report(scores.out, scores.out / "u.html", figures=False, images=0)
    assert "not installed here" in made.path.read_text("utf-8")


def test_a_class_that_the_observer_cannot_answer_has_no_rank() -> None:
    labels = LabelSpace("three", ("cat", "dog", "car"))
    resolved = label_map({"cat": ["cat"], "ship": ["ship"], "dog": ["dog"]}).resolve(labels)
    shown = [Stimulus(name, label=name) for name in ("cat", "ship", "dog", "tree")]
    logits = np.tile(np.array([3.0, 2.0, 1.0], np.float32), (4, 1))
    assert _ranks(logits, shown, resolved) == [1, 0, 2, 0]
