"""Somebody who has begun comes again: the same browser, another one, somebody else with their identifier."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.testclient import TestClient

from cuebench.study import database as db
from cuebench.study.export import export_rows
from cuebench.study.server import create_app
from small_study import answer_to, make_study

SOURCES = ("PROLIFIC_PID", "workerId", "id")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_study(tmp_path_factory.mktemp("study"))


@pytest.fixture
def study(made):
    for file in made.folder.glob("study.sqlite*"):
        file.unlink()
    return made


@pytest.fixture
def client(study):
    with TestClient(create_app(study, db.Database(study.database_url))) as client:
        yield client


def begin(client: TestClient, token: str = "", **values):
    held = {"Authorization": f"Bearer {token}"} if token else {}
    return client.post("/api/participants", json={"consent": True, **values}, headers=held)


def people(study) -> list[db.Participant]:
    with db.Database(study.database_url).reading() as connection:
        return db.participants(connection)


def ask_admin(client: TestClient, study, path: str, **body):
    held = {"Authorization": f"Bearer {study.secrets.admin_token}"}
    return client.post(f"/api/admin/{path}", json=body, headers=held)


@pytest.mark.parametrize("source", SOURCES)
def test_an_identifier_alone_gives_nobody_s_token(client, study, source):
    first = begin(client, entry={source: "anna"}).json()
    stranger = begin(client).json()
    for token in ("", stranger["token"], first["token"][:-1] + "?", "nonsense"):
        refused = begin(client, token, entry={source: "anna"}, key="another-browser-1")
        assert (refused.status_code, refused.json()["code"]) == (409, "begun")
        assert first["token"] not in refused.text
        assert "p0001" not in refused.text
    assert len(people(study)) == 2
    assert begin(client, first["token"], entry={source: "anna"}).json() == first


def test_a_request_that_is_sent_again_is_the_same_start(client, study):
    for values in ({"entry": {"id": "anna"}, "key": "anna-s-browser-01"}, {"key": "bert-s-browser-01"}):
        first, again = begin(client, **values), begin(client, **values)
        assert (first.status_code, again.json()) == (200, first.json())
    assert len(people(study)) == 2
    stored = b"".join(path.read_bytes() for path in study.folder.glob("study.sqlite*"))
    assert b"-s-browser-01" not in stored


@pytest.mark.parametrize("key", ["short", "x" * 101, "with spaces in it and long", "ä" * 20])
def test_a_key_is_long_and_plain(client, key):
    assert begin(client, key=key).status_code == 422


def test_two_who_start_with_one_identifier_at_once_are_one_participant(client, study):
    with ThreadPoolExecutor(8) as pool:
        keys = [f"browser-number-{i:04d}" for i in range(8)]
        replies = list(pool.map(lambda key: begin(client, entry={"PROLIFIC_PID": "anna"}, key=key), keys))
    assert sorted(r.status_code for r in replies) == [200, *[409] * 7]
    assert len(people(study)) == 1


def test_the_experimenter_finds_the_link_of_an_identifier(client, study):
    first = begin(client, entry={"workerId": "anna"}).json()
    assert ask_admin(client, study, "find", identifier=" anna ").json() == {"participants": ["p0001"]}
    assert ask_admin(client, study, "find", identifier="bert").json() == {"participants": []}
    link = ask_admin(client, study, "link", participant="p0001").json()
    assert link == {"participant": "p0001", "token": first["token"]}
    assert ask_admin(client, study, "link", participant="p0009").status_code == 404


def test_the_experimenter_lets_an_identifier_begin_anew(client, study):
    first = begin(client, entry={"id": "anna"}, key="anna-s-browser-01").json()
    old = {"Authorization": f"Bearer {first['token']}"}
    client.post("/api/answers", json=answer_to(first["trials"][0]), headers=old)
    assert ask_admin(client, study, "replace", participant="p0001").json()["excluded"] == "began anew"
    # The old session is over, also for the browser that began it.
    assert client.get("/api/session", headers=old).status_code == 401
    assert client.post("/api/answers", json=answer_to(first["trials"][1]), headers=old).status_code == 401
    assert ask_admin(client, study, "link", participant="p0001").json()["code"] == "replaced"
    again = begin(client, first["token"], entry={"id": "anna"}, key="anna-s-browser-01").json()
    assert (again["participant"], again["next"]) == ("p0002", 0)
    assert again["trials"] == first["trials"]  # the assignment was given back
    assert begin(client, entry={"id": "anna"}).status_code == 409
    (row,) = export_rows(study, db.Database(study.database_url))
    assert (row["participant"], row["excluded"]) == ("p0001", "experimenter: began anew")


@pytest.mark.parametrize("path", ["find", "link", "replace"])
def test_only_the_experimenter_may_ask(client, path):
    begin(client, entry={"id": "anna"})
    for body in ({"participant": "p0001"}, {"identifier": "anna"}):
        assert client.post(f"/api/admin/{path}", json=body).status_code == 401
