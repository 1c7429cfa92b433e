"""File formats in docs/files.md are read by the code they are meant for; examples in docstrings give what they show."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest
from PIL import Image

from cuebench.analyses.families import read_families
from cuebench.analyses.texture_judgements import read_judgements
from cuebench.labels import label_map, label_space
from cuebench.observers.base import LoadOptions
from cuebench.observers.chat.prompts import read_prompt
from cuebench.observers.load import load
from cuebench.protocols.cue_decomposition.populations import populations
from cuebench.stimuli.answered import write_stimuli
from cuebench.stimuli.decomposition.classes import read_classes
from cuebench.stimuli.readers.cue_conflict import read_table

ROOT = Path(__file__).parents[1]
DOCS, SOURCE = ROOT / "docs", ROOT / "src"
WITH_EXAMPLES = sorted(p for p in SOURCE.rglob("*.py") if re.search(r"^\s*>>> ", p.read_text("utf-8"), re.MULTILINE))
TEXT = (DOCS / "files.md").read_text("utf-8")


def example(heading: str, number: int = 0) -> tuple[str, str]:
    """Return kind and text of the n-th code block below a heading."""
    section = TEXT.split(f"## {heading}")[1].split("\n## ")[0]
    return re.findall(r"```(csv|json)\n(.*?)```", section, re.DOTALL)[number]


@pytest.fixture
def written(tmp_path):
    def write(heading: str, number: int = 0) -> Path:
        kind, text = example(heading, number)
        path = tmp_path / f"example{number}.{kind}"
        path.write_text(text, "utf-8")
        return path

    return write


@pytest.mark.parametrize(
    ("number", "names", "kinds"),
    [
        (0, ["subject-01"], {"person"}),
        (1, ["anna", "bert", "people"], {"person", "people"}),
        (2, ["example2"], {"model"}),
        (3, ["anna", "bert", "people"], {"person", "people"}),
        (4, ["anna", "bert", "people"], {"person", "people"}),
        (5, ["p0001"], {"person"}),
    ],
)
def test_recorded_answers(written, number, names, kinds):
    targets = ("cat", "dog", "car", "ball", "brick") if number == 3 else ("cat", "dog", "car")
    observers = load(f"recorded:{written('Answers of people', number)}", LoadOptions(targets=targets))
    assert [o.name for o in observers] == names
    assert {o.kind for o in observers} == kinds


def test_stimuli_of_answers_and_pictures_of_any_name(written, tmp_path):
    made = write_stimuli(written("Answers of people", 3), tmp_path / "data")
    assert (made.number, made.classes) == (1, ("ball", "brick"))
    (tmp_path / "pictures").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "pictures" / "IMG_0815.png")
    (stimulus,) = read_table(written("Pictures of any name"))
    assert (stimulus.id, stimulus.shape_source, stimulus.texture_source) == ("picture01", "ball1", "wall1")


def test_judgements_of_textures(written):
    judgements = read_judgements(written("What people see in photographs"))
    assert [(j.subject, j.words) for j in judgements] == [("anna", ("grid",)), ("bert", ("grid", "woven"))]


def test_answers_in_words_and_a_prompt(written, tmp_path):
    (observer,) = load(f"recorded:{written('Answers in words')}", LoadOptions(targets=("cat", "dog", "car")))
    assert observer.columns["decisions"].tolist() == ["cat", "dog", "undecided"]
    (tmp_path / "own.txt").write_text(re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL)[0])
    assert "A. cat\nB. dog" in read_prompt(str(tmp_path / "own.txt")).ask(["cat", "dog"])


def test_label_space_and_map(written):
    space = label_space(written("Classes of a model"))
    resolved = label_map(written("Few classes")).resolve(space)
    assert space.names == ("tabby", "golden retriever", "sports car")
    assert not resolved.uncovered


def test_classes_families_and_population(written):
    assert read_classes(written("Masks")).names == ("animal", "background")
    assert [f.expected for f in read_families(written("Families")).members] == ["shape", "neither"]
    (h,) = populations(str(written("A population")), "imagenet", "eed", "voronoi", {}, [])
    assert (h.s, h.t) == pytest.approx((0.47, 0.865))


# ------------------------------------------------------------------------------------------- docstrings


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_examples_in_docstrings_give_what_they_say(path):
    name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted or "+SKIP" in path.read_text("utf-8")
    assert not results.failed
