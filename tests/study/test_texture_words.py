"""Words for the textures that a model's answers resemble: from a run to a study, to people's answers, and back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cuebench.analyses.texture_judgements import identified, judge, read_judgements
from cuebench.cli import invoke
from cuebench.errors import UserError
from cuebench.labels import LabelSpace
from cuebench.observers.preprocess import Preprocess
from cuebench.runs.evaluate import evaluate
from cuebench.study import vendor, visitor
from cuebench.study.folder import NewStudy, Study, new_study, open_study
from cuebench.study.simulate import population
from study_data import export, small_design, take_part

CLASSES = tuple(f"shade {i}" for i in range(8))
TEXTURES = {"dotted": (5, 60), "lined": (70, 120), "woven": (135, 180), "veined": (195, 250)}


class Greys:
    """The class is the mean grey level of the picture."""

    name, kind, fingerprint, labels = "greys", "model", "1", LabelSpace("greys", CLASSES)
    preprocess = Preprocess(size=16, resize=16)
    capabilities = frozenset({"logits"})

    def respond(self, batch, needs):
        level = self.seen(batch.images) / 255 * 8
        return {"logits": -4 * np.abs(level[:, None] - 0.5 - np.arange(8)[None])}

    def seen(self, images):
        return images.mean((1, 2, 3))


class Confused(Greys):
    """Sees photographs, which are bluish here, as the next texture."""

    name, fingerprint = "confused", "2"

    def seen(self, images):
        return (images.mean((1, 2, 3)) + 64 * (images[..., 2] > images[..., 0]).mean((1, 2))) % 256


def flat(path: Path, level: int, blue: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.full((16, 16, 3), level, np.uint8)
    pixels[..., 2] += blue
    Image.fromarray(pixels).save(path)


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Study:
    """A study of the photographs of a run, beside that run: four textures of grey, twenty photographs."""
    root = tmp_path_factory.mktemp("words")
    for name, (low, high) in TEXTURES.items():
        for i, level in enumerate(np.linspace(low, high, 6).astype(int)):
            flat(root / "textures" / name / f"{i}.png", int(level))
    for i, level in enumerate(range(6, 246, 12)):
        flat(root / "imagenet_val" / CLASSES[level // 32] / f"{i}.png", level, blue=3)
    evaluate([Greys(), Confused()], "texture_association", data_root=root, out=root / "run", resamples=100, workers=0)
    design = small_design("texture_words", root / "design", pixels="16", count="8", attention="1")
    command = ["study", "new", str(root / "study"), "--design", design, "--data-root", str(root)]
    assert invoke([*command, "--run", str(root / "run"), "-q"]) == 0
    return open_study(root / "study")


def analysed(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, float]:
    """Return the agreement that ``study analyse`` finds, and how many answers it rests on."""
    capsys.readouterr()
    assert invoke(["study", "analyse", *map(str, arguments), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    found = next(r for r in rows if r["measure"] == "tid_agreement" and not r["part"])
    return {"value": found["value"], "n": found["n"]}


def test_the_words_of_a_study_are_the_textures_that_the_run_identified(study: Study) -> None:
    words = {row.image: row.texture for row in identified(study.folder.parent / "run")[1]}
    asked = [trial for trial in study.assign(0)[1] if trial.kind == "trial"]
    assert len(asked) == 8
    for trial in asked:
        image = study.images[trial.stimuli[0]]
        assert image.texture == words[image.name]
        assert image.texture in trial.options
        assert sorted(trial.options) == sorted(TEXTURES)


def test_people_are_analysed_with_the_textures_of_a_run(study: Study, tmp_path: Path, capsys) -> None:
    """With the run of the study, and with one that identified other textures; counted in two ways."""
    place = tmp_path / "study"
    shutil.copytree(study.folder, place)
    copy = open_study(place)
    take_part(copy, population("ideal:texture?words_accuracy=0.8&person_sd=0"), 40)
    answers, run = export(copy, tmp_path / "answers.parquet"), study.folder.parent / "run"
    found = analysed(capsys, answers, "--run", run)
    assert found == analysed(capsys, answers), "the study keeps the textures of its run"
    assert found["n"] == 320
    assert found["value"] == pytest.approx(0.8, abs=0.08)
    judged = judge(read_judgements(answers), identified(run)[1], resamples=100)
    assert found["value"] == pytest.approx(judged.overall.value, abs=1e-12)
    wrong = analysed(capsys, answers, "--run", run, "--observer", "confused")
    assert wrong["n"] == 320
    assert wrong["value"] < 0.3, "nobody was asked to name these"


@pytest.mark.slow
@pytest.mark.xdist_group("study pages")
def test_a_hurried_rehearsal_in_two_browsers_recovers_what_was_planted(study: Study, tmp_path: Path, capsys) -> None:
    """Nothing is lost, and no time is reported that nobody measured."""
    pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    if vendor.missing():
        pytest.skip(f"needs jsPsych: {vendor.COMMAND}")
    if not any(map(shutil.which, visitor._CHROMIUMS)):
        pytest.skip("needs a browser: apt-get install chromium")
    out, pictures = tmp_path / "answers.csv", tmp_path / "pictures"
    command = ["study", "rehearse", str(study.folder), "--participants", "3", "--at-once", "2", "--hurry", "--json"]
    options = ["--out", str(out), "--screenshots", str(pictures), "-o", "ideal:texture?words_accuracy=1"]
    assert invoke([*command, *options]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["problems"] == []
    assert result["answers"] == 3 * 9
    assert len(set(result["finished"])) == len(set(result["codes"])) == 3
    assert result["hurried"]
    assert result["own_seconds"] == pytest.approx(9 * 0.2)
    rows = result["analysis"]["rows"]
    assert next(r for r in rows if r["measure"] == "tid_agreement" and not r["part"])["value"] == 1
    assert not [r for r in rows if r["measure"] in ("reaction_time", "shown_off")]
    assert {path.name.split("_")[0] for path in pictures.iterdir()} == {"desktop", "phone"}
    text = out.read_text("utf-8")
    assert text.count("hurried") == 27
    assert not (study.folder / "study.sqlite").exists(), "the study's own database is not touched"


def test_without_a_data_root_that_of_the_run_is_named(study: Study, tmp_path: Path) -> None:
    root = study.folder.parent
    new = NewStudy(design=str(root / "design"), run=root / "run")
    with pytest.raises(UserError, match="no folder was named") as caught:
        new_study(tmp_path / "new", new)
    assert caught.value.hint == f"name the data root of that run: --data-root {root}"
