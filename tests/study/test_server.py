"""A study over HTTP: sessions from the consent to the completion code, the export, the admin routes."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from fastapi.testclient import TestClient

from cuebench.errors import UserError
from cuebench.observers.base import LoadOptions
from cuebench.observers.load import load
from cuebench.study import database as db
from cuebench.study.admin import agreement
from cuebench.study.export import COLUMNS, chosen_cue, export_rows, write_export
from cuebench.study.server import create_app
from cuebench.study.types import StudyImage, Trial
from small_study import TRIALS, answer_to, make_study


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_study(tmp_path_factory.mktemp("study"))


@pytest.fixture
def study(made):
    for file in made.folder.glob("study.sqlite*"):
        file.unlink()
    return made


@pytest.fixture
def serve(study):
    """Serve the study with other settings."""
    clients = []

    def serve(**settings) -> TestClient:
        changed = replace(study, settings=replace(study.settings, **settings))
        clients.append(TestClient(create_app(changed, db.Database(study.database_url))).__enter__())
        return clients[-1]

    yield serve
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture
def client(serve):
    return serve(requests_per_second=0, starts_per_minute=0)


def begin(client: TestClient, held: dict[str, str] | None = None, **values) -> dict:
    response = client.post("/api/participants", json={"consent": True, **values}, headers=held)
    assert response.status_code == 200, response.text
    return response.json()


def headers(session: dict) -> dict[str, str]:
    return {"Authorization": f"Bearer {session['token']}"}


def take_part(client: TestClient, choose=lambda trial: trial["options"][:1], **values) -> dict:
    """Take part until the end."""
    session = begin(client, **values)
    for trial in session["trials"]:
        answer = answer_to(trial, response=choose(trial))
        assert client.post("/api/answers", json=answer, headers=headers(session)).status_code == 201
    return {**session, **client.post("/api/finish", headers=headers(session)).json()}


def admin(study) -> dict[str, str]:
    return {"Authorization": f"Bearer {study.secrets.admin_token}"}


# ------------------------------------------------------------------------------------------------- sessions


def test_a_session_from_the_consent_to_the_completion_code(client, study):
    session = begin(client)
    assert (session["participant"], session["group"], session["next"]) == ("p0001", "A", 0)
    assert [trial["position"] for trial in session["trials"]] == list(range(TRIALS))
    for trial in session["trials"]:
        stored = client.post("/api/answers", json=answer_to(trial), headers=headers(session))
        assert (stored.status_code, stored.json()) == (201, {"next": trial["position"] + 1})
        # It is in the database before the next trial can appear.
        with db.Database(study.database_url).reading() as connection:
            assert db.next_position(connection, 1) == trial["position"] + 1
    first, second = (client.post("/api/finish", headers=headers(session)) for _ in range(2))
    assert first.status_code == 200
    assert first.json() == second.json()
    assert len(first.json()["code"]) == 10


def test_the_page_is_never_told_what_is_right(client, study):
    session = begin(client)
    texts = [client.get(path, headers=headers(session)).text for path in ("/api/study", "/api/session")]
    _, trials = study.assign(0)
    assert any(trial.correct for trial in trials)
    assert "correct" not in "".join([json.dumps(session), *texts])
    names = {image.name for image in study.images.values() if image.role == "trial"}
    assert not any(name in text for name in names for text in [json.dumps(session), *texts])


def test_images_of_a_session_are_there_and_have_the_hash_that_the_page_checks(client):
    import hashlib

    session = begin(client)
    assert {i for trial in session["trials"] for i in trial["stimuli"]} <= {image["id"] for image in session["images"]}
    for image in session["images"]:
        response = client.get(f"/{image['url']}")
        assert hashlib.sha256(response.content).hexdigest() == image["sha256"]
        assert len(response.content) == image["bytes"]
        assert "immutable" in response.headers["cache-control"]
        assert response.headers["content-type"] == "image/png"


def test_a_closed_tab_goes_on_where_it_stopped_also_after_a_restart(serve):
    session = begin(first := serve())
    for trial in session["trials"][:3]:
        first.post("/api/answers", json=answer_to(trial), headers=headers(session))
    again = serve().get("/api/session", headers=headers(session)).json()
    assert again == {**session, "next": 3}


def test_a_server_that_died_before_it_stored_the_trials_draws_the_same_again(serve, study, monkeypatch):
    monkeypatch.setattr(db, "store_trials", lambda *_: None)
    session = begin(serve())
    again = serve().get("/api/session", headers=headers(session)).json()
    assert again == session
    serve().post("/api/answers", json=answer_to(session["trials"][0]), headers=headers(session))
    (row,) = export_rows(study, db.Database(study.database_url))
    assert (row["group"], row["options"].split("|")) == ("A", session["trials"][0]["options"])


def test_an_answer_that_is_sent_twice_counts_once(client, study):
    session = begin(client)
    trial = session["trials"][0]
    answers = [answer_to(trial, response=[option]) for option in trial["options"][:2]]
    statuses = [client.post("/api/answers", json=a, headers=headers(session)).status_code for a in answers]
    assert statuses == [201, 200]
    (row,) = export_rows(study, db.Database(study.database_url))
    assert row["response"] == trial["options"][0]


def test_positions_are_answered_in_order_and_all_before_the_end(client):
    session = begin(client)
    later = client.post("/api/answers", json=answer_to(session["trials"][1]), headers=headers(session))
    assert (later.status_code, later.json()["code"]) == (409, "not_next")
    end = client.post("/api/finish", headers=headers(session))
    assert (end.status_code, end.json()["detail"]) == (409, f"{TRIALS} trials have no answer yet")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"response": ["zebra"]}, "response"),
        ({"response": ["cat", "dog"]}, "response"),
        ({"response": ["cat", "cat"]}, "response"),
        ({"position": TRIALS}, "position"),
        ({"client": {str(i): "x" * 90 for i in range(40)}}, "client"),
    ],
)
def test_an_answer_must_fit_its_trial(client, change, code):
    session = begin(client)
    response = client.post("/api/answers", json=answer_to(session["trials"][0], **change), headers=headers(session))
    assert (response.status_code, response.json()["code"]) == (422, code)
    assert client.get("/api/session", headers=headers(session)).json()["next"] == 0


def test_free_text_is_taken_where_it_is_asked_for(client, study):
    session = begin(client)
    for trial in session["trials"]:
        answer = answer_to(trial, text="seen\u0000 <b>before</b>" if trial["free"] else "")
        assert client.post("/api/answers", json=answer, headers=headers(session)).status_code == 201
    rows = export_rows(study, db.Database(study.database_url))
    assert {row["text"] for row in rows if row["block"] == "shape"} == {"seen\ufffd <b>before</b>"}
    other = begin(client)
    closed = next(trial for trial in other["trials"] if not trial["free"])
    assert other["group"] == "B"
    assert closed["position"] == 0
    response = client.post("/api/answers", json=answer_to(closed, text="x"), headers=headers(other))
    assert (response.status_code, response.json()["code"]) == (422, "text")


def test_no_answer_in_time_is_an_answer(client, study):
    take_part(client, choose=lambda trial: [])
    rows = export_rows(study, db.Database(study.database_url))
    assert {row["response"] for row in rows} == {""}
    assert {row["correct"] for row in rows} == {False}


def test_groups_are_balanced(client):
    assert [begin(client)["group"] for _ in range(6)] == ["A", "B"] * 3


# ------------------------------------------------------------------------------------------- where people come from


def test_somebody_of_prolific_finds_their_session_again_and_their_identifier_is_not_stored(client, study):
    entry = {"PROLIFIC_PID": "5f1e2d3c4b5a69788766aa01", "STUDY_ID": "study77", "SESSION_ID": "session88"}
    session = begin(client, entry=entry)
    client.post("/api/answers", json=answer_to(session["trials"][0]), headers=headers(session))
    again = begin(client, headers(session), entry={**entry, "SESSION_ID": "another"})
    assert again == {**session, "next": 1}
    assert begin(client, entry={"PROLIFIC_PID": "5f1e2d3c4b5a69788766aa02"})["participant"] == "p0002"
    files = b"".join(path.read_bytes() for path in study.folder.glob("study.sqlite*"))
    assert b"prolific" in files
    assert not any(value.encode() in files for value in entry.values())
    assert b"testclient" not in files  # the address that this test comes from


def test_a_preview_of_mturk_starts_nothing(client, study):
    entry = {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE", "hitId": "h"}
    response = client.post("/api/participants", json={"consent": True, "entry": entry})
    assert (response.status_code, response.json()["code"]) == (403, "preview")
    assert begin(client, entry={"assignmentId": "a", "workerId": "w", "hitId": "h"})["participant"] == "p0001"


def test_nobody_takes_part_without_consent(client):
    response = client.post("/api/participants", json={"consent": False})
    assert (response.status_code, response.json()["code"]) == (403, "consent")
    assert client.post("/api/participants", json={}).status_code == 422
    assert begin(client)["participant"] == "p0001"


def test_a_full_study_says_so(serve):
    client = serve(participants=1)
    begin(client)
    response = client.post("/api/participants", json={"consent": True})
    assert (response.status_code, response.json()["code"]) == (403, "full")


def test_codes_and_addresses_to_return_to(serve, study):
    own = {take_part(client)["code"] for client in [serve(requests_per_second=0)] for _ in range(2)}
    assert len(own) == 2
    fixed = serve(completion_code="C0DE", return_url="https://app.example/done?cc={code}", requests_per_second=0)
    done = take_part(fixed)
    assert (done["code"], done["url"]) == ("C0DE", "https://app.example/done?cc=C0DE")
    assert {r["code"] for r in fixed.get("/api/admin/progress", headers=admin(study)).json()["rows"]} == {""}


@pytest.mark.parametrize(("wanted", "spoken"), [("de", "de"), ("de-AT", "de"), ("fr", "en"), ("", "en")])
def test_languages(client, wanted, spoken):
    shown = client.get("/api/study", params={"lang": wanted}).json()
    assert shown["language"] == spoken
    assert shown["title"] == {"de": "Eine kleine Studie", "en": "A small study"}[spoken]
    assert "<em>" in shown["consent"]
    assert "<script" not in json.dumps(shown)
    assert set(shown["languages"]) == {"de", "en"}
    assert begin(client, language=wanted)["language"] == spoken


def test_a_study_can_offer_fewer_languages_than_its_design(serve):
    shown = serve(languages=("de",)).get("/api/study", params={"lang": "en"}).json()
    assert (shown["language"], set(shown["languages"])) == ("de", {"de"})


# ------------------------------------------------------------------------------------------------- the export


def by_shape(study):
    """Return a participant who always answers the class of the shape, and who passes all checks."""
    return lambda trial: [study.images[trial["stimuli"][0]].shape]


def test_the_export_holds_every_answer_and_recorded_reads_it(client, study, tmp_path):
    for _ in range(3):
        take_part(client, by_shape(study))
    half = begin(client)
    client.post("/api/answers", json=answer_to(half["trials"][0]), headers=headers(half))
    database = db.Database(study.database_url)
    rows = write_export(study, database, tmp_path / "answers.parquet")
    assert len(rows) == 3 * TRIALS + 1
    assert tuple(rows[0]) == COLUMNS
    trials = [row for row in rows if row["kind"] == "trial"]
    assert {row["chosen"] for row in trials[:-1]} == {"shape"}
    assert all(row["correct"] == (row["task"] == "shape") for row in trials if row["finished"])
    assert all(row["correct"] is True for row in rows if row["kind"] == "attention")
    assert [row["excluded"] for row in rows if not row["finished"]] == ["not finished"]
    assert {row["excluded"] for row in rows if row["finished"]} == {""}
    assert {row["rules_sha256"] for row in rows} == {study.settings.rules_sha256}
    spec = f"recorded:{tmp_path / 'answers.parquet'}?task=shape"
    observers = load(spec, LoadOptions(targets=("car", "cat", "clock", "dog")))
    assert {o.name for o in observers} == {"p0001", "p0002", "p0003", "people"}
    assert {o.kind for o in observers} == {"person", "people"}


def test_csv_and_parquet_hold_the_same(client, study):
    take_part(client, by_shape(study), language="de")
    data = {kind: client.get(f"/api/admin/export.{kind}", headers=admin(study)) for kind in ("csv", "parquet")}
    assert "attachment" in data["csv"].headers["content-disposition"]
    parquet = pyarrow.parquet.read_table(io.BytesIO(data["parquet"].content))
    texts = pyarrow.csv.ConvertOptions(column_types=parquet.schema, strings_can_be_null=False)
    csv = pyarrow.csv.read_csv(io.BytesIO(data["csv"].content), convert_options=texts)
    assert csv.to_pylist() == parquet.to_pylist()
    assert tuple(parquet.column_names) == COLUMNS


def test_an_export_of_another_kind_is_refused(study, tmp_path):
    with pytest.raises(UserError, match="is neither"):
        write_export(study, db.Database(study.database_url), tmp_path / "answers.xlsx")


def image(name: str, shape: str, texture: str) -> StudyImage:
    return StudyImage(name, f"{name}.png", "", 0, name, shape=shape, texture=texture)


@pytest.mark.parametrize(
    ("task", "response", "cue"),
    [
        ("category", ["cat"], "shape"),
        ("category", ["dog"], "texture"),
        ("texture", ["car"], "neither"),
        ("category", [], ""),
        ("words", ["dog"], ""),
    ],
)
def test_the_cue_that_an_answer_follows(task, response, cue):
    assert chosen_cue(Trial(0, "b", task), response, [image("a", "cat", "dog")]) == cue


@pytest.mark.parametrize(("response", "cue"), [("b", "shape"), ("c", "texture"), ("d", "")])
def test_the_match_that_was_chosen(response, cue):
    shown = [image("a", "cat", "dog"), image("b", "cat", "car"), image("c", "bus", "dog")]
    assert chosen_cue(Trial(0, "b", "same_kind"), [response], shown) == cue


def test_an_image_without_conflict_follows_no_cue():
    for shown in (image("a", "cat", "cat"), image("a", "cat", "")):
        assert chosen_cue(Trial(0, "b", "shape"), ["cat"], [shown]) == ""


# -------------------------------------------------------------------------------------------------- the admin page


def test_progress(client, study):
    done = [take_part(client, by_shape(study)) for _ in range(3)]
    half = begin(client, entry={"workerId": "w"})
    client.post("/api/answers", json=answer_to(half["trials"][0]), headers=headers(half))
    shown = client.get("/api/admin/progress", headers=admin(study)).json()
    assert shown["states"] == {"finished": 3, "active": 1}
    assert shown["groups"] == {"A": {"finished": 2}, "B": {"finished": 1, "active": 1}}
    assert shown["answers"] == 3 * TRIALS + 1
    row = shown["rows"][3]
    assert (row["participant"], row["source"], row["answered"], row["trials"]) == ("p0004", "mturk", 1, TRIALS)
    assert [r["attention"] for r in shown["rows"][:3]] == [[2, 2]] * 3
    # The code that somebody shows for their pay, or to withdraw, says who they are.
    assert [r["code"] for r in shown["rows"]] == [*(d["code"] for d in done), ""]


def test_excluding_somebody_keeps_their_answers(client, study):
    take_part(client, by_shape(study))
    decision = {"participant": "p0001", "reason": "asked to withdraw"}
    assert client.post("/api/admin/exclude", json=decision, headers=admin(study)).status_code == 200
    rows = export_rows(study, db.Database(study.database_url))
    assert {row["excluded"] for row in rows} == {"experimenter: asked to withdraw"}
    assert client.get("/api/admin/progress", headers=admin(study)).json()["excluded"] == 1
    client.post("/api/admin/exclude", json={"participant": "p0001"}, headers=admin(study))
    assert {row["excluded"] for row in export_rows(study, db.Database(study.database_url))} == {""}
    for unknown in ("p0002", "p00001"):
        response = client.post("/api/admin/exclude", json={"participant": unknown}, headers=admin(study))
        assert response.status_code == 404


def test_agreement_leaves_out_what_the_rules_exclude(client, study):
    right = by_shape(study)
    for choose in (right, right, lambda trial: [next(o for o in trial["options"] if o not in right(trial))]):
        take_part(client, choose)
    shown = client.get("/api/admin/agreement", headers=admin(study)).json()
    (task,) = [task for task in shown["tasks"] if task["task"] == "shape"]
    assert (task["people"], task["accuracy"], task["kappa"], task["images"]) == (2, 1, 1, 4)
    assert (shown["excluded"], shown["trials"]) == ({"attention checks: less than 75% right": 8}, 24)


def test_agreement_is_fleiss_kappa():
    rng = np.random.default_rng(0)
    true, noise = rng.integers(0, 3, 30), rng.integers(0, 3, (30, 7))
    answers = np.where(rng.random((30, 7)) < 0.6, true[:, None], noise)
    common = {"kind": "trial", "task": "category", "excluded": "", "correct": None, "chosen": "", "rt_ms": None}
    rows = [
        {**common, "participant": f"p{p}", "stimulus": f"s{i}", "response": "abc"[answers[i, p]]}
        for i in range(30)
        for p in range(7)
    ]
    (task,) = agreement(rows)["tasks"]
    pairs = [np.mean([a == b for j, a in enumerate(row) for k, b in enumerate(row) if j != k]) for row in answers]
    chance = sum(np.mean(answers == c) ** 2 for c in range(3))
    assert task["kappa"] == pytest.approx((np.mean(pairs) - chance) / (1 - chance))
    assert task["kappa_low"] < task["kappa"] < task["kappa_high"]


def test_before_anybody_came(client, study):
    assert client.get("/api/admin/agreement", headers=admin(study)).json()["tasks"] == []
    assert client.get("/api/admin/progress", headers=admin(study)).json()["participants"] == 0
    assert client.get("/api/admin/export.csv", headers=admin(study)).text.startswith("study,design")
    assert client.get("/health").json()["status"] == "ok"
