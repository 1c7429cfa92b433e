"""The board as files: what it ranks follows from the answers, what it refuses is named, and nothing can do harm."""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import json
import re
import shutil
import sys
import tarfile
import zipfile
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuebench
from cuebench import cli
from cuebench.errors import UserError
from cuebench.reports.board import site as site_module
from cuebench.reports.board import standings
from cuebench.reports.board.check import check_entry, differences
from cuebench.reports.board.entries import About, read_about, slug
from cuebench.reports.board.pages import merged
from cuebench.reports.board.papers import published
from cuebench.reports.board.site import Board
from cuebench.runs.record import RunRecord
from cuebench.runs.results import read_scores, write_scores
from cuebench.types import Score
from report_run import HOSTILE

REPOSITORY = Path(__file__).parents[2]
ABOUT = {"family": "CNN", "training_data": "ImageNet-1k", "parameters": 25_557_032, "date": "2026-05-31"}


def _made_up() -> Any:
    spec = importlib.util.spec_from_file_location("made_up_entries", REPOSITORY / "benchmarks" / "board.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


MADE = _made_up()


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three models, one of them hostile, and a person: planted shape biases of 0.2, 0.5, 0.8 and 0.95."""
    folder = tmp_path_factory.mktemp("board") / "entries"
    MADE.write_entry(folder / "low", "low", 0.2, seed=1, about={**ABOUT, "name": "Low net", "link": "https://a.org/x"})
    MADE.write_entry(folder / "middle", "middle", 0.5, seed=2)
    hostile = {"family": HOSTILE, "training_data": "</script>", "authors": HOSTILE}
    MADE.write_entry(folder / "hostile", HOSTILE, 0.8, seed=3, about=hostile)
    MADE.write_entry(folder / "anna", "anna", 0.95, seed=4, rt="0.8")
    return folder


@pytest.fixture(scope="module")
def built(entries: Path, tmp_path_factory: pytest.TempPathFactory) -> Board:
    return cuebench.board(entries, tmp_path_factory.mktemp("site") / "site", workers=0)


@pytest.fixture
def copied(entries: Path, tmp_path: Path) -> Path:
    """A copy of an entry that a test may spoil."""
    return Path(shutil.copytree(entries / "low", tmp_path / "copied"))


def tree(folder: Path) -> dict[str, str]:
    files = (p for p in sorted(folder.rglob("*")) if p.is_file())
    return {p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def api(board: Board, name: str) -> Any:
    return json.loads((board.path.parent / "api/v1" / name).read_text("utf-8"))


def by_slug(board: Board) -> dict[str, Any]:
    return {m.name: m for e in board.entries for m in e.models}


# ------------------------------------------------------------------------------------------------- rankings


def test_planted_observers_are_ranked_by_what_was_planted(built: Board, entries: Path) -> None:
    (track,) = built.tracks
    assert [s.model.name for s in track.standings] == ["anna", HOSTILE, "middle", "Low net"]
    assert [(s.best, s.worst, s.ties) for s in track.standings] == [(0, 0, ""), (1, 1, "a"), (2, 2, "b"), (3, 3, "c")]
    assert [s.model.layer for s in track.standings] == ["people", "model", "model", "model"]
    for standing, name in zip(track.standings, ("anna", "hostile", "middle", "low")):
        assert standing.score.value == cuebench.load(entries / name).value(standing.model.observer)
    for standing, planted in zip(track.standings, (0.95, 0.8, 0.5, 0.2)):
        assert abs(standing.score.value - planted) < 0.06


def test_what_cannot_be_told_apart_shares_ranks_and_letters(entries: Path, tmp_path: Path) -> None:
    twin = MADE.write_entry(tmp_path / "twin", "twin", 0.5, seed=20)
    (track,) = cuebench.board([entries, twin], tmp_path / "site", workers=0).tracks
    ties = {s.model.name: (s.best, s.worst, s.ties) for s in track.models}
    assert ties["middle"] == ties["twin"] == (2, 3, "b")
    assert ties["Low net"] == (4, 4, "c")
    page = next((tmp_path / "site" / "models").glob("twin-*.html")).read_text("utf-8")
    assert "not separable" in page


def test_one_rule_ranks_all_models(entries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond those whose pairs are listed as well; who decided twice has no rank and stands below the others."""
    monkeypatch.setattr(standings, "TOP", 2)
    MADE.write_entry(tmp_path / "twice", "twice", 0.99, seed=5, decided=2)
    (track,) = cuebench.board([entries, tmp_path / "twice"], tmp_path / "site", workers=0).tracks
    assert [(s.best, s.worst) for s in track.standings if s.model.name != "anna"] == [(1, 1), (2, 2), (3, 3), (0, 0)]
    assert track.standings[-1].model.name == "twice"
    assert track.standings[-1].score.value == 1
    assert [s.ties for s in track.models] == ["a", "b", "", ""]
    assert len(track.pairs) == 1
    assert "twice is not compared: too few decided trials (2 decided trials)" in track.notes


def test_headlines_that_cannot_be_paired_differ_where_intervals_do_not_overlap() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for k in range(40):
        value, half = rng.uniform(0.1, 0.9), rng.uniform(0.01, 0.1)
        rows.append(Score("x", 1, f"m{k}", "c", "x", value, value - half, value + half, "images", 10))
    apart = {frozenset(pair) for pair in standings._apart(rows)}
    for a, b in combinations(rows, 2):
        assert (frozenset((a.observer, b.observer)) in apart) == (a.ci_low > b.ci_high or b.ci_low > a.ci_high)


def test_other_stimuli_are_another_ranking_and_recorded_answers_join_pictures() -> None:
    def model(name: str, truth: str, pixels: str) -> Any:
        row = Score("cue_conflict", 1, name, "16-way", "shape_bias", 0.5, 0.4, 0.6, "images", 10)
        shown = standings.Shown("cue_conflict", 1, truth, pixels, 10, "")
        return standings.Model(name, name, "model", About(), (shown,), (row,), {})

    models = [
        model("a", "t", "p"),
        model("b", "t", "p"),
        model("c", "t", "q"),
        model("d", "u", ""),
        model("e", "t", ""),
    ]
    tracks = standings.make_tracks(models, lambda ranked: standings.Compared([], [], [], []))
    assert sorted(sorted(s.model.name for s in t.standings) for t in tracks) == [["a", "b", "e"], ["c"], ["d"]]


def test_published_values_are_those_of_the_tables() -> None:
    table = REPOSITORY / "src/cuebench/published/tables/refined_bias.B.csv"
    with table.open(newline="", encoding="utf-8") as file:
        printed = {
            row["model"]: float(row["value"])
            for row in csv.DictReader(file)
            if (row["condition"], row["metric"]) == ("cue_conflict/partial", "shape_bias")
        }
    shown = {p.name: p.value for p in published("cue_conflict") if p.source.startswith("Kim")}
    assert len(shown) == 51
    assert all(shown[name] == value for name, value in printed.items() if name in shown)
    assert [p.value for p in published("cue_conflict") if p.layer == "published people"] == [0.95869]
    assert published("triplets") == []


# ------------------------------------------------------------------------------------------------- pages and API


class Page(HTMLParser):
    """Elements with their attributes, and all text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_every_link_leads_to_a_file_and_hostile_names_are_text(built: Board) -> None:
    root = built.path.parent
    pages = sorted(root.rglob("*.html"))
    assert len(pages) == 5
    for path in pages:
        page = Page(path.read_text("utf-8"))
        scripts = [a for tag, a in page.elements if tag == "script"]
        assert [s.get("src", "").rpartition("/")[2] for s in scripts if "src" in s] == ["page.js", "board.js"]
        assert all("src" in s or s["type"] == "application/json" for s in scripts)
        assert not [tag for tag, _ in page.elements if tag in ("img", "iframe", "object", "base")]
        assert not [a for _, a in page.elements if any(name.startswith("on") or name == "style" for name in a)]
        links = [str(a[n]) for _, a in page.elements for n in ("href", "src") if a.get(n)]
        for link in links:
            if not link.startswith(("#", "data:,", "https://a.org/")):
                assert (path.parent / link).is_file(), link
    hostile = next((root / "models").glob("*script*.html"))
    assert HOSTILE in Page(hostile.read_text("utf-8")).text


def test_the_api_holds_what_the_pages_show(built: Board) -> None:
    index = api(built, "index.json")
    assert {m["name"] for m in index["models"]} == {"Low net", "middle", HOSTILE, "anna"}
    (ranking,) = index["rankings"]
    standing = {s["name"]: s for s in json.loads((built.path.parent / ranking["file"]).read_text())["standings"]}
    assert standing["middle"]["rank_best"] == 2
    assert standing["anna"]["rank_best"] is None
    low = next(m for m in index["models"] if m["name"] == "Low net")
    assert (low["family"], low["parameters"], low["date"]) == ("CNN", 25_557_032, "2026-05-31")
    model = json.loads((built.path.parent / low["file"]).read_text())
    value = next(s["value"] for s in model["scores"] if (s["metric"], s["condition"]) == ("shape_bias", "16-way"))
    assert value == standing["Low net"]["value"] == model["standings"][0]["value"]
    assert (built.path.parent / low["page"]).is_file()


def test_the_documented_entry_file_is_read(tmp_path: Path) -> None:
    (text,) = re.findall(r"```json\n(.*?)```", (REPOSITORY / "docs" / "board.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "entry.json").write_text(text)
    about = read_about(tmp_path, ["timm:resnet50"]).of("timm:resnet50")
    assert {name: value for name, value in vars(about).items() if value} == {
        name: value for name, value in json.loads(text).items() if name != "format"
    }
    both = {"format": 1, "family": "CNN", "observers": {"a": {"name": "A", "family": "MLP"}}}
    (tmp_path / "entry.json").write_text(json.dumps(both))
    known = read_about(tmp_path, ["a", "b"])
    assert (known.of("a"), known.of("b")) == (About("A", "MLP"), About("", "CNN"))
    (tmp_path / "entry.json").write_text(
        json.dumps({**both, "name": "both", "observers": {"c": {"parameters": "many"}}})
    )
    with pytest.raises(UserError, match="3 problems"):
        read_about(tmp_path, ["a", "b"])


def test_links_are_permanent() -> None:
    assert slug("timm:resnet50", ["w"]) == slug("timm:resnet50", ["w"])
    assert slug("timm:resnet50", ["w"]) != slug("timm:resnet50", ["other weights"])
    assert re.fullmatch(r"[a-z0-9-]{1,70}", slug("../../ÄÖ<script>" * 50, []))
    assert slug("模型", ["w"]).startswith("model-")


def test_what_several_entries_say_of_a_model_is_put_together() -> None:
    assert merged([About(family="CNN"), About(family="MLP", authors="A")]) == About(family="CNN", authors="A")


# ------------------------------------------------------------------------------------------------- refusing


def test_checking_changes_nothing(entries: Path) -> None:
    before = tree(entries / "low")
    checked = check_entry(entries / "low")
    assert checked.problems == ()
    assert tree(entries / "low") == before


def rewrite(run: Path, **changes: Any) -> None:
    """Change a record as somebody would who computes its checksum anew."""
    record = RunRecord.read(run)
    record.arguments |= changes
    record.write(run)


def test_scores_that_do_not_follow_from_the_answers_are_refused(copied: Path) -> None:
    record, rows = RunRecord.read(copied), read_scores(copied)
    better = [replace(r, value=0.9) if (r.metric, r.condition) == ("shape_bias", "16-way") else r for r in rows]
    record.files |= write_scores(copied, better, {})
    record.write(copied)
    problems = check_entry(copied).problems
    assert len(problems) == sum(a != b for a, b in zip(rows, better)) == 4
    assert all("does not follow from the answers: value is 0.9, not 0.18469656" in p for p in problems)


def test_rows_are_compared_one_by_one() -> None:
    row = Score("p", 1, "o", "c", "m", 0.5, 0.4, 0.6, "images", 10)
    undefined = replace(row, metric="u", value=float("nan"))
    assert differences([row, undefined], [replace(row, value=0.5 + 1e-7), undefined]) == []
    assert "value is 0.5, not 0.500002" in differences([row], [replace(row, value=0.5 + 2e-6)])[0]
    assert "n is 10, not 11" in differences([row], [replace(row, n=11)])[0]
    assert differences([row], []) == ["the score p o c m images does not follow from the answers"]
    assert differences([], [row]) == ["the score p o c m images is missing"]
    many = [replace(row, condition=str(k)) for k in range(9)]
    assert differences(many, [])[-1] == "4 more scores do not follow from the answers"


def test_damage_is_refused(copied: Path) -> None:
    shard = next((copied / "responses").rglob("*.parquet"))
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 255
    shard.write_bytes(bytes(data))
    (problem,) = check_entry(copied).problems
    assert "checksum" in problem
    (copied / "scores.json").write_text("[]")
    assert "scores.json is damaged or was changed" in check_entry(copied).problems[0]
    (copied / "run.json").write_text("{}")
    assert "run.json" in check_entry(copied).problems[0]


def test_what_is_partial_is_refused_with_every_reason(tmp_path: Path, copied: Path) -> None:
    run = tmp_path / "some"
    MADE._evaluate(run, {"net": MADE.answers(0.5, 1)[:200]})
    (run / "entry.json").write_text(json.dumps({"format": 2, "link": "javascript:alert(1)", "colour": "red"}))
    rewrite(run, limit=200)
    text = "\n".join(check_entry(run).problems)
    for part in ("--limit 200", "200 of 1,280 stimuli", "format is 2", "link must begin", "unknown field 'colour'"):
        assert part in text
    rewrite(copied, responses="s3://somebody/answers")
    assert check_entry(copied).problems == ("its answers lie elsewhere (--responses): an entry holds them itself",)


def test_an_unfinished_run_is_refused(copied: Path) -> None:
    record = RunRecord.read(copied)
    record.status = "running"
    record.write(copied)
    assert "was not finished" in check_entry(copied).problems[0]


def test_links_in_an_entry_are_not_followed(copied: Path, tmp_path: Path) -> None:
    shutil.move(copied / "responses", tmp_path / "elsewhere")
    (copied / "responses").symlink_to(tmp_path / "elsewhere")
    assert check_entry(copied).problems == ("responses is a link: an entry holds its files itself",)


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_archives_are_entries(entries: Path, tmp_path: Path, kind: str) -> None:
    archive = tmp_path / f"low.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as zipped:
            for path in (entries / "low").rglob("*"):
                zipped.write(path, path.relative_to(entries))
    else:
        with tarfile.open(archive, "w:gz") as tarred:
            tarred.add(entries / "low", ".")
    checked = check_entry(archive)
    assert checked.problems == ()
    assert repr(checked.models) == repr(check_entry(entries / "low").models)


def test_archives_cannot_leave_their_folder(entries: Path, tmp_path: Path) -> None:
    archive = tmp_path / "evil.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.write(entries / "low" / "run.json", "run.json")
        zipped.writestr("../../evil.txt", "out")
    assert "leads out of the folder" in check_entry(archive).problems[0]
    assert not list(tmp_path.rglob("evil.txt"))
    (tmp_path / "none.zip").write_bytes(b"no archive")
    assert "damaged" in check_entry(tmp_path / "none.zip").problems[0]


def test_the_same_answers_count_once(entries: Path, copied: Path, tmp_path: Path) -> None:
    made = cuebench.board([entries / "low", entries / "middle", copied], tmp_path / "site", workers=0)
    assert [e.entry for e in made.refused] == ["copied"]
    assert "the entry 'low' has the same weights" in made.refused[0].problems[0]


def test_a_repeated_observer_leaves_the_rest_of_its_entry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same observers beside networks of one's own, in two entries: they count once, all networks stay."""

    def recorded(name: str, decisions: dict[str, list[str]]) -> str:
        rows = [(who, s[2], d) for who, given in decisions.items() for s, d in zip(MADE.STIMULI, given)]
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("observer", "stimulus", "decision"), *rows])
        return f"recorded:{tmp_path / name}.csv"

    shared = recorded("shared", {"anna": MADE.answers(0.95, 4), "ben": MADE.answers(0.9, 5)})
    for number in (1, 2):
        networks = {f"net{number}{k}": MADE.answers(0.2 * number + 0.1 * k, 10 * number + k) for k in range(2)}
        own = recorded(f"own{number}", networks)
        out = tmp_path / f"entry{number}"
        cuebench.evaluate([shared, own], "cue_conflict", out=out, resamples=200, workers=0)
    both = [str(tmp_path / "entry1"), str(tmp_path / "entry2")]
    made = cuebench.board(both, tmp_path / "site", workers=0)
    assert not made.refused
    assert [[m.name for m in e.models] for e in made.entries] == [["anna", "ben", "net10", "net11"], ["net20", "net21"]]
    (remark,) = made.entries[1].remarks
    assert remark.startswith("left out: anna, ben: the entry 'entry1' has the same weights, protocol (cue_conflict)")
    (track,) = made.tracks
    assert len(track.standings) == 6
    assert remark in (tmp_path / "site/index.html").read_text("utf-8").replace("&#39;", "'")
    assert cli.invoke(["board", *both, "--out", str(tmp_path / "again"), "-q"]) == 0
    assert remark in capsys.readouterr().out
    assert cli.invoke(["board", *both, "--out", str(tmp_path / "again"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["remarks"] == [{"entry": "entry2", "remarks": [remark]}]


def test_answers_of_another_under_a_new_name_are_marked(entries: Path, tmp_path: Path) -> None:
    """A single other answer is another observer."""
    one, other = MADE.answers(0.2, 1), MADE.answers(0.2, 1)
    place = next(i for i, (s, t, _) in enumerate(MADE.STIMULI) if one[i] == t != s)
    other[place] = MADE.STIMULI[place][0]
    MADE._evaluate(tmp_path / "new", {"my own net": one})
    MADE._evaluate(tmp_path / "near", {"near": other})
    found = [entries / "low", entries / "middle", tmp_path / "new", tmp_path / "near"]
    for _ in range(2):  # the second time from what was remembered
        made = cuebench.board(found, tmp_path / "site", workers=0)
        (track,) = made.tracks
        same = {s.model.name: s.same_answers for s in track.standings}
        assert same == {"Low net": ("my own net",), "my own net": ("Low net",), "near": (), "middle": ()}
    (ranking,) = api(made, "index.json")["rankings"]
    listed = json.loads((made.path.parent / ranking["file"]).read_text("utf-8"))["standings"]
    assert {s["name"]: s["same_answers"] for s in listed}["my own net"] == ["Low net"]
    own = next(s["slug"] for s in listed if s["name"] == "my own net")
    for page in ("index.html", f"models/{own}.html"):
        assert "same answers as Low net" in (made.path.parent / page).read_text("utf-8")


def test_a_folder_called_like_a_file_of_a_run_is_not_mistaken_for_it(
    entries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(entries / "low", tmp_path / "scores")
    monkeypatch.chdir(tmp_path)
    assert check_entry("scores").accepted
    (tmp_path / "scores" / "scores.json").write_text("{}")
    checked = check_entry("scores")
    assert checked.entry == "scores"
    assert any(text.startswith("scores.json is damaged") for text in checked.problems), checked.problems
    assert "the run.json" not in " ".join(checked.problems)
    monkeypatch.chdir(tmp_path / "scores")
    assert [check_entry(where).entry for where in (".", "../scores", "stimuli/..")] == ["scores"] * 3


# ------------------------------------------------------------------------------------------------- building again


def test_an_entry_is_scored_once(entries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Path(shutil.copytree(entries, tmp_path / "entries"))
    first = cuebench.board(own, tmp_path / "site", workers=0)
    before = tree(tmp_path / "site")
    asked: list[str] = []

    def counted(path: Path) -> Any:
        asked.append(path.name)
        return check_entry(path)

    monkeypatch.setattr(site_module, "check_entry", counted)
    again = cuebench.board(own, tmp_path / "site", workers=0)
    assert (asked, again.known) == ([], 4)
    assert tree(tmp_path / "site") == before
    assert repr(again.tracks) == repr(first.tracks)
    (own / "middle" / "entry.json").write_text(json.dumps({"format": 1, "name": "Renamed"}))
    shutil.rmtree(own / "low")
    (tmp_path / "site" / "CNAME").write_text("board.example.org")
    changed = cuebench.board(own, tmp_path / "site", workers=0)
    assert asked == ["middle"]
    assert "Renamed" in by_slug(changed)
    assert not list((tmp_path / "site").rglob("low-*"))
    assert (tmp_path / "site" / "CNAME").is_file()


def test_a_folder_of_somebody_elses_is_not_written_to(entries: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match="is no board"):
        cuebench.board(entries / "low", tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_workers_give_the_same_site(entries: Path, built: Board, tmp_path: Path) -> None:
    cuebench.board(entries, tmp_path / "site", workers=1)
    assert tree(tmp_path / "site") == tree(built.path.parent)


# ------------------------------------------------------------------------------------------------- the verb


@pytest.fixture
def output(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*arguments: str) -> tuple[int, str]:
        status = cli.invoke(["board", *arguments])
        return status, capsys.readouterr().out

    return call


def test_the_verb_builds_and_names_what_is_refused(entries: Path, copied: Path, tmp_path: Path, output: Any) -> None:
    (copied / "scores.parquet").write_bytes(b"")
    status, text = output(str(entries), str(copied), "--out", str(tmp_path / "site"), "--workers", "0", "-q")
    assert status == 1
    assert "4 observers of 4 entries in 1 ranking" in text
    assert "refused: copied\n    - scores.parquet is damaged" in text
    assert "scores.parquet is damaged" in (tmp_path / "site" / "index.html").read_text("utf-8")
    status, text = output(str(entries), "--out", str(tmp_path / "site"), "--json")
    assert status == 0
    assert (json.loads(text)["models"], json.loads(text)["known"], json.loads(text)["refused"]) == (4, 4, [])


def test_the_verb_checks_for_submitters(entries: Path, copied: Path, output: Any) -> None:
    status, text = output("check", str(entries / "low"))
    assert (status, text) == (0, "low: a board takes it; its scores follow from its answers (Low net)\n")
    rewrite(copied, limit=5)
    status, text = output("check", str(copied), "--json")
    assert status == 1
    assert json.loads(text)["problems"] == ["partial: made with --limit 5"]
    assert cli.invoke(["board", "check", "nothing"]) == 2
    assert cli.invoke(["board", "nothing", "--out", "x"]) == 2
