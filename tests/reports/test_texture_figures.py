"""Figures and the explanation of one image: drawn from a real run folder of a small observer with planted answers."""

from __future__ import annotations

import hashlib
import json
import shutil

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

import cuebench as cb
from cuebench.analyses.texture_of import Association, association_of
from cuebench.errors import UserError
from cuebench.files import parquet_bytes, read_parquet
from cuebench.labels import LabelSpace
from cuebench.observers.preprocess import Preprocess
from cuebench.registry import figures, protocols
from cuebench.reports import run_data, vega
from cuebench.runs.evaluate import evaluate
from cuebench.runs.record import RunRecord
from cuebench.runs.results import read_scores

CLASSES = tuple(f"shade {i}" for i in range(8))
DARK, LIGHT = 40, 220
TEXTURES = {"night": (20, 60), "fog": (170, 250)}


class Greys:
    """The class is the mean grey level of the picture; a little noise of the pixels keeps it from being certain."""

    name, kind, fingerprint, labels = "greys", "model", "1", LabelSpace("greys", CLASSES)
    preprocess = Preprocess(size=16, resize=16)
    capabilities = frozenset({"logits"})

    def respond(self, batch, needs):
        level = batch.images.mean((1, 2, 3)) / 255 * 8
        return {"logits": -4 * np.abs(level[:, None] - 0.5 - np.arange(8)[None])}


def flat(path, level):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((16, 16, 3), level, np.uint8)).save(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Dark and light textures; photographs of the same levels, some of them with the wrong label."""
    root = tmp_path_factory.mktemp("figures")
    for name, (low, high) in TEXTURES.items():
        for i, level in enumerate(np.linspace(low, high, 24).astype(int)):
            flat(root / "textures" / name / f"{i}.png", int(level))
    for folder in ("imagenet_val", "imagenet_a"):
        for i, level in enumerate(range(10, 250, 12)):
            wrong = folder == "imagenet_a" or i % 5 == 0
            flat(root / folder / CLASSES[(level // 32 + wrong * 4) % 8] / f"{i}.png", level)
    evaluate(Greys(), "texture_association", data_root=root, out=root / "run", resamples=100, workers=1)
    return root / "run"


def test_figures_show_what_the_data_say(run):
    bars = figures.get("tav_bars")(run)
    assert {r["texture"] for r in bars.data} == {"night", "fog"}
    assert [r["value"] for r in bars.data] == sorted((r["value"] for r in bars.data), reverse=True)
    heat = figures.get("tav_heatmap")(run, observer="grey")
    assert {r["texture"] for r in heat.data} == {"night", "fog"}
    strongest = max(heat.data, key=lambda r: r["tav"])
    assert strongest["tav"] == pytest.approx(bars.data[0]["value"])
    agreement = figures.get("texture_agreement")(run)
    assert "Texture of natural adversarial images is that of" in {r["panel"] for r in agreement.data}
    confidence = figures.get("texture_confidence")(run)
    assert sum(r["share"] for r in confidence.data) == pytest.approx(1)
    dominance = figures.get("texture_dominance")(run)
    assert {r["by"] for r in dominance.data} == {"label", "prediction"}


def test_classes_with_few_images_are_left_out_and_counted(run):
    few = figures.get("texture_dominance")(run, fewest=3)
    assert min(sum(r["n"] for r in few.data if (r["by"], r["class"]) == key) for key in
               {(r["by"], r["class"]) for r in few.data}) >= 3  # fmt: skip
    assert "with fewer than 3 images are left out" in few.subtitle
    with pytest.raises(UserError, match="no class of greys has 99 images"):
        figures.get("texture_dominance")(run, fewest=99)


def test_mistakes(run, tmp_path):
    with pytest.raises(UserError, match="has no table"):
        figures.get("tav_heatmap")(tmp_path)
    with pytest.raises(UserError, match="observer of this run"):
        figures.get("tav_heatmap")(run, observer="resnet")


# ----------------------------------------------------------------------------------------------------- one image


def test_texture_of_an_image_from_python(run):
    image = np.full((20, 30, 3), DARK, np.uint8)
    found = cb.texture_of(image, Greys(), run)
    assert found.texture == "night"
    assert found.prediction == "shade 1"
    assert found.texturedness > 0.5
    assert found.classes[0].name in {"shade 0", "shade 1"}
    assert [t.name for t in found.likeness] == ["night", "fog"]
    assert found.explains_error is None
    light = cb.texture_of(Image.fromarray(np.full((9, 9, 3), LIGHT, np.uint8)), Greys(), association_of(run, "greys"))
    assert light.texture == "fog"


def association(dominant):
    tav = np.zeros((2, 8))
    tav[0, 0], tav[1, 5], tav[0, 1] = 0.9, 0.8, 0.4
    return Association(tav, ("night", "fog"), Greys.labels, dominant)


@pytest.mark.parametrize(
    ("level", "label", "explains", "words"),
    [
        (10, "shade 5", True, "texture explains the error"),
        (10, "shade 1", False, "cannot tell them apart"),
        (10, "shade 0", None, "the answer is right"),
        (10, "", None, "is the usual texture of 'shade 0'"),
        (110, "shade 5", False, "no texture resembles this (the nearest, 'fog', has a cosine of 0.00)"),
    ],
)
def test_verdicts(level, label, explains, words):
    found = cb.texture_of(np.full((8, 8, 3), level, np.uint8), Greys(), association({}), label=label)
    assert found.explains_error is explains
    assert words in found.verdict


def test_a_texture_that_is_not_usual_explains_nothing():
    unusual = association({"shade 0": "fog"})
    found = cb.texture_of(np.full((8, 8, 3), 10, np.uint8), Greys(), unusual, label="shade 5")
    assert (found.texture, found.explains_error) == ("night", False)
    assert "texture does not explain the error" in found.verdict


def test_no_texture_is_named_where_none_resembles_the_image():
    """It headlined "crystalline 0.01" for a cat; the nearest still stands in the list."""
    found = cb.texture_of(np.full((8, 8, 3), 110, np.uint8), Greys(), association({}))
    assert (found.texture, found.classes, found.explains_error) == ("", (), None)
    assert 0 < found.texturedness < 0.1
    assert found.likeness[0].name == "fog"


def test_usual_textures_come_from_clean_images_where_there_are_some():
    assert association({}).usual("shade 0") == "night"
    assert association({"shade 0": "fog"}).usual("shade 0") == "fog"
    assert association({}).usual("shade 7") == ""


@pytest.mark.parametrize(("name", "value"), [("fingerprint", "2"), ("preprocess", Preprocess(size=16, resize=18))])
def test_another_model_of_the_same_name_is_refused(run, name, value):
    other = Greys()
    setattr(other, name, value)
    with pytest.raises(UserError, match="with these weights and this preprocessing"):
        cb.texture_of(np.full((8, 8, 3), DARK, np.uint8), other, run)


def test_wrong_input_of_texture_of(run, tmp_path):
    image = np.zeros((8, 8, 3), np.uint8)
    with pytest.raises(UserError, match="no class 'tabby'"):
        cb.texture_of(image, Greys(), run, label="tabby")
    with pytest.raises(UserError, match="float64"):
        cb.texture_of(np.zeros((8, 8, 3)), Greys(), run)
    with pytest.raises(UserError, match="a TAV belongs to one model"):
        cb.texture_of(image, Greys(), Association(np.ones((1, 2)), ("a",), LabelSpace("b", ("x", "y")), {}))
    with pytest.raises(UserError, match="does not fit"):
        Association(np.ones((1, 3)), ("a",), LabelSpace("b", ("x", "y")), {})
    with pytest.raises(UserError, match="not a run folder"):
        cb.texture_of(image, Greys(), tmp_path)


def test_card_shows_textures_classes_and_predictions(run):
    from cuebench.reports.figures.texture_of import texture_of as card

    image = Image.fromarray(np.full((20, 30, 3), DARK, np.uint8))
    found = cb.texture_of(image, Greys(), run, label="shade 6")
    picture = card(found, image)
    assert picture.title.startswith("night")
    assert found.verdict in picture.subtitle
    assert len({r["list"] for r in picture.data}) == 3


def test_sheet_of_textures():
    sheet = figures.get("texture_sheet")(textures=["grid", "polka_dotted", "fur"], columns=2)
    spec = sheet.unfitted(200, 240)
    assert vega.drawn(spec)[""]["image"] == 3
    assert "polka dotted" in json.dumps(spec)
    one, two = (figures.get("texture_sheet")(textures=["grid"], variant=k).unfitted(200, 240) for k in (1, 2))
    assert one["datasets"] != two["datasets"]


OF_TABLES = {
    "tav_heatmap": "tav",
    "texture_dominance": "groups",
    "texture_confidence": "confidence",
    "texture_examples": "images",
    "texture_agreement_classes": "agreement",
}
"""Figure → the table that it draws."""


def with_table(run, folder, name, table):
    """Copy a run with another table, which its record names as its own."""
    shutil.copytree(run, folder, ignore=shutil.ignore_patterns("responses"))
    data = parquet_bytes(table)
    (folder / name).write_bytes(data)
    record = RunRecord.read(folder)
    record.files[name] = hashlib.sha256(data).hexdigest()
    record.write(folder)
    return folder


@pytest.mark.parametrize("figure", OF_TABLES)
def test_a_table_of_another_version_is_named_with_what_to_do(run, tmp_path, figure):
    refused = {}
    name = f"tables/texture_association.{OF_TABLES[figure]}.parquet"
    table = read_parquet((run / name).read_bytes())
    for column in table.column_names:
        folder = with_table(run, tmp_path / column, name, table.drop_columns([column]))
        try:
            figures.get(figure)(folder)
        except UserError as error:
            refused[column] = error
    assert "observer" in refused
    assert len(refused) > 1
    for column, error in refused.items():
        assert f"has no column {column!r}" in error.message
        assert error.hint == f"score it again: cuebench score {tmp_path / column}"


@pytest.mark.parametrize("figure", OF_TABLES)
def test_a_table_with_other_values_is_refused(run, tmp_path, figure):
    name = f"tables/texture_association.{OF_TABLES[figure]}.parquet"
    table = read_parquet((run / name).read_bytes())
    place = next(k for k, field in enumerate(table.schema) if field.type in (pa.int64(), pa.float64()))
    column = table.column_names[place]
    words = table.set_column(place, column, pa.array(["x"] * len(table)))
    with pytest.raises(UserError, match=f"'{column}' holds string, not "):
        figures.get(figure)(with_table(run, tmp_path / "words", name, words))
    gaps = table.set_column(place, column, pa.nulls(len(table), table.schema.field(place).type))
    with pytest.raises(UserError, match=f"'{column}' holds .* with gaps"):
        figures.get(figure)(with_table(run, tmp_path / "gaps", name, gaps))
    strangers = table.set_column(0, "observer", pa.array(["somebody else"] * len(table)))
    with pytest.raises(UserError, match=r"names an observer that .*: 'somebody else'"):
        figures.get(figure)(with_table(run, tmp_path / "strangers", name, strangers))


@pytest.mark.parametrize(
    ("table", "column", "value", "why"),
    [
        ("tav", "texture", "a texture of nobody", "fits no texture or class"),
        ("tav", "position", 10**6, "fits no texture or class"),
        ("tav", "position", -1, "'position' holds -1: counts and positions begin at 0"),
        ("tav", "tav", 1.5, "is not between 0 and 1"),
        ("tav", "tav", float("nan"), "is not between 0 and 1"),
        ("textures", "texture", "", "a texture occurs twice|fits no texture"),
    ],
)
def test_an_association_that_fits_nothing_is_refused(run, tmp_path, table, column, value, why):
    name = f"tables/texture_association.{table}.parquet"
    before = read_parquet((run / name).read_bytes())
    place = before.column_names.index(column)
    forged = before.set_column(place, before.schema.field(place), pa.array([value] * len(before)))
    folder = with_table(run, tmp_path / "run", name, forged)
    with pytest.raises(UserError, match=why) as error:
        association_of(folder, "greys")
    assert error.value.hint == f"score it again: cuebench score {folder}"


def test_tables_are_what_the_protocol_declares(run):
    for name, declared in protocols.get("texture_association").tables.items():
        path = run / "tables" / f"texture_association.{name}.parquet"
        if name != "layers":  # which are measured where they are asked for
            assert {f.name: str(f.type) for f in read_parquet(path.read_bytes()).schema} == declared


def test_a_figure_reads_the_scores_once(run, monkeypatch):
    read = []
    monkeypatch.setattr(run_data, "read_scores", lambda folder: read.append(folder) or read_scores(folder))
    figures.get("tav_heatmap")(run)
    assert read == [run]
