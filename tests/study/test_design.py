"""Designs are files: the built-in ones are complete, a new one needs no Python, mistakes are all reported at once."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from cuebench.errors import UserError
from cuebench.study.design import WORDS, design_names, read_design
from cuebench.study.vendor import plugins
from short_studies import DESIGNS, short_design


def test_the_five_designs_are_there() -> None:
    assert tuple(design_names()) == DESIGNS


@pytest.mark.parametrize("name", DESIGNS)
def test_a_design_speaks_english_and_german_everywhere(name: str) -> None:
    design = read_design(name)
    assert design.languages == ["en", "de"]
    pages = [design.page(language) for language in design.languages]
    assert pages[0]["words"].keys() == pages[1]["words"].keys()
    assert pages[0]["blocks"].keys() == pages[1]["blocks"].keys()
    assert pages[0]["questions"].keys() == pages[1]["questions"].keys()
    assert design.title("en") != design.title("de")
    for text in ("consent", "instructions", "debriefing"):
        english, german = (design.text(language, text) for language in ("en", "de"))
        assert english.startswith("# ")
        assert english.count("**") == german.count("**"), "the same words are stressed"
    json.dumps(pages)


def test_every_class_of_the_protocols_has_a_word_in_both_languages() -> None:
    from cuebench.labels import label_map

    english, german = (tomllib.loads((WORDS / f"{code}.toml").read_text("utf-8"))["options"] for code in ("en", "de"))
    for name in (*label_map("in16").names, *label_map("refined_bias").names):
        assert name in english
        assert name in german


def test_the_sixteen_classes_have_an_icon_and_no_icon_has_a_script_or_an_address() -> None:
    from cuebench.labels import label_map

    icons = read_design("cue_conflict").icons
    assert set(icons) == set(label_map("in16").names)
    assert not any("script" in svg or "href" in svg or "url(" in svg for svg in icons.values())


def test_published_numbers() -> None:
    refined = read_design("refined_bias")
    assert [(b.task, b.count, b.familiarisation) for b in refined.blocks] == [("shape", 50, 3), ("texture", 50, 3)]
    assert refined.groups == {"A": ("shape", "texture"), "B": ("texture", "shape")}
    assert refined.masks > 0
    conflict = read_design("cue_conflict")
    assert dict(conflict.times) == {"fixation_ms": 300, "image_ms": 200, "mask_ms": 200, "response_ms": 1500}
    words = read_design("texture_words").blocks[0]
    assert (words.choices, words.several) == (4, True)


def test_another_language_falls_back_to_one_that_is_there() -> None:
    design = read_design("triplets")
    assert [design.language(code) for code in ("de", "de-AT", "fr", "")] == ["de", "de", "en", "en"]


def test_an_unknown_design_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UserError, match="Did you mean 'triplets'"):
        read_design("triplet")


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    folder = short_design("refined_bias", tmp_path / "mine")
    path = folder / "design.toml"
    text = path.read_text("utf-8")
    text = text.replace('task = "shape"', 'task = "form"').replace('B = ["texture", "shape"]', 'B = ["textures"]')
    path.write_text(text.replace("noise_ms = 300", "noise = 300") + '\ncolour = "red"\n', "utf-8")
    (folder / "timeline.json").write_text(
        json.dumps({"timeline": [{"type": "html-buton-response", "stimulus": "$picture"}]}), "utf-8"
    )
    (folder / "texts" / "de" / "consent.md").unlink()
    with pytest.raises(UserError) as error:
        read_design(folder)
    for part in ("html-button-response", "$picture", '"answer": true', "texts/de/consent.md is missing"):
        assert part in str(error.value)
    (folder / "texts" / "de" / "consent.md").write_text("# x")
    (folder / "timeline.json").write_text(
        json.dumps({"timeline": [{"for": "trials", "timeline": [{"type": "answer", "answer": True}]}]}), "utf-8"
    )
    with pytest.raises(UserError) as error:
        read_design(folder)
    for part in ("'form'", "'textures'", "times.noise", "'colour'"):
        assert part in str(error.value)


TYPOS = [
    ('"kind"', '"kinds"', "'kinds'"),
    ('"familiarisation"', '"familiarization"', "'familiarization'"),
    ("$times.noise_ms", "$times.nois_ms", "$times.nois_ms"),
    ("$words.start", "$words.begin", "$words.begin"),
    ('"type": "answer"', '"type": "survey-text"', "free = true"),
    ('"for": "trials"', '"for": "trial"', '"for"'),
]


@pytest.mark.parametrize(("right", "wrong", "named"), TYPOS)
def test_a_typo_in_a_timeline_is_found(tmp_path: Path, right: str, wrong: str, named: str) -> None:
    folder = short_design("refined_bias", tmp_path / "mine")
    text = (folder / "timeline.json").read_text("utf-8")
    assert right in text
    (folder / "timeline.json").write_text(text.replace(right, wrong), "utf-8")
    with pytest.raises(UserError) as error:
        read_design(folder)
    assert named in str(error.value)


def test_instructed_checks_need_noise_to_stand_for_an_image(tmp_path: Path) -> None:
    folder = short_design("refined_bias", tmp_path / "mine")
    path = folder / "design.toml"
    path.write_text(path.read_text("utf-8").replace("[masks]\ncount = 4", "[masks]\ncount = 0"), "utf-8")
    with pytest.raises(UserError, match=r"masks\.count"):
        read_design(folder)


def test_the_plug_ins_that_designs_use_are_pinned() -> None:
    assert {"html-button-response", "image-button-response", "survey-text"} <= set(plugins())
