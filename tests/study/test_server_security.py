"""Attacks on the server of a study: other people's sessions, the admin routes, paths, bodies, texts, many requests."""

from __future__ import annotations

import asyncio
import hmac
import json
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient

from cuebench.errors import UserError
from cuebench.study import database as db
from cuebench.study import guards, secrets
from cuebench.study.export import csv_bytes, export_rows
from cuebench.study.limits import Limiter, Rate, address_key
from cuebench.study.markdown import to_html
from cuebench.study.server import create_app
from small_study import TRIALS, answer_to, make_study

ADMIN = ("progress", "agreement", "export.csv", "export.parquet")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    made = make_study(tmp_path_factory.mktemp("study"))
    return replace(made, settings=replace(made.settings, requests_per_second=0, starts_per_minute=0))


@pytest.fixture(scope="module")
def client(study):
    with TestClient(create_app(study, db.Database(study.database_url)), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(autouse=True)
def _no_limit_of_wrong_tokens(monkeypatch, request):
    if not {"slowed", "permissions"} & set(request.node.name.split("_")):
        monkeypatch.setattr(Limiter, "wait", lambda self, key: 0.0)


def begin(client: TestClient) -> dict:
    return client.post("/api/participants", json={"consent": True}).json()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def count(study) -> int:
    return len(export_rows(study, db.Database(study.database_url)))


# ------------------------------------------------------------------------------------------------- other people


def test_a_token_opens_one_session(client, study):
    anna, bert = begin(client), begin(client)
    client.post("/api/answers", json=answer_to(anna["trials"][0]), headers=bearer(anna["token"]))
    assert client.get("/api/session", headers=bearer(bert["token"])).json()["next"] == 0
    assert client.get("/api/session", headers=bearer(anna["token"])).json()["next"] == 1
    # Nothing that a participant can ask for holds an answer, not even their own.
    assert "rt_ms" not in client.get("/api/session", headers=bearer(anna["token"])).text


def test_tokens_cannot_be_made_from_others(client, study):
    session = begin(client)
    number, _, digest = session["token"].partition(".")
    other = str(int(number) - 1 or 2)
    forged = [
        f"{other}.{digest}",
        number,
        f"{number}.",
        f"{number}.{digest[:-1]}",
        f"{number}.{digest}A",
        f"0{session['token']}",
        f"{number}.{digest.swapcase()}",
        f"-{session['token']}",
        f"١.{digest}",
        "9" * 4000 + "." + digest,
        "",
        "null",
    ]
    before = count(study)
    for token in forged:
        headers = {"Authorization": f"Bearer {token}".encode()}
        for method, path in (("GET", "session"), ("POST", "answers"), ("POST", "finish")):
            body = {"json": answer_to(session["trials"][0])} if path == "answers" else {}
            response = client.request(method, f"/api/{path}", headers=headers, **body)
            assert response.status_code == 401, (token[:20], path)
    assert client.post("/api/finish").status_code == 401
    assert count(study) == before


def test_a_valid_token_of_nobody_is_refused(client, study):
    response = client.get("/api/session", headers=bearer(study.secrets.token(999_999)))
    assert (response.status_code, response.json()["code"]) == (401, "unknown")


def test_tokens_of_another_study_do_not_fit(study):
    other = secrets.Secrets("k" * 64, "t" * 32)
    assert study.secrets.number_of(other.token(1)) is None
    assert study.secrets.number_of(study.secrets.token(1)) == 1
    assert study.secrets.entry_hash("prolific", "anna") != other.entry_hash("prolific", "anna")
    assert study.secrets.entry_hash("prolific", "anna") != study.secrets.entry_hash("mturk", "anna")


def test_the_database_holds_no_token(client, study):
    session = begin(client)
    stored = b"".join(path.read_bytes() for path in study.folder.glob("study.sqlite*"))
    assert session["token"].partition(".")[2].encode() not in stored


# ------------------------------------------------------------------------------------------------- the admin routes


@pytest.mark.parametrize("path", ADMIN)
def test_admin_routes_refuse_without_the_token(client, study, path):
    session = begin(client)
    wrong = [
        {},
        bearer(session["token"]),
        bearer(study.secrets.admin_token[:-1]),
        bearer(study.secrets.admin_token + "x"),
        bearer(study.secrets.key),
        {"Authorization": f"Basic {study.secrets.admin_token}"},
        {"X-Admin-Token": study.secrets.admin_token},
    ]
    for headers in wrong:
        response = client.get(f"/api/admin/{path}", headers=headers)
        assert response.status_code == 401
        assert response.headers["www-authenticate"] == "Bearer"
    assert client.get(f"/api/admin/{path}", params={"token": study.secrets.admin_token}).status_code == 401
    assert client.get(f"/api/admin/{path}", headers=bearer(study.secrets.admin_token)).status_code == 200


def test_nobody_is_excluded_without_the_token(client, study):
    session = begin(client)
    decision = {"participant": session["participant"], "reason": "mischief"}
    assert client.post("/api/admin/exclude", json=decision, headers=bearer(session["token"])).status_code == 401
    shown = client.get("/api/admin/progress", headers=bearer(study.secrets.admin_token)).json()
    assert shown["excluded"] == 0


def test_every_route_below_admin_is_guarded(client):
    description = client.get("/openapi.json").json()
    routes = [(method, path) for path, of in description["paths"].items() for method in of if "/admin" in path]
    assert len(routes) == len(ADMIN) + len(("exclude", "find", "link", "replace"))
    for method, path in routes:
        assert client.request(method, path, json={"participant": "p0001"}).status_code == 401


def test_tokens_are_compared_in_constant_time(study, monkeypatch):
    compared = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append((a, b)) or real(a, b))
    assert not study.secrets.is_admin("wrong")
    assert study.secrets.is_admin(study.secrets.admin_token)
    assert study.secrets.number_of(study.secrets.token(3)) == 3
    assert study.secrets.number_of("3.wrong") is None
    assert len(compared) == 4


def test_secrets_are_for_the_owner_only(study):
    assert (study.folder / "secret").stat().st_mode & 0o077 == 0
    (copy := study.folder.parent / "weak").mkdir()
    (copy / "secret").write_text('key = "short"\nadmin_token = ""\n')
    with pytest.raises(UserError, match="fewer than 16"):
        secrets.read_secrets(copy)


# ------------------------------------------------------------------------------------------------- paths and bodies


def raw_get(client: TestClient, path: str):
    """Ask for a path as it is written: clients resolve dots before they send."""
    from urllib.parse import unquote

    messages = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        messages.append(message)

    scope = {
        "type": "http", "method": "GET", "path": unquote(path), "raw_path": path.encode(), "root_path": "",
        "query_string": b"", "headers": [], "scheme": "http", "http_version": "1.1", "asgi": {"version": "3.0"},
        "client": ("127.0.0.1", 1), "server": ("testserver", 80),
    }  # fmt: skip
    client.portal.call(client.app, scope, receive, send)
    body = b"".join(message.get("body", b"") for message in messages)
    return SimpleNamespace(status_code=messages[0]["status"], content=body)


@pytest.mark.parametrize("folder", ["images", "web"])
@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "..%2fsecret",
        "%2e%2e/secret",
        "%2e%2e%2fsecret",
        "....//secret",
        "..%5csecret",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "..%2f..%2f..%2f..%2fetc%2fpasswd",
        "../study.sqlite",
        "../server.py",
        "..%2fserver.py",
        "%00",
        "x%00.png",
        "../../__init__.py",
        "a" * 5000,
    ],
)
def test_no_path_leads_out(client, folder, path):
    response = raw_get(client, f"/{folder}/{path}")
    assert response.status_code in (400, 404, 405)
    assert b"root:" not in response.content
    assert b"admin_token" not in response.content


def test_images_are_found_by_their_whole_name_only(client):
    image = begin(client)["images"][0]
    assert client.get(f"/images/{image['id']}.png").status_code == 200
    for name in (image["id"], f"{image['id']}.jpg", f"{image['id']}.png.png", f"{image['id']}.png/"):
        assert client.get(f"/images/{name}", follow_redirects=False).status_code in (307, 404)


def test_oversized_bodies_are_refused(client, study):
    session, before = begin(client), count(study)
    answer = answer_to(session["trials"][0], text="x" * 20_000)
    assert client.post("/api/answers", json=answer, headers=bearer(session["token"])).status_code == 413

    def pieces():
        for _ in range(1000):
            yield b" " * 1024

    streamed = client.post("/api/answers", content=pieces(), headers=bearer(session["token"]))
    assert streamed.status_code == 413
    assert client.post("/api/participants", content=b"[" * 17_000).status_code == 413
    assert "content-security-policy" in streamed.headers
    assert count(study) == before


def test_a_body_that_never_ends_is_given_up(monkeypatch):
    """The application is not told of it; a request that is whole may take as long as it likes."""
    sent, seen = [], []

    async def application(scope, receive, send):
        seen.append(await receive())
        seen.append(await receive())
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message):
        sent.append(message)

    def receiving(*messages):
        left = list(messages)

        async def receive():
            if not left:
                await asyncio.sleep(0.2)
                return {"type": "http.disconnect"}
            return left.pop(0)

        return receive

    monkeypatch.setattr(guards, "SLOWEST_BODY", 0.05)
    guard, scope = guards.Guard(application, []), {"type": "http", "headers": []}
    asyncio.run(guard(scope, receiving({"type": "http.request", "body": b"{", "more_body": True}), send))
    assert [m.get("status") for m in sent] == [408, None]
    assert len(seen) == 1
    sent.clear()
    asyncio.run(guard(scope, receiving({"type": "http.request", "body": b"{}", "more_body": False}), send))
    assert [m["status"] for m in sent] == [200]


def test_answers_are_not_taken_twice_late_or_for_other_trials(client, study):
    """What somebody can do with a token of their own: repeat, change, skip, answer what others were asked."""
    anna, bert = begin(client), begin(client)
    mine = bearer(anna["token"])
    first = answer_to(anna["trials"][0])
    other = next(option for option in anna["trials"][0]["options"] if option not in first["response"])
    assert client.post("/api/answers", json=first, headers=mine).status_code == 201
    for again in (first, {**first, "response": [other]}, {**first, "response": []}):
        assert client.post("/api/answers", json=again, headers=mine).status_code == 200, "the first one counts"
    ahead = answer_to(anna["trials"][5])
    assert client.post("/api/answers", json=ahead, headers=mine).status_code == 409
    foreign = {**answer_to(bert["trials"][1]), "position": 1, "response": ["an option of another study"]}
    assert client.post("/api/answers", json=foreign, headers=mine).status_code == 422
    for trial in anna["trials"][1:]:
        assert client.post("/api/answers", json=answer_to(trial), headers=mine).status_code == 201
    code = client.post("/api/finish", headers=mine).json()["code"]
    beyond = {**answer_to(anna["trials"][-1]), "position": TRIALS}
    assert client.post("/api/answers", json=beyond, headers=mine).status_code == 422
    changed = {**answer_to(anna["trials"][-1]), "rt_ms": 1.0}
    assert client.post("/api/answers", json=changed, headers=mine).status_code == 200
    assert client.post("/api/finish", headers=mine).json()["code"] == code
    rows = [r for r in export_rows(study, db.Database(study.database_url)) if r["participant"] == anna["participant"]]
    assert [row["position"] for row in rows] == list(range(TRIALS))
    assert rows[0]["response"] == first["response"][0]
    assert rows[-1]["rt_ms"] != 1.0
    assert client.get("/api/session", headers=bearer(bert["token"])).json()["next"] == 0


MALFORMED = [
    b"",
    b"{",
    b"[]",
    b"null",
    b'"position"',
    b"\xff\xfe\x00",
    b'{"position": 0, "response": ["cat"]',
    b'{"position": "0"}',
    b'{"position": true}',
    b'{"position": 0.5}',
    b'{"position": -1}',
    b'{"position": 1e999}',
    b'{"position": 99999999999999999999999}',
    b'{"position": 0, "rt_ms": NaN}',
    b'{"position": 0, "rt_ms": Infinity}',
    b'{"position": 0, "rt_ms": -1}',
    b'{"position": 0, "rt_ms": "fast"}',
    b'{"position": 0, "response": "cat"}',
    b'{"position": 0, "response": [["cat"]]}',
    b'{"position": 0, "response": ["\\ud800"]}',
    b'{"position": 0, "text": "\\ud800"}',
    b'{"position": 0, "client": {"a": {"b": 1}}}',
    b'{"position": 0, "client": {"a": NaN}}',
    b'{"position": 0, "client": []}',
    b'{"position": 0, "correct": true}',
    b'{"position": 0, "participant": 1}',
    b"[" * 5000 + b"]" * 5000,
    b'{"a":' * 1500 + b"1" + b"}" * 1500,
]


@pytest.mark.parametrize("body", MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_answers_change_nothing(client, study, body):
    session = begin(client)
    sent = {"content": body, "headers": {**bearer(session["token"]), "Content-Type": "application/json"}}
    response = client.post("/api/answers", **sent)
    assert response.status_code in (400, 422), response.text
    json.loads(response.content)
    assert client.get("/api/session", headers=bearer(session["token"])).json()["next"] == 0


@pytest.mark.parametrize(
    "body",
    [
        {"consent": True, "entry": {"PROLIFIC_PID": "x" * 300}},
        {"consent": True, "entry": {"PROLIFIC_PID": "a\u0000b"}},
        {"consent": True, "entry": {"PROLIFIC_PID": ["a"]}},
        {"consent": True, "entry": {str(i): "a" for i in range(50)}},
        {"consent": True, "language": "x" * 100},
        {"consent": True, "number": 7},
    ],
)
def test_malformed_starts_start_nothing(client, body):
    assert client.post("/api/participants", json=body).status_code == 422


# ------------------------------------------------------------------------------------------------------- texts


def test_script_in_free_text_stays_text(client, study):
    script = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    formula = '=HYPERLINK("http://example.org")'
    session = begin(client)
    while session["group"] != "A":
        session = begin(client)
    for trial, text in zip(session["trials"], (script, formula)):
        answer = answer_to(trial, text=text, client={"agent": script})
        assert client.post("/api/answers", json=answer, headers=bearer(session["token"])).status_code == 201
    admin = bearer(study.secrets.admin_token)
    client.post("/api/admin/exclude", json={"participant": session["participant"], "reason": script}, headers=admin)
    rows = [
        r for r in export_rows(study, db.Database(study.database_url)) if r["participant"] == session["participant"]
    ]
    assert [row["text"] for row in rows] == [script, formula]
    assert rows[0]["excluded"] == f"experimenter: {script}"
    # A spreadsheet shows the formula and does not follow it.
    assert b"'=HYPERLINK" in csv_bytes(rows)
    for path in ADMIN:
        response = client.get(f"/api/admin/{path}", headers=admin)
        assert "html" not in response.headers["content-type"]
        assert response.headers["x-content-type-options"] == "nosniff"


def test_markdown_of_a_design_cannot_run_anything():
    text = "<img src=x onerror=a()> [x](javascript:a()) [y](https://example.org) ![z](https://example.org/z.png)\n\n<b>"
    html = to_html(text)
    assert "<img" not in html
    assert "javascript:" not in html.replace("(javascript:a())", "")
    assert 'href="https://example.org"' in html
    assert 'rel="noopener noreferrer"' in html


@pytest.mark.parametrize("path", ["/", "/admin", "/health", "/api/study", "/images/none", "/web/none", "/none"])
def test_every_response_keeps_the_page_to_itself(client, path):
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "unsafe-eval" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in headers
    assert "access-control-allow-origin" not in headers


def test_frames_are_allowed_where_the_study_says_so(study):
    changed = replace(study, settings=replace(study.settings, frame_ancestors=("https://workersandbox.mturk.com",)))
    with TestClient(create_app(changed, db.Database(study.database_url))) as client:
        headers = client.get("/health").headers
    assert headers["content-security-policy"].endswith("frame-ancestors https://workersandbox.mturk.com")
    assert "x-frame-options" not in headers


# ----------------------------------------------------------------------------------------------------- many requests


def test_many_requests_of_one_participant_are_slowed_down(study):
    slow = replace(study, settings=replace(study.settings, requests_per_second=1))
    with TestClient(create_app(slow, db.Database(study.database_url))) as client:
        session = begin(client)
        replies = [client.get("/api/session", headers=bearer(session["token"])) for _ in range(8)]
        assert [reply.status_code for reply in replies[:4]] == [200] * 4
        refused = next(reply for reply in replies if reply.status_code == 429)
        assert int(refused.headers["retry-after"]) >= 1
        assert client.get("/api/session", headers=bearer(begin(client)["token"])).status_code == 200  # somebody else


def test_many_starts_and_wrong_tokens_from_one_address_are_slowed_down(study):
    slow = replace(study, settings=replace(study.settings, starts_per_minute=3))
    with TestClient(create_app(slow, db.Database(study.database_url))) as client:
        statuses = [client.post("/api/participants", json={"consent": True}).status_code for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]
        statuses = [client.get("/api/admin/progress", headers=bearer("guess")).status_code for _ in range(30)]
        assert statuses[:20] == [401] * 20
        assert statuses[-1] == 429
        assert client.get("/api/admin/progress", headers=bearer(study.secrets.admin_token)).status_code == 200


def test_permissions_come_back_with_time():
    at = [0.0]
    limiter = Limiter(Rate(2, 3), keys=2, clock=lambda: at[0])
    assert [limiter.wait("a") for _ in range(4)] == [0, 0, 0, 0.5]
    at[0] = 0.5
    assert [limiter.wait("a"), limiter.wait("a")] == [0, 0.5]
    for key in ("b", "c"):
        limiter.wait(key)  # more keys than are remembered
    assert limiter.wait("a") == 0
    assert Limiter(Rate(0, 0)).wait("a") == 0


def test_a_household_is_one_address():
    assert address_key("192.0.2.7") == "192.0.2.7"
    assert address_key("2001:db8:1:2::1") == address_key("2001:db8:1:2:ffff::9")
    assert address_key("2001:db8:1:2::1") != address_key("2001:db8:1:3::1")
    assert address_key("testclient") == "testclient"


# ---------------------------------------------------------------------------------------------- the description


def attack(operation, token: str) -> None:
    """Send what the description of a route allows, and what it does not."""
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    # The description cannot say which options a trial has.
    left_out = [positive_data_acceptance] if operation.path == "/api/answers" else []
    modes = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]
    has_body = len(operation.body) > 0  # any text fits the other parameters
    for mode in modes if has_body else modes[:1]:

        @settings(max_examples=20, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy(generation_mode=mode))
        def send(case):
            case.call_and_validate(headers=bearer(token), excluded_checks=left_out)

        send()


@pytest.mark.slow
def test_nothing_that_can_be_sent_breaks_the_server(study):
    schemathesis = pytest.importorskip("schemathesis")
    app = create_app(study, db.Database(study.database_url))
    app.router.lifespan_context = lambda _: (
        nullcontext()
    )  # schemathesis would start and stop the server for every request
    session = study.secrets.token(1)
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    operations = [result.ok() for result in schema.get_all_operations()]
    for operation in operations:
        attack(operation, study.secrets.admin_token if "/admin/" in operation.path else session)
    paths = {operation.path for operation in operations}
    assert {"/api/answers", "/api/participants", "/api/admin/exclude", "/images/{name}"} <= paths
    app.state.sessions.close()


def test_the_description_names_all_that_a_client_needs(client):
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/api/study", "/api/participants", "/api/session", "/api/answers", "/api/finish", "/health"} <= set(paths)
    answer = paths["/api/answers"]["post"]
    assert {"200", "201", "401", "409", "422"} <= set(answer["responses"])
    assert answer["security"] == [{"HTTPBearer": []}]
    assert len(begin(client)["trials"]) == TRIALS
