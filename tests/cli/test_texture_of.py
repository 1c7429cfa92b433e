"""The verb texture-of: measures the model once, explains any number of images."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from cuebench.cli import invoke, verbs

MODEL = '''
import numpy as np
class Bright:
    """Dark pictures are night, light ones day."""
    def __call__(self, images):
        level = images.mean(axis=(1, 2, 3))
        return np.stack([-8 * level, 8 * level], 1)
def make():
    return Bright()
'''


@pytest.fixture
def world(tmp_path):
    for name, level in (("dim", 30), ("glare", 230)):
        for i in range(20):
            path = tmp_path / "data" / "textures" / name / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.full((16, 16, 3), level + i, np.uint8)).save(path)
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "labels.json").write_text(json.dumps({"names": ["night", "day"]}))
    Image.fromarray(np.full((16, 16, 3), 20, np.uint8)).save(tmp_path / "image.png")
    spec = f"python:{tmp_path}/model.py:make?labels={tmp_path}/labels.json&preprocess.size=16&fingerprint=1"
    return tmp_path, ["texture-of", str(tmp_path / "image.png"), "-o", spec, "--run", str(tmp_path / "run")]


def test_it_is_a_verb():
    assert "texture-of" in verbs()


def test_measures_once_and_explains(world, capsys):
    root, call = world
    card = root / "card.svg"
    arguments = [*call, "--data-root", str(root / "data"), "--label", "day", "--json", "--draw", str(card)]
    assert invoke(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["texture"], found["explains_error"]) == ("dim", True)
    assert card.read_text().startswith("<svg")
    (record,) = (root / "run").glob("*/run.json")
    made = record.stat().st_mtime_ns
    assert invoke([*call, "--data-root", str(root / "data")]) == 0
    assert "dim" in capsys.readouterr().out
    assert record.stat().st_mtime_ns == made, "the textures must not be shown again"
    assert invoke([*call[:-1], str(record.parent), "--quiet"]) == 0, "the run itself can be named too"


def test_without_data_textures_are_drawn_and_shown_once(world, capsys, monkeypatch):
    """The plain call of the documentation: no run, no data."""
    monkeypatch.setattr("cuebench.analyses.explain_image.DRAWN", 30)
    root, call = world
    assert invoke([*call, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["predictions"][0][0] == "night"
    assert found["textures_from"].endswith("textures, 30 pictures: procedural textures")
    (record,) = (root / "run").glob("*/run.json")
    made = record.stat().st_mtime_ns
    assert invoke([*call, "--quiet"]) == 0
    assert record.stat().st_mtime_ns == made, "the textures must not be shown again"


def test_other_weights_under_the_same_name_are_measured_anew(world, capsys):
    root, call = world
    call[3] = call[3].removesuffix("&fingerprint=1")
    call += ["--data-root", str(root / "data"), "--json"]
    for expected in ("night", "day"):
        assert invoke(call) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["texture"] == "dim"
        assert [name for name, _ in found["classes"]] == [expected], "the ties must be those of the weights"
        # The same file, the same name, the same run folder; the model now knows night from day the other way round.
        (root / "model.py").write_text(MODEL.replace("[-8 * level, 8 * level]", "[8 * level, -8 * level]"))


def test_a_run_of_other_data_is_never_taken(world, capsys):
    """The same model, other textures: measured anew in a folder of its own; a named run with other data is refused."""
    root, call = world
    other = root / "other" / "textures"
    for name, level in (("pale", 30), ("shiny", 230)):
        for i in range(20):
            (other / name).mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.full((16, 16, 3), level + i, np.uint8)).save(other / name / f"{i}.png")
    for data, texture in (("data", "dim"), ("other", "pale"), ("data", "dim")):
        assert invoke([*call, "--data-root", str(root / data), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["texture"] == texture
        assert found["textures_from"] == f"2 textures, 40 pictures: textures below {root / data}"
    runs = sorted((root / "run").glob("*/run.json"))
    assert len(runs) == 2
    Image.fromarray(np.full((16, 16, 3), 77, np.uint8)).save(other / "pale" / "20.png")
    assert invoke([*call, "--data-root", str(root / "other"), "--quiet"]) == 0
    assert len(list((root / "run").glob("*/run.json"))) == 3, "another picture is other data"
    call[5] = str(runs[0].parent)
    refused = [invoke([*call, "--data-root", str(root / data), "--quiet"]) for data in ("data", "other")]
    assert sorted(refused) == [0, 2]
    assert "not with those of" in capsys.readouterr().err
    assert invoke(call) == 0, "without a data root the run says which data it has"
    assert "measured on 2 textures, 40 pictures" in " ".join(capsys.readouterr().out.split())


def test_a_named_run_of_other_weights_is_refused(world, capsys):
    root, call = world
    assert invoke([*call, "--data-root", str(root / "data"), "--quiet"]) == 0
    (record,) = (root / "run").glob("*/run.json")
    call[3] = call[3].replace("fingerprint=1", "fingerprint=2")
    call[5] = str(record.parent)
    assert invoke(call) == 2
    assert "with these weights" in " ".join(capsys.readouterr().err.split())


def test_a_missing_image_is_one_clear_error(world, capsys):
    root, call = world
    call[1] = str(root / "gone.png")
    assert invoke(call) == 2
    assert "no image" in capsys.readouterr().err
