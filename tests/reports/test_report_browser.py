"""The report in a real browser: Debian's Chromium, without a window and without a network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cuebench
from report_run import HOSTILE, make_run

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
CAPTURE = "navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); };"

DARK_CHART = "() => document.querySelector('.cuebench-chart .vega-embed svg')?.outerHTML.includes('#16191d')"
"""A function, not an expression: the page forbids to evaluate text."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scores = make_run(tmp_path_factory.mktemp("browser"))
    return cuebench.report(scores, scores.out / "report.html").path


@pytest.fixture
def page(open_page: Any, file: Path) -> Iterator[Any]:
    """The open report; that nothing was asked for and nothing went wrong is checked after every test."""
    with open_page(file.as_uri(), CAPTURE) as (page, requests, problems):
        yield page
        assert [url for url in requests if not url.startswith("data:")] == [file.as_uri()]
        assert problems == []
        assert page.evaluate("window.hacked") is None


def observers(page: Any, table: str = "#table-headline-cue_conflict") -> list[str]:
    return [text.strip() for text in page.locator(f"{table} tbody tr th").all_inner_texts()]


def test_tables_sort_and_filter(page: Any) -> None:
    head = page.locator("#table-headline-cue_conflict thead th").nth(2)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert [observers(page)[0], observers(page)[-1]] == ["ideal:texture", "ideal:shape"]
    head.locator("button").press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert [observers(page)[0], observers(page)[-1]] == ["ideal:shape", "ideal:texture"]
    page.locator("#table-headline-cue_conflict input[type=search]").fill("IDEAL mixture")
    assert observers(page) == ["ideal:mixture?shape=0.7"]


def test_tables_are_copied_in_three_formats(page: Any) -> None:
    table = page.locator("#table-headline-cue_conflict")
    table.locator("input[type=search]").fill("window")
    table.locator("[data-copy=csv]").click()
    head, row = page.evaluate("window.copied").splitlines()
    assert head.startswith("observer,kind,Shape bias,Shape bias (low),Shape bias (high),n,excluded")
    assert head.endswith(",about")
    assert row.startswith('"' + HOSTILE.replace('"', '""') + '",model,0.20833')
    table.locator("[data-copy=markdown]").click()
    lines = page.evaluate("window.copied").splitlines()
    assert lines[0] == "**Shape bias in 4-way, 95 % intervals**"
    assert lines[3].startswith("|---|---|---:|")
    assert "&lt;script>" in lines[4]
    assert re.fullmatch(r"cue\_conflict, version \d; n = .*; 95 % intervals over .*\.", lines[6])
    table.locator("[data-copy=latex]").click()
    text = page.evaluate("window.copied")
    assert r"\toprule" in text
    assert r"\caption{Shape bias in 4-way, 95 \% intervals. cue\_conflict, version " in text
    assert r"\textless{}script\textgreater{}" in text
    assert page.locator(".toast").inner_text() == "Copied 1 row as LaTeX"


def test_all_numbers_are_made_when_they_are_opened(page: Any) -> None:
    box = page.locator("details[data-numbers]").first
    assert box.locator("tbody tr").count() == 0
    box.locator("summary").click()
    box.locator("tbody tr").first.wait_for()
    assert box.locator("tbody tr").count() > 50
    box.locator("input[type=search]").fill("ideal:shape decided_fraction")
    assert box.locator("tbody tr").count() == 1
    assert "1.000 [0.63, 1.00]" in box.locator("tbody tr").inner_text()


def test_a_picture_opens_with_all_answers_by_keyboard(page: Any) -> None:
    page.locator(".card").first.focus()
    page.keyboard.press("Enter")
    dialog = page.locator("dialog[open]")
    dialog.wait_for()
    first = dialog.locator("h3").inner_text()
    assert dialog.locator(".answer").count() == 7
    assert "by shape" in dialog.inner_text()
    assert dialog.locator("img").get_attribute("alt").startswith(f"Stimulus {first}")
    page.keyboard.press("ArrowRight")
    assert dialog.locator("h3").inner_text() != first
    page.keyboard.press("ArrowLeft")
    assert dialog.locator("h3").inner_text() == first
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog[open]", state="detached")
    page.wait_for_function("() => document.activeElement.className === 'card'")


def test_pictures_are_filtered(page: Any) -> None:
    page.select_option(".filters [name=protocol]", "cue_conflict")
    assert page.locator(".gallery li:visible").count() == 32
    page.select_option(".filters [name=observer]", label="ideal:texture")
    page.select_option(".filters [name=outcome]", "texture")
    assert page.locator(".gallery li:visible").count() == 24
    assert page.locator(".filters output").inner_text() == "24 of 34 pictures"
    page.select_option(".filters [name=outcome]", "shape")
    assert page.locator(".gallery li:visible").count() == 0


def test_the_theme_changes_page_and_charts(page: Any) -> None:
    def ground() -> str:
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    assert ground() == "rgb(255, 255, 255)"
    figure = page.locator("figure.cuebench-chart").first
    figure.scroll_into_view_if_needed()
    page.wait_for_selector("figure.cuebench-chart[data-drawn=vega]")
    page.locator("#theme").click()
    assert ground() == "rgb(22, 25, 29)"
    assert page.locator("#theme").get_attribute("aria-label") == "Switch to the light theme"
    page.wait_for_function(DARK_CHART)


def test_on_a_phone_nothing_sticks_out(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(22, 25, 29)"
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_charts_are_printed_light(page: Any) -> None:
    page.emulate_media(color_scheme="dark")
    figure = page.locator("figure.cuebench-chart").first
    figure.scroll_into_view_if_needed()
    page.wait_for_function(DARK_CHART)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert "#16191d" not in figure.locator("div").first.inner_html()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.wait_for_function(DARK_CHART)
    assert page.evaluate("document.documentElement.dataset.theme") is None


def test_every_control_has_a_name(page: Any) -> None:
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, a[href]')].filter((e) =>
          !(e.innerText || e.textContent).trim() && !e.getAttribute('aria-label') && !(e.labels && e.labels.length)
        ).map((e) => e.outerHTML)"""
    )
    assert nameless == []
    assert page.evaluate("document.documentElement.lang") == "en"
