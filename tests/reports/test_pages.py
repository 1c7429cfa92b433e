"""Charts in a real browser: drawn by Vega without an error or a request, and following the pointer and the theme."""

from __future__ import annotations

import shutil

import pytest

from cuebench.reports import embed
from cuebench.reports.figures.triplet_curves import PANELS, triplet_curves
from cuebench.runs.results import write_scores
from cuebench.types import Score

pytest.importorskip("altair", reason="figures need the extra 'report': pip install 'cuebench[report]'")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HOSTILE = "<img src=x onerror=document.title='broken'>"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Write a page with two charts of two models, one of them with a hostile name."""
    folder = tmp_path_factory.mktemp("page")
    rows = []
    for name in ("one", HOSTILE):
        for panel in PANELS[:2]:
            for value in panel.values:
                condition = panel.condition.format(f"{value:.1f}")
                rows.append(Score("triplets", 1, name, condition, "triplet_shape_bias", value, 0.1, 0.9, "images", 9))
    write_scores(folder, rows, {})
    file = folder / "charts.html"
    file.write_text(embed.page([triplet_curves(folder), triplet_curves(folder)], title="Charts"), "utf-8")
    return file


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs a browser: apt install chromium")
def test_a_page_in_a_browser(page):
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    with sync_api.sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        tab = browser.new_page(viewport={"width": 1200, "height": 1600})
        problems, requests = [], []
        tab.on("console", lambda message: problems.append(message.text))
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(page.as_uri())
        tab.wait_for_function("() => document.querySelectorAll('figure[data-drawn=vega]').length === 2")

        # Pointing at a mark fades the other series.
        marks = "figure:first-of-type g.mark-symbol.role-mark path"
        shades = (
            f"n => new Set(Array.from(document.querySelectorAll('{marks}'), m => m.getAttribute('opacity'))).size === n"
        )
        tab.wait_for_function(shades, arg=1)
        box = tab.query_selector(marks).bounding_box()
        tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        tab.wait_for_function(shades, arg=2)

        background = "() => document.querySelector('figure svg > rect, figure svg > path')?.getAttribute('fill')"
        light = tab.evaluate(background)
        tab.evaluate("document.documentElement.dataset.theme = 'dark'")
        tab.wait_for_function(f"light => ({background})() !== light", arg=light)
        tab.set_viewport_size({"width": 390, "height": 800})
        tab.wait_for_function("() => document.querySelector('figure').dataset.narrow === 'true'")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        assert tab.title() == "Charts"
        browser.close()
    assert problems == []
    assert requests == [page.as_uri()]
