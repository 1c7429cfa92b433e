"""Placeholders in what participants read: a study with some is not served, except as a draft, which never counts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient

from cuebench.cli import invoke
from cuebench.errors import UserError
from cuebench.study import database as db
from cuebench.study import rehearse, serve, vendor
from cuebench.study.export import write_export
from cuebench.study.folder import NewStudy, Study, new_study, open_study
from cuebench.study.server import create_app
from small_study import answer_to, make_study

GAP = "⟨name of the institution⟩"


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """A study whose consent form has a placeholder, in both languages."""
    made = make_study(tmp_path)
    for code in ("de", "en"):
        consent = made.folder / "design" / "texts" / code / "consent.md"
        consent.write_text(f"# Consent\n\nBy {GAP}.\n", "utf-8")
    return open_study(made.folder)


def fill_in(study: Study) -> None:
    for path in study.folder.glob("design/texts/*/*.md"):
        path.write_text(path.read_text("utf-8").replace(GAP, "the institute"), "utf-8")


@pytest.fixture
def started(monkeypatch) -> list[str]:
    """Catch what would be served, for how long it takes to say so."""
    import uvicorn

    calls: list[str] = []
    monkeypatch.setattr(serve, "check_present", lambda: None)
    monkeypatch.setattr(serve, "_allow_connections", lambda: None)
    monkeypatch.setattr(serve.os, "environ", dict(serve.os.environ))
    monkeypatch.setattr(uvicorn, "Config", lambda app, **_: app)
    monkeypatch.setattr(uvicorn, "Server", lambda app: SimpleNamespace(run=lambda sockets: calls.append(app)))
    return calls


def test_placeholders_are_not_put_before_participants(study, started, capsys):
    assert invoke(["study", "serve", str(study.folder), "--port", "0"]) == 2
    said = capsys.readouterr().err
    for code in ("de", "en"):
        assert f"design/texts/{code}/consent.md: {GAP}" in said
    assert not started
    assert not (study.folder / "study.sqlite").exists()
    # What the message says works.
    command = re.search(r"cuebench (study serve \S+ --draft)", said)[1].split()
    assert invoke([*command, "--port", "0"]) == 0
    assert "a draft: answers do not count" in capsys.readouterr().out
    fill_in(study)
    assert invoke(["study", "serve", str(study.folder), "--port", "0"]) == 0
    assert len(started) == 2


def test_every_text_is_looked_at(study):
    fill_in(study)
    assert open_study(study.folder).gaps == []
    words = study.folder / "design" / "texts" / "en" / "words.toml"
    words.write_text('title = "⟨title⟩"\n[options]\ncat = "⟨a\\n cat⟩"\n', "utf-8")
    timeline = study.folder / "design" / "timeline.json"
    nodes = json.loads(timeline.read_text("utf-8"))
    nodes["timeline"][0]["timeline"][0]["prompt"] = "<p>⟨a question⟩</p>"
    timeline.write_text(json.dumps(nodes), "utf-8")
    settings = study.folder / "study.toml"
    settings.write_text(settings.read_text("utf-8").replace('contact = ""', 'contact = "⟨whom to ask⟩"'), "utf-8")
    assert open_study(study.folder).gaps == [
        "design/timeline.json: ⟨a question⟩",
        "design/texts/en/words.toml: ⟨title⟩",
        "design/texts/en/words.toml: ⟨a cat⟩",
        "study.toml: ⟨whom to ask⟩",
    ]


def test_only_languages_that_are_offered_are_looked_at(tmp_path):
    study = new_study(tmp_path / "study", NewStudy(design="triplets", languages=("de",)))
    assert {gap.partition(":")[0] for gap in study.gaps} == {"design/texts/de/consent.md"}


def test_answers_of_a_draft_never_count(study, tmp_path):
    draft = open_study(study.folder, draft=True)
    with TestClient(create_app(draft, db.Database(draft.database_url))) as client:
        assert client.get("/api/study").json()["draft"] is True
        session = client.post("/api/participants", json={"consent": True}).json()
        held = {"Authorization": f"Bearer {session['token']}"}
        client.post("/api/answers", json=answer_to(session["trials"][0]), headers=held)
    assert (study.folder / "draft.sqlite").is_file()
    fill_in(study)
    for again in (open_study(study.folder, draft=True), open_study(study.folder)):  # with texts that have changed since
        database = db.Database(again.database_url)
        database.prepare(again.facts)
        rows = write_export(again, database, tmp_path / "answers.csv")
        database.close()
        assert [row["excluded"] for row in rows] == ["experimenter: draft"] * again.draft
    with TestClient(create_app(again, db.Database(again.database_url))) as client:
        assert client.get("/api/study").json()["draft"] is False
        assert client.post("/api/participants", json={"consent": True}).json()["participant"] == "p0001"
    mixed = db.Database(draft.database_url)
    with pytest.raises(UserError, match="holds a draft of this study"):
        mixed.prepare(again.facts)


def test_the_export_of_a_draft_says_what_it_is(study, tmp_path, capsys):
    test_answers_of_a_draft_never_count(study, tmp_path)
    command = ["study", "export", str(study.folder), "--out", str(tmp_path / "draft.csv")]
    assert invoke([*command, "--draft"]) == 0
    assert "1 answers of 1 people\nexcluded: 1 trials, experimenter: draft" in capsys.readouterr().out
    assert invoke(command) == 0
    assert "0 answers" in capsys.readouterr().out


def test_a_new_study_says_what_to_fill_in(tmp_path, capsys):
    assert invoke(["study", "new", str(tmp_path / "s"), "--design", "triplets", "-q"]) == 0
    assert capsys.readouterr().out == ""
    command = ["study", "new", str(tmp_path / "t"), "--design", "triplets", "--language", "en"]
    assert invoke(command) == 0
    said = capsys.readouterr().out
    assert f"fill in {tmp_path / 't' / 'design/texts/en/consent.md'}: {GAP}" in said
    assert f"try it:  cuebench study serve {tmp_path / 't'} --draft" in said
    assert invoke([*command[:2], str(tmp_path / "u"), *command[3:], "--json"]) == 0
    assert f"design/texts/en/consent.md: {GAP}" in json.loads(capsys.readouterr().out)["fill_in"]


def test_a_bundle_says_what_to_fill_in_and_takes_no_draft_along(study, tmp_path, capsys):
    (study.folder / "draft.sqlite").write_bytes(b"")
    out = tmp_path / "bundle"
    assert invoke(["study", "bundle", str(study.folder), "--out", str(out), "--domain", "study.example.org"]) == 0
    said = capsys.readouterr().out
    assert f"fill in {out / 'study' / 'design/texts/en/consent.md'}: {GAP}" in said
    assert not list((out / "study").glob("*.sqlite*"))


@pytest.mark.slow
def test_a_rehearsal_needs_no_finished_texts_and_its_answers_are_analysed(study, tmp_path):
    if vendor.missing():
        pytest.skip(f"needs jsPsych: {vendor.COMMAND}")
    result = rehearse.rehearse(study.folder, participants=2, browser=False, out=tmp_path / "answers.csv")
    assert not result.problems
    assert "draft" not in (tmp_path / "answers.csv").read_text("utf-8")
    assert not list(study.folder.glob("*.sqlite*"))
