"""Whole studies in a real Chromium, desktop and phone; what happens when connections, tabs and images break."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cuebench.study import rehearse, vendor
from cuebench.study.database import Database
from cuebench.study.export import write_export
from cuebench.study.folder import NewStudy, Study, new_study
from cuebench.study.simulate import person, population
from cuebench.study.visitor import DEVICES, Visitor
from short_studies import DESIGNS, served, short_study, write_data

pytestmark = pytest.mark.xdist_group("study pages")
FRAME = 1000 / 60
TALLER = """async () => {
    const square = document.querySelector("#stage .picture"), image = square.querySelector("img");
    const canvas = Object.assign(document.createElement("canvas"), { width: 40, height: 900 });
    image.src = canvas.toDataURL();
    await image.decode();
    return image.getBoundingClientRect().bottom - square.getBoundingClientRect().bottom;
}"""
DOCS = Path(__file__).resolve().parents[2] / "docs"


def exported(study: Study) -> list[dict[str, Any]]:
    database = Database(study.database_url)
    database.prepare(study.facts)
    rows = write_export(study, database, study.folder / "answers.csv")
    database.close()
    return rows


def visitor(browser: Any, study: Study, device: str = "desktop", observer: str = "ideal:shape") -> Visitor:
    page = browser.new_context(**DEVICES[device]).new_page()
    return Visitor(page, study, person(population(observer), 0, 0))


def test_a_whole_study_on_a_phone_with_measured_times(browser: Any, tmp_path: Path) -> None:
    """The one of the quick tests: brief images, a mask, icons; every answer stored, every duration measured."""
    study = short_study("cue_conflict", tmp_path)
    with served(study) as address:
        someone = visitor(browser, study, "phone")
        page = someone.page
        labels, answer = [], someone._answer

        def answer_and_look(trial: Any, layout: str) -> None:
            labels.append(page.locator("#kind").text_content())
            answer(trial, layout)

        someone._answer = answer_and_look  # type: ignore[method-assign]
        someone.visit(address + "?lang=de&PROLIFIC_PID=5f1e&STUDY_ID=6&SESSION_ID=7")
        assert labels == ["Übung", *[""] * 5]
        assert page.locator("html").get_attribute("lang") == "de"
        assert page.locator("#page .code").inner_text() == someone.code
        link = page.locator("a.primary").get_attribute("href")
        assert link == f"https://platform.example/?cc={someone.code}"
        # No cookie, and nothing of the platform's identifiers but in this browser.
        assert page.context.cookies() == []
        page.context.close()
    assert someone.problems == []
    rows = exported(study)
    assert [row["position"] for row in rows] == list(range(6))
    assert {row["kind"] for row in rows} == {"practice", "trial", "attention"}
    assert all(row["response"] == row["shape"] for row in rows)
    assert all(row["finished"] and row["language"] == "de" for row in rows)
    for row in rows:
        assert row["planned_ms"] == 200
        # By frames: as near as a loaded machine without a display allows, never shorter than planned by a frame.
        assert row["shown_ms"] > 200 - FRAME
        assert row["rt_ms"] > 400, "image and mask come before the options"
    assert sorted(row["shown_ms"] for row in rows)[len(rows) // 2] < 400
    assert b"5f1e" not in b"".join(p.read_bytes() for p in study.folder.glob("study.sqlite*"))


@pytest.mark.slow
@pytest.mark.parametrize("device", sorted(DEVICES))
@pytest.mark.parametrize("name", DESIGNS)
def test_every_design_from_consent_to_code(browser: Any, tmp_path: Path, name: str, device: str) -> None:
    study = short_study(name, tmp_path)
    observer = "ideal:shape?shape_accuracy=1&texture_accuracy=1&words_accuracy=1"
    with served(study) as address:
        someone = visitor(browser, study, device, observer)
        someone.visit(address)
        someone.page.context.close()
    assert someone.problems == []
    rows = exported(study)
    assert len(rows) == len(someone.trials)
    planned = {a.position: "|".join(a.response) for a in someone.someone.answers(someone.trials, study.images)}
    names = {i.id: i.name for i in study.images.values()}
    for row in (r for r in rows if r["kind"] != "familiarisation"):
        response = "|".join(names.get(part, part) for part in planned[row["position"]].split("|"))
        assert row["response"] in (response, planned[row["position"]])
    assert all(row["correct"] for row in rows if row["kind"] == "attention")
    widths = {json.loads(row["client"])["width"] for row in rows if row.get("client")}
    assert widths <= {DEVICES[device]["viewport"]["width"]}


@pytest.mark.slow
def test_a_closed_tab_goes_on_where_it_stopped(browser: Any, tmp_path: Path) -> None:
    study = short_study("triplets", tmp_path)
    with served(study) as address:
        someone = visitor(browser, study)
        someone.open(address)
        while someone.last < 1:
            someone.step()
        someone.page.wait_for_selector('#stage[data-position="2"] .option:enabled')
        context = someone.page.context
        someone.page.close()
        again = Visitor(context.new_page(), study, someone.someone)
        again.visit(address)
        assert again.participant == someone.participant
        assert again.page.locator("#page .code").count() == 1
        # The study is over: the same browser comes back to its code, not to a second session.
        again.page.goto(address)
        again.page.wait_for_selector("#page .code")
        assert again.page.locator("#page .code").inner_text() == again.code
        context.close()
    rows = exported(study)
    assert [row["position"] for row in rows] == list(range(5))
    assert {row["participant"] for row in rows} == {"p0001"}


@pytest.mark.slow
def test_a_lost_connection_is_said_and_the_answer_is_kept(browser: Any, tmp_path: Path) -> None:
    study = short_study("triplets", tmp_path)
    with served(study) as address:
        someone = visitor(browser, study)
        page = someone.page
        someone.open(address)
        while someone.last < 0:
            someone.step()
        page.wait_for_selector('#stage[data-position="1"] .option:enabled')
        page.context.set_offline(True)
        page.locator("#stage .option").first.click()
        page.wait_for_selector("#status:not([hidden])")
        assert "is kept" in page.locator("#status").inner_text() or "sent again" in page.locator("#status").inner_text()
        assert page.locator("#stage .option:enabled").count() == 0, "no next trial before the answer is stored"
        assert len(exported(study)) == 1
        page.context.set_offline(False)
        page.wait_for_selector('#stage[data-position="2"] .option:enabled')
        page.wait_for_selector("#status[hidden]", state="attached")
        page.context.close()
    assert [row["position"] for row in exported(study)] == [0, 1]


@pytest.mark.slow
def test_an_answer_that_was_given_before_the_tab_closed_is_sent_by_the_next_one(browser: Any, tmp_path: Path) -> None:
    study = short_study("triplets", tmp_path)
    with served(study) as address:
        someone = visitor(browser, study)
        page = someone.page
        someone.open(address)
        while someone.last < 0:
            someone.step()
        page.wait_for_selector('#stage[data-position="1"] .option:enabled')
        chosen = page.locator("#stage .option").first.get_attribute("data-option")
        page.context.set_offline(True)
        page.locator("#stage .option").first.click()
        page.wait_for_selector("#status:not([hidden])")
        context = page.context
        page.close()
        context.set_offline(False)
        again = Visitor(context.new_page(), study, someone.someone)
        again.open(address)
        while again.last < 2:
            again.step()
        again.page.wait_for_selector('#stage[data-position="3"]')  # shown once the answer before it is stored
        context.close()
    rows = exported(study)
    assert [row["position"] for row in rows[:3]] == [0, 1, 2]
    assert rows[1]["response"] in (chosen, study.images[chosen].name)


@pytest.mark.slow
def test_an_image_that_is_not_the_study_s_stops_the_study_before_the_first_trial(browser: Any, tmp_path: Path) -> None:
    study = short_study("triplets", tmp_path)
    with served(study) as address:
        shown = study.assign(0)[1][2].stimuli[0]
        path = study.folder / "images" / study.images[shown].file
        data = bytearray(path.read_bytes())
        data[-20] ^= 1
        path.write_bytes(bytes(data))
        page = browser.new_page()
        page.goto(address)
        page.click("#page button")
        page.wait_for_selector("#link")
        page.click("#page .buttons-row button")
        page.wait_for_selector("text=arrived damaged", timeout=60_000)
        assert page.locator("#stage .option").count() == 0
        page.close()
    assert exported(study) == []


@pytest.mark.slow
def test_by_keyboard_alone(browser: Any, tmp_path: Path) -> None:
    """Several answers: digits choose, Enter sends; the comment is stored as text and never becomes markup."""
    study = short_study("texture_words", tmp_path)
    evil = "<img src=x onerror=alert(1)>"
    with served(study) as address:
        someone = visitor(browser, study)
        page = someone.page
        someone.open(address)
        page.wait_for_selector("#page button")
        page.locator("#page button").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#link")
        for _ in ("copy", "next"):
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector("#page .buttons-row button:nth-child(2)")
        page.locator("#page .buttons-row button:nth-child(2)").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#stage .jspsych-btn")
        page.keyboard.press("Enter")  # the only button has the focus
        for position in range(5):
            page.wait_for_selector(f'#stage[data-position="{position}"] .option:enabled')
            trial = someone.trials[position]
            if not trial.asked:  # keys count from the onset of the image
                page.wait_for_selector("#stage .picture img:not(.off)")
            if trial.kind == "trial":
                assert page.evaluate(TALLER) <= 0, "an image that is taller than wide covers the answers"
            if trial.asked:
                page.keyboard.press(str(1 + trial.options.index(trial.asked)))
            else:
                page.keyboard.press("2")
                page.keyboard.press("4")
                page.keyboard.press("3")
                page.keyboard.press("3")  # chosen, and not chosen again
                page.locator("#stage textarea").fill(evil)
                page.locator("#stage .prompt").click()
            page.keyboard.press("Enter")
        page.wait_for_selector("#page .code")
        page.context.close()
    assert someone.problems == []
    for row in exported(study):
        options = row["options"].split("|")
        if row["kind"] == "trial":
            assert row["response"] == f"{options[1]}|{options[3]}"
            assert row["text"] == evil
        else:
            assert row["correct"] is True


def write_documented_design(folder: Path) -> Path:
    """Write the files that the documentation shows."""
    page = next(p for p in (DOCS / "studies_design.md", DOCS / "studies.md") if p.is_file()).read_text("utf-8")
    files = re.findall(r"^`mine/([\w./]+)`:\n\n```\w+\n(.*?)^```", page, re.M | re.S)
    assert len(files) == 6
    for name, text in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


@pytest.mark.slow
def test_a_psychologist_s_own_design_needs_no_python(browser: Any, tmp_path: Path) -> None:
    """The design that the documentation writes in TOML, JSON and Markdown, with jsPsych's own plug-ins only."""
    design = write_documented_design(tmp_path / "mine")
    study = new_study(tmp_path / "study", NewStudy(design=str(design), data_root=write_data(tmp_path / "data")))
    with served(study) as address:
        someone = visitor(browser, study)
        page = someone.page
        someone.open(address)
        page.click("#page button")
        page.wait_for_selector("#link")
        page.click("#page .buttons-row button")
        page.wait_for_selector("#page .buttons-row button:nth-child(2)")
        page.locator("#page .buttons-row button").nth(1).click()
        page.click("#stage .jspsych-btn")
        for position in range(4):
            page.wait_for_selector(f'#stage[data-position="{position}"] canvas')
            assert page.locator("#stage").inner_text().count("What do you see first?") == 1
            page.locator("#stage .jspsych-btn", has_text="a cat").click()
        page.wait_for_selector("#page .code")
        page.context.close()
    assert someone.problems == []
    rows = exported(study)
    assert [row["response"] for row in rows] == ["cat"] * 4
    assert all(row["rt_ms"] > 0 for row in rows)


@pytest.mark.slow
def test_a_rehearsal_over_http_and_its_export(tmp_path: Path) -> None:
    if vendor.missing():
        pytest.skip(f"needs jsPsych: {vendor.COMMAND}")
    study = short_study("refined_bias", tmp_path)
    result = rehearse.rehearse(study.folder, participants=4, browser=False, out=tmp_path / "answers.parquet")
    assert sorted(result.finished) == ["p0001", "p0002", "p0003", "p0004"]
    assert len(set(result.codes)) == 4
    assert result.answers == 4 * len(study.assign(0)[1])
    assert not (study.folder / "study.sqlite").exists(), "the study's own database is not touched"
    assert (tmp_path / "answers.parquet").is_file()
