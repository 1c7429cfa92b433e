"""The server as a process: under load, killed, told to stop, behind a prefix. No answer is lost or doubled."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import signal
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cuebench.study import database as db
from cuebench.study.rehearse import Client, running_server

REPOSITORY = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgresql")]


@pytest.fixture(scope="module")
def load():
    """The load test of ``benchmarks/study.py``."""
    spec = importlib.util.spec_from_file_location("study_load", REPOSITORY / "benchmarks" / "study.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def study(load, tmp_path):
    return load.make_study(tmp_path, trials=16)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_no_answer_is_lost_or_doubled_when_the_server_is_killed(load, study, kind, request):
    url = "" if kind == "sqlite" else request.getfixturevalue("postgresql")
    outcome = load.measure(study, url, participants=30, trials=16, pace=0.05, kills=1)
    assert outcome.right, outcome
    assert outcome.stored == 30 * 16
    assert outcome.interrupted > 0, "the server was not killed in the middle"
    assert outcome.repeated > 0


def test_several_processes_share_a_study(load, study):
    outcome = load.measure(study, "", participants=30, trials=16, pace=0.05, kills=1, workers=2)
    assert outcome.right, outcome


def test_a_thousand_connections_that_say_nothing_stop_nobody(study, tmp_path):
    """Also on a system that allows 256 open files unless it is asked for more."""
    resource = pytest.importorskip("resource", reason="open files are limited on POSIX only")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if min(soft, hard) < 1_500:
        pytest.skip(f"needs 1,500 open files, {min(soft, hard)} are allowed: ulimit -n 4096")
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        server = running_server(study.folder)
        running = server.__enter__()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with contextlib.ExitStack() as stack:
        stack.callback(server.__exit__, None, None, None)
        client = stack.enter_context(contextlib.closing(Client(running.address)))
        session = client.ask("POST", "/api/participants", {"consent": True})
        client.token = session["token"]
        place = urlsplit(running.address)
        for number in range(1_000):
            held = stack.enter_context(socket.create_connection((place.hostname, place.port), 20))
            if number % 2:
                held.sendall(b"POST /api/answers HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\n{")
        for trial in session["trials"]:
            answer = {"position": trial["position"], "response": trial["options"][:1], "rt_ms": 500}
            assert client.ask("POST", "/api/answers", answer) == {"next": trial["position"] + 1}
        with contextlib.closing(Client(running.address)) as another:
            assert another.ask("GET", "/health")["status"] == "ok"
        assert client.ask("POST", "/api/finish")["code"]


def test_the_count_would_notice_a_lost_and_a_changed_answer(load, study, monkeypatch):
    real = db.read_answers

    def damaged(connection):
        for i, stored in enumerate(real(connection)):
            if i == 5:
                continue
            yield stored._replace(participant=2) if i == 7 else stored

    monkeypatch.setattr(db, "read_answers", damaged)
    outcome = load.measure(study, "", participants=3, trials=16, pace=0.01, kills=0)
    assert not outcome.right
    assert outcome.lost


def test_a_server_that_is_told_to_stop_stores_what_it_was_sent(load, study):
    server = load.Server(study, "", root_path="/lab/study")
    server.start()

    async def answer_and_stop() -> tuple[set[str], int]:
        await load.until_healthy(server)
        clients = [load.Client(server.port) for _ in range(20)]
        for path in ("/", "/admin", "/web/admin.css", "/api/study"):
            assert (await clients[0].ask("GET", path))[0] == 200, path
        starts = [client.ask("POST", "/api/participants", body={"consent": True}) for client in clients]
        sessions = [json.loads(data) for _, data in await asyncio.gather(*starts)]
        answers = [
            client.ask("POST", "/api/answers", s["token"], {"position": 0, "response": s["trials"][0]["options"][:1]})
            for client, s in zip(clients, sessions)
        ]
        on_their_way = [asyncio.ensure_future(answer) for answer in answers]
        await asyncio.sleep(0)
        server.process.send_signal(signal.SIGTERM)
        results = await asyncio.gather(*on_their_way, return_exceptions=True)
        done = {s["participant"] for s, r in zip(sessions, results) if not isinstance(r, Exception) and r[0] == 201}
        return done, await asyncio.to_thread(server.process.wait, 60)

    try:
        acknowledged, status = asyncio.run(answer_and_stop())
    finally:
        server.stop(signal.SIGKILL)
    assert status in (0, -signal.SIGTERM)
    database = db.Database(study.database_url)
    with database.reading() as connection:
        stored = {db.participant_name(answer.participant) for answer in db.read_answers(connection)}
    database.close()
    assert acknowledged <= stored
    # An orderly end leaves one file, which can be copied as it is.
    assert not study.folder.joinpath("study.sqlite-wal").exists()
