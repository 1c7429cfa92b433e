"""A real browser for the tests of pages."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for all tests of a file."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("needs a browser: apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any) -> Callable[..., AbstractContextManager[tuple[Any, list[str], list[str]]]]:
    """``open_page(address, *scripts)``: a page, the addresses that it asks for, and whatever goes wrong in it."""

    @contextmanager
    def opened(address: str, *scripts: str) -> Iterator[tuple[Any, list[str], list[str]]]:
        context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
        page = context.new_page()
        page.set_default_timeout(20_000)
        requests: list[str] = []
        problems: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        kinds = ("error", "warning")
        page.on("console", lambda message: problems.append(message.text) if message.type in kinds else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        for script in scripts:
            page.add_init_script(script)
        page.goto(address)
        page.wait_for_selector("html[data-ready=true]")
        yield page, requests, problems
        context.close()

    return opened
