"""The personal link in a real Chromium: shown at the start, opened elsewhere, asked for, given by the experimenter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cuebench.study import database as db
from cuebench.study.folder import Study
from cuebench.study.simulate import person, population
from cuebench.study.visitor import Visitor
from short_studies import served, short_study

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("study pages")]
NO_STORAGE = "Object.defineProperty(window, 'localStorage', { get() { throw new Error('forbidden'); } })"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    study = short_study("triplets", tmp_path_factory.mktemp("study"))
    return replace(study, settings=replace(study.settings, contact="Ask anna@example.org"))


def opened(browser: Any, address: str, **options: Any) -> Any:
    """Open a page in a browser that knows nothing yet; `problems` of the page must stay empty."""
    page = browser.new_context(**options).new_page()
    page.set_default_timeout(20_000)
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    page.goto(address)
    page.wait_for_selector("#page .buttons-row button, #link")
    return page


def begun(browser: Any, address: str, **options: Any) -> tuple[Any, str]:
    """Agree to take part; return the page and the personal link that it shows."""
    page = opened(browser, address, **options)
    page.click("#page .buttons-row button")
    page.wait_for_selector("output#link")
    return page, page.locator("#link").inner_text()


def answer(page: Any, position: int) -> None:
    page.locator(f'#stage[data-position="{position}"] .option:enabled').first.click()
    page.wait_for_selector(f'#stage[data-position="{position + 1}"] .option:enabled')


def to_trials(page: Any, study: Study) -> None:
    """Go on to the trials, by the last button of each page."""
    someone = Visitor(page, study, person(population("ideal:shape"), 0, 0))
    while someone._next()[0] != "option":
        someone.step()


def count(study: Study) -> int:
    with db.Database(study.database_url).reading() as connection:
        return len(db.participants(connection))


def test_the_link_goes_on_in_another_browser(browser: Any, study: Study) -> None:
    with served(study) as address:
        page, link = begun(browser, address + "?PROLIFIC_PID=link&lang=de")
        assert link.startswith(f"{address}#resume=")
        to_trials(page, study)
        answer(page, 0)
        before = count(study)
        other = opened(browser, link)
        assert "Willkommen zurück" in other.locator("#page").inner_text()  # in the language that they had chosen
        assert "#" not in other.url, "the link is not left in the address of somebody's browser"
        to_trials(other, study)
        assert other.locator("#stage").get_attribute("data-position") == "1"
        other.reload()
        other.wait_for_selector("text=Willkommen zurück")
        assert count(study) == before
        for each in (page, other):
            each.context.close()


@pytest.mark.parametrize("width", [400, 1400])
def test_an_identifier_that_began_elsewhere_is_asked_for_the_link(browser: Any, study: Study, width: int) -> None:
    entry = f"?id=asked{width}"
    with served(study) as address:
        page, link = begun(browser, address + entry)
        page.context.close()
        before = count(study)
        other = opened(browser, address + entry, viewport={"width": width, "height": 800})
        other.keyboard.press("Tab")
        other.locator("#page .buttons-row button").focus()
        other.keyboard.press("Enter")
        other.wait_for_selector("input#link")
        assert "Ask anna@example.org" in other.locator("#page").inner_text()
        assert other.evaluate("document.documentElement.scrollWidth <= innerWidth")
        other.keyboard.press("Tab")
        stranger = link[:-1] + ("A" if link[-1] != "A" else "B")
        for wrong in ("what I was given", stranger):
            other.keyboard.insert_text(wrong)
            other.keyboard.press("Enter")
            other.wait_for_selector(".said.warn:not(:empty)")
        other.keyboard.insert_text(link)
        other.keyboard.press("Enter")
        other.wait_for_selector("text=Welcome back")
        assert count(study) == before
        other.goto(address + entry)  # from now on this browser has the session
        other.wait_for_selector("text=Welcome back")
        other.context.close()


def test_the_same_browser_goes_on_as_ever(browser: Any, study: Study) -> None:
    with served(study) as address:
        page, _ = begun(browser, address + "?PROLIFIC_PID=same&SESSION_ID=1")
        before = count(study)
        page.reload()
        page.wait_for_selector("text=Welcome back")
        page.goto(address + "?PROLIFIC_PID=same&SESSION_ID=2")  # the platform sent them again
        page.wait_for_selector("text=take part")
        page.click("#page .buttons-row button")
        page.wait_for_selector("output#link")
        assert count(study) == before
        page.context.close()


def test_a_lost_reply_to_the_start_does_not_lock_anybody_out(browser: Any, study: Study) -> None:
    with served(study) as address:
        page = opened(browser, address + "?PROLIFIC_PID=lost")
        before, lost = count(study), []

        def lose(route: Any) -> None:
            if not lost:
                lost.append(route.fetch())  # the server has it, the page has no reply
                route.abort()
            else:
                route.continue_()

        page.route("**/api/participants", lose)
        page.click("#page .buttons-row button")
        page.wait_for_selector("output#link")
        assert (len(lost), count(study)) == (1, before + 1)
        page.context.close()


def test_a_browser_that_may_store_nothing_goes_on_after_a_reload(browser: Any, study: Study) -> None:
    with served(study) as address:
        context = browser.new_context()
        context.add_init_script(NO_STORAGE)
        page = context.new_page()
        page.goto(address + "?workerId=nothing")
        page.click("#page .buttons-row button")
        page.wait_for_selector("output#link")
        page.reload()
        page.wait_for_selector("text=Welcome back")
        context.close()


def test_a_link_that_is_over_says_so(browser: Any, study: Study) -> None:
    with served(study) as address:
        page = opened(browser, f"{address}#resume=1.{'x' * 43}")
        assert "not known any more" in page.locator("#page").inner_text()
        page.click("#page .buttons-row button")
        page.wait_for_selector("text=I have read this")
        page.context.close()


def test_the_experimenter_helps(browser: Any, study: Study) -> None:
    with served(study) as address:
        page, link = begun(browser, address + "?id=helped")
        admin = browser.new_page(viewport={"width": 1400, "height": 900})
        admin.set_default_timeout(20_000)
        admin.goto(address + "admin")
        admin.fill("#token", study.secrets.admin_token)
        admin.keyboard.press("Enter")
        admin.fill("#identifier", "unknown")
        admin.keyboard.press("Enter")
        admin.wait_for_selector("text=Nobody has begun")
        admin.fill("#identifier", "helped")
        admin.keyboard.press("Enter")
        admin.wait_for_selector("#return[open]")
        assert admin.input_value("#link") == link
        admin.click("#return button[value=anew]")
        admin.wait_for_selector("text=can begin anew")
        assert "began anew" in admin.locator("#participants").inner_text()
        admin.close()
        page.reload()  # the browser that began it: the old session is over
        page.wait_for_selector("text=I have read this")
        page.click("#page .buttons-row button")
        page.wait_for_selector("output#link")
        assert page.locator("#link").inner_text() != link
        page.context.close()


@pytest.mark.parametrize("draft", [True, False])
def test_every_page_of_a_draft_says_so(browser: Any, study: Study, draft: bool) -> None:
    with served(replace(study, draft=draft)) as address:
        page, _ = begun(browser, address + f"?id=draft{draft}")
        assert page.locator("#draft").is_visible() is draft
        to_trials(page, study)
        assert page.locator("#draft").is_visible() is draft
        page.goto(address + "admin")
        page.wait_for_load_state("networkidle")
        assert page.locator("#draft").is_visible() is draft
        page.context.close()
