"""The board in a real browser: opened from the disk, without a window and without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cuebench
from cuebench.reports.board import check, entries, folder, pages, site, standings
from cuebench.reports.board.entries import About
from cuebench.types import Score
from report_run import HOSTILE

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
FAMILIES = ("CNN", "Transformer", HOSTILE)


def model(k: int, layer: str = "model") -> check.Model:
    """Return a made-up model; two rankings, 300 models: no more than 200 rows are in the page at once."""
    value = 0.1 + 0.8 * k / 300
    name = HOSTILE if k == 152 else f"net-{k:03d}"
    both = [("cue_conflict", "16-way", "shape_bias")] + [("refined_bias", "native", "shape_preference")] * (k < 5)
    rows = [Score(p, 1, name, c, m, value, value - 0.05, value + 0.05, "images", 1280) for p, c, m in both]
    shown = [check.Shown(p, 1, "t", "", 1280, "") for p, _, _ in both]
    about = About(
        family=FAMILIES[k % 3], training_data=f"data {k % 2}", parameters=(k + 1) * 1_000_000, date="2026-05-31"
    )
    return check.Model(entries.slug(name, k), name, layer, about, tuple(shown), tuple(rows), {"measured": "2026"})


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "site"
    members = [*(model(k) for k in range(300)), model(290, "people")]
    members[-1] = check.Model("anna-1", "anna", *list(vars(members[-1]).values())[2:])
    checked = [check.Checked("all", "0" * 64, models=tuple(members)), check.Checked(HOSTILE, "1", (f"bad {HOSTILE}",))]

    def apart(ranked: standings.Ranked) -> standings.Compared:
        return standings.Compared([], standings._apart(list(ranked.column.rows.values())), [], [])

    tracks = standings.make_tracks(members, apart)
    pages.write_site(folder.SiteFolder(out), f"Title {HOSTILE}", checked, tracks)
    assert site.board is cuebench.board
    return out


@pytest.fixture
def page(open_page: Any, root: Path) -> Iterator[Any]:
    """The open board; after every test: nothing but its own files was asked for, and nothing went wrong."""
    with open_page((root / "index.html").as_uri()) as (page, requests, problems):
        yield page
        assert [url for url in requests if not url.startswith(("data:", root.as_uri()))] == []
        assert problems == []
        assert page.evaluate("window.hacked") is None


def names(page: Any) -> list[str]:
    return [text.strip() for text in page.locator(".ranking tbody th").all_inner_texts()]


def test_search_sort_and_filter(page: Any) -> None:
    assert page.locator(".ranking tbody tr").count() == 200
    assert names(page)[0] == "net-299"
    search = page.locator(".ranking input[type=search]")
    search.fill("NET-01 cnn")
    assert names(page) == ["net-018", "net-015", "net-012"]
    page.locator(".ranking thead button", has_text="parameters").click()
    assert names(page) == ["net-012", "net-015", "net-018"]
    assert page.locator(".found output").inner_text() == "3 of 396 rows"
    search.fill("")
    page.locator("[name=family]").select_option("Transformer")
    page.locator("[name=size]").select_option("under 10 M")
    assert names(page) == ["net-001", "net-004", "net-007"]
    page.locator("[name=ranking]").select_option(index=1)
    assert names(page) == ["net-004", "net-001"]
    assert "refined_bias" in page.locator(".track:visible").inner_text()


def test_people_and_papers_are_layers_without_a_rank(page: Any) -> None:
    assert page.locator("tr.beside th").all_inner_texts() == ["anna people"]
    page.locator("[name=published]").check()
    rows = page.locator("tr.beside")
    assert rows.count() > 10
    assert set(page.locator("tr.beside td:first-child").all_inner_texts()) == {"–"}
    assert page.locator("tr.beside .layer", has_text="published people").count() == 1
    page.locator("[name=people]").uncheck()
    assert "anna people" not in names(page)


def test_an_address_keeps_what_was_chosen(page: Any, root: Path) -> None:
    page.locator("[name=family]").select_option("CNN")
    page.locator(".ranking input[type=search]").fill("net-00")
    page.wait_for_url("**q=net-00")
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("html[data-ready=true]")
    assert names(page) == ["net-009", "net-006", "net-003", "net-000"]
    assert page.locator("[name=family]").input_value() == "CNN"


def test_the_page_of_a_model_and_the_theme(page: Any) -> None:
    page.locator(".ranking input[type=search]").fill("script")
    page.locator(".ranking tbody th a", has_text="script").click()
    page.wait_for_url("**/models/**")  # the page before was ready, too
    page.wait_for_selector("html[data-ready=true]")
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.locator("#table-standings tbody tr").count() == 1
    assert page.locator("dl.facts").first.inner_text().count(HOSTILE) == 2  # the observer and its family
    dark = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(dark)
    page.locator("#theme").click()
    assert page.evaluate(dark) != before
    page.locator(".back a").click()
    page.wait_for_url("**/index.html*")
    page.wait_for_selector("html[data-ready=true]")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_a_phone_shows_the_table_without_a_wide_page(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator(".ranking tbody tr").first.is_visible()


def test_everything_has_a_name_for_those_who_do_not_see_it(page: Any) -> None:
    unnamed = """[...document.querySelectorAll("input, select, button")].filter((n) =>
      !(n.labels?.length || n.textContent.trim() || n.getAttribute("aria-label"))).length"""
    assert page.evaluate(unnamed) == 0
    assert page.locator("main").count() == page.locator("h1").count() == 1
