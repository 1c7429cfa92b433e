"""The admin page in a real Chromium: log in, read, exclude, export; script in texts does nothing."""

from __future__ import annotations

import shutil
import threading
import time
from importlib.util import find_spec

import pytest
import uvicorn

from cuebench.study import database as db
from cuebench.study.server import create_app
from cuebench.study.types import Answer, is_correct
from small_study import answer_to, make_study

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SCRIPT = "<script>document.title = 'attacked'</script><img src=x onerror=\"document.title = 'attacked'\">"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not CHROMIUM or find_spec("playwright") is None,
        reason="needs a browser: apt-get install chromium; pip install playwright",
    ),
]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    made = make_study(tmp_path_factory.mktemp("study"))
    database = db.Database(made.database_url)
    database.prepare(made.facts)
    with database.writing() as connection:
        for i in range(4):
            person, _ = db.start_participant(connection, db.Start("en", "prolific"))
            group, trials = made.assign(person.slot)
            db.store_trials(connection, person.number, group, trials)
            for trial in trials[: 10 if i < 3 else 4]:
                text = SCRIPT if trial.free else ""
                answer = Answer(**answer_to(vars(trial), response=trial.correct, text=text, client={"a": SCRIPT}))
                right = is_correct(trial, answer.response)
                db.store_answers(connection, [db.Given(person.number, answer, trial.kind, right)])
            if i < 3:
                db.finish(connection, person.number)
        db.exclude(connection, 2, SCRIPT)
    database.close()
    return made


@pytest.fixture(scope="module")
def address(study):
    server = uvicorn.Server(
        uvicorn.Config(create_app(study, db.Database(study.database_url)), port=0, log_level="warning")
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def test_the_admin_page(study, address, tmp_path):
    from playwright.sync_api import expect, sync_playwright

    problems = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: problems.append(request.url) if address not in request.url else None)
        page.goto(f"{address}/admin")
        assert "p0001" not in page.content()  # nothing is there before the token is
        page.fill("#token", "not the token")
        page.press("#token", "Enter")
        expect(page.locator("#login-error")).to_contain_text("not the admin token")
        expect(page.locator("#dashboard")).to_be_hidden()
        problems.clear()  # the browser reports the refused request

        page.fill("#token", study.secrets.admin_token)
        page.press("#token", "Enter")
        expect(page.locator("#title")).to_have_text("A small study")
        expect(page.locator("#participants tbody tr")).to_have_count(4)
        expect(page.locator("#tiles")).to_contain_text("finished3")
        expect(page.locator("#agreement tbody tr")).to_have_count(2)
        expect(page.locator("#agreement")).to_contain_text("1.00")
        expect(page.locator("#participants")).to_contain_text(SCRIPT)  # as a text
        assert page.locator("main img, main script").count() == 0

        page.click("[aria-label='Exclude… p0001']")
        page.fill("#reason", "took part before")
        page.click("#exclude button[value=ok]")
        expect(page.locator("#participants tbody tr").first).to_contain_text("took part before")
        page.click("[aria-label='Include p0001']")
        expect(page.locator("#participants tbody tr").first).not_to_contain_text("took part before")
        page.select_option("#filter", "excluded")
        expect(page.locator("#participants tbody tr")).to_have_count(1)

        with page.expect_download() as download:
            page.click("#csv")
        assert download.value.path().read_text("utf-8").count("\n") >= 34
        assert page.title() == "A small study – administration"
        page.click("#logout")
        expect(page.locator("#login")).to_be_visible()
        assert page.evaluate("() => sessionStorage.length + localStorage.length") == 0
        browser.close()
    assert [p for p in problems if not p.startswith("blob:")] == []
